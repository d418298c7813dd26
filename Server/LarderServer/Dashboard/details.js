// All journal data of an exchange or a frame.

const pairs = (items) =>
  make("dl", { class: "pairs" }, ...items.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));

const part = (title, ...content) => make("div", {}, make("h4", {}, title), ...content);

/** How the time passed: what was put there on purpose, and the rest. */
function phases(entry) {
  // On a manual clock the injected time can exceed the duration.
  const injected = Math.min(entry.injectedSeconds ?? 0, entry.durationSeconds);
  const own = entry.durationSeconds - injected;
  const items = [["in the server", secondsText(own)], ["injected by faults and gates", secondsText(entry.injectedSeconds ?? 0)]];
  const label = `${percentText(injected, entry.durationSeconds)} injected`;
  const bar = make("div", { class: "phases", role: "img", "aria-label": label });
  for (const [share, tone] of [[own, "fill-ok"], [injected, "fill-cut"]]) {
    if (share <= 0) continue;
    const piece = make("i", { class: tone });
    piece.style.flexGrow = share / (entry.durationSeconds || 1);
    bar.append(piece);
  }
  return part("Time", bar, pairs(items));
}

function curlPart(entry) {
  const text = make("pre", {}, "…");
  const button = make("button", { type: "button", onclick: () => copy(text, button) }, "Copy");
  request("GET", inWorld(`/journal/${entry.number}/curl`), { accept: "text/plain" })
    .then((reply) => reply.text())
    .then((line) => { text.textContent = line.trimEnd(); })
    .catch((error) => {
      text.textContent = error.message;
      button.hidden = true;
    });
  return part("curl command", text, make("div", { class: "buttons" }, button));
}

/** Puts a text on the clipboard, or where that is not allowed selects it. */
async function copy(element, button) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(element);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function details(entry) {
  const place = make("div", {});
  const facts = [["at", entry.at], ["connection", entry.connection]];
  if (entry.exchange) facts.push(["exchange", `${entry.exchange} on this connection`]);
  facts.push(["device", entry.device]);
  if (entry.user) facts.push(["user", entry.user]);
  if (entry.kind === "frame") {
    facts.push(["channel", entry.channel], ["direction", entry.direction], ["bytes", entry.bytes]);
    if (entry.token) facts.push(["change token", entry.token]);
    if (entry.injectedFault) facts.push(["fault", entry.injectedFault]);
    place.append(part(`Frame ${entry.number}`, pairs(facts)));
    return place;
  }
  facts.push(["outcome", answerOf(entry)], ["bytes sent", `${entry.bytesSent}, of which ${entry.bodyBytes} are the body`]);
  if (entry.commit) facts.push(["commit", entry.commit]);
  if (entry.carriedOut) facts.push(["carried out", "yes, and its client does not know it"]);
  const columns = make("div", { class: "columns" }, part(`Exchange ${entry.number}`, pairs(facts)), phases(entry));
  const validators = Object.entries(entry.validators ?? {});
  if (validators.length > 0) {
    const names = { etag: "ETag", lastModified: "Last-Modified", ifNoneMatch: "If-None-Match", ifMatch: "If-Match" };
    columns.append(part("Validators", pairs(validators.map(([name, value]) => [names[name] ?? name, value]))));
  }
  if (entry.faults) {
    const application = ({ fault, action, stage, ordinal }) => [fault, `${action} at ${stage}, on exchange ${ordinal} of this device`];
    columns.append(part("Applied faults", pairs(entry.faults.map(application))));
  }
  if (entry.verdicts) {
    const waste = ({ wastedBytes, wastedSeconds }) =>
      [wastedBytes && bytesText(wastedBytes), wastedSeconds && secondsText(wastedSeconds)].filter(Boolean).join(", ");
    columns.append(part("Verdict", pairs(entry.verdicts.map((verdict) => [verdict.text, waste(verdict) && `wasted: ${waste(verdict)}`]))));
  }
  if (entry.gates) columns.append(part("Held by gates", pairs(entry.gates.map((gate) => ["gate", gate]))));
  const fields = (list) => pairs(list.map((field) => [field.name, field.value]));
  const message = make("div", { class: "columns" }, part("Request", fields(entry.requestFields)));
  const isAnswered = entry.replyFields.length > 0;
  message.append(part("Reply", isAnswered ? fields(entry.replyFields) : make("p", { class: "quiet" }, "None.")));
  if (entry.requestBody !== undefined) {
    const text = typeof entry.requestBody === "string" ? entry.requestBody : JSON.stringify(entry.requestBody, null, 2);
    message.append(part(`Body of the request, ${bytesText(entry.requestBodyBytes)}`, make("pre", {}, text)));
  }
  const choose = make("button", { type: "button", onclick: () => chooseForComparison(entry.number) }, "Compare");
  place.append(columns, message, make("div", { class: "buttons" }, choose), curlPart(entry));
  return place;
}
