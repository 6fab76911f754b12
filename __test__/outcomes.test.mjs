/** Every cell of docs/design/outcomes.md, through the addon, against the simulator. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { root } from "../scripts/files.mjs";
import { rejection } from "./support/client.mjs";
import { cell, faults, mutations } from "./support/outcomes.mjs";
import { connect, KEY, runloopClient } from "./support/runloop.mjs";
import { startSimulator } from "./support/simulator.mjs";

/** `{ mutation: { fault: { code, recovered } } }`, from the document. */
function table() {
  const rows = readFileSync(`${root}/docs/design/outcomes.md`, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("|") && !line.startsWith("| ---"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((each) => each.trim()),
    );
  const [header, ...lines] = rows;
  const expected = {};
  for (const [column, names] of header.entries()) {
    if (column === 0) continue;
    for (const mutation of names.split(", ")) {
      expected[mutation] = Object.fromEntries(
        lines.map((line) => {
          const [code, recovered] = line[column].split(", ");
          return [line[0], { code, recovered }];
        }),
      );
    }
  }
  return expected;
}

const expected = table();

test("the table of outcomes has a row for every fault and a column for every mutation", () => {
  assert.deepEqual(Object.keys(expected).sort(), Object.keys(mutations).sort());
  for (const cells of Object.values(expected)) {
    assert.deepEqual(Object.keys(cells), Object.keys(faults));
  }
});

for (const [mutation, cells] of Object.entries(expected)) {
  test(`[R29] [R31] [V21] ${mutation}: each fault gives the documented outcome, is recovered as documented, and is sent once`, async (t) => {
    const { client, service } = await runloopClient(t);
    const box = await client.sandboxes.create();
    const { snapshot } = await box.snapshot();
    const world = { client, service, box, snapshot };
    const known = new Set([box.reference.id]);
    for (const [fault, { code, recovered }] of Object.entries(cells)) {
      const at = `${mutation}, ${fault}`;
      const { error, sent, recovery } = await cell(t, world, mutation, fault);
      assert.equal(error?.code ?? "success", code, `${at}: ${error?.message}`);
      assert.equal(recovery.status, recovered, at);
      if (mutation === "exec") {
        const lines = (await box.exec("cat ran 2>/dev/null; rm -f ran")).stdoutText();
        assert.ok(lines === "" || lines === "x\n", `${at}: it ran ${lines.length / 2} times`);
      } else {
        assert.equal(sent, 1, at);
      }
      if (error !== undefined) {
        assert.equal(error.outcome.kind, mutation.split(" ")[0], at);
        assert.equal(error.outcome.operation.kind, "operation", at);
        assert.equal(error.outcome.submitted, mutation !== "file_write (upload)", at);
      }
      if (recovery.sandbox !== undefined) known.add(recovery.sandbox.reference.id);
    }
    if (["sandbox_create", "snapshot_restore"].includes(mutation)) {
      for await (const item of client.sandboxes.list()) {
        assert.ok(known.has(item.reference.id), "a live sandbox that nobody knows of");
      }
    }
  });
}

test("[R31] where no connection can be made, nothing was sent and the error says so", async (t) => {
  const service = await startSimulator({ apiKey: KEY });
  const client = await connect(t, service);
  const box = await client.sandboxes.create();
  await service.kill();
  for (const call of [
    () => client.sandboxes.create(),
    () => box.exec("true"),
    () => box.destroy(),
  ]) {
    const error = await rejection(call());
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.outcome.submitted, false);
    assert.equal(error.outcome.operation.kind, "operation");
  }
});
