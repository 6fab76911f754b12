/**
 * Measures this package against what its users would take instead.
 *
 *   npm run bench               all rows; writes RESULTS.md, results.json and cpu.svg here
 *   npm run bench -- exec-64    the rows whose id begins so; prints only
 *   npm run bench -- package    import and installed size; prints only
 *   npm run bench -- --list     the ids
 *   npm run bench -- --quick    each measurement once with next to nothing to do, debug builds;
 *                               shows that the bench runs and verifies, times nothing
 *
 * The server is the simulator's stub, so that the client is what is measured;
 * for the round trips of long output it is the simulator itself.
 * Contenders take turns, each measurement in a process of its own, ROUNDS
 * times (3); what is shown is the median. Every worker checks what it timed.
 * A contender that fails has no figure in that row, is not asked again there,
 * and is named with its reason; the rest goes on. The files are written after
 * every row, so that an interrupted run leaves what it has.
 */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startSimulator } from "../__test__/support/simulator.mjs";
import { KEY } from "./contenders.mjs";
import { imports, installed } from "./package.mjs";
import { packageTable, table, write } from "./report.mjs";
import { quick, rows, starts } from "./rows.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
if (process.argv.includes("--list")) {
  console.log([...rows.map(({ id, title }) => `${id}: ${title}`), "package"].join("\n"));
  process.exit();
}
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
const wantsPackage = !isQuick && (only.length === 0 || only.includes("package"));
const began = performance.now();
const results = {};
const failures = [];
const facts = wantsPackage ? { imports: await imports(rounds), installed: installed() } : {};
if (wantsPackage && only.length > 0) console.log(packageTable(facts.imports, facts.installed));

for (const row of chosen) {
  const measured = Object.fromEntries(row.who.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    // In turn, and each time another one first.
    const turn = round % row.who.length;
    for (const name of [...row.who.slice(turn), ...row.who.slice(0, turn)]) {
      if (failures.some((failure) => failure.row === row.id && failure.name === name)) continue;
      try {
        measured[name].push(await measure(name, row));
      } catch (error) {
        // A part of the tests must fail, a bench must go on.
        if (isQuick) throw error;
        failures.push({ row: row.id, name, reason: error.message });
        console.log(`${row.id}, ${starts[name].label}: failed: ${error.message}`);
      }
    }
  }
  results[row.id] = measured;
  const minutes = (performance.now() - began) / 60_000;
  if (isQuick) continue;
  console.log(`${row.id}: done, ${minutes.toFixed(1)} minutes so far`);
  if (only.length > 0) console.log(table([row], results));
  else {
    const done = chosen.filter(({ id }) => id in results);
    write(done, results, { rounds, minutes, failures, ...facts });
  }
}
if (isQuick) {
  console.log(`bench: ${chosen.length} measurements ran and gave what they should`);
} else if (only.length === 0) {
  console.log("written: bench/RESULTS.md, bench/results.json, bench/cpu.svg");
}

/** One measurement, on a server of its own: the stub, or the real simulator for a whole journey. */
async function measure(name, row) {
  const { contender = name, runtime = "node", tls = false, job: more = {} } = starts[name];
  const server = await startSimulator({ tls: true, more: row.isWhole ? [] : ["--stub"] });
  try {
    const id = await devbox(server);
    const { url: tlsUrl, plainUrl } = server;
    const where = { url: tls ? tlsUrl : plainUrl, plainUrl, box: id };
    const job = JSON.stringify({ ...row.job, ...more, ...where });
    const worker = path.join(root, "bench/worker.mjs");
    const [command, args] = {
      node: [process.execPath, ["--expose-gc", worker, contender, job]],
      bun: [path.join(root, "node_modules/.bin/bun"), [worker, contender, job]],
      floor: [floor, [job]],
    }[runtime];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: server.ca };
    const options = { env, maxBuffer: 1e6, timeout: 120_000 };
    const { stdout } = await promisify(execFile)(command, args, options);
    // Runtimes may print notices of their own before it.
    const figures = JSON.parse(stdout.trim().split("\n").at(-1));
    return { calls: row.job.calls, ...figures };
  } catch (error) {
    const said = `${error.stderr ?? ""}`.trim().slice(-2000);
    const reason = error.killed ? "not done within two minutes" : error.message.split("\n", 1)[0];
    throw new Error(`${row.id}, ${name}: ${said || reason}`);
  } finally {
    await server.stop();
  }
}

/** The id of a Devbox that runs. */
async function devbox({ plainUrl }) {
  const headers = { authorization: `Bearer ${KEY}` };
  const ask = async (path, method) =>
    (await fetch(`${plainUrl}/v1/devboxes${path}`, { method, headers })).json();
  const { id } = await ask("", "POST");
  for (let look = 0; look < 100; look += 1) {
    if ((await ask(`/${id}`, "GET")).status === "running") return id;
    await sleep(50);
  }
  throw new Error(`${id} does not run`);
}
