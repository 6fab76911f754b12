/** A Devbox from its creation to its end, through the addon, on a service that misbehaves. */

import assert from "node:assert/strict";
import test from "node:test";
import { rejection } from "./support/client.mjs";
import { connect, count, runloopClient } from "./support/runloop.mjs";

const script = (service, box, steps, more) =>
  service.control("POST", `/devboxes/${box.reference.id}/script`, { steps, ...more });

/** Lets the next create play these states. */
const boots = (service, steps, more = {}) =>
  service.fault({
    match: { method: "POST", path: "/v1/devboxes", count: 1 },
    action: { type: "devbox_script", steps, ...more },
  });

const shutdown = (box) => ({
  method: "POST",
  path: `/v1/devboxes/${box.reference.id}/shutdown`,
  count: 1,
});

/** A client whose waits are short. */
const hasty = (t, service, timeouts) => connect(t, service, { config: { timeouts } });

test("create waits by long polls: the poll that sees the readiness was open before it, and none follows a pause", async (t) => {
  const { client, service } = await runloopClient(t, {
    settings: { boot_ms: 1500, devbox_hold_max_seconds: 1 },
  });
  const box = await client.sandboxes.create();
  const { entries } = await service.journal();
  const polls = entries.filter((each) => each.path.endsWith("/wait_for_status"));
  assert.ok(polls.length >= 2 && polls.length <= 3, `${polls.length} polls`);
  const last = polls.at(-1);
  assert.ok(last.duration_ms >= 200, "the last poll was held until the Devbox ran");
  for (const [index, poll] of polls.slice(1).entries()) {
    const before = polls[index];
    const gap = poll.time_ms - (before.time_ms + before.duration_ms);
    assert.ok(gap < 250, `${gap} ms between two polls`);
  }
  await box.destroy();
});

test("[R28] a boot that fails is SANDBOX_FAILED with the provider's reason and the sandbox's reference", async (t) => {
  const { client, service } = await runloopClient(t);
  await boots(service, [
    { status: "initializing", views: 1 },
    { status: "failure", failure_reason: "out_of_memory" },
  ]);
  const error = await rejection(client.sandboxes.create());
  assert.equal(error.code, "SANDBOX_FAILED");
  assert.match(error.message, /failure \(out_of_memory\)/);
  const { sandbox, operation, submitted } = error.outcome;
  assert.equal(submitted, true);
  assert.equal(sandbox.ownership.operation, operation.operationId);
  const found = await (await client.sandboxes.get(sandbox)).inspect();
  assert.deepEqual([found.state, found.reason], ["failed", "out_of_memory"]);
});

test("a Devbox that is shut down while it boots is NOT_RUNNING with the reference", async (t) => {
  const { client, service } = await runloopClient(t);
  await boots(service, [{ status: "shutdown" }]);
  const error = await rejection(client.sandboxes.create());
  assert.equal(error.code, "NOT_RUNNING");
  assert.match(error.message, /shutdown/);
  assert.equal(error.outcome.sandbox.kind, "sandbox");
});

test("[V23] a wait that is overdue or cancelled carries the reference, undoes nothing, and is no second create", async (t) => {
  const { service } = await runloopClient(t);
  const client = await hasty(t, service, { startSeconds: 0.3 });
  await boots(service, [{ status: "provisioning", milliseconds: 1500 }]);
  const overdue = await rejection(client.sandboxes.create());
  assert.equal(overdue.code, "DEADLINE_EXCEEDED");

  await boots(service, [{ status: "provisioning", milliseconds: 1500 }]);
  const controller = new AbortController();
  const patient = await connect(t, service);
  const creating = patient.sandboxes.create({ signal: controller.signal });
  const polled = async () => {
    while ((await count(service, "POST /v1/devboxes/*/wait_for_status")) < 2) {
      await new Promise((go) => setTimeout(go, 10));
    }
    controller.abort(new Error("enough"));
  };
  const [cancelled] = await Promise.all([rejection(creating), polled()]);
  assert.equal(cancelled.code, "CANCELLED");
  assert.equal(cancelled.cause.message, "enough");
  assert.equal(await count(service, "POST /v1/devboxes"), 2);
  assert.equal(await count(service, "POST /v1/devboxes/*/shutdown"), 0);
  for (const error of [overdue, cancelled]) {
    const box = await patient.sandboxes.get(error.outcome.sandbox);
    assert.equal(box.reference.ownership.state, "created");
    await box.destroy();
  }
});

test("unknown states and a flicker through shutdown are neither success nor failure of a create", async (t) => {
  const { client, service } = await runloopClient(t);
  await boots(service, [
    { status: "hibernating_on_the_moon", milliseconds: 200 },
    { status: "shutdown", views: 1 },
    { status: "", milliseconds: 200 },
    { status: "failure", views: 1 },
  ]);
  const box = await client.sandboxes.create();
  assert.equal((await box.inspect()).state, "running");
  await script(service, box, [{ status: "hibernating_on_the_moon", views: 1 }]);
  const { state, providerState } = await box.inspect();
  assert.deepEqual([state, providerState], ["unknown", "hibernating_on_the_moon"]);
  await box.destroy();
});

test("a status of the wrong type, null or missing is no crash", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const edits = [{ set: { "/status": 7 } }, { set: { "/status": null } }, { remove: ["/status"] }];
  for (const edit of edits) {
    const match = { method: "GET", path: `/v1/devboxes/${box.reference.id}`, count: 1 };
    await service.fault({ match, action: { type: "edit_reply", ...edit } });
    const seen = await box.inspect().then(
      ({ state }) => state,
      ({ code }) => code,
    );
    assert.match(seen, /^(unknown|PROTOCOL)$/, JSON.stringify(edit));
  }
  assert.equal((await box.inspect()).state, "running");
  await box.destroy();
});

