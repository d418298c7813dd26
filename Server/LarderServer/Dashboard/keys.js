// The keyboard: single keys outside of text fields.

const keys = [
  ["/", "filter the requests", () => find("filter").focus()],
  ["j", "the next request below", () => moveFocus(1)],
  ["k", "the one above", () => moveFocus(-1)],
  ["Enter", "open or close a request", null],
  ["c", "choose a request, then another: compare", () => withFocused(chooseForComparison)],
  ["t", "timeline or latency", () => showTimeline(!timeline.isShown)],
  ["← →", "in the timeline: the request before, the next", null],
  ["p", "pause, or go on", () => find("pause").click()],
  ["?", "these keys", () => find("keys").showModal()],
];

/** The number of the row that has the focus; null for none. */
function focusedRow() {
  const element = document.activeElement?.closest("tr");
  for (const [number, item] of rows) if (item.element === element || (item.detail && item.detail === element)) return number;
  return null;
}

function withFocused(action) {
  const number = focusedRow() ?? (timeline.isShown && timeline.chosen ? timeline.chosen : null);
  if (number === null) return notice("No request has the focus: j chooses the newest one.");
  action(number);
}

/** Moves the focus among the rows that are shown, newest first. */
function moveFocus(by) {
  const visible = [...rows].filter(([, item]) => !item.element.hidden).sort((a, b) => b[0] - a[0]);
  if (visible.length === 0) return;
  const number = focusedRow();
  const index = visible.findIndex(([own]) => own === number);
  const next = index < 0 ? 0 : Math.min(visible.length - 1, Math.max(0, index + by));
  const [, item] = visible[next];
  item.target.focus({ preventScroll: true });
  item.element.scrollIntoView({ block: "nearest" });
}

function startKeys() {
  find("keys-list").replaceChildren(
    ...keys.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]),
  );
  find("keys-open").addEventListener("click", () => find("keys").showModal());
  find("keys-close").addEventListener("click", () => find("keys").close());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const action = keys.find(([key]) => key === event.key)?.[2];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
