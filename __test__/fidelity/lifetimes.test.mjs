// What happens to Devboxes by themselves: lifetimes, idle rules, evictions,
// failed boots. One test at a time: they share the simulator's clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite } from "./support/suite.mjs";

suite(
  "lifetimes",
  (c) => {
    test("[SDK25] a Devbox is shut down at the end of its lifetime, keep-alive or not", async (t) => {
      const box = await c.box(t, { launch_parameters: { keep_alive_time_seconds: 100 } });
      await c.simulator.advance(90);
      assert.equal((await box.getInfo()).status, "running");
      await box.keepAlive();
      await c.simulator.advance(20);
      await assert.rejects(box.awaitSuspended(), /shutdown/);
      assert.equal((await box.getInfo()).shutdown_reason, "keep_alive_timeout");
    });

    test("an idle Devbox is suspended, and keep-alive counts as activity", async (t) => {
      const after_idle = { idle_time_seconds: 100, on_idle: "suspend" };
      const box = await c.box(t, { launch_parameters: { after_idle } });
      await c.simulator.advance(90);
      await box.keepAlive();
      await c.simulator.advance(90);
      assert.equal((await box.getInfo()).status, "running");
      await c.simulator.advance(20);
      assert.equal((await box.awaitSuspended()).status, "suspended");
      assert.equal((await box.resume()).status, "running");
    });

    test("an idle Devbox is shut down where its rule says so", async (t) => {
      const after_idle = { idle_time_seconds: 60, on_idle: "shutdown" };
      const box = await c.box(t, { launch_parameters: { after_idle } });
      await c.simulator.advance(70);
      await assert.rejects(box.awaitSuspended(), /shutdown/);
      assert.equal((await box.getInfo()).shutdown_reason, "idle");
    });

    test("launch commands run again at every start, and a failing one fails the boot", async (t) => {
      const launch_commands = ["echo start >> starts"];
      const box = await c.box(t, { launch_parameters: { launch_commands } });
      await box.suspend();
      await box.awaitSuspended();
      await box.resume();
      assert.equal(await box.file.read({ file_path: "starts" }), "start\nstart\n");
      const broken = await c.api.devboxes.create({
        launch_parameters: { launch_commands: ["exit 3"] },
      });
      await assert.rejects(c.api.devboxes.awaitRunning(broken.id), /non-running state failure/);
      const failed = await c.api.devboxes.retrieve(broken.id);
      assert.equal(failed.failure_reason, "execution_failed");
    });

    test("processes and shells die with a suspend and the disk stays", async (t) => {
      const box = await c.box(t);
      await box.cmd.exec("echo before > kept");
      const execution = await box.cmd.execAsync("sleep 98761");
      await box.shell("lost").exec("export LOST=yes");
      await box.suspend();
      await box.awaitSuspended();
      await box.resume();
      const look = await box.cmd.exec("cat kept; pgrep -f 'slee[p] 98761'");
      assert.equal(await look.stdout(), "before\n");
      assert.equal(await (await box.shell("lost").exec('echo "[$LOST]"')).stdout(), "[]\n");
      // Gone or completed; which is unknown of the service. Never still running.
      const state = await execution.getState().catch((error) => error);
      assert.ok(state.status === 404 || state.status === "completed", `${state.status}`);
    });

    test("the SDK's eviction monitor hears of an eviction, and the Devbox is suspended", async (t) => {
      const box = await c.box(t);
      const heard = new Promise((resolve) => {
        box.onEvict((evicted, deadline_ms) => resolve({ id: evicted.id, deadline_ms }));
      });
      const { eviction_deadline_ms } = await c.simulator.control("POST", "/evictions", {
        devbox_id: box.id,
        in_seconds: 60,
      });
      assert.deepEqual(await heard, { id: box.id, deadline_ms: eviction_deadline_ms });
      assert.equal((await box.getInfo()).status, "running");
      await c.simulator.advance(61);
      assert.equal((await box.awaitSuspended()).status, "suspended");
    });
  },
  { concurrency: 1 },
);
