/** What the boundary promises, through the whole adapter and against the simulator. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";
import { BeachsideError, runloop, runloopAdapter } from "@beachside/runloop";
import { Beachside } from "beachside";
import { rejection } from "./support/client.mjs";
import { program } from "./support/program.mjs";
import { KEY, runloopClient } from "./support/runloop.mjs";

async function sandbox(t) {
  const { client, service } = await runloopClient(t, { config: { network: "internet" } });
  const box = await client.sandboxes.create();
  await service.clearJournal();
  return { box, client, service };
}

test("the package needs no other at run time", () => {
  const { dependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
  assert.equal(dependencies, undefined);
});

test("settings that JSON cannot say are refused by path, and the adapter shows none of them", async () => {
  for (const [given, message] of [
    [{ baseUrl: new URL("https://example.com") }, /^credentials\.baseUrl must be plain data/],
    [{ network: () => "blocked" }, /^config\.network must be plain data/],
    [{ resources: { vcpus: Number.NaN } }, /^config\.resources\.vcpus must be plain data/],
    [{ lifecycle: new Map() }, /^config\.lifecycle must be plain data/],
    [{ image: "half \ud800" }, /surrogate/],
    [{ image: "nul \0" }, /NUL/],
  ]) {
    const error = await rejection(
      (async () => Beachside.connect(runloop({ apiKey: KEY, ...given })))(),
    );
    assert.ok(error instanceof BeachsideError);
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, message);
  }
  for (const wrong of [undefined, null, "ak_x"]) {
    assert.throws(() => runloop(wrong), { code: "INVALID_ARGUMENT" });
  }
  const shown = inspect(runloop({ apiKey: KEY, image: "secret-name" }), { showHidden: true });
  assert.doesNotMatch(shown, new RegExp(`${KEY}|secret-name`));
});

test("settings that cannot be read, because they throw or never end, are the caller's fault", async () => {
  const own = new Error("a getter of the caller's");
  const throwing = () =>
    Object.defineProperty({}, "network", {
      enumerable: true,
      get: () => {
        throw own;
      },
    });
  let deep = {};
  for (let depth = 0; depth < 20_000; depth++) deep = { deep };
  const credentials = { apiKey: KEY };
  const calls = [
    () => Beachside.connect(runloop(throwing())),
    () => Beachside.connect({ adapter: runloopAdapter, credentials, config: throwing() }),
    () => Beachside.connect({ adapter: runloopAdapter, credentials, config: deep }),
  ];
  for (const call of calls) {
    const error = await rejection((async () => call())());
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.ok(error.cause === own || error.cause instanceof RangeError, String(error.cause));
  }
});

test("options that change after runloop() do not reach the adapter", async (t) => {
  const { service } = await runloopClient(t);
  const options = { apiKey: KEY, baseUrl: service.url, lifecycle: { lifetimeSeconds: 60 } };
  const adapter = runloop(options);
  options.lifecycle.lifetimeSeconds = 120;
  options.apiKey = "ak_another";
  const client = await Beachside.connect(adapter);
  t.after(() => client.close());
  const box = await client.sandboxes.create();
  assert.equal((await box.inspect()).lifecycle.lifetimeSeconds, 60);
});

test("[E8] NUL and half a surrogate pair in any text are INVALID_ARGUMENT, and nothing is sent", async (t) => {
  const { box, service } = await sandbox(t);
  const direct = await runloopAdapter.connect({
    credentials: { apiKey: KEY, baseUrl: service.url },
  });
  t.after(() => direct.close());
  await service.clearJournal();
  for (const broken of ["a\0b", "\ud800", "x\udc00"]) {
    for (const call of [
      () => box.exec(["printf", broken]),
      () => box.exec(broken),
      () => box.exec("true", { cwd: broken }),
      () => box.exec("true", { env: { A: broken } }),
      () => box.exec("true", { env: { [broken]: "A" } }),
      () => box.readFile(`/tmp/${broken}`),
      () => box.writeFile(`/tmp/${broken}`, "x", { overwrite: true }),
      // Without the client, which looks first.
      () => direct.exec({ sandboxId: "dbx_1", command: broken }),
      () => direct.readFile({ sandboxId: broken, path: "/tmp/x" }),
      () => direct.inspectSandbox({ sandboxId: broken }),
    ]) {
      const error = await rejection((async () => call())());
      assert.equal(error.code, "INVALID_ARGUMENT", `${call} ${JSON.stringify(broken)}`);
    }
  }
  assert.deepEqual((await service.journal()).lines, []);
});

test("bytes of every value cross in and out unchanged", async (t) => {
  const { box } = await sandbox(t);
  const bytes = new Uint8Array(300_000).map((_, index) => (index * 7 + (index >> 8)) % 256);
  const framed = new Uint8Array(bytes.length + 20).fill(9);
  framed.set(bytes, 10);
  const view = framed.subarray(10, 10 + bytes.length);
  assert.deepEqual((await box.exec(["cat"], { stdin: view })).stdout, bytes);
  await box.writeFile("/tmp/bytes", view, { overwrite: true });
  assert.deepEqual(await box.readFile("/tmp/bytes"), bytes);
});

test("[V23] a cancelled command is killed once, says how that went, and leads to its caller", async (t) => {
  const { box, service } = await sandbox(t);
  const controller = new AbortController();
  const reason = new Error("enough");
  async function theCaller() {
    return await box.exec("sleep 60", { signal: controller.signal });
  }
  const call = rejection(theCaller());
  while ((await service.journal()).lines.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  controller.abort(reason);
  const error = await call;
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cause, reason);
  assert.equal(error.outcome.submitted, true);
  assert.ok([true, "unknown"].includes(error.outcome.killed), String(error.outcome.killed));
  assert.match(error.stack, /theCaller/);
  const { lines } = await service.journal();
  assert.equal(lines.filter((line) => line.includes("/kill")).length, 1, lines.join("\n"));
});

test("a call under a signal that is aborted already sends nothing", async (t) => {
  const { box, service } = await sandbox(t);
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
  assert.deepEqual((await service.journal()).lines, []);
});

test("a worker thread has a connection of its own, and may end in mid-flight", async (t) => {
  const { box, service } = await sandbox(t);
  const worker = new Worker(fileURLToPath(new URL("native/in-worker.mjs", import.meta.url)), {
    workerData: { apiKey: KEY, baseUrl: service.url, network: "internet" },
  });
  const printed = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  assert.equal(printed, "worker");
  assert.equal((await box.exec(["printf", "main"])).stdoutText(), "main");
});

test("without a binary the import works, and connect rejects with NATIVE_BINARY_MISSING", async () => {
  const script = `
    const { runloop, BeachsideError } = require("@beachside/runloop");
    const { Beachside } = require("beachside");
    Beachside.connect(runloop({ apiKey: "ak_x" })).catch((error) => {
      const { code, message, cause } = error;
      const ours = error instanceof BeachsideError;
      console.log(JSON.stringify({ ours, code, message, tried: cause instanceof Error }));
    });
  `;
  const env = { BEACHSIDE_RUNLOOP_ADDON: "/nowhere/runloop.node" };
  const { stdout, stderr } = await program(["-e", script], { env });
  assert.equal(stderr, "");
  const { message, ...rest } = JSON.parse(stdout);
  assert.deepEqual(rest, { ours: true, code: "NATIVE_BINARY_MISSING", tried: true });
  assert.match(message, new RegExp(`${process.platform}-${process.arch}`));
});

test("setup describes exactly the settings that there are", async () => {
  const { credentials, config } = runloopAdapter.setup;
  assert.equal(credentials.apiKey.environmentVariable, "RUNLOOP_API_KEY");
  assert.equal(credentials.apiKey.required, true);
  for (const entry of [...Object.values(credentials), ...Object.values(config)]) {
    assert.match(entry.description, /^[A-Z].*\.$/);
    assert.match(entry.link, /^https:\/\//);
  }
  for (const [where, known] of Object.entries({ credentials, config })) {
    // The addon names the settings that it knows when it is given one that is like none.
    const input = { credentials: { apiKey: KEY }, config: {} };
    const wrong = { ...input, [where]: { ...input[where], "?????????????": 1 } };
    const { message } = await rejection(runloopAdapter.connect(wrong));
    assert.deepEqual(message.split("known are ")[1].split(", "), Object.keys(known));
  }
});
