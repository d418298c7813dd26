// Creates and finds elements. Text from requests is inserted as text and never parsed as markup.

const find = (id) => document.getElementById(id);

/** An element with attributes, handlers (`onclick: f`) and children, each an element or text. */
function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** As `make`, for drawings. */
function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Says something beside a part of the page; an error is said with all that the server finds wrong. */
function say(id, text, tone = "") {
  const place = find(id);
  place.textContent = text;
  place.dataset.tone = tone;
}

/** Runs what a button or a form asks for, and says how it went. Nothing is done twice at once; the focus stays. */
async function attempt(id, button, action) {
  if (button?.ariaBusy === "true") return;
  if (button) button.ariaBusy = "true";
  try {
    const text = await action();
    say(id, text ?? "", text ? "good" : "");
  } catch (error) {
    if (error.name !== "AbortError") say(id, error.message, "bad");
  } finally {
    if (button) button.ariaBusy = null;
  }
}

/** A button of a list, which keeps the focus when the list is shown anew. */
function listButton(label, key, name, onclick) {
  return make("button", { type: "button", "data-key": key, "aria-label": name, onclick }, label);
}

/** What an item of a list is, with a quieter line below. */
const titled = (title, note, isCode = false) =>
  make("div", { class: "what" }, make("b", isCode ? { class: "mono" } : {}, title), make("span", {}, note));

/** What destroys something wants a second press within four seconds. */
function confirmTwice(button, question, action) {
  const label = button.textContent;
  let timer = 0;
  const calm = () => {
    clearTimeout(timer);
    timer = 0;
    button.textContent = label;
    button.classList.remove("sure");
  };
  button.addEventListener("click", () => {
    if (timer) {
      calm();
      return action();
    }
    button.textContent = question;
    button.classList.add("sure");
    timer = setTimeout(calm, 4000);
  });
  button.addEventListener("blur", calm);
}

/** Puts items into a list without touching it when nothing has changed, so that the focus stays where it is. */
function show(place, items, key, build) {
  const signature = JSON.stringify(items.map(key));
  if (place.dataset.shown === signature) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.dataset.shown = signature;
  place.replaceChildren(...items.map(build));
  if (focused) [...place.querySelectorAll("[data-key]")].find((element) => element.dataset.key === focused)?.focus();
}

const listMaximum = 100;

/** As `show`, for long lists: only the first items are shown. */
function showFirst(place, items, key, build) {
  const rest = items.length - listMaximum;
  if (rest <= 0) return show(place, items, key, build);
  const end = { rest };
  show(
    place,
    [...items.slice(0, listMaximum), end],
    (item) => (item === end ? end : key(item)),
    (item) => (item === end ? make("li", { class: "quiet" }, `and ${counted.format(rest)} more`) : build(item)),
  );
}

/** Fills a choice and keeps what was chosen, where that is still there. */
function offer(select, options) {
  const signature = JSON.stringify(options);
  if (select.dataset.shown === signature) return;
  const chosen = select.value;
  select.dataset.shown = signature;
  select.replaceChildren(...options.map(([value, label]) => make("option", { value }, label)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
  select.disabled = options.length === 0;
}
