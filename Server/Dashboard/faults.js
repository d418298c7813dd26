// What is to go wrong: networks with a name, single faults behind switches, and all that is set, by whomever.

/** Single faults with a switch each; `amount` is a number that can be changed before it is switched on. */
const presets = [
  { id: "lose-reply", name: "Lose the reply", about: "done and committed, and nobody is told (POST, where no method is chosen)", method: "POST", action: () => ({ type: "loseReply" }) },
  { id: "unavailable", name: "503 with Retry-After", about: "the server is busy", amount: [2, "s"], action: (seconds) => ({ type: "respond", status: 503, retryAfter: { seconds: Math.round(seconds) } }) },
  { id: "limited", name: "429 with Retry-After", about: "too many requests", amount: [5, "s"], action: (seconds) => ({ type: "respond", status: 429, retryAfter: { seconds: Math.round(seconds) } }) },
  { id: "slow", name: "Latency", about: "before the first byte, on the world's clock", amount: [1.5, "s"], action: (seconds) => ({ type: "latency", firstByte: seconds }) },
  { id: "narrow", name: "Bandwidth", about: "shared by all connections of a device", amount: [20, "kB/s"], action: (rate) => ({ type: "bandwidth", downBytesPerSecond: Math.max(1, Math.round(rate * 1000)) }) },
  { id: "stalls", name: "Packet loss", about: "stalls, and no byte is missing", action: () => ({ type: "loss", lossInBad: 0.5 }) },
  { id: "broken", name: "Reset", about: "the connection breaks before anything is done", action: () => ({ type: "reset" }) },
  { id: "silent", name: "Never answer", about: "until the client gives up", action: () => ({ type: "never" }) },
  { id: "truncated", name: "Truncate", about: "less of the body than was promised", amount: [100, "bytes"], action: (byte) => ({ type: "truncate", byte: Math.round(byte) }) },
  { id: "corrupt", name: "Corrupt", about: "flipped bits, right length", amount: [1, "bytes"], action: (bytes) => ({ type: "corrupt", bytes: Math.max(1, Math.round(bytes)) }) },
  { id: "malformed", name: "Malformed JSON", about: "a body that no parser takes", action: () => ({ type: "malformedJSON" }) },
  { id: "lagging", name: "Lagging replica", about: "reads of the state as it was", amount: [30, "s"], action: (seconds) => ({ type: "lag", seconds }) },
  { id: "expired", name: "Expired tokens", about: "401, token-expired", action: () => ({ type: "expireToken" }) },
  { id: "validators", name: "Changing ETags", about: "a new one for the same bytes", action: () => ({ type: "validators", mode: "changing" }) },
  { id: "twice", name: "Duplicate", about: "carried out twice, the second reply arrives", action: () => ({ type: "duplicate" }) },
  { id: "lossy-live", name: "Lose live events", about: "every other frame of a live channel, once it is opened", action: () => ({ type: "live", lose: 0.5 }) },
];

const faults = { all: [], strikes: new Map(), names: [] };

function scope(preset) {
  const match = {};
  const method = find("scope-method").value || preset.method;
  if (method) match.method = method;
  const path = find("scope-path").value.trim();
  if (path) match.path = path;
  const device = find("scope-device").value.trim();
  if (device) match.device = device;
  const chance = find("scope-chance").valueAsNumber;
  if (chance < 100) match.probability = chance / 100;
  const count = find("scope-count").valueAsNumber;
  if (!Number.isNaN(count)) match.count = count;
  return match;
}

function switchItem(id, name, about, amount, turn) {
  const strikes = make("span", { class: "strikes" });
  const what = make("span", {});
  const element = make("button", { type: "button", class: "switch", role: "switch", "aria-checked": "false", "aria-label": name });
  const number = amount ? make("input", { type: "number", min: 0, step: "any", value: amount[0], "aria-label": `${name}, ${amount[1]}` }) : null;
  element.addEventListener("click", () => attempt("faults-said", element, async () => {
    const isOn = element.getAttribute("aria-checked") !== "true";
    const text = await turn(isOn, number?.valueAsNumber);
    await refreshFaults();
    return text;
  }));
  what.textContent = about;
  return {
    update(isOn, strikeCount, set) {
      element.setAttribute("aria-checked", String(isOn));
      strikes.textContent = isOn ? struckText(strikeCount) : "";
      what.textContent = isOn && set ? matchText(set.match) : about;
    },
    element: make("li", {}, element, make("div", { class: "what" }, name, what), strikes, number ? make("label", { class: "field" }, number, amount[1]) : null),
  };
}

const struckText = (count) => (count === 0 ? "no strike yet" : count === 1 ? "1 strike" : `${counted.format(count)} strikes`);

const warningsText = (answer) => (answer?.warnings ?? []).map((warning) => `${warning.fault} can never strike: ${warning.neverMatches}`).join("\n");

