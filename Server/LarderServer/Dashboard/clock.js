// The world's clock: time, mode and changes.

const clock = { mode: "real", factor: 1, time: 0, readAt: 0 };

/** Notes a jump, and a change of how the clock runs. */
function noteClock(state) {
  if (clock.readAt === 0) return;
  const time = Date.parse(state.time);
  const factor = state.mode === "frozen" ? 0 : state.factor ?? 1;
  const expected = clock.time + (performance.now() - clock.readAt) * clock.factor;
  // The reply has been on its way.
  const tolerance = 1500 * Math.max(1, clock.factor, factor);
  if (Math.abs(time - expected) > tolerance) noteMark("clock", `the clock jumped by ${pauseText((time - expected) / 1000)}`, Math.min(time, expected));
  else if (state.mode !== clock.mode || factor !== clock.factor) noteMark("clock", `the clock is ${state.mode}${factor > 1 ? `, × ${factor}` : ""}`, time);
}

function takeClock(state) {
  noteClock(state);
  clock.mode = state.mode;
  clock.factor = state.mode === "frozen" ? 0 : state.factor ?? 1;
  clock.time = Date.parse(state.time);
  clock.readAt = performance.now();
  for (const button of find("clock-modes").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === state.mode));
  }
  if (state.mode === "running" && document.activeElement !== find("clock-factor")) find("clock-factor").value = state.factor;
  const next = state.nextTimerInSeconds;
  find("clock-timer").textContent = next === undefined ? "no timer" : `next timer in ${secondsText(next)}`;
  drawClock();
}

function drawClock() {
  if (clock.readAt === 0) return;
  const now = new Date(clock.time + (performance.now() - clock.readAt) * clock.factor);
  const text = Number.isNaN(now.getTime()) ? "out of the browser's range" : now.toISOString();
  // The page updates ten times a second.
  find("clock-time").textContent = clock.mode === "frozen" ? text : text.replace(/(\.\d)\d\dZ$/, "$1Z");
}

function startClock() {
  const change = (button, action) => attempt("clock-said", button, async () => { takeClock(await action()); });
  find("clock-modes").addEventListener("click", (event) => {
    const mode = event.target.closest("button")?.dataset.mode;
    if (!mode) return;
    const factor = find("clock-factor").valueAsNumber;
    change(event.target, () => askWorld("PUT", "/clock", mode === "running" ? { mode, factor } : { mode }));
  });
  find("clock-factor").addEventListener("change", (event) => {
    const factor = event.target.valueAsNumber;
    if (clock.mode === "running") change(null, () => askWorld("PUT", "/clock", { mode: "running", factor }));
  });
  for (const button of document.querySelectorAll("[data-advance]")) {
    const seconds = Number(button.dataset.advance);
    button.addEventListener("click", () => change(button, () => askWorld("POST", "/clock/advance", { seconds })));
  }
  find("clock-next").addEventListener("click", (event) =>
    change(event.currentTarget, () => askWorld("POST", "/clock/advance", { toNextTimer: true })));
  find("clock-form").addEventListener("submit", (event) => {
    event.preventDefault();
    change(event.submitter, () => askWorld("PUT", "/clock", { time: find("clock-set").value.trim() }));
  });
  setInterval(drawClock, 100);
}
