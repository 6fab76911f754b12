/**
 * COUNT commands that each hold a long poll, and reads beside them. Prints how
 * long the reads took in milliseconds, sorted, and what the commands printed.
 */

import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const count = Number(process.env.COUNT);
const client = await Beachside.connect({
  adapter: runloop({ apiKey: process.env.RUNLOOP_API_KEY }),
});
const box = await client.sandboxes.create();
// Reading a pipe that nobody writes to: a thousand that sleep would keep the machine busy.
await box.exec(["mkfifo", "gate"]);
const held = "echo >> arrived; read line < gate; echo through";
const commands = Array.from({ length: count }, () => box.exec(["sh", "-c", held]));
for (;;) {
  const arrived = await box.exec(["sh", "-c", "wc -l < arrived || echo 0"]);
  if (Number(arrived.stdoutText()) === count) break;
}

const took = [];
for (let read = 0; read < 100; read += 1) {
  const began = performance.now();
  await client.sandboxes.get(box.reference);
  took.push(performance.now() - began);
}
took.sort((a, b) => a - b);
await box.exec(["sh", "-c", ": > gate"]);
const printed = new Set((await Promise.all(commands)).map((result) => result.stdoutText()));
await box.destroy();
await client.close();
console.log(JSON.stringify({ median: took[50], p99: took[98], printed: [...printed] }));
