/**
 * A script that is killed with SIGKILL in the middle of its mutations, and a
 * second one that accounts for everything from the saved references alone.
 */

import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { folder, killedAt, recovered, savedIn, start, state } from "./support/killed.mjs";
import { connect, simulator } from "./support/runloop.mjs";
import { random, seedOf, times } from "./support/scale.mjs";

const WORK = "examples/saved-work.mjs";
const STEPS = ["create", "capture", "restore", "destroy"];

/** Each stage of the service takes a while, so that a kill falls into it. */
const settings = { boot_ms: 30, snapshot_ms: 30, latency_ms: 3 };
const LONGEST_MS = 100;

const live = ({ devboxes }) => devboxes.filter(({ status }) => status !== "shutdown");
const marker = ({ metadata }) => metadata?.beachside_operation;

test("[V20] [R29] [R30] a script that is killed anywhere leaves nothing that a second one, from the saved references alone, does not find and clean", async (t) => {
  const service = await simulator(t, { settings });
  const files = folder(t);
  const next = random(seedOf(7));
  const rounds = times(8);
  const moments = Array.from({ length: rounds }, (_, round) => ({
    file: path.join(files, `${round}`),
    step: STEPS[round % STEPS.length],
    milliseconds: next() * LONGEST_MS,
  }));
  const tally = { kills: 0, after: {}, second: { destroyed: 0, deleted: 0 }, late: 0 };
  const asked = new Map();
  const secondly = async (file) => {
    asked.set(file, (asked.get(file) ?? 0) + 1);
    const { destroyed, deleted } = await recovered(service, file);
    tally.second.destroyed += destroyed;
    tally.second.deleted += deleted;
  };
  const todo = [...moments];
  const lane = async () => {
    for (let one = todo.shift(); one !== undefined; one = todo.shift()) {
      const ended = await killedAt(service, WORK, one.file, one.step, one.milliseconds);
      if (ended.signal !== "SIGKILL") assert.equal(ended.code, 0, ended.stderr);
      else tally.kills += 1;
      const last = savedIn(one.file).at(-1)?.operation ?? "nothing";
      tally.after[last] = (tally.after[last] ?? 0) + 1;
      await secondly(one.file);
    }
  };
  await Promise.all([lane(), lane(), lane()]);

  // What arrived after it was looked for is found by a later call.
  const fileOf = new Map();
  for (const { file } of moments) {
    for (const { operationId } of savedIn(file)) fileOf.set(operationId, file);
  }
  for (let look = 0; look < 3; look++) {
    const now = await state(service);
    const left = [...live(now), ...now.snapshots].map((each) => fileOf.get(marker(each)));
    for (const file of new Set(left.filter(Boolean))) {
      tally.late += 1;
      await secondly(file);
    }
  }
  t.diagnostic(JSON.stringify({ seed: seedOf(7), rounds, ...tally }));

  const now = await state(service);
  for (const box of now.devboxes) {
    assert.ok(fileOf.has(marker(box)), "a sandbox that no saved reference names");
  }
  assert.deepEqual(live(now), []);
  assert.deepEqual(now.snapshots, []);
  assert.ok(now.policies.length <= 1, "one policy for everybody");
  assert.ok(tally.kills >= rounds / 2, `only ${tally.kills} of ${rounds} were killed`);
  await sentOnce(service, moments, fileOf, asked);
});

/** The journal: no create or capture twice, no destruction without an operation of its own. */
async function sentOnce(service, moments, fileOf, asked) {
  const { entries, dropped } = await service.journal({ method: "POST" });
  assert.equal(dropped, 0);
  const made = new Map();
  const ended = new Map();
  const ownerOf = new Map();
  const add = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);
  for (const { path: route, body } of entries) {
    if (/\/v1\/devboxes$|\/snapshot_disk_async$/.test(route)) add(made, marker(body));
    if (/\/shutdown$|\/delete$/.test(route)) add(ended, route.split("/").at(-2));
  }
  for (const [operation, sent] of made) {
    assert.ok(fileOf.has(operation), "a mutation that was sent before its reference was saved");
    assert.equal(sent, 1, "a mutation that was sent twice");
  }
  const { devboxes } = await state(service);
  for (const box of devboxes) ownerOf.set(box.id, fileOf.get(marker(box)));
  const saved = new Map();
  for (const { file } of moments) {
    for (const { operation, target } of savedIn(file)) {
      if (/destroy|delete/.test(operation)) add(saved, target.id);
    }
  }
  for (const [id, sent] of ended) {
    // The script's own, and one of each second script that was asked about it.
    const runs = asked.get(ownerOf.get(id)) ?? Math.max(...asked.values());
    assert.ok(sent <= (saved.get(id) ?? 0) + runs, `${id} was ended ${sent} times`);
  }
}

test("without the hook, a script that is killed in the middle of a create leaves a sandbox that nobody can attribute; with it, the sandbox is found", async (t) => {
  const service = await simulator(t);
  const files = folder(t);
  const killed = async (script, name) => {
    const file = path.join(files, name);
    const { id } = await service.fault({
      match: { method: "POST", path: "/v1/devboxes", count: 1 },
      action: { type: "hold_reply" },
    });
    await service.clearJournal();
    const { kill, ended } = start(service, script, file);
    const seen = async () => {
      const { entries } = await service.journal();
      return entries.some(({ faults }) => faults.includes(id));
    };
    while (!(await seen()) || live(await state(service)).length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    kill();
    assert.equal((await ended).signal, "SIGKILL");
    return file;
  };

  const unsaved = await killed("__test__/support/unsaved-work.mjs", "unsaved");
  assert.deepEqual(savedIn(unsaved), []);
  const client = await connect(t, service);
  const [orphan] = (await client.sandboxes.list({ state: "running" })).items;
  assert.deepEqual(orphan.ownership, { state: "unknown" });
  // Only a person who knows that nothing else uses the account may end it.
  await (await client.sandboxes.get(orphan.reference)).destroy();

  const saved = await killed(WORK, "saved");
  assert.deepEqual(
    savedIn(saved).map(({ operation }) => operation),
    ["sandbox_create"],
  );
  assert.deepEqual(await recovered(service, saved), { destroyed: 1, deleted: 0, open: [] });
  assert.deepEqual(live(await state(service)), []);
});
