/**
 * The code of the guides, made runnable.
 *
 * A `js` block is the body of an async function that is given `client`, `box`
 * and the few functions that a reader's own program would have; its imports
 * move to the top. A `text` block right after it is what it must print. A
 * block that declares one of the given names itself simply hides it.
 *
 * An `sh` block runs in bash, in a folder with `program.mjs` and `app.tar`,
 * where `beachside` is the command line. What cannot be run here says why, as
 * in "sh not run: it is not published"; every other block has a language.
 */

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { inspect } from "node:util";
import { root } from "../../scripts/files.mjs";

/** What a snippet may use without declaring it. */
const GIVEN = ["client", "box", "save", "load", "console"];

/** The `js` blocks of a document, with the line they begin at and what they must print. */
export function snippetsOf(document) {
  const text = readFileSync(path.join(root, document), "utf8");
  const blocks = /^```js\n([\s\S]*?)^```\n(?:\n^```text\n([\s\S]*?)^```\n)?/gm;
  return [...text.matchAll(blocks)].map(({ 1: code, 2: prints, index }) => ({
    document,
    line: text.slice(0, index).split("\n").length + 1,
    code,
    prints,
  }));
}

/** The blocks of a document that are not JavaScript to be run, with what stands after the three ticks. */
export function otherBlocksOf(document) {
  const text = readFileSync(path.join(root, document), "utf8");
  const blocks = [...text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(
    ({ 1: info, 2: code, index }) => ({
      document,
      line: text.slice(0, index).split("\n").length + 1,
      info,
      code,
    }),
  );
  return blocks.filter(({ info }) => info !== "js");
}

const PROGRAM = `
import { runloop } from "@beachside/runloop";
import { Beachside } from "@beachside/runloop/client";
await (await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }))).close();
`;

/** Runs an `sh` block as a reader would; rejects with all that it printed unless it ends with 0. */
export async function runInShell(code, env) {
  // Below the tree, so that program.mjs finds the packages.
  const parent = path.join(root, "target", "guides");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(path.join(parent, "shell-"));
  const state = mkdtempSync(path.join(os.tmpdir(), "beachside-guides-"));
  try {
    writeFileSync(path.join(folder, "program.mjs"), PROGRAM);
    writeFileSync(path.join(folder, "app.tar"), "content");
    const beachside = path.join(folder, "beachside");
    const bin = path.join(root, "cli/bin/beachside.mjs");
    writeFileSync(beachside, `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`);
    chmodSync(beachside, 0o755);
    const child = spawn("bash", ["-euo", "pipefail", "-c", code], {
      cwd: folder,
      env: {
        ...process.env,
        ...env,
        BEACHSIDE_STATE: state,
        PATH: `${folder}:${path.dirname(process.execPath)}:${process.env.PATH}`,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        printed += text;
      });
    }
    const [status, signal] = await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (...ended) => resolve(ended));
    });
    if (status !== 0) throw new Error(`ended with ${signal ?? status}:\n${printed}`);
    return printed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    rmSync(state, { recursive: true, force: true });
  }
}

/** Writes the snippet as a module below `target/` and imports its function. */
export async function moduleOf({ document, line, code }) {
  const imports = /^import [\s\S]*?;\n/gm;
  const source = [
    ...(code.match(imports) ?? []),
    `export default async function snippet({ ${GIVEN.join(", ")} }) {{\n`,
    code.replace(imports, ""),
    "}}\n",
  ].join("");
  const folder = path.join(root, "target", "guides");
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `${path.basename(document, ".md")}-${line}-${process.pid}.mjs`);
  writeFileSync(file, source);
  return (await import(file)).default;
}

/** A console whose lines can be compared. */
export function recorder() {
  const lines = [];
  const record = (...values) => {
    lines.push(values.map((each) => (typeof each === "string" ? each : inspect(each))).join(" "));
  };
  return {
    console: { log: record, error: record },
    get printed() {
      return lines.map((line) => `${line}\n`).join("");
    },
  };
}
