/** What people see when they print a handle, a list or an error. */

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { BeachsideError } from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";

test("handles inspect on one line, as their kind, provider and id", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create({ env: { SECRET: "hunter22" } });
  const { snapshot } = await box.snapshot();
  const volume = await client.volumes.create({ name: "data" });
  const process = await box.processes.start({ command: ["server"], env: { SECRET: "hunter22" } });
  const shown = [client, box, snapshot, volume, process].map((each) => inspect(each));
  assert.deepEqual(shown, [
    "BeachsideClient <memory acct_1>",
    `SandboxHandle <memory ${box.reference.id}>`,
    `SnapshotHandle <memory ${snapshot.reference.id}>`,
    `VolumeHandle <memory ${volume.reference.id}>`,
    `ProcessHandle <memory ${process.reference.id}>`,
  ]);
  for (const each of [client, box, process, box.processes, box.files, client.sandboxes.list()]) {
    assert.doesNotMatch(inspect(each, { depth: 9, showHidden: true }), /hunter22/);
  }
});

test("an error says what to do about it, where there is something to do", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const failed = async (details) => {
    world.fail("inspectSandbox", new BeachsideError("no", details));
    return await rejection(box.inspect());
  };
  const limited = await failed({ code: "RATE_LIMITED", retryAfterSeconds: 7, attempts: 5 });
  assert.match(limited.suggestion, /Wait 7 seconds/);
  assert.equal(JSON.parse(JSON.stringify(limited)).suggestion, limited.suggestion);
  assert.match((await failed({ code: "UNAUTHENTICATED" })).suggestion, /API key/);
  const asleep = { code: "NOT_RUNNING", resource: { kind: "sandbox", id: "x" } };
  assert.match((await failed(asleep)).suggestion, /resume\(\)/);
  assert.equal((await failed({ code: "NOT_FOUND" })).suggestion, undefined);
  assert.equal((await failed({ code: "UNAVAILABLE", suggestion: "Mine." })).suggestion, "Mine.");
});
