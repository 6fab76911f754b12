// Apart from lifetime.mjs, because its own process never loads the addon.
import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";

export async function onlyWorkersLoadTheAddon() {
  for (let round = 0; round < 8; round++) {
    const worker = new Worker(new URL("busy-worker.mjs", import.meta.url));
    const answer = await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    assert.equal(answer, "busy");
    await worker.terminate();
  }
}
