/** The adapter through its addon, against the simulator. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";
import {
  BeachsideError,
  isBeachsideError,
  Preserve,
  runloop,
  runloopAdapter,
  UnsupportedFeatureError,
} from "@beachside/runloop";
import { Beachside, Image } from "beachside";
import { runScript } from "./support/child.mjs";
import { rejection } from "./support/client.mjs";
import { startSimulator } from "./support/simulator.mjs";

const require = createRequire(import.meta.url);
const apiKey = "ak_boundary_0123456789";
const script = (name) => fileURLToPath(new URL(`native/${name}.mjs`, import.meta.url));

let simulator;
before(async () => {
  simulator = await startSimulator({ apiKey });
});
after(() => simulator.stop());
beforeEach(() => simulator.clearJournal());

const options = (more) => ({ apiKey, baseUrl: simulator.url, network: "internet", ...more });
const environment = () => ({ RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: simulator.url });
const sent = async () => (await simulator.journal()).lines;

/** A connected client and a sandbox, both ended with the test. */
async function sandbox(t, made) {
  const client = await Beachside.connect(runloop(options()));
  const box = await client.sandboxes.create(made);
  t.after(async () => {
    await box.destroy();
    await client.close();
  });
  await simulator.clearJournal();
  return { client, box };
}

test("[R1] the first example runs for import and require with every network function of JavaScript stubbed to throw", async () => {
  for (const how of ["import", "require"]) {
    const ended = await runScript(script("without-network"), [how], { env: environment() });
    assert.equal(ended.stderr, "");
    assert.deepEqual([ended.code, ended.stdout], [0, "ready\n"], how);
  }
  assert.equal(JSON.parse(readFileSync("package.json", "utf8")).dependencies, undefined);
});

test("import and require give the same objects", () => {
  const required = require("@beachside/runloop");
  assert.deepEqual(Object.keys(required).sort(), [
    "BeachsideError",
    "Preserve",
    "UnsupportedFeatureError",
    "isBeachsideError",
    "runloop",
    "runloopAdapter",
  ]);
  for (const [name, value] of Object.entries({
    BeachsideError,
    isBeachsideError,
    Preserve,
    runloop,
    runloopAdapter,
    UnsupportedFeatureError,
  })) {
    assert.equal(required[name], value, name);
  }
});

test("[R3] connect asks for the account once and scopes the connection to it", async (t) => {
  const client = await Beachside.connect(runloop(options()));
  t.after(() => client.close());
  assert.deepEqual(await sent(), ["GET /v1/accounts/me"]);
  assert.equal(client.scope.provider, "runloop");
  assert.match(client.scope.account, /./);
});

test("[R4] runloop() gives what the adapter gives with credentials and config beside it", async (t) => {
  const { apiKey: key, baseUrl, ...config } = options({ lifecycle: { lifetimeSeconds: 60 } });
  const ways = [
    runloop(options({ lifecycle: { lifetimeSeconds: 60 } })),
    { adapter: runloopAdapter, credentials: { apiKey: key, baseUrl }, config },
  ];
  const seen = [];
  for (const way of ways) {
    await simulator.clearJournal();
    const client = await Beachside.connect(way);
    t.after(() => client.close());
    const box = await client.sandboxes.create();
    const { lifecycle, network } = await box.inspect();
    await box.destroy();
    const requests = (await sent()).map((line) => line.replace(/dbx_\w+/, "dbx"));
    seen.push({
      scope: client.scope,
      tree: await client.capabilities(),
      lifecycle,
      network,
      requests,
    });
  }
  assert.deepEqual(seen[0], seen[1]);
  assert.equal(seen[0].lifecycle.lifetimeSeconds, 60);
});

