/** One set of names for what was called: in errors, in traces and in the guide. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import test from "node:test";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { rejection } from "./support/client.mjs";
import { KEY, simulator } from "./support/runloop.mjs";

const { CALLS } = createRequire(import.meta.url)("../client/dist/calls.js");
const guide = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");
const [, operationTable, stepTable] = guide.split(/^\| (?:Operation|Step) \| .*$/m);
const names = (table) => [...table.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, name]) => name);

test("the guide to errors names every operation, and no other", () => {
  assert.deepEqual(names(operationTable), Object.keys(CALLS));
});

/** Every call that asks the service, by the name of its operation. */
function calls({ client, box, process, snapshot, operation }) {
  return {
    inventory: () => client.inventory(),
    recover: () => client.recover(operation),
    sandbox_create: () => client.sandboxes.create(),
    sandbox_get: () => client.sandboxes.get(box.reference),
    sandbox_list: () => client.sandboxes.list(),
    sandbox_inspect: () => box.inspect(),
    sandbox_suspend: () => box.suspend(),
    sandbox_resume: () => box.resume(),
    sandbox_destroy: () => box.destroy(),
    exec: () => box.exec(["true"]),
    process_start: () => box.processes.start({ command: ["true"] }),
    process_get: () => box.processes.get(process.reference),
    process_read: () => process.stdout[Symbol.asyncIterator]().next(),
    process_status: () => process.status(),
    process_wait: () => process.wait(),
    process_wait_for_output: () => process.waitForOutput("x"),
    process_kill: () => process.kill(),
    process_terminate: () => process.terminate(),
    file_read: () => box.readFile("/etc/hostname"),
    file_write: () => box.writeFile("/tmp/x", "", { overwrite: true }),
    port_wait: () => box.waitForPort(9, { timeoutSeconds: 1 }),
    preview_open: () => box.preview(80),
    snapshot_check: () => box.checkSnapshot(),
    snapshot_capture: () => box.snapshot(),
    snapshot_get: () => client.snapshots.get(snapshot.reference),
    snapshot_list: () => client.snapshots.list(),
    snapshot_inspect: () => snapshot.inspect(),
    snapshot_restore: () => snapshot.restore(),
    snapshot_delete: () => snapshot.delete(),
  };
}

async function connected(t) {
  const service = await simulator(t);
  const traced = new Set();
  const client = await Beachside.connect({
    adapter: runloop({ apiKey: KEY, baseUrl: service.url }),
    trace: (record) => traced.add(record.operation),
  });
  t.after(() => client.close());
  let operation;
  const box = await client.sandboxes.create({
    onSubmit: (reference) => {
      operation = reference;
    },
  });
  const process = await box.processes.start({ command: ["sleep", "600"] });
  const { snapshot } = await box.snapshot();
  return { service, client, box, process, snapshot, operation, traced };
}

test("an error names the call, whatever step of it the adapter was at", async (t) => {
  const held = await connected(t);
  await held.service.fault({ action: { type: "refuse", status: 403 } });
  for (const [name, call] of Object.entries(calls(held))) {
    const error = await rejection(
      (async () => {
        const value = await call();
        // What the service only asked of itself cannot fail: then it says nothing.
        if (name === "snapshot_check" || name === "recover")
          throw Object.assign(new Error(), { value });
      })(),
      name,
    ).catch((unexpected) => unexpected);
    if (error.value !== undefined) continue;
    assert.equal(error.operation, name, `${name}: ${error}`);
    assert.ok(Object.hasOwn(CALLS, error.operation));
  }
});

test("the steps that traces name are those of the guide", async (t) => {
  const held = await connected(t);
  const { client, box, process, snapshot, operation, traced } = held;
  await client.recover(operation);
  const captured = await rejection(
    snapshot.restore({ signal: AbortSignal.abort() }),
    "a restore that is not sent",
  );
  await client.recover(captured.outcome.operation);
  await box.exec(["true"]);
  await box.readFile("/etc/hostname");
  await process.terminate();
  await (await box.processes.get(process.reference)).wait();
  await box.suspend();
  await box.resume();
  const restored = await snapshot.restore();
  await restored.destroy();
  await snapshot.delete();
  await box.preview(80);
  for await (const _ of client.inventory()) break;
  await box.destroy();
  await client.close();
  traced.delete(undefined);
  const known = [...Object.keys(CALLS), ...names(stepTable)];
  assert.deepEqual(
    [...traced].filter((name) => !known.includes(name)),
    [],
  );
  assert.ok(
    traced.has("wait_until_running") && traced.has("wait_until_suspended"),
    [...traced].join(),
  );
});
