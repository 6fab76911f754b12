/**
 * Streamed text: this package against the official SDK, on one simulator in one run.
 *
 *   npm run build && cargo build --release -p runloop-simulator
 *   RUNLOOP_SIMULATOR=target/release/runloop-simulator node bench/streaming.mjs
 *
 * Each contender reads the same finished command's output from its start, in a
 * process of its own, in turn. The text is checked after the clock has stopped.
 * Prints a line a round and the medians; it judges nothing.
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const KEY = "ak_bench_0123456789";
const MEGABYTES = Number(process.env.MEGABYTES ?? 100);
const ROUNDS = Number(process.env.ROUNDS ?? 5);

const [contender, saved] = process.argv.slice(2);
if (contender === undefined) await compare();
else await measure(contender, JSON.parse(saved));

async function compare() {
  const { startSimulator } = await import("../__test__/support/simulator.mjs");
  const { Beachside } = await import("beachside");
  const { runloop } = await import("@beachside/runloop");
  // One event is 1 KB, as in the figures that others publish.
  const simulator = await startSimulator({ apiKey: KEY, settings: { stream_chunk_bytes: 1024 } });
  try {
    const client = await Beachside.connect(runloop({ apiKey: KEY, baseUrl: simulator.url }));
    const box = await client.sandboxes.create();
    const command = `yes 'a line of output, as a build or a test run prints it: 0123456789' | head -c ${MEGABYTES}000000`;
    const process_ = await box.processes.start({ command, output: { mode: "stream" } });
    const hash = createHash("sha256");
    for await (const text of process_.stdout) hash.update(text);
    const { exitCode } = await process_.wait();
    const facts = {
      url: simulator.url,
      box: box.reference,
      process: process_.reference,
      bytes: MEGABYTES * 1_000_000,
      sha256: hash.digest("hex"),
    };
    if (exitCode !== 0) throw new Error(`the command ended with ${exitCode}`);
    const results = { ours: [], sdk: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const name of round % 2 === 0 ? ["ours", "sdk"] : ["sdk", "ours"]) {
        const self = fileURLToPath(import.meta.url);
        const child = promisify(execFile)(process.execPath, [self, name, JSON.stringify(facts)]);
        const figures = JSON.parse((await child).stdout);
        results[name].push(figures);
        console.log(name.padEnd(5), JSON.stringify(figures));
      }
    }
    for (const [name, rounds] of Object.entries(results)) {
      const of = (field) => median(rounds.map((figures) => figures[field]));
      console.log(
        `median ${name}: ${of("megabytesPerSecond")} MB/s, ` +
          `${of("cpuSecondsPer100MB")} CPU s per 100 MB`,
      );
    }
    await client.close();
  } finally {
    await simulator.stop();
  }
}

async function measure(name, facts) {
  const read = await (name === "ours" ? ours(facts) : sdk(facts));
  const texts = [];
  const cpu = process.cpuUsage();
  const start = performance.now();
  await read((text) => texts.push(text));
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text);
  if (hash.digest("hex") !== facts.sha256) throw new Error(`${name} did not read every byte once`);
  const megabytes = facts.bytes / 1e6;
  console.log(
    JSON.stringify({
      megabytesPerSecond: Number((megabytes / seconds).toFixed(1)),
      cpuSecondsPer100MB: Number(((((user + system) / 1e6) * 100) / megabytes).toFixed(3)),
    }),
  );
  process.exit();
}

async function ours({ url, box, process: saved }) {
  const { Beachside } = await import("beachside");
  const { runloop } = await import("@beachside/runloop");
  const client = await Beachside.connect(runloop({ apiKey: KEY, baseUrl: url }));
  const sandbox = await client.sandboxes.get(box);
  const reopened = await sandbox.processes.get(saved);
  return async (take) => {
    for await (const text of reopened.stdout) take(text);
  };
}

async function sdk({ url, box, process: saved }) {
  const { Runloop } = await import("@runloop/api-client");
  // Its own default, HTTP/2, needs TLS, which the simulator does not offer.
  const client = new Runloop({ bearerToken: KEY, baseURL: url, http2: false });
  await client.devboxes.retrieve(box.id);
  return async (take) => {
    const offset = { offset: "0" };
    const stream = await client.devboxes.executions.streamStdoutUpdates(box.id, saved.id, offset);
    for await (const { output } of stream) take(output);
  };
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
