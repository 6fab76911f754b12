/** No secret shows in anything that callers print or store, whatever the service echoes. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { runloop, runloopAdapter } from "@beachside/runloop";
import { rejection } from "./support/client.mjs";
import { assertKept, keepSecret, shown } from "./support/leaks.mjs";
import { connect, KEY, runloopClient } from "./support/runloop.mjs";

const canary = (name) => keepSecret(name, `canary-${name.replaceAll(" ", "-")}-7f3a9c51d2`);
const ENV = canary("environment value of a create");
const EXEC_ENV = canary("environment value of a command");
const STDIN = canary("standard input");
const FILE = canary("file content");
const COMMAND = canary("password in a command");
const LARGE = `${"x".repeat(200_000)}${canary("content of a large file")}${"y".repeat(100_000)}`;
const LABEL = "a label that may show";

/** A refusal that repeats whatever the service can have heard. */
const said = () =>
  `no: ${KEY} Bearer ${KEY} ${ENV} ${EXEC_ENV} ${STDIN} ${FILE} ${COMMAND} ${LARGE.slice(199_990, 200_060)}`;

const headers = { "x-request-id": KEY, "content-type": "application/json" };
const echoes = () => {
  const refusals = [400, 401, 403, 404, 409, 413, 422, 501].flatMap((status) => [
    { type: "refuse", status, headers, body: { message: said() } },
    { type: "refuse", status, text: `<p>${said()}</p>`, headers: { "content-type": KEY } },
  ]);
  return [
    ...refusals,
    { type: "refuse", status: 429, headers: { "retry-after": "99" }, body: { detail: said() } },
    { type: "refuse", status: 400, body: { error: { message: said() }, echo: [said()] } },
    { type: "refuse", status: 422, body: { [said()]: { deep: [{ er: said() }] } } },
    { type: "refuse", status: 200, text: said(), headers },
    { type: "refuse", status: 302, text: said(), headers: { location: `http://x/${KEY}` } },
  ];
};
/** Of mutations only: reads are repeated, which takes seconds. */
const losses = () => [
  { type: "refuse", status: 500, body: { message: said() } },
  { type: "replace_reply", status: 502, text: said() },
  { type: "halve_reply" },
  { type: "drop_reply" },
];

/** Every call that carries something or is answered with something. */
const calls = {
  create: ["POST", "/v1/devboxes", ({ client }) => client.sandboxes.create({ env: { ENV } })],
  restore: ["POST", "/v1/devboxes", ({ snapshot }) => snapshot.restore({ env: { ENV } })],
  policy: ["GET", "/v1/network-policies/*", ({ blocked }) => blocked.sandboxes.create()],
  exec: [
    "POST",
    "/v1/devboxes/*/execute",
    ({ box }) =>
      box.exec(`: ${COMMAND}; true`, { env: { EXEC_ENV }, stdin: STDIN, timeoutSeconds: 5 }),
  ],
  "exec (upload)": [
    "POST",
    "/v1/devboxes/*/upload_file",
    ({ box }) => box.exec("true", { env: { EXEC_ENV }, stdin: STDIN, timeoutSeconds: 5 }),
  ],
  start: [
    "POST",
    "/v1/devboxes/*/execute",
    ({ box }) =>
      box.processes.start({
        command: `: ${COMMAND}`,
        env: { EXEC_ENV },
        output: { mode: "stream" },
      }),
  ],
  write: [
    "POST",
    "/v1/devboxes/*/execute",
    ({ box }) => box.writeFile("/tmp/f", FILE, { overwrite: true }),
  ],
  "write (upload)": [
    "POST",
    "/v1/devboxes/*/upload_file",
    ({ box }) => box.writeFile("/tmp/f", LARGE, { overwrite: true }),
  ],
  capture: ["POST", "/v1/devboxes/*/snapshot_disk_async", ({ box }) => box.snapshot()],
  inspect: ["GET", "/v1/devboxes/*", ({ box }) => box.inspect()],
  preview: ["GET", "/v1/devboxes/*", ({ box }) => box.preview(3000)],
  list: ["GET", "/v1/devboxes", ({ client }) => client.sandboxes.list()],
  wait: ["POST", "/v1/devboxes/*/wait_for_status", ({ client }) => client.sandboxes.create()],
};

/** What a call may not show: everything of the connection, and what it carries itself. */
const carried = {
  create: [ENV],
  restore: [ENV],
  exec: [EXEC_ENV, STDIN, COMMAND],
  "exec (upload)": [EXEC_ENV, STDIN],
  start: [EXEC_ENV, COMMAND],
  write: [FILE],
  "write (upload)": [LARGE.slice(200_000, 200_040)],
};

/** Makes one call under every refusal and looks at what it ends with; gives how often. */
async function spill(world, name) {
  const { service, bearer } = world;
  const [method, path, call] = calls[name];
  const isRead = method === "GET" || name === "wait";
  const actions = [...echoes(), ...(isRead ? [] : losses())];
  for (const action of actions) {
    if (action.body?.message !== undefined) action.body.message += ` ${bearer}`;
    await service.fault({ match: { method, path, count: 1 }, action });
    const ended = await call(world).catch((error) => error);
    await service.control("DELETE", "/faults");
    const text = shown(ended);
    for (const secret of [KEY, bearer, ...(carried[name] ?? [])]) {
      const where = `${name} under ${action.type} ${action.status ?? ""}`;
      assert.ok(!text.includes(secret), `${where} shows ${secret.slice(0, 40)}`);
    }
  }
  assert.ok(!service.log.includes(KEY) && !service.log.includes(ENV));
  return actions.length;
}

