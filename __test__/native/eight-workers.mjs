/** Eight threads with a connection each run twenty commands each; every other one is ended in the middle. */

import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const { RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: baseUrl, SANDBOX } = process.env;
const workers = Array.from({ length: 8 }, (_, index) => {
  const ended = index % 2 === 1;
  const workerData = { apiKey, baseUrl, sandbox: JSON.parse(SANDBOX), commands: 20, index };
  const worker = new Worker(new URL("twenty-commands.mjs", import.meta.url), { workerData });
  return { worker, ended };
});

await Promise.all(
  workers.map(
    ({ worker, ended }) =>
      new Promise((resolve, reject) => {
        let done = 0;
        worker.on("message", () => {
          done += 1;
          if (ended && done === 7) worker.terminate().then(resolve, reject);
          if (done === 20) resolve();
        });
        worker.on("error", reject);
        worker.on("exit", () => resolve());
      }),
  ),
);
// The thread that never loaded it, and the ones that are left, go on.
const client = await Beachside.connect(runloop({ apiKey, baseUrl, network: "internet" }));
const box = await client.sandboxes.get(JSON.parse(SANDBOX));
assert.equal((await box.exec(["printf", "main"])).stdoutText(), "main");
await client.close();
