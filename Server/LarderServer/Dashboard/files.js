// The files that the server was started with: what was loaded, when, and what is wrong with them.

async function refreshFiles() {
  const { files, webhooks } = await ask("GET", "/files");
  const parts = files.map((file) =>
    make(
      "p",
      { class: file.error ? "bad" : "quiet" },
      file.error
        ? `${file.error}; in use: ${file.summary}, loaded ${file.loadedAt.slice(11, 19)}`
        : `${file.path}: ${file.summary}, loaded ${file.loadedAt.slice(11, 19)}`,
    ),
  );
  if (webhooks.failed > 0) parts.push(make("p", { class: "bad" }, `${webhooks.failed} webhooks failed; the last one: ${webhooks.lastFailure}`));
  find("files").replaceChildren(...parts);
}
