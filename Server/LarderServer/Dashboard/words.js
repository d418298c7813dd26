// Formats numbers, times and exchanges.

const counted = new Intl.NumberFormat("en");

function bytesText(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

function secondsText(seconds) {
  if (seconds === 0) return "0 s";
  const [value, unit] = seconds < 0.000_999_5 ? [seconds * 1e6, "µs"]
    : seconds < 0.999_5 ? [seconds * 1e3, "ms"]
    : seconds < 120 ? [seconds, "s"]
    : [seconds / 60, "min"];
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${unit}`;
}

const percentText = (part, whole) => `${whole > 0 ? Math.round((100 * part) / whole) : 0} %`;

const clipped = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/** How an exchange went, as the page sorts and colours it. */
const kinds = [
  { id: "ok", name: "answered" },
  { id: "same", name: "304" },
  { id: "client", name: "4xx" },
  { id: "server", name: "5xx" },
  { id: "cut", name: "cut or unanswered" },
];

function kindOf(entry) {
  if (entry.kind === "frame") return "frame";
  if (entry.outcome !== "complete") return "cut";
  if (entry.status === 304) return "same";
  return entry.status >= 500 ? "server" : entry.status >= 400 ? "client" : "ok";
}

const targetOf = (entry) => entry.path + (entry.query === undefined ? "" : "?" + entry.query);

function answerOf(entry) {
  if (entry.kind === "frame") return entry.direction === "sent" ? "frame sent" : "frame received";
  const kind = kindOf(entry);
  if (kind !== "cut") return String(entry.status);
  return entry.status ? `${entry.status} ${entry.outcome}` : entry.outcome;
}

/** Which exchanges a fault is for, in a line. */
function matchText(match = {}) {
  const parts = [match.method ?? "any method", match.path ?? "any path"];
  if (match.user) parts.push(`by ${match.user}`);
  if (match.device) parts.push(`from ${match.device}`);
  for (const [name, value] of Object.entries(match.headers ?? {})) parts.push(`with ${name}: ${value}`);
  for (const [name, value] of Object.entries(match.query ?? {})) parts.push(`with ${name}=${value}`);
  for (const [name, value] of Object.entries(match.body ?? {})) parts.push(`with body${name} = ${value}`);
  if (match.connection) parts.push(`on connection ${match.connection}`);
  if (match.exchange) parts.push(`exchange ${match.exchange}`);
  if (match.probability !== undefined) parts.push(`probability ${Math.round(match.probability * 1000) / 10} %`);
  if (match.after) parts.push(`after ${match.after}`);
  if (match.every) parts.push(`every ${match.every}.`);
  if (match.count !== undefined) parts.push(`at most ${match.count}×`);
  if (match.fromSeconds || match.untilSeconds) parts.push(`${match.fromSeconds ?? 0} to ${match.untilSeconds ?? "∞"} s`);
  if (match.periodSeconds) parts.push(`of every ${match.periodSeconds} s`);
  return parts.join(", ");
}

/** What a fault does, in a line. */
function actionText(action) {
  const rest = Object.entries(action).filter(([name]) => name !== "type" && name !== "body");
  const plain = (value) => {
    if (Array.isArray(value)) return value.join(" to ");
    if (typeof value !== "object" || value === null) return String(value);
    return Object.entries(value).map(([name, inner]) => `${name} ${plain(inner)}`).join(" ");
  };
  return [action.type, ...rest.map(([name, value]) => `${name} ${plain(value)}`)].join(", ");
}
