// The worlds of the server: selection, creation, removal, snapshots.

function choose(world) {
  if (world === shown.world) return;
  shown.ends.abort();
  shown.ends = new AbortController();
  shown.world = world;
  history.replaceState(null, "", "/_larder/" + (world === "main" ? "" : `?world=${encodeURIComponent(world)}`));
  journal.capacity = null;
  journal.entries = [];
  incoming = [];
  for (const id of ["faults-said", "clock-said", "worlds-said", "checks-said"]) say(id, "");
  find("acts-done").replaceChildren();
  beginWorld();
}

/** The selected world was removed by another client. */
function worldIsGone(world) {
  if (shown.world !== world) return;
  if (world !== "main") choose("main");
  notice(`There is no world "${world}"; showing main.`);
}

async function refreshWorlds() {
  const { items } = await ask("GET", "/worlds", undefined, shown.ends.signal);
  offer(find("world"), items.map((world) => [world.id, world.id]));
  find("world").value = shown.world;
  document.title = `${shown.world}, Larder`;
  const key = (world) => [world.id, world.commits, world.faults, world.journal, world.id === shown.world];
  showFirst(find("worlds"), items, key, worldItem);
  find("world-title").textContent = `The world ${shown.world}`;
  find("world-destroy").hidden = shown.world === "main";
  const address = shown.world === "main" ? location.origin : `${location.origin}/w/${shown.world}`;
  const place = find("world-address");
  const byField = shown.world === "main" ? "" : `with the field Larder-World: ${shown.world}, or `;
  const text = `Clients reach it ${byField}at `;
  const seed = items.find((world) => world.id === shown.world)?.seed;
  // A world that was removed, or a server that was started again, can have another seed.
  if (place.dataset.shown !== `${shown.world} ${seed}`) {
    place.dataset.shown = `${shown.world} ${seed}`;
    place.replaceChildren(text, make("code", {}, address), `. Its seed is ${seed}.`);
  }
}

function worldItem(world) {
  const [entries, commits, set] = [world.journal, world.commits, world.faults].map((count) => counted.format(count));
  const isShown = world.id === shown.world;
  const button = listButton(isShown ? "Shown" : "Show", world.id, `Show ${world.id}`, () => choose(world.id));
  button.setAttribute("aria-pressed", String(isShown));
  return make("li", {}, titled(world.id, `${entries} in the journal, ${commits} commits, ${set} faults`), button);
}

async function refreshSnapshots() {
  const { items } = await askWorld("GET", "/snapshots");
  show(find("snapshots"), items, (snapshot) => snapshot, (snapshot) => {
    const button = listButton("Restore", snapshot.name, `Restore ${snapshot.name}`);
    confirmTwice(button, "Really restore?", () => attempt("worlds-said", button, async () => {
      await askWorld("POST", `/snapshots/${encodeURIComponent(snapshot.name)}/restore`);
      await loadPeople();
      return `Restored ${shown.world} from the snapshot "${snapshot.name}".`;
    }));
    return make("li", {}, titled(snapshot.name, `${snapshot.time}, ${bytesText(snapshot.bytes)}`), button);
  });
}

function startWorlds() {
  find("world").addEventListener("change", (event) => choose(event.target.value));
  find("world-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt("worlds-said", event.submitter, async () => {
      const id = find("world-name").value.trim();
      const source = find("world-from").value;
      const from = source === "fork" ? { fork: shown.world } : source === "generator" ? { generator: { seed: 1 } } : source;
      const world = await ask("POST", "/worlds", id ? { id, from } : { from });
      find("world-name").value = "";
      choose(world.id);
      return `Created ${world.id}.`;
    });
  });
  confirmTwice(find("world-reset"), "Really reset?", () => attempt("worlds-said", find("world-reset"), async () => {
    await askWorld("POST", "/reset");
    await Promise.all([refreshFaults(), loadPeople()]);
    return `Reset ${shown.world}. Faults, gates and actors were removed; clock and journal were kept.`;
  }));
  confirmTwice(find("world-destroy"), "Really remove?", () => attempt("worlds-said", find("world-destroy"), async () => {
    const world = shown.world;
    await askWorld("DELETE", "");
    choose("main");
    return `Removed ${world}.`;
  }));
  find("snapshot-form").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt("worlds-said", event.submitter, async () => {
      const name = find("snapshot-name").value.trim();
      await askWorld("POST", "/snapshots", name ? { name } : {});
      find("snapshot-name").value = "";
      await refreshSnapshots();
      return `Took the snapshot "${name}".`;
    });
  });
}
