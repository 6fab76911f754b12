import assert from "node:assert/strict";
import { inspect } from "node:util";
import { BeachsideError } from "../../index.mjs";
import { hooks, rejection, sleep, times, until } from "./hooks.mjs";

/** A signal that counts what is added to it and taken off it. */
function counted(controller = new AbortController()) {
  const { signal } = controller;
  const counts = { added: 0, removed: 0 };
  const { addEventListener, removeEventListener } = AbortSignal.prototype;
  signal.addEventListener = function (...args) {
    counts.added += 1;
    return addEventListener.apply(this, args);
  };
  signal.removeEventListener = function (...args) {
    counts.removed += 1;
    return removeEventListener.apply(this, args);
  };
  return { controller, signal, counts };
}

export async function manyCallsShareOneListener() {
  const { signal, counts } = counted();
  const calls = Array.from({ length: times(10_000) }, (_, index) => sleep(5, index, { signal }));
  assert.deepEqual(counts, { added: 1, removed: 0 });
  await Promise.all(calls);
  assert.deepEqual(counts, { added: 1, removed: 1 });
}

export async function aLaterCallListensAgain() {
  const { controller, signal, counts } = counted();
  await sleep(1, 1, { signal });
  const call = sleep(60_000, 2, { signal });
  assert.deepEqual(counts, { added: 2, removed: 1 });
  controller.abort();
  assert.equal((await rejection(call)).code, "CANCELLED");
  assert.deepEqual(counts, { added: 2, removed: 2 });
}

export async function anAbortEndsEveryCallWithTheReasonAsCause() {
  const { controller, signal, counts } = counted();
  const reason = new Error("enough");
  const before = inspect(reason);
  const calls = Array.from({ length: times(10_000) }, () => sleep(60_000, 0, { signal }));
  controller.abort(reason);
  for (const result of await Promise.allSettled(calls)) {
    assert.equal(result.status, "rejected");
    assert.ok(result.reason instanceof BeachsideError);
    assert.equal(result.reason.code, "CANCELLED");
    assert.equal(result.reason.cause, reason);
    assert.deepEqual(result.reason.outcome, { submitted: false });
  }
  assert.equal(inspect(reason), before, "the caller's reason was changed");
  assert.deepEqual(counts, { added: 1, removed: 1 });
  await until(() => hooks.testLiveTasks() === 0);
}

export async function abortStormsLeaveNothingBehind() {
  for (let round = 0; round < times(20); round++) {
    const signals = Array.from({ length: 50 }, () => counted());
    const calls = signals.flatMap(({ signal }) =>
      Array.from({ length: 20 }, (_, index) => sleep(index, index, { signal })),
    );
    const settled = Promise.allSettled(calls);
    await new Promise((resolve) => setTimeout(resolve, round % 10));
    for (const { controller } of signals) controller.abort(round);
    for (const result of await settled) {
      if (result.status === "fulfilled") continue;
      assert.equal(result.reason.code, "CANCELLED");
      assert.equal(result.reason.cause, round);
    }
    for (const { counts } of signals) assert.deepEqual(counts, { added: 1, removed: 1 });
  }
  await until(() => hooks.testLiveTasks() === 0);
}

export async function anAbortedSignalIsSeenAtOnce() {
  const { signal, counts } = counted();
  const aborted = AbortSignal.abort("before");
  assert.equal((await rejection(sleep(60_000, 0, { signal: aborted }))).cause, "before");
  const ended = new AbortController();
  ended.abort();
  const error = await rejection(sleep(60_000, 0, { signal: ended.signal }));
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cause, ended.signal.reason);
  assert.equal(error.cause.name, "AbortError");
  assert.deepEqual(counts, { added: 0, removed: 0 });
  assert.ok(!signal.aborted);
}

export async function derivedSignalsWork() {
  const timeout = await rejection(sleep(60_000, 0, { signal: AbortSignal.timeout(20) }));
  assert.equal(timeout.cause.name, "TimeoutError");
  const controller = new AbortController();
  const any = AbortSignal.any([controller.signal, AbortSignal.timeout(60_000)]);
  const call = sleep(60_000, 0, { signal: any });
  controller.abort("one of them");
  assert.equal((await rejection(call)).cause, "one of them");
}

export async function anAbortAfterTheEndChangesNothing() {
  const { controller, signal } = counted();
  assert.equal(await sleep(1, 5, { signal }), 5);
  controller.abort();
  assert.equal(await sleep(1, 6), 6);
}

export async function aWrongSignalIsRefused() {
  for (const signal of [null, {}, 5, "signal", new EventTarget(), { aborted: false }]) {
    const error = await rejection(sleep(1, 1, { signal }));
    assert.ok(error instanceof BeachsideError);
    assert.equal(error.code, "INVALID_ARGUMENT");
  }
  assert.equal(hooks.testLiveTasks(), 0);
}
