// Devboxes from create to shutdown, through the raw client and the objects.

import assert from "node:assert/strict";
import { test } from "node:test";
import { soak } from "../support/scale.mjs";
import { suite, unique } from "./support/suite.mjs";

suite("devboxes", (c) => {
  test("[SDK4] a Devbox is created, runs, is listed and is found by its id", async (t) => {
    const created = await c.api.devboxes.create({ name: "listed" });
    t.after(() => c.api.devboxes.shutdown(created.id));
    assert.ok(created.id);
    assert.equal((await c.api.devboxes.awaitRunning(created.id)).status, "running");
    const page = await c.api.devboxes.list({ limit: 10 });
    assert.ok(Array.isArray(page.devboxes));
    assert.ok(page.devboxes.some((devbox) => devbox.id === created.id));
    const found = await c.api.devboxes.retrieve(created.id);
    assert.equal(found.id, created.id);
    assert.equal(found.name, "listed");
  });

  test("[SDK4] create and await in one call gives a running Devbox", async (t) => {
    const devbox = await c.api.devboxes.createAndAwaitRunning({ name: "awaited" });
    t.after(() => c.api.devboxes.shutdown(devbox.id));
    assert.equal(devbox.status, "running");
  });

  test("[SDK5] shutdown answers with the final state, and again when repeated", async () => {
    const devbox = await c.api.devboxes.createAndAwaitRunning({});
    for (let time = 0; time < 2; time += 1) {
      const ended = await c.api.devboxes.shutdown(devbox.id);
      assert.equal(ended.id, devbox.id);
      assert.equal(ended.status, "shutdown");
    }
  });

  test("[SDK20] a Devbox that was shut down is still found, as shutdown", async () => {
    const box = await c.sdk.devbox.create({});
    await box.shutdown();
    const info = await box.getInfo();
    assert.equal(info.status, "shutdown");
    assert.equal(info.shutdown_reason, "api_shutdown");
    assert.ok(info.end_time_ms >= info.create_time_ms);
  });

  test("[SDK17] a Devbox object tells its id and its name", async (t) => {
    const box = await c.box(t, { name: "named" });
    assert.ok(box.id);
    const info = await box.getInfo();
    assert.equal(info.id, box.id);
    assert.equal(info.name, "named");
  });

  test("[SDK21] an empty list of mounts is accepted", async (t) => {
    const box = await c.box(t, { mounts: [] });
    assert.equal((await box.getInfo()).status, "running");
  });

  test("[SDK22] a Devbox under a network policy runs, and the policy goes after it", async () => {
    const policy = await c.sdk.networkPolicy.create({ name: unique("policy"), allow_all: true });
    const box = await c.sdk.devbox.create({ launch_parameters: { network_policy_id: policy.id } });
    const info = await box.getInfo();
    assert.equal(info.launch_parameters.network_policy_id, policy.id);
    await box.shutdown();
    await policy.delete();
  });

  test("[SDK23] the list of Devbox objects is not empty while one runs", async (t) => {
    const box = await c.box(t);
    const listed = await c.sdk.devbox.list();
    assert.ok(Array.isArray(listed));
    assert.ok(listed.some((one) => one.id === box.id));
  });

  test("[SDK24] suspend ends in suspended and resume in running", async (t) => {
    const box = await c.box(t);
    await box.file.write({ file_path: "kept.txt", contents: "on disk" });
    await box.suspend();
    assert.equal((await box.awaitSuspended()).status, "suspended");
    assert.equal((await box.getInfo()).status, "suspended");
    assert.ok(await box.resumeAsync());
    assert.equal((await box.awaitRunning()).status, "running");
    assert.equal(await box.file.read({ file_path: "kept.txt" }), "on disk");
  });

  test("[SDK24] resume in one call waits until the Devbox runs", async (t) => {
    const box = await c.box(t);
    await box.suspend();
    await box.awaitSuspended();
    assert.equal((await box.resume()).status, "running");
  });

  test("[SDK25] keep-alive answers with something", async (t) => {
    const box = await c.box(t);
    assert.notEqual(await box.keepAlive(), undefined);
  });

  test("[SDK26] an SSH key comes with its user and address", async (t) => {
    const box = await c.box(t);
    const key = await box.net.createSSHKey();
    assert.ok(key);
    assert.match(key.ssh_private_key, /PRIVATE KEY/);
    assert.ok(key.ssh_user && key.url && key.id);
  });

  test("name and metadata are echoed, changed and found again", async (t) => {
    const box = await c.box(t, { name: "before", metadata: { owner: "one", kept: "no" } });
    assert.deepEqual((await box.getInfo()).metadata, { owner: "one", kept: "no" });
    const changed = await c.api.devboxes.update(box.id, {
      name: "after",
      metadata: { owner: "two" },
    });
    assert.equal(changed.name, "after");
    assert.deepEqual((await box.getInfo()).metadata, { owner: "two" });
    await c.api.devboxes.update(box.id, { name: "again" });
    assert.deepEqual((await box.getInfo()).metadata, { owner: "two" });
  });

  test("launch parameters are echoed as they were sent", async (t) => {
    const asked = {
      resource_size_request: "CUSTOM_SIZE",
      custom_cpu_cores: 0.5,
      custom_gb_memory: 2,
      custom_disk_size: 4,
      keep_alive_time_seconds: 300,
      launch_commands: ["true"],
    };
    const box = await c.box(t, { launch_parameters: asked });
    const { launch_parameters: shown } = await box.getInfo();
    for (const [name, value] of Object.entries(asked)) assert.deepEqual(shown[name], value, name);
  });

  test("usage counts the time that a Devbox was there", async (t) => {
    const box = await c.box(t);
    const usage = await c.api.devboxes.retrieveResourceUsage(box.id);
    assert.equal(usage.id, box.id);
    assert.equal(usage.status, "running");
    assert.ok(usage.total_elapsed_seconds >= usage.total_active_seconds);
  });

  test("the SDK's pager walks every Devbox once, whatever the page size", async (t) => {
    const made = [];
    for (let count = 0; count < 5; count += 1) made.push((await c.box(t)).id);
    const walked = [];
    for await (const devbox of c.api.devboxes.list({ limit: 2 })) walked.push(devbox.id);
    assert.equal(new Set(walked).size, walked.length);
    assert.deepEqual(
      made.filter((id) => !walked.includes(id)),
      [],
    );
  });
});

