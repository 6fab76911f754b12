/** The contract suite, as the author of another adapter uses it: from a package of its own. */

import assert from "node:assert/strict";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { program } from "./support/program.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));

/** A package outside this repository, in which this one is installed. */
function outside(t) {
  const folder = mkdtempSync(path.join(tmpdir(), "beachside-outsider-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(path.join(root, "__test__/outsider"), folder, { recursive: true });
  mkdirSync(path.join(folder, "node_modules/@beachside"), { recursive: true });
  symlinkSync(root, path.join(folder, "node_modules/@beachside/runloop"), "dir");
  return folder;
}

async function contract(folder) {
  const { stdout, stderr, code } = await program([path.join(folder, "contract.mjs")]);
  assert.deepEqual({ stderr, code }, { stderr: "", code: 0 });
  const lines = stdout.trim().split("\n");
  return lines.map((line) => JSON.parse(line));
}

test("an author of another adapter runs the contract suite from outside: a toy with two features keeps it", async (t) => {
  const cases = await contract(outside(t));
  const ended = (status) => cases.filter((each) => each.status === status);
  assert.deepEqual(ended("failed"), []);
  assert.ok(ended("held").length >= 10, `${ended("held").length} held`);
  assert.ok(ended("refused").length >= 10, `${ended("refused").length} refused`);
});

test("the contract suite finds an adapter that does not keep the contract", async (t) => {
  const folder = outside(t);
  const file = path.join(folder, "adapter.mjs");
  const breaks = [
    ["stdout.subarray(0, maxOutputBytes)", "stdout", /beyond the limit/],
    ["{ alreadyGone }", "{ alreadyGone: false }", /destroying again/],
    ["createdAtMs,\n  markers,", "createdAtMs,\n  markers: null,", /saved reference/],
  ];
  const good = readFileSync(file, "utf8");
  for (const [kept, broken, name] of breaks) {
    assert.ok(good.includes(kept), kept);
    writeFileSync(file, good.replace(kept, broken));
    const failed = (await contract(folder)).filter(({ status }) => status === "failed");
    assert.ok(
      failed.some((each) => name.test(each.name)),
      `${kept}: ${JSON.stringify(failed)}`,
    );
  }
});
