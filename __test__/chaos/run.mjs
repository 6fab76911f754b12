/**
 * A seeded chaos run: client processes that are killed and replaced, a
 * simulator that fails at random, and a verdict.
 *
 *   node __test__/chaos/run.mjs --seed 1 --minutes 10 [--record]
 *
 * The seed chooses settings, faults, kills and what each client does; when
 * each of them falls is the machine's. Ends with 1 where the model was broken,
 * and keeps the logs then. `--record` adds a row to docs/records/chaos.md.
 */

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runloop } from "@beachside/runloop";
import { Beachside } from "beachside";
import { state } from "../support/killed.mjs";
import { KEY } from "../support/runloop.mjs";
import { random } from "../support/scale.mjs";
import { startSimulator } from "../support/simulator.mjs";
import { randomFault, randomSettings } from "./faults.mjs";
import { accounted, cleaned, inside, modelOf, recoverable } from "./verdict.mjs";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "0.4" },
    record: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed);
const minutes = Number(values.minutes);
const next = random(seed);

const PROCESSES = 3;
const LANES = 4;
const CONNECTIONS = 2;
/** Mean time between two faults, and between two kills. */
const FAULT_MS = 120;
const KILL_MS = 8_000;
/** How long a rule stays that nothing met. */
const RULE_MS = 2_000;
/** How long a process has to end what it is doing. */
const STOP_MS = 100_000;

const settings = { ...randomSettings(next), journal_max_entries: 5_000_000 };
console.log(`chaos: seed ${seed}, ${minutes} minutes, ${JSON.stringify(settings)}`);
const folder = mkdtempSync(path.join(os.tmpdir(), "beachside-chaos-"));
const service = await startSimulator({ apiKey: KEY, settings });
const deadline = Date.now() + minutes * 60_000;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const files = [];
const tally = { processes: 0, kills: 0, faults: 0 };

/** One place of work: a process, and whoever takes over when it is killed. */
async function place(number) {
  let inherited;
  while (Date.now() < deadline) {
    const file = path.join(folder, `${number}-${files.length}.jsonl`);
    files.push(file);
    tally.processes += 1;
    const name = `p${files.length}`;
    const given = {
      seed: seed * 1000 + files.length * 10,
      file,
      lanes: LANES,
      connections: CONNECTIONS,
      inherited,
      name,
    };
    const script = fileURLToPath(new URL("worker.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, JSON.stringify(given)], {
      env: { ...process.env, RUNLOOP_API_KEY: KEY, RUNLOOP_BASE_URL: service.url },
      stdio: ["pipe", "inherit", "inherit"],
    });
    child.stdin.on("error", () => {});
    const ended = new Promise((resolve) => child.once("exit", (...how) => resolve(how)));
    const life = KILL_MS * PROCESSES * (0.3 + 1.4 * next());
    await Promise.race([pause(Math.min(life, deadline - Date.now())), ended]);
    const isLast = Date.now() >= deadline;
    if (isLast) {
      child.stdin.write("stop\n");
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      const [code] = await ended;
      clearTimeout(late);
      if (code !== 0) appendFileSync(file, violation(`process ${name} ended with ${code}`));
    } else {
      child.kill("SIGKILL");
      const [code, signal] = await ended;
      if (signal === "SIGKILL") tally.kills += 1;
      else appendFileSync(file, violation(`process ${name} ended with ${code} ${signal}`));
      inherited = file;
    }
  }
}

const violation = (what) => `${JSON.stringify({ type: "violation", what })}\n`;

async function faults() {
  while (Date.now() < deadline) {
    await pause(FAULT_MS * 2 * next());
    const { id } = await service.fault(randomFault(next));
    tally.faults += 1;
    setTimeout(() => service.control("DELETE", `/faults/${id}`).catch(() => {}), RULE_MS);
  }
  await pause(RULE_MS);
  await service.control("DELETE", "/faults");
}

const started = Date.now();
await Promise.all([...Array.from({ length: PROCESSES }, (_, number) => place(number)), faults()]);

// What was on its way when its sender was killed arrives within a second.
await pause(1_000);
const model = modelOf(files);
const client = await Beachside.connect(runloop({ apiKey: KEY, baseUrl: service.url }));
const now = await state(service);
const sent = await accounted(service, model, now);
const guests = await inside(service, model, now);
const verdicts = await recoverable(client, model, now);
await cleaned(client, service, model, now);
await client.close();
await service.stop();

const calls = Object.values(model.codes).reduce((sum, each) => sum + each, 0);
const succeeded = Object.entries(model.codes).filter(([key]) => key.endsWith(" success"));
const summary = {
  seed,
  minutes,
  calls,
  succeeded: succeeded.reduce((sum, [, each]) => sum + each, 0),
  mutations: model.saved.size,
  sandboxes: now.devboxes.length,
  ...tally,
  ...sent,
  ...guests,
  recovered: verdicts,
  violations: model.violations.length,
};
console.log(JSON.stringify(model.codes));
console.log(JSON.stringify(summary));
for (const what of model.violations.slice(0, 40)) console.log(`VIOLATION ${what}`);
if (values.record) record();
if (model.violations.length > 0) {
  writeFileSync(path.join(folder, "settings.json"), JSON.stringify(settings));
  console.log(`logs: ${folder}`);
  process.exitCode = 1;
} else rmSync(folder, { recursive: true });

function record() {
  const file = fileURLToPath(new URL("../../docs/records/chaos.md", import.meta.url));
  if (!existsSync(file)) {
    writeFileSync(
      file,
      `# Chaos runs

Written by \`make chaos SEED=… MINUTES=… RECORD=1\`. Client processes work on a simulator that fails at random, and are killed
with SIGKILL and replaced. At the end every resource of the service is known to a saved reference, nothing was sent twice, each
completed command gave its bytes, files hold what was written, guests that saw no failure hold nothing of ours, and recovery says
of each operation what the service says. \`violations\` counts where that was not so.

| date | machine | minutes taken | summary |
| --- | --- | --- | --- |
`,
    );
  }
  const machine = `${os.cpus().length} cores, Node ${process.versions.node}`;
  const taken = ((Date.now() - started) / 60_000).toFixed(1);
  const date = new Date(started).toISOString().slice(0, 16);
  appendFileSync(file, `| ${date} | ${machine} | ${taken} | \`${JSON.stringify(summary)}\` |\n`);
}