const switches = new Map();

/** Journeys set faults whose names are theirs and a number. */
const ofJourney = (name) => faults.all.filter((fault) => fault.id.startsWith(name + "-") && /^\d+$/.test(fault.id.slice(name.length + 1)));

async function loadJourneys() {
  const { items } = await askWorld("GET", "/profiles");
  faults.names = items.map((item) => item.name);
  find("journeys").replaceChildren(...items.map(({ name, summary }) => {
    const item = switchItem(name, name, summary, null, async (isOn) => {
      const answer = await askWorld(isOn ? "POST" : "DELETE", `/profiles/${encodeURIComponent(name)}`, isOn ? {} : undefined);
      return warningsText(answer);
    });
    switches.set("journey " + name, item);
    return item.element;
  }));
}

function startFaults() {
  find("presets").replaceChildren(...presets.map((preset) => {
    const item = switchItem(preset.id, preset.name, preset.about, preset.amount, async (isOn, amount) => {
      if (!isOn) return void (await askWorld("DELETE", `/faults/${preset.id}`));
      if (preset.amount && !(amount >= 0)) throw new Error(`${preset.name} needs a number of ${preset.amount[1]}.`);
      return warningsText(await askWorld("POST", "/faults", { id: preset.id, match: scope(preset), action: preset.action(amount) }));
    });
    switches.set("preset " + preset.id, item);
    return item.element;
  }));
  find("scope").addEventListener("submit", (event) => event.preventDefault());
  find("fault-json").value = '{"match": {"path": "/v1/feed", "probability": 0.3},\n "stage": "body", "at": 100,\n "action": {"type": "reset"}}';
  find("fault-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt("faults-said", event.submitter, async () => {
      let document;
      try {
        document = JSON.parse(find("fault-json").value);
      } catch (error) {
        throw new Error(`That is not JSON: ${error.message}`);
      }
      const answer = await askWorld("POST", "/faults", document);
      await refreshFaults();
      return [`Set: ${answer.items.map((fault) => fault.id).join(", ")}.`, warningsText(answer)].filter(Boolean).join("\n");
    });
  });
  find("faults-clear").addEventListener("click", (event) => attempt("faults-said", event.currentTarget, async () => {
    await askWorld("DELETE", "/faults");
    await refreshFaults();
  }));
}

async function refreshFaults() {
  const [set, held] = await Promise.all([askWorld("GET", "/faults"), askWorld("GET", "/held")]);
  faults.all = set.items;
  for (const preset of presets) {
    const fault = faults.all.find(({ id }) => id === preset.id);
    switches.get("preset " + preset.id).update(fault !== undefined, fault?.strikes ?? 0, fault);
  }
  for (const name of faults.names) {
    const members = ofJourney(name);
    switches.get("journey " + name)?.update(members.length > 0, members.reduce((sum, fault) => sum + fault.strikes, 0));
  }
  find("faults-clear").hidden = faults.all.length === 0;
  showFaults();
  showHeld(held.items);
}

function showFaults() {
  const place = find("faults-set");
  if (faults.all.length === 0) {
    delete place.dataset.shown;
    return place.replaceChildren(make("li", { class: "quiet" }, "None is set: every request meets a good day."));
  }
  showFirst(place, faults.all, (fault) => fault, (fault) => make(
    "li", {},
    make("div", { class: "what" }, make("b", { class: "mono" }, fault.id), ` ${clipped(actionText(fault.action), 120)}`,
      make("span", {}, `${matchText(fault.match)}${fault.neverMatches ? `; can never strike: ${fault.neverMatches}` : `; ${struckText(fault.strikes)}`}`)),
    make("button", { type: "button", "data-key": fault.id, "aria-label": `Remove ${fault.id}`, onclick: (event) => attempt("faults-said", event.currentTarget, async () => {
      await askWorld("DELETE", `/faults/${encodeURIComponent(fault.id)}`);
      await refreshFaults();
    }) }, "Remove"),
  ));
}

/** Exchanges that a gate holds are shown only where there are any: who set the gate waits for them. */
function showHeld(items) {
  const place = find("held");
  if (items.length === 0) {
    place.replaceChildren();
    delete place.dataset.shown;
    return;
  }
  show(place, [items], (list) => list, (list) => make("div", {}, make("h3", {}, "Held at gates"), make("ul", { class: "set" }, ...list.map((held) => make(
    "li", {},
    make("div", { class: "what" }, make("b", { class: "mono" }, `${held.method} ${held.target}`), make("span", {}, `by ${held.gate}, from ${held.device}`)),
    make("button", { type: "button", "data-key": `held ${held.number}`, onclick: (event) => attempt("faults-said", event.currentTarget, async () => {
      await askWorld("POST", `/held/${held.number}/release`);
      await refreshFaults();
    }) }, "Release"),
  )))));
}
