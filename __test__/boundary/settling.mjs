import assert from "node:assert/strict";
import { echo, hooks, sleep, times } from "./hooks.mjs";

export async function everyCallSettlesOnce() {
  const count = times(10_000);
  let settled = 0;
  const calls = Array.from({ length: count }, async (_, index) => {
    assert.equal(await echo(index), index);
    settled += 1;
  });
  await Promise.all(calls);
  assert.equal(settled, count);
}

export async function callsSettleInTheOrderOfCompletion() {
  const spreadMs = 1000;
  const stamps = [];
  const start = hooks.testNow();
  const calls = Array.from({ length: times(10_000) }, async () => {
    stamps.push(await hooks.testFinishAt(start + Math.random() * spreadMs));
  });
  await Promise.all(calls);
  let latest = 0;
  for (const stamp of stamps) {
    // A task may lose its core between the stamp and the queue; a batch that
    // is settled in another order than it came in is off by far more.
    assert.ok(stamp > latest - spreadMs / 4, `${latest - stamp} ms out of order`);
    latest = Math.max(latest, stamp);
  }
}

export async function slowCallsDoNotHoldQuickOnesBack() {
  const slow = sleep(400, 1);
  let slowDone = false;
  const watched = slow.then(() => {
    slowDone = true;
  });
  for (let index = 0; index < 100; index++) await echo(index);
  assert.equal(slowDone, false);
  await watched;
}

export async function callsMadeWhileOthersSettleAreSettledToo() {
  const chain = async (depth) =>
    depth === 0 ? 0 : 1 + (await echo(1).then(() => chain(depth - 1)));
  const depths = await Promise.all(Array.from({ length: 100 }, () => chain(20)));
  assert.deepEqual(new Set(depths), new Set([20]));
}
