// Requests by other people, or by the same person on another device.

const acts = { names: new Map(), accounts: new Map() };

/** Executes actions in order; each result has a status and a body. */
async function perform(...list) {
  if (list.length === 0) return [];
  return (await askWorld("POST", "/act", { acts: list })).results;
}

const read = (person, path) => ({ ...(person ? { as: person } : {}), method: "GET", path });

/** Executes one action and reports its result. */
async function act(person, method, path, body, headers) {
  // Undefined members are not sent.
  const [{ status, body: answer }] = await perform({ as: person, method, path, body, headers });
  const isDone = status < 400;
  const errors = (answer?.errors ?? []).map((error) => `${error.pointer} ${error.detail}`);
  const outcome = isDone ? answer?.id ?? "" : [answer?.detail ?? answer?.title, ...errors].join(" ");
  const code = make("b", { class: isDone ? "tone-ok" : "tone-client" }, String(status));
  const line = make("li", {}, `${person}: ${method} ${path} `, code, ` ${outcome}`);
  find("acts-done").prepend(line);
  while (find("acts-done").childElementCount > 6) find("acts-done").lastElementChild.remove();
  return isDone;
}

/** A key that nothing else has; `randomUUID` is not there on plain http from another machine. */
function newKey() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(12))];
  return "dashboard-" + bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function loadPeople() {
  const isDemo = (await askWorld("GET", "")).serves === "demo";
  find("ledger").hidden = !isDemo;
  const [people] = isDemo ? await perform(read(null, "/v1/profiles?limit=100")) : [];
  const items = people?.body?.items ?? [];
  acts.names = new Map(items.map((person) => [person.id, person.displayName]));
  find("people").replaceChildren(...items.map((person) => make("option", { value: person.handle }, person.displayName)));
  for (const [field, person] of [["person", items[0]], ["transfer-person", items[1]]]) {
    if (!items.some(({ handle }) => handle === find(field).value)) find(field).value = person?.handle ?? "";
  }
  for (const form of document.querySelectorAll("form.act")) form.hidden = items.length === 0;
  if (items.length === 0) {
    find("acts-done").replaceChildren(make("li", { class: "quiet" }, isDemo ? "This world has no people." : "These buttons are for the demo API."));
    return;
  }
  await Promise.all([loadPosts(), loadOwn()]);
}

const chosenPerson = () => find("person").value.trim();

async function loadPosts() {
  const [feed] = await perform(read(chosenPerson(), "/v1/feed?limit=20"));
  const posts = feed.body?.items ?? [];
  offer(find("like-post"), posts.map((post) => [post.id, `${post.id}, ${post.likeCount} likes: ${clipped(post.text, 50)}`]));
}

const moneyFormat = (currency) => new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "code" });

const moneyDigits = (currency) => moneyFormat(currency).resolvedOptions().maximumFractionDigits;

const moneyText = ({ minorUnits, currency }) => moneyFormat(currency).format(minorUnits / 10 ** moneyDigits(currency));

/** Loads the person's accounts, conversations and editable messages. */
async function loadOwn() {
  const person = chosenPerson();
  const [me, accounts, chats] = await perform(
    read(person, "/v1/me"), read(person, "/v1/accounts"), read(person, "/v1/conversations?limit=8"),
  );
  if (me.status !== 200) throw new Error(me.body?.detail ?? `There is no user "${person}".`);
  const owned = accounts.body?.items ?? [];
  acts.accounts = new Map(owned.map((account) => [account.id, account]));
  offer(find("transfer-from"), owned.map((account) => [account.id, `${account.name}: ${moneyText(account.balance)}`]));
  const conversations = chats.body?.items ?? [];
  const others = (chat) => chat.memberIds.filter((id) => id !== me.body.id).map((id) => acts.names.get(id) ?? id);
  const nameOf = (chat) => chat.title ?? others(chat).join(", ");
  offer(find("send-chat"), conversations.map((chat) => [chat.id, clipped(nameOf(chat), 50)]));
  const pages = await perform(...conversations.map((chat) => read(person, `/v1/conversations/${chat.id}/messages?limit=20`)));
  const messages = pages.flatMap((page) => page.body?.items ?? []);
  const own = messages.filter((message) => message.authorId === me.body.id && typeof message.text === "string");
  own.sort((a, b) => b.sentAt.localeCompare(a.sentAt));
  offer(find("edit-message"), own.slice(0, 20).map((message) => [message.id, `${message.id}: ${clipped(message.text, 50)}`]));
  await loadRecipient();
}

async function loadRecipient() {
  const person = find("transfer-person").value.trim();
  const [accounts] = await perform(read(person, "/v1/accounts"));
  const from = acts.accounts.get(find("transfer-from").value);
  const fits = ({ id, balance }) => !from || (id !== from.id && balance.currency === from.balance.currency);
  const fitting = (accounts.body?.items ?? []).filter(fits);
  offer(find("transfer-to"), fitting.map((account) => [account.id, account.name]));
}

async function transfer() {
  const from = acts.accounts.get(find("transfer-from").value);
  const toAccountId = find("transfer-to").value;
  const amount = find("transfer-amount").valueAsNumber;
  if (!from) throw new Error("There is no source account.");
  if (!toAccountId) throw new Error(`${find("transfer-person").value} has no account in ${from.balance.currency}.`);
  if (!(amount > 0)) throw new Error("The amount must be greater than 0.");
  const currency = from.balance.currency;
  const minorUnits = Math.round(amount * 10 ** moneyDigits(currency));
  const order = { fromAccountId: from.id, toAccountId, amount: { minorUnits, currency } };
  await act(chosenPerson(), "POST", "/v1/transfers", order, { "Idempotency-Key": newKey() });
  await loadOwn();
}

function startActs() {
  const failed = (error) => {
    if (error.name === "AbortError") return;
    find("acts-done").prepend(make("li", { class: "tone-client" }, error.message));
  };
  const onSubmit = (id, action) => find(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    if (button.ariaBusy === "true") return;
    button.ariaBusy = "true";
    try {
      await action(button);
    } catch (error) {
      failed(error);
    } finally {
      button.ariaBusy = null;
    }
  });
  const cleared = async (field, done) => {
    if (await done) find(field).value = "";
  };
  onSubmit("post-form", async () => {
    await cleared("post-text", act(chosenPerson(), "POST", "/v1/posts", { text: find("post-text").value }));
    await loadPosts();
  });
  onSubmit("like-form", async (button) => {
    await act(chosenPerson(), button.value, `/v1/posts/${find("like-post").value}/like`);
    await loadPosts();
  });
  onSubmit("send-form", async () => {
    const path = `/v1/conversations/${find("send-chat").value}/messages`;
    await cleared("send-text", act(chosenPerson(), "POST", path, { clientId: newKey(), text: find("send-text").value }));
    await loadOwn();
  });
  onSubmit("edit-form", async () => {
    const path = `/v1/messages/${find("edit-message").value}`;
    await cleared("edit-text", act(chosenPerson(), "PATCH", path, { text: find("edit-text").value }));
    await loadOwn();
  });
  onSubmit("transfer-form", transfer);
  find("person").addEventListener("change", () => Promise.all([loadOwn(), loadPosts()]).catch(failed));
  find("transfer-person").addEventListener("change", () => loadRecipient().catch(failed));
  find("transfer-from").addEventListener("change", () => loadRecipient().catch(failed));
}
