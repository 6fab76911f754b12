// Every claim of the list in README.md has a test here, or a reason in the
// simulator's README why it cannot apply.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const here = new URL("./", import.meta.url);

function read(name) {
  return readFileSync(new URL(name, here), "utf8");
}

/** The ids in the first column of a table; a row of a mere part is no excuse. */
function listed(text) {
  return [...text.matchAll(/^\| (SDK\d+) \|/gm)].map(([, id]) => id);
}

const claims = listed(read("README.md"));
const excused = listed(read("../../simulator/README.md"));
const tested = readdirSync(here)
  .filter((name) => name.endsWith(".test.mjs"))
  .flatMap((name) => [...read(name).matchAll(/\(\s*[`"]\[(SDK\d+)\]/g)])
  .map(([, id]) => id);

test("the list of claims is complete and in order", () => {
  assert.deepEqual(
    claims,
    Array.from({ length: 60 }, (_, index) => `SDK${index + 1}`),
  );
});

test("every claim has a test or a reason why it cannot apply", () => {
  assert.deepEqual(
    claims.filter((id) => !tested.includes(id) && !excused.includes(id)),
    [],
  );
});

test("every id in a test and in the reasons is one of the claims", () => {
  assert.deepEqual(
    [...tested, ...excused].filter((id) => !claims.includes(id)),
    [],
  );
});
