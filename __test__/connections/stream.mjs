/**
 * Reads a process's output over TLS and HTTP/2 while streams of events are cut
 * and connections say GOAWAY. Prints whether every line came once, in order.
 */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const client = await Beachside.connect({
  adapter: runloop({ apiKey: process.env.RUNLOOP_API_KEY }),
});
const box = await client.sandboxes.create();
const path = "/v1/devboxes/*/executions/*/stream_stdout_updates";
for (const action of JSON.parse(process.env.FAULTS)) {
  const response = await fetch(`${process.env.CONTROL}/_simulator/faults`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ match: { path, count: 1 }, action }),
  });
  if (!response.ok) throw new Error(await response.text());
}
const lines = await box.processes.start({
  command: "seq 1 20000",
  output: { mode: "stream" },
});
const expected = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join("");
const isWhole = (await lines.stdout.text()) === expected;
const ended = await lines.wait();
await client.close();
console.log(JSON.stringify({ isWhole, ended }));
