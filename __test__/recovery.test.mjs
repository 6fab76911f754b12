import assert from "node:assert/strict";
import test from "node:test";
import { Beachside, BeachsideError } from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";

const lost = () =>
  new BeachsideError("Lost.", { code: "OUTCOME_UNKNOWN", outcome: { submitted: true } });
const MUTATION = /^(create|destroy|suspend|resume|capture|delete|exec|start|write|terminate)/;
const stops = {
  "snapshots.capture": { value: { interruption: "stop", sourceAfter: "running" } },
};

/** A second process: another connection to the same provider, without the first one's memory. */
async function second(t, { adapter, world }) {
  const client = await Beachside.connect({ adapter });
  t.after(() => client.close());
  world.calls.length = 0;
  return client;
}

function assertReadOnly(world) {
  assert.deepEqual(
    world.methods.filter((each) => MUTATION.test(each)),
    [],
  );
}

test("[V20] [R30] a create whose answer was lost is found by its markers, by another process, without repeating it", async (t) => {
  const memory = await memoryClient(t);
  memory.world.fail("createSandbox", lost(), { acted: true });
  const { outcome } = await rejection(memory.client.sandboxes.create());
  const saved = JSON.parse(JSON.stringify(outcome.operation));
  await memory.world.until(() => [...memory.world.sandboxes.values()][0].state === "running");
  const client = await second(t, memory);
  const recovery = await client.recover(saved);
  assert.equal(recovery.status, "done");
  assert.deepEqual(recovery.operation, saved);
  assert.equal(recovery.state, "running");
  assert.deepEqual(recovery.searched, { items: 1, complete: true });
  assert.deepEqual(recovery.sandbox.reference.ownership, {
    state: "created",
    operation: saved.operationId,
    submission: saved.submissionId,
  });
  assertReadOnly(memory.world);
  assert.equal((await recovery.sandbox.exec("echo found")).stdoutText(), "found\n");
});

test("[V20] what was not seen is not_observed, and a late commit is found by a later call", async (t) => {
  const memory = await memoryClient(t);
  memory.world.fail("createSandbox", lost());
  const { outcome } = await rejection(memory.client.sandboxes.create());
  const client = await second(t, memory);
  const none = await client.recover(outcome.operation);
  assert.equal(none.status, "not_observed");
  assert.deepEqual(none.searched, { items: 0, complete: true });
  assert.equal("continue" in none, false);
  const { operationId, submissionId } = outcome.operation;
  memory.world.sandboxes.set("sandbox_late", {
    id: "sandbox_late",
    state: "starting",
    createdAtMs: Date.now(),
    markers: { operation: operationId, submission: submissionId },
  });
  const late = await client.recover(outcome.operation);
  assert.equal(late.status, "in_progress");
  assert.equal(late.stage, "starting");
  const continued = late.continue();
  await memory.world.arrival("waitForSandbox");
  memory.world.setState(memory.world.sandboxes.get("sandbox_late"), "running");
  assert.equal((await continued).status, "done");
  assertReadOnly(memory.world);
});

test("[V20] a state that is not known is not taken for done, and the wait goes on until it is", async (t) => {
  const memory = await memoryClient(t);
  const { client, world } = memory;
  let creation;
  const source = await client.sandboxes.create({ onSubmit: (each) => (creation = each) });
  let capture;
  await source.snapshot({ onSubmit: (each) => (capture = each) });
  const [snapshot] = world.snapshots.values();
  const other = await second(t, memory);

  world.setState(world.sandboxes.get(source.reference.id), "unknown");
  const created = await other.recover(creation);
  assert.deepEqual([created.status, created.state], ["in_progress", "unknown"]);
  const continued = created.continue();
  await world.arrival("waitForSandbox");
  world.setState(world.sandboxes.get(source.reference.id), "running");
  assert.equal((await continued).status, "done");

  snapshot.state = "unknown";
  const captured = await other.recover(capture);
  assert.deepEqual([captured.status, captured.state], ["in_progress", "unknown"]);
  snapshot.state = "ready";
  assert.equal((await captured.continue()).status, "done");
});

