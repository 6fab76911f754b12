/** `sandboxes.with` through the addon: what it made always ends, and a failed clean-up is told. */

import assert from "node:assert/strict";
import test from "node:test";
import { rejection } from "./support/client.mjs";
import { connect, count, runloopClient } from "./support/runloop.mjs";

const SHUTDOWN = "/v1/devboxes/*/shutdown";
const CREATE = { method: "POST", path: "/v1/devboxes", count: 1 };
const refuseShutdown = (service) =>
  service.fault({
    match: { method: "POST", path: SHUTDOWN, count: 1 },
    action: { type: "refuse", status: 409, body: { message: "a snapshot is under way" } },
  });

async function states(service) {
  const { devboxes } = await service.control("GET", "/devboxes");
  return devboxes.map((each) => each.true_status);
}

test("[V26] with() destroys its sandbox after a success, an error, an abort and a destroy inside", async (t) => {
  const { client, service } = await runloopClient(t);
  const value = await client.sandboxes.with({ env: { A: "1" } }, async (box) =>
    (await box.exec("echo $A")).stdoutText(),
  );
  assert.equal(value, "1\n");
  const mine = new TypeError("mine");
  const thrown = await rejection(
    client.sandboxes.with({}, () => {
      throw mine;
    }),
  );
  assert.equal(thrown, mine);
  assert.equal(mine.cleanup.cleaned.length, 1);
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = await rejection(
    client.sandboxes.with({ signal }, async (box) => {
      controller.abort(new Error("enough"));
      await box.exec("sleep 60", { signal });
    }),
  );
  assert.equal(aborted.code, "CANCELLED");
  await client.sandboxes.with({}, (box) => box.destroy());
  assert.deepEqual([...new Set(await states(service))], ["shutdown"]);
  assert.equal(await count(service, `POST ${SHUTDOWN}`), 4);
});

test("[V33] a clean-up that is refused is reported on the first error, or thrown where there was none", async (t) => {
  const { client, service } = await runloopClient(t);
  const mine = new TypeError("mine");
  await refuseShutdown(service);
  const first = await rejection(client.sandboxes.with({}, () => Promise.reject(mine)));
  assert.equal(first, mine);
  assert.deepEqual(mine.cleanup.cleaned, []);
  const [left] = mine.cleanup.notCleaned;
  assert.equal(left.error.code, "CONFLICT");
  assert.match(left.reason, /a snapshot is under way/);
  await refuseShutdown(service);
  const alone = await rejection(client.sandboxes.with({}, () => "fine"));
  assert.equal(alone.code, "CONFLICT");
  assert.equal(await count(service, `POST ${SHUTDOWN}`), 2);
  for (const { resource } of [left, alone.cleanup.notCleaned[0]]) {
    const box = await client.sandboxes.get(resource);
    assert.equal((await box.inspect()).state, "running");
    await box.destroy();
  }
});

test("[V26] a create that fails half-way is cleaned as far as it is proven to be ours", async (t) => {
  const { service } = await runloopClient(t);
  const client = await connect(t, service, { config: { timeouts: { startSeconds: 0.3 } } });
  await service.fault({
    match: CREATE,
    action: {
      type: "devbox_script",
      steps: [{ status: "provisioning", milliseconds: 1000 }],
    },
  });
  const overdue = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.equal(overdue.code, "DEADLINE_EXCEEDED");
  assert.deepEqual(overdue.cleanup.cleaned, [overdue.outcome.sandbox]);
  assert.deepEqual(await states(service), ["shutdown"]);

  await service.fault({ match: CREATE, action: { type: "drop_reply" } });
  const lost = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.equal(lost.code, "OUTCOME_UNKNOWN");
  assert.deepEqual(lost.cleanup.notCleaned, []);
  assert.equal(lost.cleanup.cleaned[0].ownership.operation, lost.outcome.operation.operationId);
  assert.deepEqual(await states(service), ["shutdown", "shutdown"]);
  assert.equal(await count(service, `POST ${SHUTDOWN}`), 2);

  await service.fault({ match: CREATE, action: { type: "refuse", status: 422 } });
  const refused = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.equal(refused.code, "REJECTED");
  assert.equal(refused.cleanup, undefined);
});

test("[V26] what is reopened is nobody's to clean: dispose leaves it, and what create made goes", {
  skip: typeof Symbol.asyncDispose !== "symbol" && "no Symbol.asyncDispose",
}, async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const other = await connect(t, service);
  await (await other.sandboxes.get(box.reference))[Symbol.asyncDispose]();
  assert.equal((await box.inspect()).state, "running");
  await box[Symbol.asyncDispose]();
  assert.equal((await box.inspect()).state, "destroyed");
});