test("settings that are wrong are refused by name, with what to do, before anything is sent", async () => {
  for (const [given, code, message] of [
    [{ apiKey: undefined }, "INVALID_ARGUMENT", /apiKey is missing/],
    [{ apiKey: "" }, "INVALID_ARGUMENT", /apiKey/],
    [{ apiKey: "ak with space" }, "INVALID_ARGUMENT", /apiKey/],
    [{ apiKey: "ak_\ud800" }, "INVALID_ARGUMENT", /surrogate/],
    [{ apiKey: "ak_\0" }, "INVALID_ARGUMENT", /NUL/],
    [{ apiKey: 5 }, "INVALID_ARGUMENT", /apiKey/],
    [{ baseUrl: "http://example.com" }, "INVALID_ARGUMENT", /baseUrl/],
    [
      { baseUrl: new URL("https://example.com") },
      "INVALID_ARGUMENT",
      /credentials\.baseUrl must be plain data/,
    ],
    [{ newtork: "blocked" }, "INVALID_ARGUMENT", /did you mean "network"/],
    [{ network: "none" }, "INVALID_ARGUMENT", /network/],
    [{ network: () => "blocked" }, "INVALID_ARGUMENT", /config\.network must be plain data/],
    [{ resources: { vcpus: Number.NaN } }, "INVALID_ARGUMENT", /config\.resources\.vcpus/],
    [{ network: { allow: ["example.com"] } }, "UNSUPPORTED", /network\.allow/],
    [{ image: Image.oci("debian") }, "UNSUPPORTED", /images\.oci/],
    [{ snapshots: { preserve: Preserve.FILESYSTEM_AND_MEMORY } }, "UNSUPPORTED", /snapshots/],
  ]) {
    const error = await rejection((async () => Beachside.connect(runloop(options(given))))());
    assert.ok(error instanceof BeachsideError, inspect(given));
    assert.equal(error.code, code, inspect(error));
    assert.match(error.message, message);
    assert.equal(error instanceof UnsupportedFeatureError, code === "UNSUPPORTED");
  }
  assert.deepEqual(await sent(), []);
});

test("a key that is not accepted is UNAUTHENTICATED, an address where nobody listens UNAVAILABLE", async () => {
  const wrong = await rejection(Beachside.connect(runloop(options({ apiKey: "ak_not_this_one" }))));
  assert.equal(wrong.code, "UNAUTHENTICATED");
  assert.equal(wrong.status, 401);
  assert.equal(wrong.operation, "connect");
  const nobody = options({ baseUrl: "http://127.0.0.1:1" });
  assert.equal((await rejection(Beachside.connect(runloop(nobody)))).code, "UNAVAILABLE");
});

test("[V17] the key is in no inspection of adapter, client, handle, reference or error", async (t) => {
  const adapter = runloop(options());
  const { client, box } = await sandbox(t, { env: { TOKEN: "env-value-0123456789" } });
  const wrong = "ak_wrong_9876543210";
  const errors = [
    await rejection(Beachside.connect(runloop(options({ apiKey: wrong })))),
    await rejection(box.readFile("/missing")),
    await rejection(
      box.exec("sleep 60", { timeoutSeconds: 0.2, env: { T: "env-value-0123456789" } }),
    ),
  ];
  for (const value of [adapter, client, box, box.reference, ...errors]) {
    for (const shown of [
      inspect(value, { depth: 20, showHidden: true, getters: true }),
      JSON.stringify(value) ?? "",
      String(value?.stack ?? ""),
    ]) {
      assert.doesNotMatch(shown, /ak_boundary_0123456789|ak_wrong_9876543210|env-value-0123456789/);
    }
  }
});

test("[E8] NUL and half a surrogate pair in any text are INVALID_ARGUMENT, and nothing is sent", async (t) => {
  const { box } = await sandbox(t);
  for (const broken of ["a\0b", "\ud800", "x\udc00"]) {
    for (const call of [
      () => box.exec(["printf", broken]),
      () => box.exec(broken),
      () => box.exec("true", { cwd: broken }),
      () => box.exec("true", { env: { A: broken } }),
      () => box.exec("true", { env: { [broken]: "A" } }),
      () => box.readFile(`/tmp/${broken}`),
      () => box.writeFile(`/tmp/${broken}`, "x", { overwrite: true }),
    ]) {
      const error = await rejection((async () => call())());
      assert.equal(error.code, "INVALID_ARGUMENT", `${call} ${JSON.stringify(broken)}`);
    }
  }
  const { apiKey: key, baseUrl } = options();
  const direct = await runloopAdapter.connect({ credentials: { apiKey: key, baseUrl } });
  await simulator.clearJournal();
  for (const broken of ["a\0b", "\ud800", "x\udc00"]) {
    // Without the client, which looks first.
    for (const call of [
      () => direct.exec({ sandboxId: "dbx_1", command: broken }),
      () => direct.readFile({ sandboxId: broken, path: "/tmp/x" }),
      () => direct.inspectSandbox({ sandboxId: broken }),
    ]) {
      const error = await rejection(call());
      assert.equal(error.code, "INVALID_ARGUMENT", `${call} ${JSON.stringify(broken)}`);
    }
  }
  await direct.close();
  assert.deepEqual(await sent(), []);
});

