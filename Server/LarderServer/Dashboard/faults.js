// Faults: journeys, single faults with switches, and the list of all faults, including those of other clients.

const faults = { all: [], names: [], isRead: false };

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
  const applications = make("span", { class: "applications" });
  const what = make("span", {});
  const state = { role: "switch", "aria-checked": "false", "aria-label": name };
  const element = make("button", { type: "button", class: "switch", ...state });
  const [value, unit] = amount ?? [];
  const label = `${name}, ${unit}`;
  const number = amount ? make("input", { type: "number", min: 0, step: "any", value, "aria-label": label }) : null;
  element.addEventListener("click", () => attempt("faults-said", element, async () => {
    const isOn = element.getAttribute("aria-checked") !== "true";
    const text = await turn(isOn, number?.valueAsNumber);
    await refreshFaults();
    return text;
  }));
  what.textContent = about;
  return {
    update(isOn, applicationCount, set) {
      element.setAttribute("aria-checked", String(isOn));
      applications.textContent = isOn ? appliedText(applicationCount) : "";
      what.textContent = isOn && set ? matchText(set.match) : about;
    },
    element: make(
      "li", {},
      element, make("div", { class: "what" }, name, what), applications,
      number ? make("label", { class: "field" }, number, unit) : null,
    ),
  };
}

const appliedText = (count) => (count === 0 ? "not applied yet" : `applied ${counted.format(count)}×`);

const warningsText = (answer) =>
  (answer?.warnings ?? []).map(({ fault, neverMatches, notServed }) =>
    neverMatches ? `${fault} can never apply: ${neverMatches}` : `${fault} matches requests that are not served: ${notServed}`).join("\n");

const switches = new Map();

/** The faults of a journey are named after it, with a number. */
const ofJourney = (name) =>
  faults.all.filter(({ id }) => id.startsWith(name + "-") && /^\d+$/.test(id.slice(name.length + 1)));

async function loadJourneys() {
  const { items } = await askWorld("GET", "/journeys");
  faults.names = items.map((item) => item.name);
  find("journeys").replaceChildren(...items.map(({ name, summary }) => {
    const item = switchItem(name, name, summary, null, async (isOn) => {
      const answer = await askWorld(isOn ? "POST" : "DELETE", `/journeys/${encodeURIComponent(name)}`, isOn ? {} : undefined);
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
      if (preset.amount && !(amount >= 0)) throw new Error(`${preset.name} requires a number of ${preset.amount[1]}.`);
      const fault = { id: preset.id, match: preset.stage ? {} : scope(preset), stage: preset.stage, action: preset.action(amount) };
      return warningsText(await askWorld("POST", "/faults", fault));
    });
    switches.set("preset " + preset.id, item);
    return item.element;
  }));
  find("scope").addEventListener("submit", (event) => event.preventDefault());
  const example = { match: { method: "GET", probability: 0.3 }, stage: "body", at: 100, action: { type: "reset" } };
  find("fault-json").value = JSON.stringify(example, null, 1);
  find("fault-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt("faults-said", event.submitter, async () => {
      let document;
      try {
        document = JSON.parse(find("fault-json").value);
      } catch (error) {
        throw new Error(`Invalid JSON: ${error.message}`);
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
  noteFaults(set.items);
  faults.all = set.items;
  for (const preset of presets) {
    const fault = faults.all.find(({ id }) => id === preset.id);
    switches.get("preset " + preset.id).update(fault !== undefined, fault?.applications ?? 0, fault);
  }
  for (const name of faults.names) {
    const members = ofJourney(name);
    switches.get("journey " + name)?.update(members.length > 0, members.reduce((sum, fault) => sum + fault.applications, 0));
  }
  find("faults-clear").hidden = faults.all.length === 0;
  showFaults();
  showHeld(held.items);
}

/** Notes which faults were set and removed since the last look. */
function noteFaults(items) {
  const known = new Set(faults.all.map(({ id }) => id));
  const present = new Set(items.map(({ id }) => id));
  const now = clock.time + (performance.now() - clock.readAt) * clock.factor;
  const added = items.filter(({ id }) => !known.has(id)).map(({ id }) => id);
  const removed = faults.all.filter(({ id }) => !present.has(id)).map(({ id }) => id);
  // What was there before the page is no change.
  const isFirst = !faults.isRead;
  faults.isRead = true;
  if (isFirst || clock.readAt === 0) return;
  if (added.length > 0) noteMark("fault", `set: ${added.join(", ")}`, now);
  if (removed.length > 0) noteMark("fault", `removed: ${removed.join(", ")}`, now);
}

function showFaults() {
  const place = find("faults-set");
  if (faults.all.length === 0) {
    delete place.dataset.shown;
    return place.replaceChildren(make("li", { class: "quiet" }, "No faults."));
  }
  showFirst(place, faults.all, (fault) => fault, faultItem);
}

function faultItem(fault) {
  const news = fault.neverMatches ? `can never apply: ${fault.neverMatches}` : appliedText(fault.applications);
  return make(
    "li", {},
    make(
      "div", { class: "what" },
      make("b", { class: "mono" }, fault.id), " ", clipped(actionText(fault.action), 120),
      make("span", {}, `${matchText(fault.match)}; ${news}`),
    ),
    listButton("Remove", fault.id, `Remove ${fault.id}`, (event) => {
      attempt("faults-said", event.currentTarget, async () => {
        await askWorld("DELETE", `/faults/${encodeURIComponent(fault.id)}`);
        await refreshFaults();
      });
    }),
  );
}

/** Held exchanges are shown only if there are any. */
function showHeld(items) {
  const place = find("held");
  place.hidden = items.length === 0;
  showFirst(find("held-set"), items, (held) => held, (held) => make(
    "li", {},
    titled(`${held.method} ${held.target}`, `by ${held.gate}, from ${held.device}`, true),
    listButton("Release", `held ${held.number}`, `Release ${held.number}`, (event) => {
      attempt("faults-said", event.currentTarget, async () => {
        await askWorld("POST", `/held/${held.number}/release`);
        await refreshFaults();
      });
    }),
  ));
}
