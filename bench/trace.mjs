/**
 * What listening costs: `inspect` against a simulator that gives canned
 * answers, with nobody listening, with a trace, and again, in turn. Prints
 * CPU microseconds of this process for each call, medians of the rounds.
 *
 * node bench/trace.mjs [calls] [rounds]
 */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { runloop } from "@beachside/runloop";
import { Beachside } from "@beachside/runloop/client";
import { Tracer } from "../client/dist/trace.js";

const [calls = 2000, rounds = 7] = process.argv.slice(2).map(Number);
const binary = process.env.RUNLOOP_SIMULATOR ?? "target/debug/runloop-simulator";
const simulator = spawn(binary, ["--stub", "--port", "0"], { stdio: ["pipe", "pipe", "inherit"] });
const line = await new Promise((resolve) =>
  createInterface({ input: simulator.stdout }).once("line", resolve),
);
const baseUrl = JSON.parse(line).url;

async function connected(trace) {
  const adapter = runloop({ apiKey: "ak_bench", baseUrl, network: "internet" });
  const client = await Beachside.connect({ adapter, trace });
  return { client, box: await client.sandboxes.create() };
}

async function cost({ box }) {
  const before = process.cpuUsage();
  for (let call = 0; call < calls; call++) await box.inspect();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

let records = 0;
const contenders = {
  "nobody listens": await connected(undefined),
  "a trace listens": await connected(() => {
    records += 1;
  }),
};
const figures = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
for (const each of Object.values(contenders)) await cost(each);
for (let round = 0; round < rounds; round++) {
  for (const [name, each] of Object.entries(contenders)) figures[name].push(await cost(each));
}
for (const [name, values] of Object.entries(figures)) {
  console.log(`${name}: ${median(values).toFixed(1)} µs of CPU a call`);
}
console.log(`records of the trace: ${records}`);

// Apart, because it drowns in a call: the look whether anybody listens.
const tracer = new Tracer("bench", undefined);
const looks = 5_000_000;
const idle = process.cpuUsage();
let active = 0;
for (let look = 0; look < looks; look++) if (tracer.active) active += 1;
const { user } = process.cpuUsage(idle);
const nanoseconds = (user * 1000) / looks;
console.log(
  `a look whether anybody listens: ${nanoseconds.toFixed(1)} ns (${active} of ${looks} found one)`,
);

for (const { client } of Object.values(contenders)) await client.close();
simulator.kill();
