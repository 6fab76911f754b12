/**
 * The full counts of everything that `make test` reduces, part by part.
 *
 *   node scripts/soak.mjs            every part, then the record
 *   node scripts/soak.mjs PART...    these parts; the others keep their rows
 *   node scripts/soak.mjs --list     what there is
 *
 * TEST_SEED replaces the seeds. Writes docs/records/soak.md. Ends with 1 where
 * a part failed; the record says so too.
 */

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { root } from "./files.mjs";

const js = (...files) => ["node", "scripts/test.mjs", "node", ...files];
const node = (version, ...files) => ["node", "scripts/test.mjs", "node", version, ...files];
const bun = (...files) => ["node", "scripts/test.mjs", "bun", ...files];
const rust = (name, binary, filter) => ["cargo", "test", "-p", name, "--test", binary, filter];

/** `scale` is the part's TEST_SCALE: how much more than `make test`. */
const PARTS = {
  boundary: {
    what: "calls, signals, failures, buffers and workers at the boundary",
    scale: 10,
    command: js("__test__/boundary.test.mjs"),
  },
  "boundary-bun": {
    what: "the same on Bun",
    scale: 10,
    command: bun("__test__/boundary.test.mjs"),
  },
  native: {
    what: "50 processes of 8 threads; 100,000 calls, 10,000 failures, 2,000 abandoned streams",
    scale: 100,
    command: js("__test__/native-scale.test.mjs"),
  },
  "native-22": {
    what: "the same on Node 22",
    scale: 100,
    command: node("22", "__test__/native-scale.test.mjs"),
  },
  "native-24": {
    what: "the same on Node 24",
    scale: 100,
    command: node("24", "__test__/native-scale.test.mjs"),
  },
  "native-bun": {
    what: "the same on Bun",
    scale: 100,
    command: bun("__test__/native-scale.test.mjs"),
  },
  connections: {
    what: "1,000 commands that wait over TLS and HTTP/2, and reads beside them; HTTP/2 that fails",
    scale: 10,
    command: js("__test__/connections.test.mjs"),
  },
  properties: {
    what: "generated and kept input for everything that reads what a service sends (Rust, optimized)",
    scale: 400,
    command: ["node", "scripts/rooms.mjs", "long"],
  },
  references: {
    what: "changed references (JavaScript)",
    scale: 100,
    command: js("__test__/references.test.mjs"),
  },
  commands: {
    what: "mixed commands, after which the guest is as before (Rust)",
    scale: 5,
    command: rust("beachside-runloop", "commands", "soak"),
  },
  exec: {
    what: "short commands in a row, through the addon",
    scale: 10,
    command: js("__test__/runloop-exec.test.mjs"),
  },
  live: {
    what: "live output under random cuts",
    scale: 20,
    command: js("__test__/live-cuts.test.mjs"),
  },
  killed: {
    what: "scripts killed with SIGKILL and accounted for",
    scale: 40,
    command: js("__test__/killed.test.mjs"),
  },
  stress: {
    what: "200 Devboxes with commands at once; what is left after any end (simulator)",
    scale: 10,
    command: rust("runloop-simulator", "stress", ""),
  },
  fidelity: {
    what: "the official SDK, waits in full, with and without namespaces",
    scale: 10,
    command: js(...["executions", "devboxes", "lifetimes"].map(fidelity)),
  },
};

function fidelity(name) {
  return `__test__/fidelity/${name}.test.mjs`;
}

const RECORD = path.join(root, "docs/records/soak.md");
const COLUMNS = ["part", "what", "scale", "seed", "date", "minutes", "result"];

const asked = process.argv.slice(2);
if (asked.includes("--list")) {
  for (const [name, { what, scale }] of Object.entries(PARTS)) {
    console.log(`${name.padEnd(14)} ${what} (TEST_SCALE=${scale})`);
  }
} else {
  const names = asked.length > 0 ? asked : Object.keys(PARTS);
  for (const name of names) {
    if (!(name in PARTS)) throw new Error(`no part "${name}"; there are ${Object.keys(PARTS)}`);
  }
  const rows = recorded();
  for (const name of names) {
    rows.set(name, await run(name));
    write(rows);
  }
}

/** Runs one part; its row of the record. */
async function run(name) {
  const { what, scale, command } = PARTS[name];
  console.log(`\n== ${name}: TEST_SCALE=${scale} ${command.join(" ")}`);
  const started = Date.now();
  const [program, ...args] = command.filter((word) => word !== "");
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, TEST_SCALE: String(scale) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
    process.stdout.write(text);
  });
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) process.exitCode = 1;
  const minutes = ((Date.now() - started) / 60_000).toFixed(1);
  const result = [code === 0 ? "passed" : `FAILED (${code})`, ...counts(output)].join("; ");
  const date = new Date(started).toISOString().slice(0, 16);
  return [name, what, String(scale), process.env.TEST_SEED ?? "own", date, minutes, result];
}

/** What a runner and its tests say of how much they did. */
function counts(output) {
  const found = [];
  for (const line of output.split("\n")) {
    const told = /^ *(?:ℹ|#)? ?(\{"(?:seed|callsPerRound)".*\})$/.exec(line);
    const read = /^ *(?:ℹ|#)? ?(\d+ commands: a read took .*)$/.exec(line);
    const passed = /^ℹ pass (\d+)/.exec(line) ?? /^ (\d+) pass$/.exec(line);
    const rusty = /^test result: \w+\. (\d+) passed/.exec(line);
    if (told !== null) found.push(`\`${told[1]}\``);
    else if (read !== null) found.push(read[1]);
    else if (passed !== null) found.push(`${passed[1]} tests`);
    else if (rusty !== null && rusty[1] !== "0") found.push(`${rusty[1]} tests`);
  }
  return found;
}

/** The rows of the last record, by part. */
function recorded() {
  const rows = new Map();
  if (!existsSync(RECORD)) return rows;
  for (const line of readFileSync(RECORD, "utf8").split("\n")) {
    const cells = line
      .split("|")
      .slice(1, -1)
      .map((each) => each.trim());
    if (cells[0] in PARTS) rows.set(cells[0], cells);
  }
  return rows;
}

function write(rows) {
  const [cpu] = os.cpus();
  const gigabytes = Math.round(os.totalmem() / 2 ** 30);
  const machine = `${os.cpus().length} cores (${cpu?.model ?? "unknown"}), ${gigabytes} GB, ${os.type()} ${os.release()}, Node ${process.versions.node}`;
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const lines = [
    "# The long runs",
    "",
    "Written by `make soak`: the last run of each part, with its full counts. `scale` is the part's TEST_SCALE, so many times",
    "the counts of `make test`; dates are UTC. A part alone: `make soak PARTS=killed`.",
    "",
    `Machine of the latest part: ${machine}.`,
    "",
    line(COLUMNS),
    line(COLUMNS.map(() => "---")),
    ...Object.keys(PARTS)
      .filter((name) => rows.has(name))
      .map((name) => line(rows.get(name))),
    "",
  ];
  mkdirSync(path.dirname(RECORD), { recursive: true });
  writeFileSync(RECORD, lines.join("\n"));
}