test("bytes of every value cross in and out unchanged", async (t) => {
  const { box } = await sandbox(t);
  const bytes = new Uint8Array(300_000).map((_, index) => (index * 7 + (index >> 8)) % 256);
  const framed = new Uint8Array(bytes.length + 20).fill(9);
  framed.set(bytes, 10);
  const window = framed.subarray(10, 10 + bytes.length);
  const result = await box.exec(["cat"], { stdin: window });
  assert.deepEqual(result.stdout, bytes);
  await box.writeFile("/tmp/bytes", window, { overwrite: true });
  assert.deepEqual(await box.readFile("/tmp/bytes"), bytes);
});

test("[V23] a cancelled command is killed once, says how that went, and leads to its caller", async (t) => {
  const { box } = await sandbox(t);
  const controller = new AbortController();
  const reason = new Error("enough");
  async function theCaller() {
    return await box.exec("sleep 60", { signal: controller.signal });
  }
  const call = rejection(theCaller());
  while (!(await sent()).some((line) => line.endsWith("/execute") || /execut/.test(line))) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  controller.abort(reason);
  const error = await call;
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cause, reason);
  assert.equal(error.outcome.submitted, true);
  assert.ok([true, "unknown"].includes(error.outcome.killed), String(error.outcome.killed));
  assert.match(error.stack, /theCaller/);
  const kills = (await sent()).filter((line) => /kill/.test(line));
  assert.ok(kills.length <= 1, kills.join());
});

test("a call under a signal that is aborted already sends nothing", async (t) => {
  const { box } = await sandbox(t);
  const signal = AbortSignal.abort("before");
  for (const call of [
    () => box.exec("true", { signal }),
    () => box.inspect({ signal }),
    () => box.readFile("/tmp/x", { signal }),
    () => box.suspend({ signal }),
  ]) {
    const error = await rejection(call());
    assert.equal(error.code, "CANCELLED");
    assert.equal(error.cause, "before");
  }
  assert.deepEqual(await sent(), []);
});

test("[V27] after close() calls reject with CLOSED, a running read ends, and nothing keeps the process", async () => {
  const client = await Beachside.connect(runloop(options()));
  const box = await client.sandboxes.create();
  await simulator.fault({
    match: { method: "GET", path: `/v1/devboxes/${box.reference.id}` },
    action: { type: "hold_request" },
  });
  const running = rejection(box.inspect());
  await new Promise((resolve) => setTimeout(resolve, 50));
  await client.close();
  assert.equal((await running).code, "CLOSED");
  assert.equal((await rejection(box.inspect())).code, "CLOSED");
  await client.close();
  for (const how of ["close", "forget"]) {
    const ended = await runScript(script("left-open"), [how], { env: environment() });
    assert.deepEqual([ended.code, ended.stdout, ended.stderr], [0, "done\n", ""], how);
    assert.ok(ended.milliseconds < 15_000, `${how}: ${ended.milliseconds} ms`);
  }
});

test("a worker thread has a connection of its own, and may end in mid-flight", async (t) => {
  const worker = new Worker(script("in-worker"), { workerData: options() });
  const answer = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  assert.deepEqual(answer, { printed: "worker", ours: true, code: "NOT_FOUND" });
  const { box } = await sandbox(t);
  assert.equal((await box.exec(["printf", "main"])).stdoutText(), "main");
});

test("without a binary a connection rejects with NATIVE_BINARY_MISSING, and the import works", async () => {
  const env = { ...environment(), NAPI_RS_NATIVE_LIBRARY_PATH: "/nowhere/runloop.node" };
  const ended = await runScript(script("left-open"), ["close"], { env });
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /NATIVE_BINARY_MISSING/);
  assert.match(ended.stderr, new RegExp(`${process.platform}-${process.arch}`));
});

test("setup names the environment variable and the meaning of every setting", async () => {
  const { credentials, config } = runloopAdapter.setup;
  assert.equal(credentials.apiKey.environmentVariable, "RUNLOOP_API_KEY");
  assert.equal(credentials.apiKey.required, true);
  for (const entry of [...Object.values(credentials), ...Object.values(config)]) {
    assert.match(entry.description, /^[A-Z].*\.$/);
    assert.match(entry.link, /^https:\/\//);
  }
  // The addon refuses what is no setting, so this holds the two lists together.
  for (const name of Object.keys(config)) {
    const error = await rejection(
      Beachside.connect(runloop(options({ [name]: 0, [`${name}x`]: 0 }))),
    );
    assert.match(error.message, new RegExp(`did you mean "${name}"`));
  }
});