test("a state that sticks ends create, suspend and resume at their limits, with the reference", async (t) => {
  const { client, service } = await runloopClient(t);
  const short = await hasty(t, service, { startSeconds: 0.3, stopSeconds: 0.3 });
  await boots(service, [{ status: "migrating" }]);
  const create = await rejection(short.sandboxes.create());
  const box = await client.sandboxes.create();
  const opened = await short.sandboxes.get(box.reference);
  await script(service, box, [{ status: "suspending", milliseconds: 1200 }], { sticky: true });
  const suspend = await rejection(opened.suspend());
  await client.sandboxes.get(box.reference);
  for (const error of [create, suspend]) {
    assert.equal(error.code, "DEADLINE_EXCEEDED", String(error));
    assert.equal(error.outcome.sandbox.kind, "sandbox");
    assert.match(error.message, /after 0\.3 s of waiting/);
  }
});

test("[R27] destroy waits for the confirmed shutdown, twice is fine, and the second sends none", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const first = await box.destroy();
  assert.deepEqual([first.state, first.alreadyGone], ["destroyed", false]);
  assert.equal((await box.inspect()).state, "destroyed");
  const again = await box.destroy();
  assert.deepEqual([again.state, again.alreadyGone], ["destroyed", true]);
  const other = await (await connect(t, service)).sandboxes.get(box.reference);
  assert.equal((await other.destroy()).alreadyGone, true);
  assert.equal(await count(service, "POST /v1/devboxes/*/shutdown"), 1);
  await assert.rejects(box.exec("true"), { code: "NOT_RUNNING" });
});

test("[R27] a shutdown that is answered 200 and does not happen is OUTCOME_UNKNOWN with the reference, and can be repeated", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const short = await hasty(t, service, { stopSeconds: 0.3 });
  const opened = await short.sandboxes.get(box.reference);
  await service.fault({ match: shutdown(box), action: { type: "no_effect" } });
  const error = await rejection(opened.destroy());
  assert.equal(error.code, "OUTCOME_UNKNOWN");
  assert.match(error.message, /is not shut down after 0\.3 s/);
  assert.deepEqual(error.outcome.sandbox, box.reference);
  assert.equal((await opened.inspect()).state, "running");
  assert.equal((await opened.destroy()).alreadyGone, false);
});

test("[R27] a shutdown that is refused with 409 is CONFLICT, as during a real capture, and nothing is repeated", async (t) => {
  const { client, service } = await runloopClient(t, { settings: { snapshot_ms: 500 } });
  const box = await client.sandboxes.create();
  const capturing = await box.submitSnapshot();
  while ((await count(service, "POST /v1/devboxes/*/snapshot_disk_async")) === 0) {
    await new Promise((go) => setTimeout(go, 5));
  }
  const real = await rejection(box.destroy());
  assert.deepEqual([real.code, real.status], ["CONFLICT", 409]);
  assert.deepEqual(real.outcome.sandbox, box.reference);
  const { snapshot } = await capturing.wait();
  await service.fault({
    match: shutdown(box),
    action: { type: "refuse", status: 409, body: { message: "a snapshot is under way" } },
  });
  const refused = await rejection(box.destroy());
  assert.equal(refused.code, "CONFLICT");
  assert.match(refused.message, /a snapshot is under way/);
  assert.equal(await count(service, "POST /v1/devboxes/*/shutdown"), 2);
  await box.destroy();
  await snapshot.delete();
});

test("[R25] suspend and resume wait for their state; of a sandbox that is already there they change nothing", async (t) => {
  const { client, service } = await runloopClient(t, {
    settings: { suspend_ms: 200, resume_ms: 200 },
  });
  const box = await client.sandboxes.create();
  assert.deepEqual(await box.resume(), { state: "running", alreadyThere: true });
  assert.deepEqual(await box.suspend(), { state: "suspended", alreadyThere: false });
  assert.equal((await box.inspect()).state, "suspended");
  assert.deepEqual(await box.suspend(), { state: "suspended", alreadyThere: true });
  assert.deepEqual(await box.resume(), { state: "running", alreadyThere: false });
  assert.equal((await box.exec("echo up")).stdoutText(), "up\n");
  const { entries } = await service.journal();
  const sent = entries.filter(({ path }) => /\/(suspend|resume)$/.test(path));
  assert.deepEqual(
    sent.map(({ path, status }) => `${path.split("/").at(-1)} ${status}`),
    ["resume 400", "suspend 200", "suspend 400", "resume 200"],
  );
  await box.destroy();
  for (const verb of ["suspend", "resume"]) {
    await assert.rejects(box[verb](), { code: "NOT_RUNNING" });
  }
});

test("[R25] a suspend that goes back to running is REJECTED with the reference", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  await service.fault({
    match: { method: "POST", path: `/v1/devboxes/${box.reference.id}/suspend`, count: 1 },
    action: { type: "no_effect" },
  });
  const back = box.suspend();
  await script(service, box, [
    { status: "suspending", milliseconds: 300 },
    { status: "running", views: 3 },
  ]);
  const error = await rejection(back);
  assert.equal(error.code, "REJECTED");
  assert.match(error.message, /went back to running/);
  assert.deepEqual(error.outcome.sandbox, box.reference);
  await box.destroy();
});
