import assert from "node:assert/strict";
import test from "node:test";
import util from "node:util";
import { Beachside } from "beachside";
import { memoryAdapter } from "./support/memory-adapter.mjs";

test("a connection has the account as its scope", async () => {
  const { adapter } = memoryAdapter({ account: "acct_7" });
  const client = await Beachside.connect({ adapter, credentials: {}, config: {} });
  assert.deepEqual(client.scope, { provider: "memory", account: "acct_7" });
  await client.close();
});

test("[R4] an adapter that has its credentials bound connects alone, with options, and in an object", async () => {
  const { adapter } = memoryAdapter();
  const bound = { ...adapter, bound: true };
  for (const args of [[bound], [bound, { cleanup: {} }], [{ adapter: bound }]]) {
    const client = await Beachside.connect(...args);
    assert.equal(client.scope.provider, "memory");
    await client.close();
  }
});

test("[R4] credentials or config given twice are refused", async () => {
  const { adapter, world } = memoryAdapter();
  const bound = { ...adapter, bound: true };
  for (const twice of [{ credentials: { apiKey: "x" } }, { config: {} }]) {
    await assert.rejects(Beachside.connect({ adapter: bound, ...twice }), {
      code: "INVALID_ARGUMENT",
      message: /given twice/,
    });
  }
  assert.deepEqual(world.calls, []);
});

test("wrong arguments of connect are refused by name before the adapter is asked", async () => {
  const { adapter, world } = memoryAdapter();
  const wrong = [
    [[], /adapter is missing/],
    [[{}], /adapter is missing/],
    [[null], /must be a plain object/],
    [[{ adapter, credentails: {} }], /unknown key "credentails"; did you mean "credentials"/],
    [[{ adapter, cleanup: { storrage: "x" } }], /did you mean "storage"/],
    [[{ adapter, cleanup: { storage: "maybe" } }], /must be "require-durable" or "allow-unconf/],
    [[{ adapter }, {}], /in the one object/],
    [[adapter, { credentials: {} }], /unknown key "credentials"/],
    [[{ ...adapter, contract: 2 }], /version 2 of the adapter interface/],
    [[{ adapter, signal: 1 }], /signal must be an AbortSignal/],
  ];
  for (const [args, message] of wrong) {
    await assert.rejects(Beachside.connect(...args), { code: "INVALID_ARGUMENT", message });
  }
  assert.deepEqual(world.calls, []);
});

test("a signal that is aborted already stops connect before anything is sent", async () => {
  const { adapter, world } = memoryAdapter();
  const reason = new Error("not now");
  await assert.rejects(Beachside.connect({ adapter, signal: AbortSignal.abort(reason) }), {
    code: "CANCELLED",
    cause: reason,
    operation: "connect",
  });
  assert.deepEqual(world.calls, []);
});

test("an adapter's failure that is not an error of ours becomes INTERNAL with its cause", async () => {
  const { adapter, world } = memoryAdapter();
  world.fail("connect", new TypeError("oops"));
  await assert.rejects(Beachside.connect({ adapter }), (error) => {
    assert.equal(error.code, "INTERNAL");
    assert.equal(error.provider, "memory");
    assert.equal(error.cause.message, "oops");
    return true;
  });
});

test("[V27] after close every call rejects with CLOSED, and close can be repeated", async () => {
  const { adapter, world } = memoryAdapter();
  const client = await Beachside.connect({ adapter });
  const box = await client.sandboxes.create();
  await client.close();
  await client.close();
  const before = world.calls.length;
  const calls = [
    () => client.sandboxes.create(),
    () => client.sandboxes.submitCreate(),
    () => client.sandboxes.list(),
    () => client.sandboxes.get(box.reference),
    () => client.capabilities(),
    () => box.inspect(),
    () => box.exec(["true"]),
    () => box.destroy(),
    () => box.submitDestroy(),
  ];
  for (const call of calls) await assert.rejects(call(), { code: "CLOSED" }, call.toString());
  assert.equal(world.calls.length, before);
});

test("[V27] close ends a read in flight with CLOSED and a mutation that was sent with OUTCOME_UNKNOWN and its reference", async () => {
  const { adapter, world } = memoryAdapter();
  const client = await Beachside.connect({ adapter });
  const box = await client.sandboxes.create();
  world.hold("inspectSandbox");
  world.hold("exec");
  const read = assert.rejects(box.inspect(), { code: "CLOSED" });
  const mutation = assert.rejects(box.exec(["true"]), (error) => {
    assert.equal(error.code, "OUTCOME_UNKNOWN");
    assert.equal(error.outcome.kind, "exec");
    assert.equal(error.outcome.submitted, true);
    assert.equal(error.outcome.operation.kind, "operation");
    assert.deepEqual(error.outcome.sandbox, box.reference);
    return true;
  });
  await client.close();
  await Promise.all([read, mutation]);
});

test("[V27] close ends the wait for a mutation that was answered with OUTCOME_UNKNOWN, too", async () => {
  const { adapter, world } = memoryAdapter();
  const client = await Beachside.connect({ adapter });
  world.hold("waitForSandbox");
  const operation = await client.sandboxes.submitCreate();
  const waiting = assert.rejects(operation.wait(), (error) => {
    assert.equal(error.code, "OUTCOME_UNKNOWN");
    assert.equal(error.cause.code, "CLOSED");
    assert.equal(error.outcome.submitted, true);
    assert.deepEqual(error.outcome.operation, operation.reference);
    assert.equal(error.outcome.sandbox.ownership.state, "created");
    return true;
  });
  await world.arrival("waitForSandbox");
  await client.close();
  await waiting;
  await assert.rejects(operation.wait(), { code: "OUTCOME_UNKNOWN" });
});

test("[V17] inspecting a client or a handle shows no more than its scope and reference", async () => {
  const { adapter } = memoryAdapter();
  const client = await Beachside.connect({ adapter, credentials: { apiKey: "ak_secret_12345" } });
  const box = await client.sandboxes.create({ env: { TOKEN: "env-secret-12345" } });
  const shown = util.inspect({ client, box }, { depth: 10, showHidden: true });
  assert.doesNotMatch(shown, /secret/);
  assert.doesNotMatch(JSON.stringify({ client, box }), /secret/);
  await client.close();
});
