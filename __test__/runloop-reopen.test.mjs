/** Saved references through the addon: reopened exactly, or refused for what stands in the way. */

import assert from "node:assert/strict";
import test from "node:test";
import { validateResourceReference } from "beachside";
import { rejection } from "./support/client.mjs";
import { connect, count, runloopClient, simulator } from "./support/runloop.mjs";

/** What a service can answer instead of the Devbox, for as long as it is asked. */
const obstacles = {
  "a refused key": {
    action: { type: "refuse", status: 401 },
    expected: { code: "UNAUTHENTICATED", status: 401 },
  },
  "a denied permission": {
    action: { type: "refuse", status: 403 },
    expected: { code: "PERMISSION_DENIED", status: 403 },
  },
  "a rate limit": {
    action: { type: "rate_limit", retry_after: "60" },
    expected: { code: "RATE_LIMITED", status: 429, retryAfterSeconds: 60 },
  },
  "a fault of the service": {
    action: { type: "refuse", status: 500 },
    expected: { code: "UNAVAILABLE", status: 500 },
  },
  "a page of a gateway": {
    action: {
      type: "refuse",
      status: 502,
      text: "<html>Bad gateway</html>",
      headers: { "content-type": "text/html" },
    },
    expected: { code: "UNAVAILABLE", status: 502 },
  },
  "a page instead of JSON": {
    action: {
      type: "refuse",
      status: 200,
      text: "<html>Sign in</html>",
      headers: { "content-type": "text/html" },
    },
    expected: { code: "PROTOCOL", status: 200 },
  },
  "half a view": {
    action: { type: "halve_reply" },
    expected: { code: "PROTOCOL", status: 200 },
  },
  "another Devbox": {
    action: { type: "edit_reply", set: { "/id": "dbx_other" } },
    expected: { code: "PROTOCOL" },
  },
  "a redirect": {
    action: { type: "redirect", origin: "http://127.0.0.1:1" },
    expected: { code: "PROTOCOL", status: 307 },
  },
  "a connection that breaks": {
    action: { type: "drop_request", reset: true },
    expected: { code: "UNAVAILABLE", status: undefined },
  },
  "an answer that breaks off": {
    action: { type: "truncate_reply", bytes: 10 },
    expected: { code: "UNAVAILABLE", status: undefined },
  },
  silence: {
    action: { type: "hold_request" },
    expected: { code: "UNAVAILABLE", status: undefined },
  },
};

test("[V15] [R28] what keeps a saved sandbox from being reopened is an error of its own, never NOT_FOUND, and nothing is created", async (t) => {
  const service = await simulator(t);
  const maker = await connect(t, service);
  const made = {};
  for (const name of Object.keys(obstacles)) {
    const box = await maker.sandboxes.create();
    made[name] = JSON.stringify(box.reference);
  }
  const client = await connect(t, service, { config: { timeouts: { requestSeconds: 0.2 } } });
  const rules = [];
  for (const [name, { action }] of Object.entries(obstacles)) {
    const path = `/v1/devboxes/${JSON.parse(made[name]).id}`;
    rules.push(await service.fault({ match: { method: "GET", path }, action }));
  }
  await service.clearJournal();
  const refusals = Object.entries(obstacles).map(async ([name, { expected }]) => {
    const error = await rejection(client.sandboxes.get(JSON.parse(made[name])), name);
    assert.equal(error.name, "BeachsideError", name);
    for (const [field, value] of Object.entries(expected)) {
      assert.equal(error[field], value, `${name}: ${field} of ${error}`);
    }
    assert.doesNotMatch(error.message, /does not exist/, name);
  });
  await Promise.all(refusals);
  assert.equal(await count(service, "POST /v1/devboxes"), 0);
  const { entries } = await service.journal();
  assert.deepEqual([...new Set(entries.map((each) => each.method))], ["GET"]);

  for (const { id } of rules) await service.control("DELETE", `/faults/${id}`);
  for (const text of Object.values(made)) {
    const box = await client.sandboxes.get(JSON.parse(text));
    assert.equal((await box.exec("echo back")).stdoutText(), "back\n");
    assert.deepEqual(box.reference, JSON.parse(text));
    await box.destroy();
  }
});

