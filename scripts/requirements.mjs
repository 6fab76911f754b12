/**
 * Which rows of docs/requirements.md a test shows.
 *
 * A JavaScript test carries the id in its name, `[R14]`; a Rust test starts
 * with it, `r14_` (several: `r14_r15_`). Prints the ids that no test carries
 * and the count; `--count` prints the count alone. Fails on an id in a test
 * that the ledger does not have.
 */

import { readFileSync } from "node:fs";
import path from "node:path";
import { filesBelow, root } from "./files.mjs";

const read = (file) => readFileSync(path.join(root, file), "utf8");

const ledger = [...read("docs/requirements.md").matchAll(/^\| ([RV]\d+) \|/gm)].map(([, id]) => id);
const shown = new Map();
const note = (id, file) => shown.set(id, [...(shown.get(id) ?? []), file]);

for (const file of filesBelow("__test__", (name) => /\.(test\.mjs|mts|cts)$/.test(name))) {
  for (const [, id] of read(file).matchAll(/\[([RV]\d+)\]/g)) note(id, file);
}
for (const folder of ["src", "simulator", "tests"]) {
  for (const file of filesBelow(folder, (name) => name.endsWith(".rs"))) {
    for (const [, ids] of read(file).matchAll(/\bfn ((?:[a-z]\d+_)+)/g)) {
      for (const [, id] of ids.matchAll(/([rv]\d+)_/g)) note(id.toUpperCase(), file);
    }
  }
}

const covered = ledger.filter((id) => shown.has(id));
const missing = ledger.filter((id) => !shown.has(id));
if (!process.argv.includes("--count") && missing.length > 0) console.log(missing.join("\n"));
console.log(`${covered.length} of ${ledger.length} requirements carry a test.`);

const known = new Set(ledger);
for (const [id, files] of shown) {
  if (known.has(id)) continue;
  console.error(`${files[0]}: ${id} is not in docs/requirements.md`);
  process.exitCode = 1;
}
