// Secrets and the logs of a Devbox.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite } from "./support/suite.mjs";

suite("secrets", (c) => {
  test("[SDK60] a secret has an id and times, and no value", async (t) => {
    const secret = await c.sdk.secret.create({ name: "TIMED", value: "hidden" });
    t.after(() => secret.delete());
    assert.match(secret.id, /^sec_/);
    const info = await secret.getInfo();
    assert.ok(info.create_time_ms > 0);
    assert.ok(info.update_time_ms >= info.create_time_ms);
    assert.ok(!JSON.stringify(info).includes("hidden"));
  });

  test("[SDK60] the list has a secret until it is deleted", async () => {
    const secret = await c.sdk.secret.create({ name: "LISTED", value: "x" });
    const names = async () => (await c.sdk.secret.list({ limit: 100 })).map(({ name }) => name);
    assert.ok((await names()).includes("LISTED"));
    await c.sdk.secret.delete(secret);
    assert.ok(!(await names()).includes("LISTED"));
  });

  test("[SDK60] a Devbox sees a secret under the name that it was given", async (t) => {
    const secret = await c.sdk.secret.create({ name: "VISIBLE", value: "opened" });
    t.after(() => secret.delete());
    const box = await c.box(t, { secrets: { MY_SECRET_VAR: secret } });
    assert.equal(await (await box.cmd.exec("echo $MY_SECRET_VAR")).stdout(), "opened\n");
  });

  test("[SDK60] a new value is what the next Devbox sees", async (t) => {
    const secret = await c.sdk.secret.create({ name: "CHANGED", value: "old" });
    t.after(() => secret.delete());
    await secret.update({ value: "new" });
    const box = await c.box(t, { secrets: { VALUE: "CHANGED" } });
    assert.equal(await (await box.cmd.exec("echo $VALUE")).stdout(), "new\n");
  });

  test("a second secret of one name is refused", async (t) => {
    const secret = await c.sdk.secret.create({ name: "TAKEN", value: "x" });
    t.after(() => secret.delete());
    await assert.rejects(c.sdk.secret.create({ name: "TAKEN", value: "y" }), { status: 400 });
  });
});

suite("logs", (c) => {
  test("[SDK31] a Devbox's logs are a list, whole and filtered", async (t) => {
    const box = await c.box(t);
    const shell = box.shell("logged");
    const execution = await box.cmd.execAsync("echo logged");
    await execution.result();
    await shell.exec("echo in the shell");
    for (const params of [
      {},
      { execution_id: execution.executionId },
      { shell_name: "logged" },
      { execution_id: "unknown" },
    ]) {
      const { logs } = await box.logs(params);
      assert.ok(Array.isArray(logs));
    }
  });

  test("the logs of one execution are that execution's", async (t) => {
    const box = await c.box(t);
    const execution = await box.cmd.execAsync("echo of this one");
    await execution.result();
    await box.cmd.exec("echo of another");
    const { logs } = await box.logs({ execution_id: execution.executionId });
    // The service may be late, so that they may be missing; never others'.
    assert.ok(logs.every((log) => !log.cmd_id || log.cmd_id === execution.executionId));
    assert.ok(logs.every((log) => !log.message?.includes("of another")));
  });
});
