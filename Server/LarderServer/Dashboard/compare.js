// Two entries of the journal side by side: what differs, and how much is the same.

const comparison = { first: null };

/** The parts of an entry that are compared, as lists of names and values. */
function comparable(entry) {
  const facts = [
    ["method", entry.method], ["path", entry.path], ["query", entry.query], ["device", entry.device], ["user", entry.user],
    ["answer", answerOf(entry)], ["body bytes", entry.bodyBytes], ["bytes sent", entry.bytesSent],
    ["duration", entry.durationSeconds === undefined ? undefined : secondsText(entry.durationSeconds)],
    ["injected", entry.injectedSeconds ? secondsText(entry.injectedSeconds) : undefined],
    ["faults", (entry.faults ?? []).map(({ fault }) => fault).join(", ")],
    ["verdict", (entry.verdicts ?? []).map(({ text }) => text).join("; ")],
  ];
  const body = entry.requestBody === undefined ? []
    : typeof entry.requestBody === "object" && entry.requestBody !== null && !Array.isArray(entry.requestBody)
      ? Object.entries(entry.requestBody).map(([name, value]) => [name, JSON.stringify(value)])
      : [["body", String(entry.requestBody)]];
  const fields = (list) => (list ?? []).map(({ name, value }) => [name.toLowerCase(), value]);
  return [["Exchange", facts], ["Request", fields(entry.requestFields)], ["Body of the request", body], ["Reply", fields(entry.replyFields)]];
}

/** The union of the names in the order of their first occurrence, each with its values in both lists. */
function differences(first, second) {
  const joined = (list) => {
    const values = new Map();
    for (const [name, value] of list) {
      if (value === undefined || value === "") continue;
      values.set(name, values.has(name) ? `${values.get(name)}, ${value}` : String(value));
    }
    return values;
  };
  const [a, b] = [joined(first), joined(second)];
  const names = [...new Set([...a.keys(), ...b.keys()])];
  const all = names.map((name) => ({ name, a: a.get(name), b: b.get(name) }));
  return { changed: all.filter((row) => row.a !== row.b), same: all.filter((row) => row.a === row.b) };
}

function compare(first, second) {
  const [a, b] = first.number < second.number ? [first, second] : [second, first];
  const head = make("tr", {}, make("th", { scope: "col" }, ""), ...[a, b].map(({ number }) => make("th", { scope: "col" }, `#${number}`)));
  const content = [];
  const parts = comparable(b);
  comparable(a).forEach(([title, list], index) => {
    const { changed, same } = differences(list, parts[index][1]);
    if (changed.length + same.length === 0) return;
    const count = changed.length === 0 ? "no difference" : `${changed.length} different`;
    content.push(make("tr", { class: "part" }, make("th", { colspan: 3, scope: "rowgroup" }, `${title}: ${count}, ${same.length} the same`)));
    for (const row of changed) {
      content.push(make("tr", {}, make("th", { scope: "row" }, row.name),
        make("td", { class: "old" }, row.a ?? "–"), make("td", { class: "new" }, row.b ?? "–")));
    }
  });
  find("compare-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...content));
  find("compare-title").textContent = `${a.method} ${clipped(a.path, 40)} and ${b.method} ${clipped(b.path, 40)}`;
  find("compare").showModal();
}

/** Chooses an entry for the comparison: the second choice shows it. The same entry again takes the choice back. */
function chooseForComparison(number) {
  const item = rows.get(number);
  if (!item) return;
  const first = rows.get(comparison.first);
  first?.element.classList.remove("first");
  if (!first || first === item) {
    comparison.first = first === item ? null : number;
    if (comparison.first !== null) item.element.classList.add("first");
    notice(comparison.first === null ? "" : `#${number} is chosen: choose the entry to compare it with (Compare, or the key c).`);
    return;
  }
  comparison.first = null;
  notice("");
  compare(first.entry, item.entry);
}

function startCompare() {
  find("compare-close").addEventListener("click", () => find("compare").close());
}
