import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import { collect, echo, fail, hooks, rejection, sleep, times, until } from "./hooks.mjs";

export async function anIdleProcessEndsByItself() {
  await echo(1);
  const { signal } = new AbortController();
  await sleep(1, 1, { signal });
  // Ending is the parent's to see.
}

export function aPendingCallKeepsTheProcess() {
  sleep(300, 42).then((value) => process.stdout.write(`settled ${value}`));
}

export async function exitDoesNotWaitForCalls() {
  for (let index = 0; index < 1_000; index++) sleep(60_000, index).catch(() => {});
  for (let index = 0; index < 1_000; index++) sleep(index % 20, index).catch(() => {});
  await echo(1);
  setTimeout(() => process.exit(7), 10);
}

async function workers(count, rounds) {
  for (let round = 0; round < rounds; round++) {
    const started = Array.from(
      { length: count },
      () => new Worker(new URL("busy-worker.mjs", import.meta.url)),
    );
    await Promise.all(
      started.map(
        (worker) =>
          new Promise((resolve, reject) => {
            worker.once("message", resolve);
            worker.once("error", reject);
          }),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    await Promise.all(started.map((worker) => worker.terminate()));
  }
}

export async function workersEndInMidFlight() {
  await workers(4, times(5));
  await until(() => hooks.testLiveTasks() === 0);
  assert.equal(await echo(3), 3);
}

export async function memoryStaysFlat() {
  const round = async () => {
    const controller = new AbortController();
    const calls = Array.from({ length: 2_000 }, (_, index) =>
      sleep(index % 3, index, { signal: index % 2 ? controller.signal : undefined }),
    );
    const failed = Array.from({ length: 200 }, () => rejection(fail()));
    const out = Array.from({ length: 20 }, () => hooks.testBytesOut(100_000));
    const settled = Promise.allSettled(calls);
    await echo(1);
    controller.abort();
    await Promise.all([settled, ...failed, ...out]);
  };
  for (let warm = 0; warm < 5; warm++) await round();
  await collect();
  const before = process.memoryUsage();
  for (let index = 0; index < times(15); index++) await round();
  await collect();
  const after = process.memoryUsage();
  const grown = after.heapUsed - before.heapUsed;
  assert.ok(grown < 3_000_000, `the heap grew by ${grown} bytes`);
  // 15 rounds make 30 MB of buffers: kept, they would show.
  const external = after.external - before.external;
  assert.ok(external < 10_000_000, `memory outside the heap grew by ${external} bytes`);
}