test("[R28] a fault that passes while a sandbox is reopened does not reach the caller", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const again = await connect(t, service);
  for (const action of [
    { type: "refuse", status: 503 },
    { type: "rate_limit", retry_after: "0" },
    { type: "drop_request", reset: true },
    { type: "truncate_reply", bytes: 10 },
  ]) {
    await service.fault({
      match: { method: "GET", path: `/v1/devboxes/${box.reference.id}`, count: 1 },
      action,
    });
    const opened = await again.sandboxes.get(box.reference);
    assert.deepEqual(opened.reference, box.reference, action.type);
  }
  await box.destroy();
});

test("[V16] [V26] a changed id or marker is caught at get(), is never owned, and is left alone", async (t) => {
  const { client, service } = await runloopClient(t);
  const mine = await client.sandboxes.create();
  const other = await client.sandboxes.create();
  const next = await connect(t, service);
  const { ownership } = mine.reference;
  const changed = [
    { ...mine.reference, id: other.reference.id },
    { ...mine.reference, ownership: { ...ownership, operation: "op_guess" } },
    { ...mine.reference, ownership: { ...ownership, submission: "sub_guess" } },
  ];
  for (const reference of changed) {
    const box = await next.sandboxes.get(validateResourceReference(reference));
    assert.deepEqual(box.reference.ownership, { state: "unknown" });
    assert.equal((await box.inspect()).ownership.state, "unknown");
    await box[Symbol.asyncDispose]?.();
  }
  const path = `/v1/devboxes/${mine.reference.id}`;
  await service.fault({
    match: { method: "GET", path, count: 1 },
    action: { type: "edit_reply", remove: ["/metadata"] },
  });
  const bare = await next.sandboxes.get(mine.reference);
  assert.deepEqual(bare.reference.ownership, { state: "unknown" });
  assert.equal(await count(service, "POST /v1/devboxes/*/shutdown"), 0);
  assert.deepEqual((await next.sandboxes.get(mine.reference)).reference, mine.reference);
});

test("[V15] [V16] a reference of another account, and a trimmed one, are refused before any request", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  await service.control("POST", "/accounts", { id: "acct_other", api_key: "ak_other_0123456789" });
  const stranger = await connect(t, service, { apiKey: "ak_other_0123456789" });
  await service.clearJournal();
  const mismatch = await rejection(stranger.sandboxes.get(box.reference));
  assert.equal(mismatch.code, "SCOPE_MISMATCH");
  assert.match(mismatch.message, /"acct_other"/);
  const foreign = { ...box.reference, provider: "elsewhere" };
  assert.equal((await rejection(client.sandboxes.get(foreign))).code, "SCOPE_MISMATCH");
  for (const field of ["version", "scope", "id", "ownership", "mounts"]) {
    const { [field]: _, ...trimmed } = box.reference;
    const error = await rejection(client.sandboxes.get(trimmed), field);
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, new RegExp(`reference\\.${field}`));
  }
  assert.deepEqual((await service.journal()).lines, []);
});

test("[R28] ids go into URLs percent-encoded, and one that no URL can hold is NOT_FOUND without a request", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  await service.clearJournal();
  const odd = [
    "../accounts/me",
    "x/../../devboxes",
    "a?b=c&d",
    "a#b",
    "a b",
    "%2e%2e",
    "%2F",
    "a;b@c:d",
    "\\..\\a",
    "ü😀",
  ];
  const open = (id) => rejection(client.sandboxes.get({ ...box.reference, id }), id);
  for (const id of odd) {
    const error = await open(id);
    assert.equal(error.code, "NOT_FOUND", id);
    assert.deepEqual({ ...error.resource }, { kind: "sandbox", id });
    const segment = (await service.journal()).lines.at(-1).slice("GET /v1/devboxes/".length);
    assert.equal(decodeURIComponent(segment), id);
    assert.match(segment, /^[\w.~%:;@&=+$,!*'()-]+$/, id);
  }
  const { length } = (await service.journal()).lines;
  for (const id of [".", ".."]) assert.equal((await open(id)).code, "NOT_FOUND", id);
  for (const id of ["a\r\nx: y", "a\0b", "\u007f", "\ud800"]) {
    const error = await open(id);
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, /reference\.id holds a control character/);
  }
  assert.equal((await service.journal()).lines.length, length);
  await box.destroy();
});
