/** Every call that could tell a secret, with all listeners on: see observability.test.mjs. */

import { subscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const all = [];
for (const type of ["request.start", "request.end", "operation.submit", "operation.settle"]) {
  subscribe(`beachside.${type}`, (record) => all.push(record));
}
const caught = (promise) => promise.catch((error) => error);
const { RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: baseUrl } = process.env;
const client = await Beachside.connect({
  adapter: runloop({ apiKey, baseUrl, network: "internet" }),
  trace: (record) => all.push(record),
});
const tell = { onProgress: (progress) => all.push(progress) };
const overwrite = { overwrite: true, ...tell };
const box = await client.sandboxes.create({ env: { A: "canary-env-1" }, ...tell });
await box.exec(["sh", "-c", "echo canary-argument-1; cat"], {
  env: { B: "canary-env-2" },
  stdin: "canary-stdin-1",
});
all.push(await caught(box.exec("echo canary-output-1; exit 3", { check: true })));
await box.writeFile("/tmp/f", "canary-content-1", overwrite);
await box.readFile("/tmp/f", tell);
await box.writeFile("/tmp/g", "canary-content-2".repeat(40_000), overwrite);
await box.readFile("/tmp/g", tell);
all.push(await caught(box.readFile("/tmp/none", tell)));
const { headers } = await box.preview(3000);
const live = await box.processes.start({
  command: "echo canary-output-2",
  env: { C: "canary-env-3" },
});
await live.waitForOutput("output");
all.push(await caught(live.waitForOutput("never")));
all.push(await caught(box.waitForPort(9, { timeoutSeconds: 0.1 })));
for await (const each of client.sandboxes.list({ limit: 1 })) all.push(each);
await box.destroy();
// Records come within a turn or two of the result.
await new Promise((resolve) => setTimeout(resolve, 50));
all.push(client, box, live);
const shown = `${inspect(all, { depth: 9 })} ${JSON.stringify(all)}`;
const tokens = Object.values(headers);
console.log(shown);
console.log(`END ${all.length} ${tokens.length} ${tokens.some((token) => shown.includes(token))}`);
await client.close();