async function world(t) {
  const { service, client: blocked } = await runloopClient(t);
  const config = { network: "internet", timeouts: { startSeconds: 1 } };
  const client = await connect(t, service, { config });
  const box = await client.sandboxes.create();
  const { snapshot } = await box.snapshot();
  const { headers: token } = await box.preview(3000);
  const bearer = keepSecret("a tunnel's token", Object.values(token)[0].slice("Bearer ".length));
  // A connection hides the tokens that it has heard of.
  await (await blocked.sandboxes.get(box.reference)).inspect();
  await blocked.sandboxes.create();
  return { service, client, blocked, box, snapshot, bearer };
}

test("[V17] an error of any call shows no key, token, environment value, input, command or content, though the service echoes them", async (t) => {
  const names = Object.keys(calls);
  let looked = 0;
  const lane = async () => {
    const here = await world(t);
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const errors = await spill(here, name);
      looked += errors;
    }
  };
  await Promise.all([lane(), lane(), lane(), lane(), lane()]);
  assert.ok(looked > 250, `${looked} errors`);
});

test("[V17] the provider's reason of a failed sandbox or snapshot shows none of them either, and is bounded", async (t) => {
  const { service } = await runloopClient(t);
  const client = await connect(t, service, { config: { network: "internet" } });
  const failure_reason = `${KEY} ${ENV} ${"z".repeat(100_000)}`;
  await service.fault({
    match: { method: "POST", path: "/v1/devboxes", count: 1 },
    action: { type: "devbox_script", steps: [{ status: "failure", failure_reason }] },
  });
  const error = await rejection(client.sandboxes.create({ env: { ENV } }), "a failed create");
  assert.equal(error.code, "SANDBOX_FAILED");
  assert.match(error.message, /\[redacted\] \[redacted\]/);
  assert.ok(error.message.length < 1000);
  const failed = await client.sandboxes.get(error.outcome.sandbox);
  const info = await failed.inspect();
  assertKept(info, "an inspection");
  assert.ok(info.reason.length < 1000);

  const box = await client.sandboxes.create();
  await service.fault({
    match: { method: "POST", path: "/v1/devboxes/*/snapshot_disk_async", count: 1 },
    action: { type: "snapshot_outcome", milliseconds: 1, error: `disk: ${KEY}` },
  });
  const capture = await rejection(box.snapshot(), "a failed capture");
  assert.match(capture.message, /disk: \[redacted\]/);
});

test("[V17] clients, handles, references, results, capabilities and operations show no secret when they succeed", async (t) => {
  const { client, service } = await runloopClient(t);
  const saved = [];
  const onSubmit = (reference) => {
    saved.push(reference);
  };
  const box = await client.sandboxes.create({ env: { ENV }, onSubmit });
  const bound = runloop({ apiKey: KEY, baseUrl: service.url });
  const preview = await box.preview(3000);
  const bearer = keepSecret("a tunnel's token", Object.values(preview.headers)[0].slice(7));
  await box.exec("true", { env: { EXEC_ENV }, stdin: STDIN, onSubmit });
  await box.writeFile("/tmp/f", FILE, { overwrite: true, onSubmit });
  const process_ = await box.processes.start({
    command: `: ${COMMAND}; sleep 0.1`,
    env: { EXEC_ENV },
    output: { mode: "stream" },
    onSubmit,
  });
  await process_.wait();
  const captured = await box.snapshot({ onSubmit });
  const things = {
    client,
    box,
    bound,
    adapter: runloopAdapter,
    preview,
    process: process_,
    captured,
    saved,
    page: await client.sandboxes.list(),
    inventory: await client.inventory(),
    info: await box.inspect(),
    snapshot: await captured.snapshot.inspect(),
    capabilities: await client.capabilities(),
    recoveries: await Promise.all(saved.map((each) => client.recover(each))),
    label: LABEL,
  };
  for (const [name, thing] of Object.entries(things)) assertKept(thing, name);
  assert.ok(shown(things).includes(LABEL), "it looks where things show");
  assert.equal(preview.headers["X-Runloop-Tunnel-Authorization"], `Bearer ${bearer}`);
  await box.destroy({ onSubmit });
  assertKept(saved, "saved references");
});

test("the look for leaks finds one, in each form and in a cause", () => {
  const secret = keepSecret("a word of this test", "word-of-this-very-test-41");
  const cause = new Error(`x ${secret}`);
  for (const leak of [
    secret,
    { deep: [{ er: secret }] },
    new Error("outer", { cause }),
    Object.assign(new Error("field"), { outcome: { text: secret } }),
    Buffer.from(secret).toString("base64"),
    new Error(encodeURIComponent(`a ${secret}`)),
  ]) {
    assert.throws(() => assertKept(leak, "this"), /shows a word of this test/);
  }
});

test("[V17] the look through all that the tests showed finds a secret, and is not content with nothing", (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "beachside-leaks-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const put = (name, text) => writeFileSync(path.join(folder, name), text);
  const look = () => {
    const { status, stdout, stderr } = spawnSync("node", ["scripts/leaks.mjs", folder]);
    return { status, said: `${stdout}${stderr}` };
  };
  assert.equal(look().status, 1);
  const secret = "a-word-of-another-process-52";
  put("1.secrets", `${JSON.stringify({ name: "that word", secret })}\n`);
  put("output", "all is well\n");
  const said = "no secret shows: 0 kB in 1 files, 2 forms of secrets\n";
  assert.deepEqual(look(), { status: 0, said });
  for (const leak of [secret, Buffer.from(secret).toString("base64"), "hunter2", "ak_0123456789"]) {
    put("2.shown", `one\ntwo ${leak}\n`);
    const { status, said } = look();
    assert.equal(status, 1, leak);
    assert.match(said, /^2\.shown:2 shows (that word|a word like)/);
    assert.ok(!said.includes(leak));
  }
});
