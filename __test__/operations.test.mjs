import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { BeachsideError, validateOperationReference } from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const lost = (outcome) =>
  new BeachsideError("The answer was lost.", { code: "OUTCOME_UNKNOWN", outcome });

test("[V19] onSubmit is awaited with a saveable reference before anything is sent, by every form of a mutation", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const mutations = {
    sandbox_create: (options) => client.sandboxes.create(options),
    exec: (options) => box.exec("true", options),
    sandbox_destroy: (options) => box.destroy(options),
  };
  for (const [kind, mutate] of Object.entries(mutations)) {
    world.calls.length = 0;
    let saved;
    await mutate({
      async onSubmit(reference) {
        await new Promise(setImmediate);
        assert.deepEqual(world.methods, [], kind);
        saved = JSON.stringify(reference);
      },
    });
    const reference = validateOperationReference(JSON.parse(saved));
    assert.equal(reference.operation, kind);
    assert.match(reference.operationId, UUID_V7);
    assert.match(reference.submissionId, UUID_V7);
    assert.notEqual(reference.operationId, reference.submissionId);
    assert.ok(Math.abs(Date.parse(reference.submittedAt) - Date.now()) < 60_000);
    assert.ok(world.methods.length > 0);
  }
});

test("when onSubmit fails, nothing is sent and the call fails with that very error", async (t) => {
  const { client, world } = await memoryClient(t);
  const mine = new Error("the disk is full");
  for (const onSubmit of [
    () => {
      throw mine;
    },
    () => Promise.reject(mine),
  ]) {
    assert.equal(await rejection(client.sandboxes.create({ onSubmit })), mine);
    assert.equal(await rejection(client.sandboxes.submitCreate({ onSubmit })), mine);
  }
  assert.deepEqual(world.calls, []);
});

test("[R30] a create sends its operation and submission ids as markers, and the handle carries them", async (t) => {
  const { client, world } = await memoryClient(t);
  const saved = [];
  const box = await client.sandboxes.create({ onSubmit: (each) => saved.push(each) });
  const [reference] = saved;
  const { markers } = world.calls.find((each) => each.method === "createSandbox").request;
  assert.deepEqual(markers, {
    operation: reference.operationId,
    submission: reference.submissionId,
  });
  assert.deepEqual(box.reference.ownership, { state: "created", ...markers });
});

test("[V19] a submit form resolves without waiting for the provider, and wait() gives the result again and again", async (t) => {
  const { client, world } = await memoryClient(t);
  const release = world.hold("createSandbox");
  const operation = await client.sandboxes.submitCreate();
  assert.equal(world.sandboxes.size, 0);
  validateOperationReference(operation.reference);
  release();
  const box = await operation.wait();
  assert.equal(await operation.wait(), box);
  const destroy = await box.submitDestroy();
  assert.equal(destroy.reference.target.id, box.reference.id);
  assert.deepEqual(await destroy.wait(), {
    state: "destroyed",
    alreadyGone: false,
    mountDurability: "not_applicable",
  });
  assert.equal(world.methods.filter((each) => each === "createSandbox").length, 1);
});

test("an operation that nobody waits for does not end the process when it fails", async (t) => {
  const { client, world } = await memoryClient(t);
  world.fail("createSandbox", lost({ submitted: true }));
  const operation = await client.sandboxes.submitCreate();
  await new Promise(setImmediate);
  const first = await rejection(operation.wait());
  assert.equal(first.code, "OUTCOME_UNKNOWN");
  assert.equal(await rejection(operation.wait()), first);
  assert.deepEqual(first.outcome.operation, operation.reference);
});

test("[V23] cancelling a wait stops the wait only, and the error names operation and sandbox", async (t) => {
  const { client, world } = await memoryClient(t);
  const releaseCreate = world.hold("createSandbox");
  const release = world.hold("waitForSandbox");
  const operation = await client.sandboxes.submitCreate();
  const reason = { mine: true };
  const early = await rejection(operation.wait({ signal: abortSoon(reason) }));
  assert.equal(early.code, "CANCELLED");
  assert.equal(early.cause, reason);
  assert.deepEqual(early.outcome, {
    kind: "sandbox_create",
    operation: operation.reference,
    submitted: true,
  });
  releaseCreate();
  await world.arrival("createSandbox");
  const controller = new AbortController();
  const waiting = rejection(operation.wait({ signal: controller.signal }));
  await world.arrival("waitForSandbox");
  controller.abort(reason);
  const late = await waiting;
  assert.equal(late.code, "CANCELLED");
  assert.equal(late.cause, reason);
  assert.equal(late.outcome.submitted, true);
  assert.equal(late.outcome.sandbox.id, [...world.sandboxes.keys()][0]);
  assert.equal(late.outcome.sandbox.ownership.state, "created");
  release();
  const box = await operation.wait();
  assert.deepEqual(box.reference, late.outcome.sandbox);
  assert.equal(world.methods.includes("destroySandbox"), false);
});

test("[V23] cancelling a plain create leaves the sandbox and names it", async (t) => {
  const { client, world } = await memoryClient(t);
  world.hold("waitForSandbox");
  const controller = new AbortController();
  const creating = rejection(client.sandboxes.create({ signal: controller.signal }));
  await world.arrival("waitForSandbox");
  controller.abort();
  const error = await creating;
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.outcome.submitted, true);
  assert.equal(error.outcome.operation.operation, "sandbox_create");
  const sandbox = world.sandboxes.get(error.outcome.sandbox.id);
  await world.until(() => sandbox.state === "running");
  assert.equal(world.methods.includes("destroySandbox"), false);
});

