// One device's requests over the world's time: a lane for each part of the API, and one each for clock and faults.

const timeline = {
  /** Whether it is shown in place of the latencies. */
  isShown: false,
  device: "",
  /** The number of the chosen exchange. */
  chosen: 0,
  /** Changes that the page has seen: `{ at, kind, text }`, at in milliseconds of the world. */
  marks: [],
  exchangesMaximum: 80,
  marksMaximum: 200,
  lanesMaximum: 9,
};

/** A pause of the world's time that is longer than this is drawn as a break. */
const breakSeconds = 2;

/** Notes what has changed in the world: `clock` or `fault`. */
function noteMark(kind, text, at = clock.time) {
  timeline.marks.push({ at, kind, text });
  if (timeline.marks.length > timeline.marksMaximum) timeline.marks.shift();
  if (timeline.isShown) drawTimeline();
}

const devices = () => {
  const counts = new Map();
  for (const { kind, device } of journal.entries) {
    if (kind === "exchange") counts.set(device, (counts.get(device) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
};

/** The exchanges of the device, the last ones, by their begin. */
function timelineItems() {
  const own = journal.entries.filter(({ kind, device }) => kind === "exchange" && device === timeline.device);
  return own.slice(-timeline.exchangesMaximum).map((entry) => {
    const end = Date.parse(entry.at);
    // With a clock that stands still the duration is the real one, and all begin at once.
    return { entry, begin: end - 1000 * entry.durationSeconds, end, lane: laneOf(entry.path) };
  }).sort((a, b) => a.begin - b.begin || a.entry.number - b.entry.number);
}

const laneOf = (path) => path.match(/^\/v\d+\/([^/]+)/)?.[1] ?? path.split("/")[1] ?? path;

/** Groups of items between pauses, each drawn to its own scale. */
function groupsOf(items) {
  const groups = [];
  for (const item of items) {
    const last = groups.at(-1);
    if (last && item.begin - last.end <= 1000 * breakSeconds) {
      last.items.push(item);
      last.end = Math.max(last.end, item.end);
    } else {
      groups.push({ items: [item], begin: item.begin, end: item.end });
    }
  }
  return groups;
}

/** Gives each group a place: as wide as it has items, with a gap before it. */
function placeGroups(groups, left, width) {
  const gap = groups.length > 1 ? Math.min(34, (0.4 * width) / (groups.length - 1)) : 0;
  const free = width - gap * (groups.length - 1);
  const weight = (group) => 2 + group.items.length;
  const whole = groups.reduce((sum, group) => sum + weight(group), 0);
  let x = left;
  for (const group of groups) {
    group.left = x;
    group.width = (free * weight(group)) / whole;
    x += group.width + gap;
  }
  return gap;
}

/** Where a time is drawn; between two groups in the middle of their gap. */
function placeOf(groups, time) {
  let before = null;
  for (const group of groups) {
    if (time < group.begin) return before ? (before.left + before.width + group.left) / 2 : group.left;
    if (time <= group.end) return group.left + (group.width * (time - group.begin)) / Math.max(1, group.end - group.begin);
    before = group;
  }
  return before ? before.left + before.width : 0;
}

/** Puts items that overlap in a lane below each other. */
function stack(items) {
  const ends = [];
  for (const item of items) {
    const free = ends.findIndex((end) => end <= item.x);
    item.row = free < 0 ? ends.length : free;
    ends[item.row] = item.x + item.width + 1;
  }
  return Math.max(1, ends.length);
}

function drawTimeline() {
  const place = find("timeline");
  const known = devices();
  if (!known.some(([device]) => device === timeline.device)) timeline.device = known[0]?.[0] ?? "";
  offer(find("timeline-device"), known.map(([device, count]) => [device, `${clipped(device, 30)} (${count})`]));
  find("timeline-device").value = timeline.device;
  const items = timelineItems();
  const width = place.clientWidth;
  if (items.length === 0 || width === 0) {
    place.replaceChildren();
    place.setAttribute("height", 0);
    return describeChosen(items);
  }
  const isNarrow = width < 520;
  const left = isNarrow ? 4 : 92;
  const groups = groupsOf(items);
  const gap = placeGroups(groups, left, width - left - 8);
  for (const item of items) {
    item.x = placeOf(groups, item.begin);
    item.width = Math.max(4, placeOf(groups, item.end) - item.x);
  }
  const content = [];
  let y = 16;
  const label = (text, line) => {
    content.push(draw("text", { class: "lane", x: isNarrow ? left : left - 8, y: line, "text-anchor": isNarrow ? "start" : "end" }, clipped(text, 14)));
  };
  y = drawTime(content, groups, gap, left, y, width, label);
  y = drawFaultLane(content, items, groups, y, left, isNarrow, label);
  const counts = new Map();
  for (const { lane } of items) counts.set(lane, (counts.get(lane) ?? 0) + 1);
  const lanes = [...counts].sort((a, b) => b[1] - a[1]).map(([lane]) => lane).slice(0, timeline.lanesMaximum);
  for (const lane of [...lanes, null]) {
    const own = items.filter((item) => (lane === null ? !lanes.includes(item.lane) : item.lane === lane));
    if (own.length === 0) continue;
    if (isNarrow) y += 13;
    const height = 13 * stack(own);
    label(lane ?? "other", isNarrow ? y - 2 : y + 10);
    content.push(draw("line", { class: "grid", x1: left, x2: width - 8, y1: y - 2, y2: y - 2 }));
    for (const item of own) content.push(requestBar(item, y + 13 * item.row));
    y += height + 5;
  }
  place.setAttribute("height", y + 2);
  place.setAttribute("viewBox", `0 0 ${width} ${y + 2}`);
  const marks = timeline.marks.filter(({ at }) => at >= items[0].begin);
  for (const { at, kind, text } of marks) {
    const x = placeOf(groups, at);
    const line = draw("line", { class: `change ${kind}`, x1: x, x2: x, y1: 20, y2: y });
    line.append(draw("title", {}, text));
    content.push(line);
  }
  place.replaceChildren(...content);
  place.setAttribute("aria-label", `${items.length} requests of ${timeline.device} in ${groups.length} groups`);
  describeChosen(items);
}

/** The world's time of each group, its length, and the pauses between them. */
function drawTime(content, groups, gap, left, y, width, label) {
  let free = -Infinity;
  groups.forEach((group, index) => {
    const time = new Date(group.begin).toISOString().slice(11, 19);
    if (group.left >= free && group.left + 54 < width) {
      content.push(draw("text", { x: group.left, y: y - 4 }, time));
      free = group.left + 62;
    }
    content.push(draw("rect", { class: "group", x: group.left, y: y + 2, width: group.width, height: 3 }));
    const next = groups[index + 1];
    if (!next) return;
    const middle = group.left + group.width + gap / 2;
    const pause = draw("path", { class: "break", d: `M${middle - 4} ${y + 8}l3 -9m2 9l3 -9` });
    pause.append(draw("title", {}, `${secondsText((next.begin - group.end) / 1000)} of the world's time without a request`));
    content.push(pause);
    if (gap >= 26) content.push(draw("text", { x: middle, y: y + 18, "text-anchor": "middle" }, pauseText((next.begin - group.end) / 1000)));
  });
  if (left > 50) label("world's time", y + 6);
  return y + 24;
}

const pauseText = (seconds) => (seconds < 120 ? `${Math.round(seconds)} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`);

/** The faults and journeys, from the first to the last request of the device that they were applied to. */
function drawFaultLane(content, items, groups, y, left, isNarrow, label) {
  const spans = new Map();
  for (const item of items) {
    for (const { fault } of item.entry.faults ?? []) {
      const name = faults.names.find((journey) => fault.startsWith(journey + "-") && /^\d+$/.test(fault.slice(journey.length + 1))) ?? fault;
      const span = spans.get(name) ?? { from: item.x, to: item.x, count: 0, journey: name !== fault };
      span.to = Math.max(span.to, item.x + item.width);
      span.count += 1;
      spans.set(name, span);
    }
  }
  for (const [name, span] of [...spans].slice(0, 4)) {
    if (isNarrow) y += 13;
    label(span.journey ? `journey ${name}` : name, isNarrow ? y - 2 : y + 8);
    const element = draw("rect", { class: "fault-span", x: span.from, y: y + 1, width: Math.max(3, span.to - span.from), height: 7 });
    element.append(draw("title", {}, `${name}: applied to ${span.count} of these requests`));
    content.push(element);
    y += 15;
  }
  const hidden = [...spans.keys()].slice(4);
  if (hidden.length > 0) {
    label(`and ${hidden.length} more`, y + 8);
    y += 15;
  }
  return y + 4;
}

/** A request: the part of the server, the injected part, its verdict as a line below. */
function requestBar(item, y) {
  const { entry } = item;
  const group = draw("g", { class: `bar${entry.number === timeline.chosen ? " chosen" : ""}`, "data-number": entry.number });
  group.append(draw("rect", { class: `piece ${kindOf(entry)}`, x: item.x, y, width: item.width, height: 10, rx: 1.5 }));
  const injected = Math.min(1, (entry.injectedSeconds ?? 0) / (entry.durationSeconds || 1));
  if (injected > 0 && item.width > 5) {
    group.append(draw("rect", { class: "injected", x: item.x + item.width * (1 - injected), y: y + 6, width: item.width * injected, height: 4 }));
  }
  if (entry.faults) group.append(draw("path", { class: "hit", d: `M${item.x + item.width / 2 - 3} ${y - 1}h6l-3 4.5z` }));
  if (isWasteful(entry)) group.append(draw("rect", { class: "waste", x: item.x, y: y + 11, width: item.width, height: 1.6 }));
  group.append(draw("title", {}, timelineText(entry)));
  group.addEventListener("click", () => chooseBar(entry.number));
  group.addEventListener("dblclick", () => reveal(entry.number));
  return group;
}

const isWasteful = (entry) => (entry.verdicts ?? []).some(({ rule, wastedBytes }) => rule || wastedBytes);

const timelineText = (entry) =>
  [`#${entry.number} ${entry.method} ${clipped(targetOf(entry), 70)}`, `${answerOf(entry)}, ${secondsText(entry.durationSeconds)}`,
    ...(entry.faults ?? []).map(({ fault }) => `fault ${fault}`), ...(entry.verdicts ?? []).map(({ text }) => text)].join("; ");

function describeChosen(items) {
  const item = items.find(({ entry }) => entry.number === timeline.chosen);
  find("timeline-chosen").textContent = item ? timelineText(item.entry)
    : items.length === 0 ? "No exchange yet." : "Click a request, or use the arrow keys; Enter opens it.";
}

function chooseBar(number) {
  timeline.chosen = number;
  drawTimeline();
}

/** Moves the choice by requests in the order of their begin; from none to the newest. */
function stepBar(by) {
  const items = timelineItems();
  if (items.length === 0) return;
  const index = items.findIndex(({ entry }) => entry.number === timeline.chosen);
  const next = index < 0 ? items.length - 1 : Math.min(items.length - 1, Math.max(0, index + by));
  chooseBar(items[next].entry.number);
}

function showTimeline(isShown) {
  timeline.isShown = isShown;
  find("plot").toggleAttribute("hidden", isShown);
  find("legend").hidden = isShown && innerWidth < 640;
  find("timeline-part").hidden = !isShown;
  find("plot-summary").hidden = isShown;
  find("view-latency").setAttribute("aria-pressed", String(!isShown));
  find("view-timeline").setAttribute("aria-pressed", String(isShown));
  if (isShown) drawTimeline();
  else drawPlot();
}

function startTimeline() {
  find("view-latency").addEventListener("click", () => showTimeline(false));
  find("view-timeline").addEventListener("click", () => showTimeline(true));
  find("timeline-device").addEventListener("change", (event) => {
    timeline.device = event.target.value;
    drawTimeline();
  });
  find("timeline").addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (event.key in steps) stepBar(steps[event.key]);
    else if (event.key === "Enter" && timeline.chosen) reveal(timeline.chosen);
    else return;
    event.preventDefault();
  });
  const signs = [
    [draw("rect", { class: "fault-span", x: -5, y: -3, width: 10, height: 6 }), "fault or journey"],
    [draw("path", { class: "hit", d: "M-3 -3h6l-3 4.5z" }), "fault applied"],
    [draw("rect", { class: "waste", x: -5, y: -1, width: 10, height: 2 }), "wasteful"],
    [draw("path", { class: "break", d: "M-4 4l3 -9m2 9l3 -9" }), "pause"],
  ];
  find("timeline-legend").replaceChildren(
    ...signs.map(([sign, name]) => make("li", {}, draw("svg", { viewBox: "-5 -5 10 10", "aria-hidden": "true" }, sign), name)),
  );
  new ResizeObserver(() => timeline.isShown && drawTimeline()).observe(find("timeline-part"));
}