test("[V20] two matches are ambiguous, a failed one is failed, an unfinished search is unknown", async (t) => {
  const memory = await memoryClient(t);
  memory.world.fail("createSandbox", lost(), { acted: true });
  const { outcome } = await rejection(memory.client.sandboxes.create());
  const [made] = memory.world.sandboxes.values();
  const client = await second(t, memory);

  memory.world.setState(made, "failed");
  assert.equal((await client.recover(outcome.operation)).status, "failed");

  memory.world.sandboxes.set("sandbox_twin", { ...made, id: "sandbox_twin" });
  const ambiguous = await client.recover(outcome.operation);
  assert.equal(ambiguous.status, "ambiguous");
  assert.deepEqual(ambiguous.matches.map((each) => each.id).sort(), ["sandbox_1", "sandbox_twin"]);

  memory.world.answer("findSandboxes", {
    matches: [],
    searched: { items: 5000, complete: false },
  });
  const unknown = await client.recover(outcome.operation);
  assert.equal(unknown.status, "unknown");
  assert.deepEqual(unknown.searched, { items: 5000, complete: false });
  assertReadOnly(memory.world);
});

test("[V20] a restore is found like a create", async (t) => {
  const memory = await memoryClient(t);
  const source = await memory.client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  memory.world.fail("createSandbox", lost(), { acted: true });
  const { outcome } = await rejection(snapshot.restore());
  assert.equal(outcome.kind, "snapshot_restore");
  assert.deepEqual(outcome.snapshot, snapshot.reference);
  const client = await second(t, memory);
  const recovery = await client.recover(outcome.operation);
  assert.notEqual(recovery.sandbox.reference.id, source.reference.id);
  assertReadOnly(memory.world);
});

test("[V20] a capture is found by its markers: done, in progress with a wait, or failed", async (t) => {
  const memory = await memoryClient(t);
  const source = await memory.client.sandboxes.create();
  memory.world.fail("captureSnapshot", lost(), { acted: true });
  const { outcome } = await rejection(source.snapshot());
  const [made] = memory.world.snapshots.values();
  const client = await second(t, memory);

  made.state = "creating";
  const progress = await client.recover(outcome.operation);
  assert.deepEqual([progress.status, progress.stage], ["in_progress", "capturing"]);
  made.state = "ready";
  const done = await progress.continue();
  assert.equal(done.status, "done");
  assert.equal(done.snapshot.reference.id, made.id);
  assert.equal(done.snapshot.reference.ownership.state, "created");
  assert.deepEqual(done.snapshot.reference.mounts, []);
  made.state = "failed";
  made.reason = "disk error";
  const failed = await client.recover(outcome.operation);
  assert.deepEqual([failed.status, failed.reason], ["failed", "disk error"]);
  assertReadOnly(memory.world);
});

test("[V20] a capture that left its source stopped continues by restarting it", async (t) => {
  const memory = await memoryClient(t, { capabilities: stops });
  const source = await memory.client.sandboxes.create();
  memory.world.fail("resumeSandbox", lost());
  const { outcome } = await rejection(source.snapshot());
  const client = await second(t, memory);
  const progress = await client.recover(outcome.operation);
  assert.deepEqual([progress.status, progress.stage], ["in_progress", "restarting_source"]);
  assertReadOnly(memory.world);
  const done = await progress.continue();
  assert.equal(done.status, "done");
  assert.equal(memory.world.sandboxes.get(source.reference.id).state, "running");

  memory.world.setState(memory.world.sandboxes.get(source.reference.id), "suspended");
  memory.world.fail("resumeSandbox", new BeachsideError("No.", { code: "REJECTED" }));
  const again = await client.recover(outcome.operation);
  await assert.rejects(again.continue(), { code: "REJECTED" });
});

test("[V20] a destroy is done where the sandbox is gone, and continues safely where it is not", async (t) => {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  memory.world.fail("destroySandbox", lost());
  const { outcome } = await rejection(box.destroy());
  const client = await second(t, memory);
  const open = await client.recover(outcome.operation);
  assert.equal(open.status, "not_observed");
  assertReadOnly(memory.world);
  const done = await open.continue();
  assert.equal(done.status, "done");
  assert.equal(done.state, "destroyed");
  memory.world.sandboxes.delete(box.reference.id);
  assert.equal((await client.recover(outcome.operation)).status, "done");
});

test("[V20] a deletion is done where nothing is left, and continues safely where it is", async (t) => {
  const memory = await memoryClient(t);
  const source = await memory.client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  const volume = await memory.client.volumes.create({ name: "a" });
  for (const [method, handle] of [
    ["deleteSnapshot", snapshot],
    ["deleteVolume", volume],
  ]) {
    memory.world.fail(method, lost());
    const { outcome } = await rejection(handle.delete());
    const client = await second(t, memory);
    const open = await client.recover(outcome.operation);
    assert.equal(open.status, "not_observed", method);
    assertReadOnly(memory.world);
    const done = await open.continue();
    assert.deepEqual([done.status, done.state], ["done", "deleted"]);
  }
});