test("a signal that is aborted already, or by onSubmit, sends nothing and says so", async (t) => {
  const { client, world } = await memoryClient(t);
  const reason = new Error("enough");
  const controller = new AbortController();
  const attempts = [
    { signal: AbortSignal.abort(reason) },
    { signal: controller.signal, onSubmit: () => controller.abort(reason) },
  ];
  for (const options of attempts) {
    const error = await rejection(client.sandboxes.create(options));
    assert.equal(error.code, "CANCELLED");
    assert.equal(error.cause, reason);
    assert.equal(error.outcome.submitted, false);
    assert.equal(error.outcome.kind, "sandbox_create");
  }
  assert.deepEqual(world.calls, []);
});

test("a connection that is closed by onSubmit sends nothing and says so", async (t) => {
  const { client, world } = await memoryClient(t);
  const error = await rejection(client.sandboxes.create({ onSubmit: () => client.close() }));
  assert.equal(error.code, "CLOSED");
  assert.equal(error.outcome.submitted, false);
  assert.deepEqual(world.calls, []);
});

test("[V21] a failed mutation has the kind and every reference known by then in its outcome", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();

  world.fail("createSandbox", lost({ submitted: true, sandboxId: "sandbox_9" }));
  const create = await rejection(client.sandboxes.create());
  assert.equal(create.provider, "memory");
  assert.equal(create.operation, "sandbox_create");
  assert.equal(create.outcome.kind, "sandbox_create");
  assert.equal(create.outcome.sandbox.id, "sandbox_9");
  assert.deepEqual(create.outcome.sandbox.ownership, {
    state: "created",
    operation: create.outcome.operation.operationId,
    submission: create.outcome.operation.submissionId,
  });
  assert.equal("sandboxId" in create.outcome, false);

  world.fail("waitForSandbox", new BeachsideError("Too slow.", { code: "DEADLINE_EXCEEDED" }));
  const slow = await rejection(client.sandboxes.create());
  assert.equal(slow.code, "DEADLINE_EXCEEDED");
  assert.ok(world.sandboxes.has(slow.outcome.sandbox.id));
  assert.equal(slow.outcome.submitted, true);

  world.fail(
    "exec",
    lost({
      submitted: true,
      sandboxId: box.reference.id,
      processId: "exec_1",
      killed: "unknown",
      leftovers: ["/tmp/x"],
    }),
  );
  const exec = await rejection(box.exec("true"));
  const { operation, process: started, ...rest } = exec.outcome;
  assert.equal(operation.target.id, box.reference.id);
  assert.deepEqual(
    [started.kind, started.id, started.sandbox],
    ["process", "exec_1", box.reference.id],
  );
  assert.deepEqual(rest, {
    kind: "exec",
    sandbox: box.reference,
    submitted: true,
    killed: "unknown",
    leftovers: ["/tmp/x"],
  });

  world.fail(
    "destroySandbox",
    new BeachsideError("A snapshot is under way.", { code: "CONFLICT" }),
  );
  const destroy = await rejection(box.destroy());
  assert.equal(destroy.code, "CONFLICT");
  assert.deepEqual(destroy.outcome.sandbox, box.reference);
});

test("[V21] a mutation whose wait fails after it was accepted was submitted", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  for (const verb of ["suspend", "resume", "destroy"]) {
    world.fail("waitForSandbox", new BeachsideError("Down.", { code: "UNAVAILABLE" }));
    const error = await rejection(box[verb]());
    assert.deepEqual([error.code, error.outcome.submitted], ["UNAVAILABLE", true], verb);
  }
  world.fail("createSandbox", new BeachsideError("Down.", { code: "UNAVAILABLE" }));
  const unsent = await rejection(client.sandboxes.create());
  assert.equal(unsent.outcome.submitted, false);
});

test("[R29] a mutation whose answer is lost is sent once", async (t) => {
  const { client, world } = await memoryClient(t);
  world.fail("createSandbox", lost({ submitted: true }), { acted: true });
  await rejection(client.sandboxes.create());
  assert.equal(world.methods.filter((each) => each === "createSandbox").length, 1);
  assert.equal(world.sandboxes.size, 1);
});

test("many waits share one listener on a signal, and none stays behind", async (t) => {
  const { client, world } = await memoryClient(t);
  const release = world.hold("createSandbox");
  const controller = new AbortController();
  const { signal } = controller;
  const operations = await Promise.all(
    Array.from({ length: 50 }, () => client.sandboxes.submitCreate()),
  );
  const waits = operations.map((each) => rejection(each.wait({ signal })));
  assert.equal(getEventListeners(signal, "abort").length, 1);
  controller.abort();
  for (const error of await Promise.all(waits)) assert.equal(error.code, "CANCELLED");
  assert.equal(getEventListeners(signal, "abort").length, 0);
  const other = new AbortController();
  const again = operations.map((each) => each.wait({ signal: other.signal }));
  release();
  await Promise.all(again);
  assert.equal(getEventListeners(other.signal, "abort").length, 0);
});

function abortSoon(reason) {
  const controller = new AbortController();
  setImmediate(() => controller.abort(reason));
  return controller.signal;
}
