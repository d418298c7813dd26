// The table of requests: newest first, filtered; each row opens its details.

const rows = new Map();
let filterWords = [];

/** What a perfect cache would have done, where that is something else. */
const verdictsOf = (entry) =>
  (entry.verdicts ?? []).filter(({ rule, wastedBytes }) => rule || wastedBytes)
    .map(({ text }) => make("span", { class: "verdict" }, text));

function row(entry) {
  const kind = kindOf(entry);
  const target = make(
    "button",
    { type: "button", class: "target", "aria-expanded": "false" },
    make("b", {}, entry.kind === "frame" ? (entry.direction === "sent" ? "←" : "→") : entry.method), "\u00a0",
    entry.kind === "frame" ? `${entry.channel} ${targetOf(entry)}` : targetOf(entry),
  );
  const applied = (entry.faults ?? []).map((fault) => make("span", { class: "applied", title: fault.action }, fault.fault));
  if (entry.injectedFault) applied.push(make("span", { class: "applied" }, entry.injectedFault));
  const who = entry.user && entry.device !== `user:${entry.user}` ? `${entry.device}, ${entry.user}` : entry.device;
  const element = make(
    "tr",
    { class: "entry" },
    make("td", { class: "far" }, String(entry.number)),
    make("td", { class: "far mid", title: entry.at }, entry.at.slice(11, 23)),
    make("td", {}, target, ...applied, ...verdictsOf(entry)),
    make("td", { class: `answer tone-${kind}` }, answerOf(entry)),
    make("td", { class: "number" }, entry.kind === "frame" ? "" : secondsText(entry.durationSeconds)),
    make("td", { class: "number far mid" }, bytesText(entry.kind === "frame" ? entry.bytes : entry.bytesSent)),
    make("td", { class: "far" }, clipped(who, 30)),
  );
  element.addEventListener("click", (event) => {
    // Selecting text is not a click on the row.
    if (event.target.closest("button") === null && String(getSelection()) !== "") return;
    toggle(entry.number);
  });
  const words = [
    `#${entry.number}`, kind, entry.method, targetOf(entry), answerOf(entry), entry.device, entry.user, entry.channel,
    entry.token, ...(entry.verdicts ?? []).map((verdict) => verdict.text), ...(entry.faults ?? []).flatMap((fault) => [fault.fault, fault.action]),
  ].filter((word) => word !== undefined);
  return { entry, element, target, detail: null, text: words.join(" ").toLowerCase() };
}

function toggle(number, mustOpen = false) {
  const item = rows.get(number);
  if (!item || (mustOpen && item.detail)) return;
  if (item.detail) {
    item.detail.remove();
    item.detail = null;
  } else {
    item.detail = make("tr", { class: "detail" }, make("td", { colspan: 7 }, details(item.entry)));
    item.element.after(item.detail);
  }
  item.element.classList.toggle("open", item.detail !== null);
  item.target.setAttribute("aria-expanded", String(item.detail !== null));
}

/** Opens an entry and brings it into sight; false where it is not among those shown. */
function reveal(number) {
  const item = rows.get(number);
  if (!item) return false;
  item.element.hidden = false;
  toggle(number, true);
  item.target.focus({ preventScroll: true });
  item.element.scrollIntoView({ block: "center" });
  return true;
}

function passes(item) {
  if (item.entry.kind === "frame" && !find("frames").checked) return false;
  return filterWords.every((word) => item.text.includes(word));
}

function sift(item) {
  const isHidden = !passes(item);
  item.element.hidden = isHidden;
  if (item.detail) item.detail.hidden = isHidden;
}

/** Shows what is new, or all anew; rows that were open and are still there stay open. */
function showEntries(news, isAnew) {
  const body = find("entries");
  if (isAnew) {
    const open = new Map([...rows.values()].filter((item) => item.detail).map((item) => [item.entry.number, item.entry.at]));
    rows.clear();
    body.replaceChildren();
    insert(news, body);
    for (const entry of news) if (open.get(entry.number) === entry.at) toggle(entry.number);
  } else if (news.length > 0) {
    insert(news, body);
  }
  describeRows();
}

function insert(news, body) {
  // The scroll position is kept when rows are added above it.
  const scroller = find("rows");
  const before = scroller.scrollTop > 0 ? scroller.scrollHeight : null;
  const fragment = document.createDocumentFragment();
  for (const entry of news) {
    const item = row(entry);
    sift(item);
    rows.set(entry.number, item);
    fragment.prepend(item.element);
  }
  body.prepend(fragment);
  if (before !== null) scroller.scrollTop += scroller.scrollHeight - before;
  const first = journal.entries[0]?.number ?? 0;
  for (const [number, item] of rows) {
    if (number >= first) break;
    item.detail?.remove();
    item.element.remove();
    rows.delete(number);
  }
}

function describeRows() {
  const visible = [...rows.values()].filter(passes).length;
  const parts = [visible === rows.size ? `the last ${counted.format(rows.size)}` : `${visible} of the last ${rows.size}`];
  if (journal.paused) parts.push(`paused, ${counted.format(journal.waitingCount)} waiting`);
  find("requests-note").textContent = rows.size > 0 || journal.paused ? parts.join("; ") : "";
  const empty = find("empty");
  empty.hidden = visible > 0;
  if (visible > 0) return;
  if (journal.capacity === 0) {
    empty.replaceChildren("The journal is disabled (--no-journal), so requests cannot be shown. Everything else works.");
  } else if (rows.size > 0) {
    empty.replaceChildren("No request matches the filter.");
  } else if (journal.capacity === null) {
    empty.replaceChildren("Reading the journal.");
  } else {
    const base = location.origin + (shown.world === "main" ? "" : `/w/${shown.world}`);
    empty.replaceChildren("No request yet. Point a client here, or try:", make("pre", {}, `curl -i '${base}/'`));
  }
}

function startTable() {
  const sieve = () => {
    filterWords = find("filter").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    for (const item of rows.values()) sift(item);
    describeRows();
  };
  find("filter").addEventListener("input", sieve);
  find("frames").addEventListener("change", sieve);
  find("pause").addEventListener("click", () => {
    setPaused(!journal.paused);
    find("pause").classList.toggle("on", journal.paused);
    find("pause").textContent = journal.paused ? "Resume" : "Pause";
  });
}
