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
  const expected = {};
  let header = [];
  for (const row of rows) {
    if (row[0] === "fault") header = row;
    else {
      for (const [column, names] of header.entries()) {
        if (column === 0) continue;
        for (const mutation of names.split(", ")) {
          const [code, recovered] = row[column].split(", ");
          expected[mutation] ??= {};
          expected[mutation][row[0]] = { code, recovered };
        }
      }
    }
  }
  return expected;
}

const expected = table();

test("the table of outcomes has a row for every fault and a column for every mutation", () => {
  assert.deepEqual(Object.keys(expected).sort(), Object.keys(mutations).sort());
  for (const [mutation, cells] of Object.entries(expected)) {
    assert.deepEqual(Object.keys(cells), Object.keys(faults));
    const run = Object.keys(cells).filter((fault) => cells[fault].code !== "–");
    const possible = Object.keys(faults).filter(
      (fault) => !faults[fault].waiting || mutations[mutation].wait !== undefined,
    );
    const racing = mutation === "process_start" ? ["acted, cancelled"] : [];
    assert.deepEqual([...run, ...racing], possible, mutation);
  }
});

/** Each stage takes a while, so that there is something to wait for. */
const slow = { boot_ms: 30, snapshot_ms: 30, suspend_ms: 30, resume_ms: 30 };

/** Many cells wait for seconds without working, so several mutations run at a time. */
const WIDTH = 6;
const running = started(Object.entries(expected), WIDTH, everyCell);

for (const [index, mutation] of Object.keys(expected).entries()) {
  test(`[R29] [R31] [V21] ${mutation}: each fault gives the documented outcome, is recovered as documented, and is sent once`, async (t) => {
    const { ended, cleanups } = await running[index];
    for (const cleanup of cleanups.reverse()) t.after(cleanup);
    await ended;
  });
}

/** Runs `run(t, ...item)` for each, `width` at a time; what `t.after` is given is left to the test. */
function started(items, width, run) {
  const lanes = Array.from({ length: width }, () => Promise.resolve());
  return items.map((item, index) => {
    const cleanups = [];
    const lane = lanes[index % width];
    const done = lane.then(async () => {
      const ended = run({ after: (cleanup) => cleanups.push(cleanup) }, ...item);
      await ended.catch(() => {});
      return { ended, cleanups };
    });
    lanes[index % width] = done;
    return done;
  });
}

async function everyCell(t, mutation, cells) {
  const { settings, config } = mutations[mutation];
  const { client, service } = await runloopClient(t, {
    settings: { ...slow, ...settings },
    config,
  });
  const box = await client.sandboxes.create();
  const { snapshot } = await box.snapshot();
  const account = { next: 1, key: KEY };
  const world = { t, client, service, box, snapshot, account };
  const known = new Set([box.reference.id]);
  for (const [fault, { code, recovered }] of Object.entries(cells)) {
    if (code === "–") continue;
    const at = `${mutation}, ${fault}`;
    const { error, sent, recovery } = await cell(t, world, mutation, fault);
    assert.equal(error?.code ?? "success", code, `${at}: ${error?.message}`);
    assert.equal(recovery.status, recovered, at);
    if (/^(exec|process_start)/.test(mutation)) {
      const lines = (await box.exec("cat ran 2>/dev/null; rm -f ran")).stdoutText();
      assert.ok(lines === "" || lines === "x\n", `${at}: it ran ${lines.length / 2} times`);
    }
    // After a command whose answer was lost, the one that ends it is sent too.
    if (!mutation.startsWith("exec")) assert.equal(sent, 1, at);
    if (error !== undefined) {
      assert.equal(error.outcome.kind, mutation.split(" ")[0], at);
      assert.equal(error.outcome.operation.kind, "operation", at);
      assert.equal(error.outcome.submitted, !UNSENT.includes(mutation), at);
    }
    if (recovery.sandbox !== undefined) known.add(recovery.sandbox.reference.id);
    if (mutation.endsWith("(its network policy)")) await onePolicy(t, world, at);
  }
  if (["sandbox_create", "snapshot_restore"].includes(mutation)) {
    for await (const item of client.sandboxes.list()) {
      assert.ok(known.has(item.reference.id), "a live sandbox that nobody knows of");
    }
  }
}

/** Where the faulty request is not the mutation's own, which was not sent then. */
const UNSENT = ["file_write (upload)", "sandbox_create (its network policy)"];

/** Whatever became of the first attempt, the next create has the account's one policy. */
async function onePolicy(t, { service, account }, at) {
  const client = await connect(t, service, { apiKey: account.key });
  const box = await client.sandboxes.create();
  assert.equal((await box.inspect()).network.policy, "blocked", at);
  const response = await fetch(`${service.url}/v1/network-policies`, {
    headers: { authorization: `Bearer ${account.key}` },
  });
  const { network_policies: policies } = await response.json();
  assert.deepEqual(
    policies.map(({ name }) => name),
    ["beachside-blocked"],
    at,
  );
}

test("[V26] [R30] with() ends the sandbox that a create made whose reply was lost", async (t) => {
  const { client, service } = await runloopClient(t);
  await service.fault({
    match: { method: "POST", path: "/v1/devboxes", count: 1 },
    action: { type: "drop_reply" },
  });
  const error = await rejection(client.sandboxes.with({}, () => assert.fail("it was used")));
  assert.equal(error.code, "OUTCOME_UNKNOWN");
  assert.deepEqual(error.cleanup.notCleaned, []);
  const [cleaned] = error.cleanup.cleaned;
  const items = (await client.sandboxes.list()).items;
  assert.deepEqual(
    items.map((item) => [item.reference.id, item.state]),
    [[cleaned.id, "destroyed"]],
  );
});

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
