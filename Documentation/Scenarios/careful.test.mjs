// The reading and paying half of a careful client, as a test of node:test. It needs nothing but Node 18 or later.
//
//   larder-server scenarios run lost-reply captive-portal -- node --test careful.test.mjs

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const env = process.env;
const pages = new Map(); // URL -> { body, etag, freshUntil }

// Sends a request until the API has answered. What is repeated must be safe to repeat.
async function call(method, url, { body, headers = {} } = {}) {
  for (let attempt = 0; attempt < 8; attempt++) {
    let wait = 20 + Math.random() * 100 * 2 ** attempt;
    try {
      const response = await fetch(url, {
        method,
        headers: { authorization: `Bearer ${env.LARDER_TOKEN}`, "content-type": "application/json", ...headers },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(5000),
      });
      if (response.status === 304 || response.status === 204) return { response };
      if (!response.headers.get("content-type")?.includes("json")) throw new TypeError("a portal or a proxy");
      const value = await response.json();
      if (response.ok) return { response, value };
      const passes = response.status >= 500 || response.status === 429;
      if (!passes) return { response, value };
      wait = Math.max(wait, retryAfter(response));
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
    }
    await sleep(wait);
  }
  assert.fail(`no answer to ${method} ${url}`);
}

// Milliseconds until the server wants to be asked again; dates are compared with the server's own.
function retryAfter(response) {
  const text = response.headers.get("retry-after");
  if (!text) return 0;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  return Date.parse(text) - Date.parse(response.headers.get("date") ?? new Date()) + 100;
}

// Reads through a cache.
async function get(path) {
  const known = pages.get(path);
  if (known && performance.now() < known.freshUntil) return known.body;
  const asked = performance.now();
  const headers = known?.etag ? { "if-none-match": known.etag } : {};
  const { response, value } = await call("GET", env.LARDER_URL + path, { headers });
  assert.ok(response.ok || response.status === 304, `status ${response.status}`);
  const control = response.headers.get("cache-control") ?? "";
  const seconds = control.includes("no-cache") ? 0 : Number(/max-age=(\d+)/.exec(control)?.[1] ?? 0);
  const body = response.status === 304 ? known.body : value;
  pages.set(path, { body, etag: response.headers.get("etag"), freshUntil: asked + seconds * 1000 });
  return body;
}

async function report(held) {
  const { response } = await call("POST", env.LARDER_REPORT, { body: { as: env.LARDER_HANDLE, partial: true, held } });
  assert.equal(response.status, 200);
}

const tasks = {
  async read() {
    for (let round = 0; round < Number(env.LARDER_ROUNDS); round++) {
      const value = await get(env.LARDER_PATH);
      await report({ [value.id]: value.version });
    }
  },
  async transfer() {
    for (const amount of env.LARDER_AMOUNTS.split(",")) {
      const { response } = await call("POST", env.LARDER_URL + "/v1/transfers", {
        headers: { "idempotency-key": `"${randomUUID()}"` },
        body: {
          fromAccountId: env.LARDER_FROM,
          toAccountId: env.LARDER_TO,
          amount: { minorUnits: Number(amount), currency: env.LARDER_CURRENCY },
        },
      });
      assert.ok(response.ok || env.LARDER_SCENARIO === "rejected-transfer", `status ${response.status}`);
    }
  },
  async message() {
    const body = { text: env.LARDER_TEXT, clientId: randomUUID() };
    const { response } = await call("POST", env.LARDER_URL + env.LARDER_PATH, { body });
    assert.ok(response.ok);
  },
  async like() {
    const { response } = await call("PUT", env.LARDER_URL + env.LARDER_PATH);
    assert.ok(response.ok);
  },
};

test(env.LARDER_SCENARIO ?? "no scenario", { skip: !(env.LARDER_TASK in tasks) }, () => tasks[env.LARDER_TASK]());
