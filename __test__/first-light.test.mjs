/** Connecting, Devboxes and references, through the addon, against the simulator. */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import util from "node:util";
import { Worker } from "node:worker_threads";
import * as esm from "@beachside/runloop";
import { Beachside, BeachsideError, validateResourceReference } from "beachside";
import { rejection } from "./support/client.mjs";
import { connect, count, KEY, runloopClient, simulator } from "./support/runloop.mjs";

const require = createRequire(import.meta.url);
test("[R1] import and require give the same adapter and classes", () => {
  const commonjs = require("@beachside/runloop");
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(commonjs).sort());
  for (const name of Object.keys(esm)) assert.equal(Reflect.get(esm, name), commonjs[name], name);
  assert.equal(esm.BeachsideError, BeachsideError);
});

test("[R3] connect asks for the account once, and its id is the scope of everything", async (t) => {
  const service = await simulator(t);
  const client = await connect(t, service);
  const { lines } = await service.journal();
  assert.deepEqual(lines, ["GET /v1/accounts/me"]);
  assert.equal(client.scope.provider, "runloop");
  const box = await client.sandboxes.create();
  assert.deepEqual(box.reference.scope, { account: client.scope.account });
  await box.destroy();
});

test("[R4] runloop(...) connects alone and gives what adapter, credentials and config give", async (t) => {
  const service = await simulator(t);
  const credentials = { apiKey: KEY, baseUrl: service.url };
  const config = { network: "internet", lifecycle: { idleSeconds: 60 } };
  const forms = [
    [esm.runloop({ ...credentials, ...config })],
    [{ adapter: esm.runloop({ ...credentials, ...config }) }],
    [{ adapter: esm.runloopAdapter, credentials, config }],
  ];
  const seen = [];
  for (const args of forms) {
    const client = await Beachside.connect(...args);
    seen.push({ scope: client.scope, capabilities: await client.capabilities() });
    await client.close();
  }
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual(seen[2], seen[0]);
  const twice = { adapter: esm.runloop(credentials), credentials };
  await assert.rejects(Beachside.connect(twice), { code: "INVALID_ARGUMENT", message: /twice/ });
});

test("a missing or malformed key, unknown settings and a bad address are typed errors that say what to do", async () => {
  const { runloopAdapter: adapter } = esm;
  const good = { apiKey: KEY, baseUrl: "http://127.0.0.1:9" };
  const wrong = [
    [{ credentials: {} }, "UNAUTHENTICATED|INVALID_ARGUMENT", /apiKey/],
    [{ credentials: { ...good, apiKey: 5 } }, "INVALID_ARGUMENT", /apiKey/],
    [{ credentials: { ...good, apiKey: "" } }, "UNAUTHENTICATED|INVALID_ARGUMENT", /apiKey/],
    [
      { credentials: { ...good, apiKey: `${KEY}\n` } },
      "UNAUTHENTICATED|INVALID_ARGUMENT",
      /apiKey/,
    ],
    [{ credentials: { ...good, apikey: KEY } }, "INVALID_ARGUMENT", /"apikey".*"apiKey"/],
    [
      { credentials: { ...good, baseUrl: "http://example.com" } },
      "INVALID_ARGUMENT",
      /baseUrl.*https/,
    ],
    [{ credentials: { ...good, baseUrl: "nonsense" } }, "INVALID_ARGUMENT", /baseUrl/],
    [{ credentials: good, config: { netwrok: "x" } }, "INVALID_ARGUMENT", /"netwrok".*"network"/],
    [{ credentials: good, config: { network: "open" } }, "INVALID_ARGUMENT", /network/],
    [{ credentials: good, config: [] }, "INVALID_ARGUMENT", /config/],
    [{ credentials: good }, "UNAVAILABLE", /no connection to Runloop at http:\/\/127.0.0.1:\d+: /],
  ];
  for (const [options, code, message] of wrong) {
    const error = await rejection(Beachside.connect({ adapter, ...options }), String(message));
    assert.match(error.code, new RegExp(`^(${code})$`), error.message);
    assert.match(error.message, message);
    const shown = util.inspect(error, { depth: 10, showHidden: true });
    assert.equal(shown.includes(KEY), false);
  }
});

test("[R3] a key that is not accepted and an account that is not enabled are clear errors", async (t) => {
  const service = await simulator(t);
  const wrongKey = await rejection(connect(t, service, { apiKey: "ak_wrong_key_000000" }));
  assert.equal(wrongKey.code, "UNAUTHENTICATED");
  assert.equal(wrongKey.status, 401);
  for (const status of ["ACCOUNT_STATUS_DISABLED_BY_ADMIN", "ACCOUNT_STATUS_NEW_WORD"]) {
    await service.control("POST", "/accounts", { account_status: status });
    const disabled = await rejection(connect(t, service));
    assert.equal(disabled.code, "PERMISSION_DENIED");
    assert.match(disabled.message, new RegExp(status));
  }
});

