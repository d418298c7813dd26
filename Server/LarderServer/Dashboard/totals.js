// Totals and findings of the conduct report.

const totals = { isDue: true, notBefore: 0 };

function showTotals(report) {
  const reads = report.full + report.notModified;
  const errors = report.clientErrors + report.serverErrors + report.unanswered;
  const other = report.exchanges - reads - errors;
  const whole = report.bytesSent + report.bytesSaved;
  const items = [
    ["Exchanges", counted.format(report.exchanges), ""],
    ["200, in full", counted.format(report.full), "reads"],
    ["304, not modified", counted.format(report.notModified), `${percentText(report.notModified, reads)} of reads`],
    ["Errors", counted.format(errors), `${report.clientErrors} 4xx, ${report.serverErrors} 5xx, ${report.unanswered} cut`],
    ["Sent", bytesText(report.bytesSent), ""],
    ["Saved by validators", bytesText(report.bytesSaved), `${percentText(report.bytesSaved, whole)} of the whole`],
    ["Saved by compression", bytesText(report.bytesSavedByCoding), ""],
    ["Wasted", bytesText(report.bytesWasted), `and ${secondsText(report.secondsWasted)}`],
  ];
  find("totals").replaceChildren(
    ...items.map(([name, value, note]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, note)))),
  );
  const shares = [
    ["ok", report.full, "200"], ["same", report.notModified, "304"], ["client", report.clientErrors, "4xx"],
    ["server", report.serverErrors, "5xx"], ["cut", report.unanswered, "cut"], ["other", other, "other"],
  ];
  const share = find("share");
  share.replaceChildren(
    ...shares.filter(([, count]) => count > 0).map(([tone, count]) => {
      const piece = make("i", { class: `fill-${tone}` });
      piece.style.flexGrow = count;
      return piece;
    }),
  );
  share.setAttribute("aria-label", shares.map(([, count, name]) => `${name}: ${count}`).join(", "));
  const kept = `Based on the journal: at most ${counted.format(journal.capacity ?? 0)} entries.`;
  find("totals-note").textContent = journal.capacity ? kept : "";
  showFindings(report.counts, report.findings);
}

/** What each rule of the conduct report says, for people. */
const rules = {
  retriedTooSoon: "Retried before Retry-After had passed",
  retriedWithoutJitter: "Retried at equal intervals, without jitter",
  downloadedTwice: "Downloaded again although the ETag was known",
  refetchedFresh: "Requested again while fresh",
  duplicateInFlight: "Requested while the same request was in flight",
  keyMissing: "Transferred, or created again, without an idempotency key",
  keyChanged: "Repeated a write under another key",
  polledBesideLive: "Polled the change feed beside a live channel",
  repeatedInLoop: "Repeated many times a second, with the same answer",
  contractBroken: "Not as the contract says",
};

/** How often each rule was broken, with the newest case of each. */
function showFindings(counts, findings) {
  const newestOf = (rule) => findings.findLast((finding) => finding.rule === rule);
  const broken = Object.entries(counts).map(([rule, count]) => ({ rule, count, newest: newestOf(rule) }));
  const place = find("findings");
  if (broken.length === 0) {
    delete place.dataset.shown;
    place.replaceChildren(make("li", { class: "quiet" }, "No findings."));
    return;
  }
  show(place, broken, (item) => item, ({ rule, count, newest }) => {
    const links = newest.entries.slice(-4).map((number) =>
      make("button", { type: "button", class: "link", "data-key": `${rule} ${number}`, onclick: () => {
        if (!reveal(number)) say("checks-said", `Entry ${number} is no longer among the last ${journal.keeps}.`);
      } }, `#${number}`));
    return make("li", {}, `${rules[rule] ?? rule}: ${counted.format(count)}. `, ...links, make("span", {}, newest.detail));
  });
}

/** Reads the report when there is something new; making it costs the server time, so never more than a twentieth of it. */
async function refreshTotals() {
  // Without a journal there is no report.
  if (!journal.capacity || !totals.isDue || performance.now() < totals.notBefore) return;
  totals.isDue = false;
  const start = performance.now();
  try {
    showTotals(await askWorld("GET", "/conduct?findings=1"));
  } catch (error) {
    totals.isDue = true;
    throw error;
  } finally {
    totals.notBefore = performance.now() + Math.max(900, 20 * (performance.now() - start));
  }
}

function startChecks() {
  find("ledger").addEventListener("click", (event) => attempt("checks-said", event.currentTarget, async () => {
    const { isSound, faults } = await askWorld("GET", "/oracles/ledger");
    if (!isSound) throw new Error(["The ledger is inconsistent:", ...faults].join("\n"));
    return "The ledger is consistent: every transfer sums to zero, and every balance equals the sum of its entries.";
  }));
  find("har").addEventListener("click", (event) => attempt("checks-said", event.currentTarget, async () => {
    const world = shown.world;
    const reply = await request("GET", inWorld("/journal/har"));
    const url = URL.createObjectURL(await reply.blob());
    make("a", { href: url, download: `${world}.har` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    return `${world}.har: the journal without reply bodies, secrets masked.`;
  }));
  confirmTwice(find("journal-clear"), "Really clear?", () => attempt("checks-said", find("journal-clear"), async () => {
    await askWorld("DELETE", "/journal");
    await loadJournal();
    totals.isDue = true;
    totals.notBefore = 0;
    return "The journal is empty. Numbers continue.";
  }));
}
