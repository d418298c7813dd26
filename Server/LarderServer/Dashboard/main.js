// Starts the page: all parts, then the data of the selected world.

let noticeTimer = 0;

/** Says what concerns the whole page, for a while. */
function notice(text) {
  const place = find("notice");
  place.textContent = text;
  place.hidden = text === "";
  clearTimeout(noticeTimer);
  if (text !== "") noticeTimer = setTimeout(() => notice(""), 12_000);
}

/** Says what went wrong by itself, apart from what is said elsewhere: that nobody answers, and that the world is gone. */
function complain(error) {
  if (error.name === "AbortError") return;
  if (error.name === "Rejection" && (error.type === "" || error.type === "unknown-world")) return;
  notice(error.message);
}

/** Reads what changes without the journal telling of it: worlds, the clock, faults, and the totals. */
async function refresh(round) {
  takeClock((await askWorld("GET", "")).clock);
  // There may be thousands of worlds, so they are refreshed less often.
  if (round % 3 === 0) await refreshWorlds();
  await refreshFiles();
  await refreshFaults();
  await refreshClients();
  await refreshTotals();
}

/** Repeats `refresh` while the world is selected and the page is visible. */
async function keepFresh() {
  const { signal } = shown.ends;
  const world = shown.world;
  for (let round = 0; !signal.aborted; round += 1) {
    if (!document.hidden) {
      try {
        await refresh(round);
      } catch (error) {
        if (error.type === "unknown-world") return worldIsGone(world);
        complain(error);
      }
    }
    await pause(1000);
  }
}

/** Reads what seldom changes: the networks, the snapshots and the people of the world. */
function loadParts() {
  loadJourneys().then(refreshFaults).catch(complain);
  refreshSnapshots().catch(complain);
  loadPeople().catch(complain);
}

function beginWorld() {
  journal.onnews([], true);
  timeline.marks = [];
  timeline.chosen = 0;
  faults.isRead = false;
  clock.readAt = 0;
  comparison.first = null;
  totals.isDue = true;
  totals.notBefore = 0;
  find("totals").replaceChildren();
  find("share").replaceChildren();
  loadParts();
  watchJournal();
  keepFresh();
}

/** The world in the address: `?world=blue`, or the path `/w/blue/_larder/`. */
function namedWorld() {
  const byQuery = new URLSearchParams(location.search).get("world");
  const byPath = location.pathname.match(/^\/w\/([^/]+)\//)?.[1];
  return byQuery ?? (byPath === undefined ? "main" : decodeURIComponent(byPath));
}

let isDrawingDue = false;

journal.onnews = (news, isAnew) => {
  showEntries(news, isAnew);
  if (isDrawingDue || (news.length === 0 && !isAnew)) return;
  isDrawingDue = true;
  totals.isDue = true;
  requestAnimationFrame(() => {
    isDrawingDue = false;
    if (timeline.isShown) drawTimeline();
    else drawPlot();
  });
};

startTable();
startPlot();
startTimeline();
startCompare();
startKeys();
startChecks();
startFaults();
startClock();
startWorlds();
startActs();
shown.world = namedWorld();
beginWorld();
