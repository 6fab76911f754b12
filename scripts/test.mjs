/**
 * Runs the JavaScript tests: the same files on every runtime.
 *
 *   node scripts/test.mjs node [22|24] [file...]   node --test
 *   node scripts/test.mjs bun [file...]            bun test
 *
 * Without files it takes every *.test.mjs below __test__/; what shows the
 * simulator, the command line or the packages runs on this Node only.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { filesBelow, root } from "./files.mjs";

/** Of a whole file; with a raised TEST_SCALE several tests of one wait for minutes. */
const TEST_TIMEOUT_MS = Number(process.env.TEST_SCALE ?? 1) > 1 ? 1_200_000 : 300_000;

/** What shows something else than the addon. */
const HERE_ONLY = ["fidelity", "packages", "cli.test.mjs", "typescript.test.mjs"].map((name) =>
  path.join("__test__", name),
);

const [runtime, ...rest] = process.argv.slice(2);
const version = runtime === "node" && /^\d+$/.test(rest[0] ?? "") ? rest.shift() : undefined;
const files = rest.length > 0 ? rest : all();

const { command, args } = launch();
const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
if (error !== undefined) throw error;
if (signal !== null) console.error(`${command} was ended by ${signal}`);
process.exitCode = status ?? 1;

function all() {
  const found = filesBelow("__test__", (name) => name.endsWith(".test.mjs"));
  const here = runtime === "node" && version === undefined;
  return here ? found : found.filter((file) => !HERE_ONLY.some((start) => file.startsWith(start)));
}

function launch() {
  if (runtime === "bun") {
    const bun = path.join(root, "node_modules/.bin/bun");
    // Without the leading ./ Bun takes a path for a filter.
    const paths = files.map((file) => (path.isAbsolute(file) ? file : `./${file}`));
    return { command: bun, args: ["test", `--timeout=${TEST_TIMEOUT_MS}`, ...paths] };
  }
  if (runtime !== "node") throw new Error(`usage: test.mjs node [22|24] | bun, not ${runtime}`);
  const node =
    version === undefined
      ? process.execPath
      : path.join(root, `__test__/runtimes/node_modules/node-${version}/bin/node`);
  if (!existsSync(node)) {
    throw new Error(`Node ${version} is not installed: npm ci --prefix __test__/runtimes`);
  }
  // One process a file, as many at a time as there are cores.
  return {
    command: node,
    args: ["--test", `--test-timeout=${TEST_TIMEOUT_MS}`, "--test-reporter=spec", ...files],
  };
}
