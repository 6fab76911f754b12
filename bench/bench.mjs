/**
 * Measures this package against what its users would take instead.
 *
 *   npm run bench               all rows; writes RESULTS.md, results.json and cpu.svg here
 *   npm run bench -- exec-64    the rows whose id begins so; prints only
 *   npm run bench -- --quick    each measurement once with next to nothing to do, debug builds;
 *                               shows that the bench runs and verifies, times nothing
 *
 * The server is the simulator's stub, so that the client is what is measured.
 * Contenders take turns, each measurement in a process of its own, ROUNDS
 * times (3); what is shown is the median. Every worker checks what it timed.
 */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startSimulator } from "../__test__/support/simulator.mjs";
import { KEY } from "./contenders.mjs";
import { imports, installed } from "./package.mjs";
import { write } from "./report.mjs";
import { quick, rows, starts } from "./rows.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const isQuick = process.argv.includes("--quick");
const only = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const rounds = isQuick ? 1 : Number(process.env.ROUNDS ?? 3);
const builds = path.resolve(
  root,
  process.env.CARGO_TARGET_DIR ?? "target",
  isQuick ? "debug" : "release",
);
process.env.RUNLOOP_SIMULATOR ??= path.join(builds, "runloop-simulator");
const floor = path.join(builds, "bench-floor");
if (!existsSync(floor)) throw new Error(`No ${floor}: see "bench" in the Makefile.`);

const matching = rows.filter(
  (row) => only.length === 0 || only.some((start) => row.id.startsWith(start)),
);
const chosen = isQuick ? quick(matching) : matching;

const results = {};
for (const row of chosen) {
  const measured = Object.fromEntries(row.who.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    // In turn, and each time another one first.
    const turn = round % row.who.length;
    for (const name of [...row.who.slice(turn), ...row.who.slice(0, turn)]) {
      measured[name].push(await measure(name, row));
    }
  }
  results[row.id] = measured;
  if (!isQuick) console.log(row.id, "done");
}
if (isQuick) {
  console.log(`bench: ${chosen.length} measurements ran and gave what they should`);
} else {
  const facts = only.length === 0 ? { imports: await imports(rounds), installed: installed() } : {};
  write(chosen, results, { rounds, ...facts, toFiles: only.length === 0 });
}

/** One measurement, on a stub of its own. */
async function measure(name, row) {
  const { contender = name, runtime = "node", tls = false } = starts[name];
  const stub = await startSimulator({ tls: true, more: ["--stub"] });
  try {
    const create = { method: "POST", headers: { authorization: `Bearer ${KEY}` } };
    const { id } = await (await fetch(`${stub.plainUrl}/v1/devboxes`, create)).json();
    const { url: tlsUrl, plainUrl } = stub;
    const job = JSON.stringify({ ...row.job, url: tls ? tlsUrl : plainUrl, plainUrl, box: id });
    const worker = path.join(root, "bench/worker.mjs");
    const [command, args] = {
      node: [process.execPath, ["--expose-gc", worker, contender, job]],
      bun: [path.join(root, "node_modules/.bin/bun"), [worker, contender, job]],
      floor: [floor, [job]],
    }[runtime];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: stub.ca };
    const options = { env, maxBuffer: 1e6, timeout: 300_000 };
    const before = await stub.control("GET", "/stub");
    const { stdout } = await promisify(execFile)(command, args, options);
    const after = await stub.control("GET", "/stub");
    // Runtimes may print notices of their own before it.
    const figures = JSON.parse(stdout.trim().split("\n").at(-1));
    const serverUs = (after.cpu_us - before.cpu_us) / (after.requests - before.requests);
    return { calls: row.job.calls, ...figures, serverUs };
  } catch (error) {
    const said = `${error.stderr ?? ""}`.trim().slice(-2000);
    throw new Error(`${row.id}, ${name}: ${said || error.message}`);
  } finally {
    await stub.stop();
  }
}
