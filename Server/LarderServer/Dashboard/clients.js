// Connected clients: what each has, why it is stale, what it sends, and what the journal says about that.

const clientButton = (client, label, name, path, body) =>
  listButton(label, `${client.id} ${name}`, name, (event) => attempt("clients-said", event.currentTarget, async () => {
    await ask("POST", `/clients/${client.id}/${path}`, body);
    await refreshClients();
  }));

function valueItem(client, value) {
  const notes = [value.freshness];
  if (value.source) notes.push(`from ${value.source}`);
  if (value.validatedAt) notes.push(`validated ${value.validatedAt.slice(11, 19)}`);
  if (value.expiresAt && value.freshness === "fresh") notes.push(`until ${value.expiresAt.slice(11, 19)}`);
  if (value.pendingChanges > 0) notes.push(`${value.pendingChanges} pending`);
  if (value.isFetching) notes.push("fetching");
  notes.push(value.observers === 1 ? "1 observer" : `${value.observers} observers`);
  if (value.error) notes.push(value.error);
  const on = { key: value.key };
  return make(
    "li", { class: "value", "data-freshness": value.freshness.split(" ")[0] },
    titled(value.key, notes.join(", "), true),
    clientButton(client, value.text === undefined ? "Show" : "Hide", `Show ${value.key}`, value.text === undefined ? "show" : "hide", on),
    clientButton(client, "Refresh", `Refresh ${value.key}`, "refresh", on),
    clientButton(client, "Invalidate", `Invalidate ${value.key}`, "invalidate", on),
    value.text === undefined ? null : make("pre", { class: "text" }, value.text),
  );
}

const operationItem = (client, operation) => make(
  "li", {},
  titled(
    `${operation.id} ${operation.operation}`,
    [operation.state, operation.scope, `${operation.attempts} sent`, operation.error].filter(Boolean).join(", "),
    true,
  ),
  clientButton(client, "Drop", `Drop ${operation.id}`, "drop", { operation: operation.id }),
);

function requestItem(request) {
  const answer = request.milliseconds === undefined ? "in flight"
    : `${request.status ?? request.failure} in ${secondsText(request.milliseconds / 1000)}`;
  const verdicts = (request.verdicts ?? []).map((verdict) => verdict.text);
  const entry = request.entry === undefined ? null : `#${request.entry}`;
  return make(
    "li", { "data-tone": verdicts.length > 0 ? "judged" : undefined },
    titled(
      `${request.method} ${request.url.replace(/^https?:\/\/[^/]+/, "")}`,
      [answer, entry, request.reason, ...verdicts].filter(Boolean).join("; "),
      true,
    ),
  );
}

function clientItem(client) {
  if (client.account === undefined) return make("li", {}, titled(`Client ${client.id}`, "does not answer"));
  const isOff = client.isOverridden;
  const memory = `${bytesText(client.memory.bytes)} of ${bytesText(client.memory.bytesMaximum)}`;
  const facts = [client.server, client.appVersion && `app ${client.appVersion}`, client.session, client.network, memory];
  const part = (title, items) =>
    items.length === 0 ? null : make("div", {}, make("h4", {}, title), make("ul", { class: "set" }, ...items));
  return make(
    "li", { class: "client" },
    titled(client.account, facts.filter(Boolean).join(", ")),
    client.network === undefined ? null
      : clientButton(client, isOff ? "Go online" : "Go offline", `Network of ${client.id}`, isOff ? "online" : "offline"),
    make(
      "div", { class: "parts" },
      part(
        client.operationCount > client.operations.length ? `Outbox: ${counted.format(client.operationCount)}` : "Outbox",
        client.operations.map((operation) => operationItem(client, operation)),
      ),
      part("Values", client.values.map((value) => valueItem(client, value))),
      part("Requests", client.requests.slice(0, 20).map(requestItem)),
    ),
  );
}

async function refreshClients() {
  const { items } = await ask("GET", inWorld("/clients"));
  find("part-clients").hidden = items.length === 0;
  show(find("clients"), items, (client) => client, clientItem);
}
