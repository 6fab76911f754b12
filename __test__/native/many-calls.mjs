/**
 * Many calls, failures, abandoned streams and forgotten clients, in equal rounds.
 *
 * Prints how memory and sockets stood after each round. Counts are those of
 * TEST_SCALE=100, divided by it.
 */

import { readdirSync, readlinkSync } from "node:fs";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";

const { RUNLOOP_API_KEY: apiKey, RUNLOOP_BASE_URL: baseUrl, SANDBOX, SCALE } = process.env;
const count = (full) => Math.ceil((full * Number(SCALE)) / 100);
const connect = () => Beachside.connect(runloop({ apiKey, baseUrl, network: "internet" }));
const ROUNDS = 6;
const reference = JSON.parse(SANDBOX);

const collect = async () => {
  for (let round = 0; round < 6; round++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (typeof Bun === "undefined") globalThis.gc();
    else Bun.gc(true);
  }
};
const sockets = () =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith("socket:");
    } catch {
      return false;
    }
  }).length;

/** `total` calls, `wide` at a time. */
async function repeat(total, wide, call) {
  let left = total;
  const lane = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: Math.min(wide, total) }, lane));
}

async function round(scale) {
  const client = await connect();
  const box = await client.sandboxes.get(reference);
  const gone = { ...reference, id: "dbx_gone" };
  await repeat(count(100_000 * scale), 16, () => box.inspect());
  await repeat(count(10_000 * scale), 16, () =>
    client.sandboxes.get(gone).then(
      () => Promise.reject(new Error("it should have failed")),
      (error) => (error.code === "NOT_FOUND" ? undefined : Promise.reject(error)),
    ),
  );
  await repeat(count(2_000 * scale), 8, async () => {
    const command = "echo x; sleep 0.2";
    const process_ = await box.processes.start({ command, output: { mode: "stream" } });
    for await (const _ of process_.stdout) break;
    // Neither read to its end, detached nor waited for.
  });
  await repeat(count(200 * scale), 4, async () => {
    const forgotten = await connect();
    await (await forgotten.sandboxes.get(reference)).exec("true");
    forgotten.sandboxes.list()[Symbol.asyncIterator]().next();
  });
  await client.close();
}

/** Where memory is: what V8 has mapped for its heap counts apart, because it keeps room that it once needed. */
async function sample() {
  await collect();
  const { heapUsed, heapTotal, external, rss } = process.memoryUsage();
  const native = typeof Bun === "undefined" ? rss - heapTotal : rss;
  return { heapUsed, heapTotal, external, rss, native, sockets: sockets() };
}

await round(1 / ROUNDS);
const samples = [await sample()];
for (let done = 0; done < ROUNDS; done++) {
  await round(1 / ROUNDS);
  samples.push(await sample());
}
// Connections that nobody uses are closed after 20 s.
for (let wait = 0; wait < 300 && sockets() > samples[0].sockets + 4; wait++) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  if (wait % 20 === 0) await collect();
}
const callsPerRound = count(112_200 / ROUNDS);
process.stdout.write(JSON.stringify({ callsPerRound, samples, last: await sample() }));
