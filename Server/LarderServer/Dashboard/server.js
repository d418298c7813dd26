// Requests to the control plane. The page sends no others, so its requests are not in a journal and have no faults.

/** The world that is shown, and how to stop what is under way for it. */
const shown = { world: "main", ends: new AbortController() };

/** An error reply; `type` is the problem's name, empty without a reply. */
class Rejection extends Error {
  constructor(message, type = "") {
    super(message);
    this.name = "Rejection";
    this.type = type;
  }
}

const tokenKey = "larder-control-token";
let token = recallToken();
let tokenQuestion = null;

/** Where a browser keeps nothing for the page, the token lasts as long as the page does. */
function recallToken() {
  try {
    return sessionStorage.getItem(tokenKey);
  } catch {
    return null;
  }
}

function keepToken(text) {
  token = text;
  try {
    sessionStorage.setItem(tokenKey, text);
  } catch {
    console.info("The token cannot be stored; it is lost with this page.");
  }
}

/** Asks the person for the token; however many requests want it, there is one question. */
function askForToken(wasWrong) {
  tokenQuestion ??= new Promise((resolve) => {
    const dialog = find("token");
    say("token-said", wasWrong ? "The token is wrong." : "", "bad");
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    find("token-form").addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        keepToken(find("token-text").value);
        find("token-text").value = "";
        dialog.close();
        tokenQuestion = null;
        resolve();
      },
      { once: true },
    );
    dialog.showModal();
    find("token-text").focus();
  });
  return tokenQuestion;
}

/** A reply with a status below 400; everything else is thrown as a `Rejection`. */
async function request(method, path, { body, accept = "application/json", signal } = {}) {
  for (;;) {
    const sent = token;
    const headers = { Accept: accept };
    if (sent) headers.Authorization = "Bearer " + sent;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let reply;
    try {
      reply = await fetch("/_larder" + path, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Rejection("The server does not answer.");
    }
    if (reply.ok) return reply;
    const problem = await reply.json().catch(() => ({}));
    const type = String(problem.type ?? "").split("/").pop();
    if (type === "control-token-required") {
      // Another request may have received a new token meanwhile: try it before asking again.
      if (token === sent) await askForToken(sent !== null);
      continue;
    }
    const lines = [problem.detail ?? problem.title ?? `The server answered ${reply.status}.`];
    for (const error of problem.errors ?? []) lines.push(`${error.pointer || "the document"}: ${error.detail}`);
    throw new Rejection(lines.join("\n"), type);
  }
}

/** Asks and reads the answer as JSON; null where there is none. */
async function ask(method, path, body, signal) {
  const reply = await request(method, path, { body, signal });
  return reply.status === 204 ? null : await reply.json();
}

const inWorld = (path = "") => `/worlds/${encodeURIComponent(shown.world)}${path}`;

/** Asks about the world that is shown; what comes back after another was chosen is dropped. */
async function askWorld(method, path, body) {
  const signal = shown.ends.signal;
  const answer = await ask(method, inWorld(path), body, signal);
  if (signal.aborted) throw new DOMException("Another world was selected.", "AbortError");
  return answer;
}

/**
 * Reads a stream of Server-Sent Events until it ends. `EventSource` could show no token.
 *
 * The server gives a sign of life every 30 s; after 75 s without one the connection is taken for dead.
 */
async function follow(path, signal, { opened, event }) {
  const silence = new AbortController();
  const reply = await request("GET", path, {
    accept: "text/event-stream",
    signal: AbortSignal.any([signal, silence.signal]),
  });
  await opened();
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const timer = setTimeout(() => silence.abort(), 75_000);
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Rejection("The connection to the server was lost.");
    } finally {
      clearTimeout(timer);
    }
    if (part.done) throw new Rejection("The server has ended the stream.");
    rest += part.value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const text of events) {
      const data = text.split("\n").filter((line) => line.startsWith("data:"));
      if (data.length > 0) event(JSON.parse(data.map((line) => line.slice(5).trimStart()).join("\n")));
    }
  }
}