// Holds this short need as many rounds for a boot of seconds as real ones for
// a boot of minutes.
const slow = soak
  ? { boot_seconds: 70, budget_ms: 80_000, settings: {} }
  : {
      boot_seconds: 2.5,
      budget_ms: 15_000,
      settings: {
        devbox_hold_default_seconds: 0.5,
        devbox_hold_max_seconds: 0.5,
        create_hold_seconds: 0.5,
      },
    };

suite(
  "slow boots",
  (c) => {
    const launch_parameters = { launch_commands: [`sleep ${slow.boot_seconds}`] };

    test("[SDK6] launch commands of many polls' length end in running", async (t) => {
      const created = await c.api.devboxes.create({ launch_parameters });
      t.after(() => c.api.devboxes.shutdown(created.id));
      const running = await c.api.devboxes.awaitRunning(created.id, {
        longPoll: { timeoutMs: slow.budget_ms },
      });
      assert.equal(running.status, "running");
      const polls = await c.sent(`/v1/devboxes/${created.id}/wait_for_status`);
      assert.ok(polls.filter((entry) => entry.status === 408).length >= 2, `${polls.length} polls`);
      assert.equal(polls.at(-1).status, 200);
    });

    test("[SDK6] create and await in one call outlasts its own first answer", async (t) => {
      const devbox = await c.api.devboxes.createAndAwaitRunning(
        { launch_parameters },
        { longPoll: { timeoutMs: slow.budget_ms } },
      );
      t.after(() => c.api.devboxes.shutdown(devbox.id));
      assert.equal(devbox.status, "running");
      const created = await c.sent("/v1/devboxes/create_and_await_running", "POST");
      assert.ok(created.every((entry) => entry.status === 200));
      const polls = await c.sent(`/v1/devboxes/${devbox.id}/wait_for_status`);
      assert.ok(polls.length > 0, "the first answer was not final");
    });

    test("[SDK6] a wait that ran out of its budget leaves a Devbox that can be shut down", async () => {
      const name = unique("impatient");
      await assert.rejects(
        c.api.devboxes.createAndAwaitRunning(
          { name, launch_parameters },
          { longPoll: { timeoutMs: 100 } },
        ),
        { name: "PollingTimeoutError" },
      );
      const { devboxes } = await c.api.devboxes.list({ limit: 100 });
      const left = devboxes.find((devbox) => devbox.name === name);
      assert.equal((await c.api.devboxes.shutdown(left.id)).status, "shutdown");
    });
  },
  { settings: slow.settings },
);
