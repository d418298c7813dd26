// The journal in real time: the last entries of the selected world, and their observers.

const journal = {
  /** Oldest first; exchanges and frames of live channels. */
  entries: [],
  /** How many entries the page shows at most. */
  keeps: 300,
  /** How many the server keeps; 0 where it keeps none, null as long as that is not known. */
  capacity: null,
  paused: false,
  /** What came while the page stood still; the oldest are dropped beyond what could be shown. */
  waiting: [],
  waitingCount: 0,
  /** Told of new entries (oldest first), or of all when everything is new. */
  onnews: (entries, isAnew) => {},
};

let incoming = [];
let delivery = 0;

/** Takes entries in, and shows them together: many requests a second cost one drawing each tenth of a second. */
function receive(entry) {
  incoming.push(entry);
  if (incoming.length > 2 * journal.keeps) incoming.splice(0, journal.keeps);
  delivery ||= setTimeout(deliver, 100);
}

function deliver() {
  clearTimeout(delivery);
  delivery = 0;
  const last = (journal.waiting.at(-1) ?? journal.entries.at(-1))?.number ?? 0;
  const news = incoming.filter((entry) => entry.number > last).slice(-journal.keeps);
  incoming = [];
  if (news.length === 0) return;
  if (journal.paused) {
    journal.waiting = [...journal.waiting, ...news].slice(-journal.keeps);
    journal.waitingCount += news.length;
    return journal.onnews([], false);
  }
  journal.entries = [...journal.entries, ...news].slice(-journal.keeps);
  journal.onnews(news, false);
}

function setPaused(paused) {
  journal.paused = paused;
  if (paused) return journal.onnews([], false);
  const news = journal.waiting;
  journal.waiting = [];
  journal.waitingCount = 0;
  journal.entries = [...journal.entries, ...news].slice(-journal.keeps);
  journal.onnews(news, false);
}

/** Reads the newest entries anew: at the start, after a gap, and when the server may be another one. */
async function loadJournal() {
  const { written, capacity } = await askWorld("GET", "/journal?limit=1");
  const after = Math.max(0, written - journal.keeps);
  const page = await askWorld("GET", `/journal?afterNumber=${after}&limit=${journal.keeps}`);
  journal.capacity = capacity;
  journal.entries = page.items;
  // Entries from the stream that the list does not contain are added afterwards.
  incoming = incoming.filter(({ number }) => number > Math.max(written, page.last));
  journal.waiting = [];
  journal.waitingCount = 0;
  journal.onnews(journal.entries, true);
}

function connection(state, text) {
  const place = find("state");
  if (place.dataset.state === state && place.textContent === text) return;
  place.dataset.state = state;
  place.textContent = text;
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Follows the journal until another world is chosen; comes back by itself when the server was away. */
async function watchJournal() {
  const world = shown.world;
  const signal = shown.ends.signal;
  let wait = 250;
  let connections = 0;
  connection("wait", "Connecting");
  while (!signal.aborted) {
    try {
      // The stream is open before the list is read, so that nothing can happen in between unseen; what the list has already
      // is dropped when the stream tells of it.
      await follow(inWorld("/journal/live"), signal, {
        opened: async () => {
          await loadJournal();
          wait = 250;
          connection("live", "Live");
          connections += 1;
          // The server may have been replaced, with other people and snapshots.
          if (connections > 1) loadParts();
        },
        event: receive,
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error.type === "unknown-world") return worldIsGone(world);
      connection("lost", error.type === "" ? "No connection, trying again" : error.message);
    }
    await pause(wait);
    wait = Math.min(2 * wait, 4000);
  }
}