test("[V20] suspend and resume are judged by the state of the sandbox", async (t) => {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  const sandbox = memory.world.sandboxes.get(box.reference.id);
  memory.world.fail("suspendSandbox", lost());
  const { operation } = (await rejection(box.suspend())).outcome;
  const client = await second(t, memory);
  assert.equal((await client.recover(operation)).status, "not_observed");
  memory.world.setState(sandbox, "suspending");
  const progress = await client.recover(operation);
  assert.equal(progress.stage, "suspending");
  memory.world.setState(sandbox, "suspended");
  assert.equal((await progress.continue()).status, "done");
  memory.world.sandboxes.delete(sandbox.id);
  assert.equal((await client.recover(operation)).status, "unknown");
  assertReadOnly(memory.world);
});

test("[V20] a volume's creation is found by its markers, a termination by the process", async (t) => {
  const memory = await memoryClient(t);
  memory.world.fail("createVolume", lost(), { acted: true });
  const volume = (await rejection(memory.client.volumes.create({ name: "a" }))).outcome;
  const box = await memory.client.sandboxes.create();
  const handle = await box.processes.start({ command: "x" });
  memory.world.fail("terminate", lost());
  const terminate = (await rejection(handle.terminate())).outcome;
  const client = await second(t, memory);
  assert.equal((await client.recover(volume.operation)).volume.reference.kind, "volume");
  assert.equal((await client.recover(terminate.operation)).status, "not_observed");
  memory.world.processes.get(handle.reference.id).end(137);
  assert.equal((await client.recover(terminate.operation)).status, "done");
  assertReadOnly(memory.world);
});

test("[R32] commands and writes leave nothing to find: unknown, and nothing is asked or repeated", async (t) => {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  memory.world.fail("exec", lost());
  memory.world.fail("writeFile", lost());
  memory.world.fail("startProcess", lost());
  const failures = [
    await rejection(box.exec("true")),
    await rejection(box.writeFile("/a", "x", { overwrite: true })),
    await rejection(box.processes.start({ command: "x" })),
  ];
  memory.world.calls.length = 0;
  for (const { outcome } of failures) {
    const recovery = await memory.client.recover(outcome.operation);
    assert.equal(recovery.status, "unknown");
    assert.match(recovery.reason, /keeps nothing/);
  }
  assert.deepEqual(memory.world.calls, []);
});

test("[V20] refused comes only from the process that was refused", async (t) => {
  const memory = await memoryClient(t);
  memory.world.fail("createSandbox", new BeachsideError("No.", { code: "REJECTED", status: 400 }));
  const refused = await rejection(memory.client.sandboxes.create());
  memory.world.calls.length = 0;
  const known = await memory.client.recover(refused.outcome.operation);
  assert.equal(known.status, "refused");
  assert.equal(known.error, refused);
  assert.deepEqual(memory.world.calls, []);
  const client = await second(t, memory);
  assert.equal((await client.recover(refused.outcome.operation)).status, "not_observed");
});

test("recover refuses what is not an operation of this scope before anything is read", async (t) => {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  const { reference } = await memory.client.sandboxes.submitCreate();
  memory.world.calls.length = 0;
  const wrong = [
    [box.reference, "INVALID_ARGUMENT", /reference\.kind must be "operation"/],
    [{ ...reference, submissionId: "" }, "INVALID_ARGUMENT", /submissionId must not be empty/],
    [{ ...reference, scope: { account: "x" } }, "SCOPE_MISMATCH", /account "x"/],
    [{ ...reference, provider: "x" }, "SCOPE_MISMATCH", /provider "x"/],
  ];
  for (const [value, code, message] of wrong) {
    await assert.rejects(memory.client.recover(value), { code, message });
  }
  await assert.rejects(memory.client.recover(reference, { signal: AbortSignal.abort() }), {
    code: "CANCELLED",
  });
  assert.deepEqual(memory.world.calls, []);
});

test("a lookup that fails is an error of its own and never 'not observed'", async (t) => {
  const memory = await memoryClient(t);
  const { reference } = await memory.client.sandboxes.submitCreate();
  for (const code of ["UNAUTHENTICATED", "RATE_LIMITED", "UNAVAILABLE"]) {
    memory.world.fail("findSandboxes", new BeachsideError("x", { code }));
    await assert.rejects(memory.client.recover(reference), { code, operation: "recover" });
  }
});
