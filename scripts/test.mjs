/**
 * Runs the JavaScript tests: the same files on every runtime.
 *
 *   node scripts/test.mjs node [22|24] [file...]   node --test
 *   node scripts/test.mjs bun [file...]            bun test
 *
 * Without files it takes every *.test.mjs below __test__/; what shows the
 * simulator, the command line or the packages runs on this Node only.
 */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { filesBelow, root } from "./files.mjs";

/** Of a whole file; with a raised TEST_SCALE several tests of one wait for minutes. */
const TEST_TIMEOUT_MS = Number(process.env.TEST_SCALE ?? 1) > 1 ? 1_200_000 : 300_000;

/** Files that run at a time, each in a process of its own: most of them wait most of the time. */
const AT_A_TIME = 2 * os.availableParallelism();

/** What shows something else than the addon, or starts the other runtimes itself. */
const HERE_ONLY = [
  "fidelity",
  "packages",
  "bounds.test.mjs",
  "cli.test.mjs",
  "typescript.test.mjs",
].map((name) => path.join("__test__", name));

const [runtime, ...rest] = process.argv.slice(2);
const version = runtime === "node" && /^\d+$/.test(rest[0] ?? "") ? rest.shift() : undefined;
const files = rest.length > 0 ? rest : all();

const codes = await Promise.all(launches().map(({ command, args }) => run(command, args)));
process.exitCode = codes.find((code) => code !== 0) ?? 0;

function all() {
  const found = filesBelow("__test__", (name) => name.endsWith(".test.mjs"));
  const here = runtime === "node" && version === undefined;
  return here ? found : found.filter((file) => !HERE_ONLY.some((start) => file.startsWith(start)));
}

function launches() {
  if (runtime === "bun") return bunLaunches();
  if (runtime !== "node") throw new Error(`usage: test.mjs node [22|24] | bun, not ${runtime}`);
  const node =
    version === undefined
      ? process.execPath
      : path.join(root, `__test__/runtimes/node_modules/node-${version}/bin/node`);
  if (!existsSync(node)) {
    throw new Error(`Node ${version} is not installed: npm ci --prefix __test__/runtimes`);
  }
  const args = [
    "--test",
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    `--test-concurrency=${AT_A_TIME}`,
    "--test-reporter=spec",
    ...files,
  ];
  return [{ command: node, args }];
}

/** Bun runs its files one after the other in one process, so there are several. */
function bunLaunches() {
  const command = path.join(root, "node_modules/.bin/bun");
  const count = Math.min(AT_A_TIME, files.length);
  return Array.from({ length: count }, (_, shard) => {
    const ours = files.filter((_, index) => index % count === shard);
    // Without the leading ./ Bun takes a path for a filter.
    const paths = ours.map((file) => (path.isAbsolute(file) ? file : `./${file}`));
    return { command, args: ["test", `--timeout=${TEST_TIMEOUT_MS}`, ...paths] };
  });
}

/** Where several run, the output of each comes whole when it ends. */
function run(command, args) {
  return new Promise((resolve, reject) => {
    const isAlone = runtime !== "bun";
    const stdio = isAlone ? "inherit" : ["ignore", "pipe", "pipe"];
    const child = spawn(command, args, { cwd: root, stdio });
    const output = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk) => output.push(chunk));
    }
    child.once("error", reject);
    child.once("close", (code, signal) => {
      process.stdout.write(Buffer.concat(output));
      if (signal !== null) console.error(`${command} was ended by ${signal}`);
      resolve(code ?? 1);
    });
  });
}