test("[V15] [V16] a saved Devbox reopens on a new connection; a tampered or foreign reference does not pass", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create({ env: { TOKEN: "env-secret-1234" } });
  const saved = JSON.stringify(box.reference);
  const next = await connect(t, service);
  const again = await next.sandboxes.get(validateResourceReference(JSON.parse(saved)));
  assert.deepEqual(again.reference, box.reference);
  const guessed = { ...box.reference.ownership, submission: "guess" };
  const tampered = await next.sandboxes.get({ ...box.reference, ownership: guessed });
  assert.deepEqual(tampered.reference.ownership, { state: "unknown" });
  await service.clearJournal();
  const foreign = { ...box.reference, scope: { account: "acct_other" } };
  await assert.rejects(next.sandboxes.get(foreign), { code: "SCOPE_MISMATCH" });
  const { id: _, ...trimmed } = box.reference;
  await assert.rejects(next.sandboxes.get(trimmed), { message: /reference\.id is missing/ });
  assert.deepEqual((await service.journal()).lines, []);
  await box.destroy();
  await assert.rejects(next.sandboxes.get({ ...box.reference, id: "dbx_missing" }), {
    code: "NOT_FOUND",
  });
});

test("[V17] no reference, error or inspection holds the key or an environment value", async (t) => {
  const secret = "env-secret-value-1234";
  const { client } = await runloopClient(t);
  const box = await client.sandboxes.create({ env: { TOKEN: secret } });
  const errors = [
    await rejection(
      client.sandboxes.create({ env: { TOKEN: secret }, lifecycle: { lifetimeSeconds: 1 } }),
    ),
    await rejection(box.exec(["true"], { env: { TOKEN: secret }, cwd: "/missing" })),
  ];
  const everything = { client, box, errors, adapter: esm.runloop({ apiKey: KEY }) };
  const shown =
    util.inspect(everything, { depth: 12, showHidden: true, getters: true }) +
    JSON.stringify(everything) +
    errors.map((error) => error.stack).join("\n");
  assert.equal(shown.includes(KEY), false);
  assert.equal(shown.includes(secret), false);
  await box.destroy();
});

test("[R29] [R31] a create that is refused is that error, and one whose answer is lost is sent once", async (t) => {
  const { client, service } = await runloopClient(t, { config: { network: "internet" } });
  const once = (action) => ({ match: { method: "POST", path: "/v1/devboxes", count: 1 }, action });
  await service.fault(once({ type: "refuse", status: 422 }));
  const refused = await rejection(client.sandboxes.create());
  assert.equal(refused.code, "REJECTED");
  assert.equal(refused.status, 422);
  assert.equal(refused.outcome.kind, "sandbox_create");
  for (const action of [{ type: "drop_reply" }, { type: "replace_reply", status: 502 }]) {
    await service.clearJournal();
    await service.fault(once(action));
    const lost = await rejection(client.sandboxes.create());
    assert.equal(lost.code, "OUTCOME_UNKNOWN", lost.message);
    assert.equal(lost.outcome.submitted, true);
    assert.equal(await count(service, "POST /v1/devboxes"), 1);
    const recovery = await client.recover(lost.outcome.operation);
    assert.ok(["done", "in_progress"].includes(recovery.status), recovery.status);
    await recovery.sandbox.destroy();
    assert.equal(await count(service, "POST /v1/devboxes"), 1);
  }
});

test("an error made by the addon is recognised from CommonJS and from a worker", async (t) => {
  const { client } = await runloopClient(t);
  const error = await rejection(client.sandboxes.create({ lifecycle: { lifetimeSeconds: 1 } }));
  const commonjs = require("@beachside/runloop");
  assert.ok(error instanceof commonjs.BeachsideError);
  assert.ok(error instanceof Error);
  assert.match(error.stack, /first-light\.test\.mjs/);
  const source = `
    const { parentPort } = require("node:worker_threads");
    const { runloop, BeachsideError } = require(${JSON.stringify(require.resolve("@beachside/runloop"))});
    const { Beachside } = require(${JSON.stringify(require.resolve("beachside"))});
    Beachside.connect(runloop({ apiKey: "ak_x", baseUrl: "http://127.0.0.1:9" })).catch((error) =>
      parentPort.postMessage({ ours: error instanceof BeachsideError, error }));
  `;
  const worker = new Worker(source, { eval: true });
  const { ours, error: posted } = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  assert.equal(ours, true);
  assert.ok(esm.isBeachsideError(posted));
  assert.equal(posted.code, "UNAVAILABLE");
});
