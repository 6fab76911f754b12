/**
 * The code of the guides, made runnable.
 *
 * A `js` block is the body of an async function that is given `client`, `box`
 * and the few functions that a reader's own program would have; its imports
 * move to the top. A `text` block right after it is what it must print. A
 * block that declares one of the given names itself simply hides it.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
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
