// The latency of the visible exchanges in order, on a logarithmic scale.

const plotEdges = { left: 52, right: 8, top: 8, bottom: 8 };

/** A mark by colour and by shape, so that nobody needs to tell the colours apart. */
function mark(kind, x, y) {
  const attributes = { class: `mark ${kind}` };
  switch (kind) {
    case "ok": return draw("circle", { ...attributes, cx: x, cy: y, r: 2.2 });
    case "same": return draw("circle", { ...attributes, cx: x, cy: y, r: 3 });
    case "client": return draw("path", { ...attributes, d: `M${x} ${y - 3.4}l3.6 6h-7.2z` });
    case "server": return draw("rect", { ...attributes, x: x - 2.8, y: y - 2.8, width: 5.6, height: 5.6 });
    default: return draw("path", { ...attributes, d: `M${x - 3} ${y - 3}l6 6m0 -6l-6 6` });
  }
}

function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

function drawPlot() {
  const plot = find("plot");
  const exchanges = journal.entries.filter((entry) => entry.kind === "exchange");
  const width = plot.clientWidth;
  const height = plot.clientHeight;
  const times = exchanges.map((entry) => Math.max(entry.durationSeconds, 1e-6)).sort((a, b) => a - b);
  const low = Math.floor(Math.log10(Math.min(1e-4, times[0] ?? 1)));
  const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(1e-1, times.at(-1) ?? 0))));
  const share = (seconds) => (Math.log10(Math.max(seconds, 1e-6)) - low) / (high - low);
  const y = (seconds) => plotEdges.top + (height - plotEdges.top - plotEdges.bottom) * (1 - share(seconds));
  const content = [];
  for (let power = low; power <= high; power += 1) {
    const line = y(10 ** power);
    content.push(draw("line", { class: "grid", x1: plotEdges.left, x2: width - plotEdges.right, y1: line, y2: line }));
    content.push(draw("text", { x: plotEdges.left - 8, y: line + 4, "text-anchor": "end" }, secondsText(10 ** power)));
  }
  // The newest is at the right edge, and the scale does not change as the plot fills.
  const step = (width - plotEdges.left - plotEdges.right - 8) / (journal.keeps - 1);
  exchanges.forEach((entry, index) => {
    const x = width - plotEdges.right - 4 - (exchanges.length - 1 - index) * step;
    const element = mark(kindOf(entry), x, y(entry.durationSeconds));
    const what = `#${entry.number} ${entry.method} ${clipped(targetOf(entry), 80)}`;
    element.append(draw("title", {}, `${what}: ${answerOf(entry)}, ${secondsText(entry.durationSeconds)}`));
    element.addEventListener("click", () => reveal(entry.number));
    content.push(element);
  });
  plot.replaceChildren(...content);
  const [half, most] = [0.5, 0.95].map((part) => secondsText(quantile(times, part) ?? 0));
  const summary = times.length === 0 ? "no exchange yet"
    : `half within ${half}, 95 % within ${most}, slowest ${secondsText(times.at(-1))}`;
  find("plot-summary").textContent = summary;
  plot.setAttribute("aria-label", `Latency of the last ${times.length} exchanges: ${summary}`);
}

function startPlot() {
  find("legend").replaceChildren(
    ...kinds.map(({ id, name }) =>
      make("li", {}, draw("svg", { viewBox: "-5 -5 10 10", "aria-hidden": "true" }, mark(id, 0, 0)), name)),
  );
  new ResizeObserver(drawPlot).observe(find("plot"));
}
