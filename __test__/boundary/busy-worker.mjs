import { parentPort } from "node:worker_threads";
import { echo, fail, hooks, sleep } from "./hooks.mjs";

const { signal } = new AbortController();
for (let index = 0; index < 200; index++) {
  sleep(60_000, index).catch(() => {});
  sleep(index % 30, index, { signal }).catch(() => {});
  fail().catch(() => {});
  hooks.testBytesOut(50_000);
}
await echo(1);
parentPort.postMessage("busy");
for (;;) await Promise.all(Array.from({ length: 50 }, (_, index) => sleep(index % 5, index)));
