/**
 * Streamed text: this package against the official SDK, on one stub in one run.
 *
 *   npm run build && cargo build --release -p runloop-simulator
 *   RUNLOOP_SIMULATOR=target/release/runloop-simulator node bench/streaming.mjs
 *
 * Each contender reads the same output of finished commands from its start, in
 * a process of its own, in turn: MEGABYTES (100) over STREAMS (1) at once, in
 * events of EVENT (1024) bytes. It reads twice: first every byte is checked,
 * then it is timed. Prints a line a round and the medians of ROUNDS (5); it judges
 * nothing. The server's processor time is its own line, in the same unit.
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const KEY = "ak_bench_0123456789";
const MEGABYTES = Number(process.env.MEGABYTES ?? 100);
const STREAMS = Number(process.env.STREAMS ?? 1);
const EVENT = Number(process.env.EVENT ?? 1024);
const ROUNDS = Number(process.env.ROUNDS ?? 5);

const [contender, saved] = process.argv.slice(2);
if (contender === undefined) await compare();
else await measure(contender, JSON.parse(saved));

async function compare() {
  const { startSimulator } = await import("../__test__/support/simulator.mjs");
  const { Beachside } = await import("beachside");
  const { runloop } = await import("@beachside/runloop");
  const simulator = await startSimulator({ more: ["--stub"] });
  try {
    // The stub has no network policies.
    const settings = { apiKey: KEY, baseUrl: simulator.url, network: "internet" };
    const client = await Beachside.connect(runloop(settings));
    const box = await client.sandboxes.create();
    const bytes = Math.floor((MEGABYTES * 1_000_000) / STREAMS);
    const command = `runloop-stub stdout=${bytes} event=${EVENT}`;
    const handles = [];
    for (let at = 0; at < STREAMS; at += 1) {
      handles.push(await box.processes.start({ command, output: { mode: "stream" } }));
    }
    const hash = createHash("sha256");
    for await (const text of handles[0].stdout) hash.update(text);
    const facts = {
      url: simulator.url,
      box: box.reference,
      processes: handles.map((each) => each.reference),
      bytes,
      sha256: hash.digest("hex"),
    };
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
          `${of("cpuSecondsPer100MB")} CPU s per 100 MB, ` +
          `${of("serverCpuSecondsPer100MB")} of the server`,
      );
    }
    await client.close();
  } finally {
    await simulator.stop();
  }
}

async function measure(name, facts) {
  const readers = await (name === "ours" ? ours(facts) : sdk(facts));
  const check = async (read) => {
    const hash = createHash("sha256");
    await read((text) => hash.update(text));
    if (hash.digest("hex") !== facts.sha256) {
      throw new Error(`${name} did not read every byte once`);
    }
  };
  await Promise.all(readers.map(check));
  const server = await serverSeconds(facts.url);
  let characters = 0;
  let pieces = 0;
  const count = (text) => {
    characters += text.length;
    pieces += 1;
  };
  const cpu = process.cpuUsage();
  const start = performance.now();
  await Promise.all(readers.map((read) => read(count)));
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const served = (await serverSeconds(facts.url)) - server;
  // The text is ASCII.
  if (characters !== facts.bytes * readers.length) throw new Error(`${name} lost text`);
  const megabytes = (facts.bytes * readers.length) / 1e6;
  const per100 = (all) => Number(((all * 100) / megabytes).toFixed(3));
  console.log(
    JSON.stringify({
      megabytesPerSecond: Number((megabytes / seconds).toFixed(1)),
      cpuSecondsPer100MB: per100((user + system) / 1e6),
      serverCpuSecondsPer100MB: per100(served),
      pieces,
    }),
  );
  process.exit();
}

async function serverSeconds(url) {
  const response = await fetch(`${url}/_simulator/stub`);
  return (await response.json()).cpu_us / 1e6;
}

async function ours({ url, box, processes }) {
  const { Beachside } = await import("beachside");
  const { runloop } = await import("@beachside/runloop");
  const client = await Beachside.connect(runloop({ apiKey: KEY, baseUrl: url }));
  const sandbox = await client.sandboxes.get(box);
  const reopened = await Promise.all(processes.map((saved) => sandbox.processes.get(saved)));
  return reopened.map((handle) => async (take) => {
    for await (const text of handle.stdout) take(text);
  });
}

async function sdk({ url, box, processes }) {
  const { Runloop } = await import("@runloop/api-client");
  // Its own default, HTTP/2, needs TLS, which the simulator does not offer.
  const client = new Runloop({ bearerToken: KEY, baseURL: url, http2: false });
  await client.devboxes.retrieve(box.id);
  const offset = { offset: "0" };
  return processes.map(({ id }) => async (take) => {
    const stream = await client.devboxes.executions.streamStdoutUpdates(box.id, id, offset);
    for await (const { output } of stream) take(output);
  });
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
