/** Deadlines, signals and lost answers of commands, against the simulator. */

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { Outside, requests, sandbox } from "./support/box.mjs";
import { rejection } from "./support/client.mjs";
import { KEY, runloopClient } from "./support/runloop.mjs";

const text = (view) => (view === undefined ? undefined : Buffer.from(view).toString());

test("[R17][F1][F6] past its deadline the whole group is killed, within two seconds", async (t) => {
  const { box, outside } = await sandbox(t);
  for (const command of [
    "printf partial; printf err >&2; sleep 31.25; echo hi",
    "printf partial; printf err >&2; sleep 31.25 | cat",
    "printf partial; printf err >&2; trap '' TERM INT HUP; sleep 31.25; true",
  ]) {
    const began = performance.now();
    const error = await rejection(box.exec(command, { timeoutSeconds: 1 }));
    assert.ok(performance.now() - began < 3_000, command);
    assert.equal(error.code, "OUTCOME_UNKNOWN");
    assert.equal(error.outcome.killed, true);
    assert.deepEqual([text(error.stdout), text(error.stderr)], ["partial", "err"]);
    await outside.assertClean("31.25");
  }
  assert.equal((await box.exec("echo next")).stdoutText(), "next\n");
});

test("[V17] partial output on an error is hidden from JSON and inspection", async (t) => {
  const { box } = await sandbox(t);
  const error = await rejection(box.exec("echo s3cr3t-output; sleep 30", { timeoutSeconds: 0.5 }));
  assert.equal(text(error.stdout), "s3cr3t-output\n");
  assert.ok(!JSON.stringify(error).includes("s3cr3t-output"));
  assert.ok(!inspect(error, { depth: 9 }).includes("s3cr3t-output"));
});

test("[R17] an answer that never comes does not hold the call past two more seconds", async (t) => {
  const { box, service } = await sandbox(t);
  await service.fault({
    match: { path: "/v1/devboxes/*/execute" },
    action: { type: "hold_reply" },
  });
  await service.fault({
    match: { path: "/v1/devboxes/*/executions/**" },
    action: { type: "hold_reply" },
  });
  const began = performance.now();
  const error = await rejection(box.exec("sleep 31.25", { timeoutSeconds: 1 }));
  assert.ok(performance.now() - began < 3_000);
  assert.equal(error.code, "OUTCOME_UNKNOWN");
  assert.equal(error.outcome.killed, "unknown");
  assert.equal(error.outcome.outputUnavailable, true);
  assert.equal(error.outcome.leftovers.length, 1);
  assert.equal(error.stdout, undefined);
});

test("[F7][V23] a signal stops a command at any moment, keeps its reason and says how the kill went", async (t) => {
  const { box, outside } = await sandbox(t, {
    settings: { latency_ms: 10, optimistic_max_seconds: 0.3 },
  });
  for (const milliseconds of [0, 5, 15, 40, 120, 290, 350, 500]) {
    const controller = new AbortController();
    const reason = new Error(`after ${milliseconds}`);
    const running = box.exec("while :; do echo x; sleep 0.0125; done", {
      stdin: "input",
      signal: controller.signal,
    });
    setTimeout(() => controller.abort(reason), milliseconds);
    const error = await rejection(running);
    assert.equal(error.code, "CANCELLED");
    assert.equal(error.cause, reason);
    if (error.outcome.submitted) assert.ok([true, false, "unknown"].includes(error.outcome.killed));
    await outside.assertClean("0.0125");
  }
});

test("[V23] an aborted signal sends nothing", async (t) => {
  const { box, service } = await sandbox(t);
  const error = await rejection(box.exec("true", { signal: AbortSignal.abort(), stdin: "x" }));
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.outcome.submitted, false);
  assert.deepEqual(await requests(service), []);
});

test("[A1][R29][R31][R32] a command whose answer is lost ran once and is unknown", async (t) => {
  const { box, service, outside } = await sandbox(t);
  const faults = [
    { type: "drop_reply" },
    { type: "replace_reply", status: 502, body: "<html>" },
    { type: "replace_reply", status: 500, body: "" },
    { type: "halve_reply" },
  ];
  for (const [number, action] of faults.entries()) {
    await service.fault({ match: { path: "/v1/devboxes/*/execute", count: 1 }, action });
    const error = await rejection(box.exec(`echo x >>n${number}; exit 6`));
    assert.equal(error.code, "OUTCOME_UNKNOWN", action.type);
    assert.equal(error.outcome.submitted, true);
    assert.equal(error.outcome.kind, "exec");
    assert.equal((await box.exec(`wc -l <n${number}`)).stdoutText().trim(), "1");
    await outside.assertClean();
  }
});

test("[R31] a refusal is that error and nothing ran; a 408 is observed", async (t) => {
  const { box, service, outside } = await sandbox(t);
  for (const [status, code] of [
    [400, "REJECTED"],
    [401, "UNAUTHENTICATED"],
    [403, "PERMISSION_DENIED"],
    [409, "CONFLICT"],
    [422, "REJECTED"],
    [429, "RATE_LIMITED"],
  ]) {
    const action = { type: "refuse", status, body: "no" };
    await service.fault({ match: { path: "/v1/devboxes/*/execute", count: 1 }, action });
    const error = await rejection(box.exec("echo x >>refused", { stdin: "x" }));
    assert.deepEqual([error.code, error.status], [code, status]);
  }
  assert.equal((await box.exec("ls refused")).exitCode, 2);
  await service.set({ optimistic_expiry: "request_timeout", optimistic_max_seconds: 0.2 });
  const result = await box.exec("echo x >>seen; sleep 0.6; echo slow");
  assert.equal(result.stdoutText(), "slow\n");
  assert.equal((await box.exec("wc -l <seen")).stdoutText().trim(), "1");
  await outside.assertClean();
});

test("[B8] output that cannot be had is an error with the exit code, not an empty result", async (t) => {
  const { box, service, outside } = await sandbox(t);
  const gone = { type: "refuse", status: 404, body: "gone" };
  await service.fault({ match: { path: "/v1/devboxes/*/download_file" }, action: gone });
  const read = await box.exec("head -c 100000 /dev/zero; exit 5");
  assert.deepEqual([read.exitCode, read.stdout.length], [5, 100_000], "it is read another way");
  await outside.assertClean();
  const broken = { type: "refuse", status: 500, body: "" };
  await service.fault({ match: { path: "/v1/devboxes/*/execute", after: 1 }, action: broken });
  const error = await rejection(box.exec("head -c 100000 /dev/zero; exit 5"));
  assert.equal(error.code, "UNAVAILABLE");
  assert.equal(error.outcome.exitCode, 5);
  assert.equal(error.outcome.outputUnavailable, true);
  assert.equal(error.outcome.leftovers.length, 1);
});

test("[E6] start-up files of the image neither enter a result nor pass for one", async (t) => {
  const { client, service } = await runloopClient(t);
  // The service's shell, bash, reads the file that this names before every command.
  const box = await client.sandboxes.create({ env: { BASH_ENV: "/tmp/startup" } });
  const outside = new Outside(service, box.reference.id);
  for (const line of [
    "echo MOTD; echo W >&2",
    "set -e; set -u; set -C; set -x",
    "shopt -s expand_aliases; alias printf=false echo=false rm=false",
    "rm() { echo fake; }; echo() { :; }; cd() { :; }; test() { false; }",
    "cd /; umask 077",
    "trap 'echo bye; exit 0' EXIT",
  ]) {
    await box.writeFile("/tmp/startup", `${line}\n`, { overwrite: true });
    for (const command of [["printf", "ok"], "printf ok"]) {
      const result = await box.exec(command);
      const shown = [result.exitCode, result.stdoutText(), result.stderrText()];
      assert.deepEqual(shown, [0, "ok", ""], line);
    }
    assert.equal((await box.exec("pwd")).stdoutText(), (await box.exec("cd; pwd")).stdoutText());
  }
  for (const line of ["exit 0", "exec true"]) {
    await box.writeFile("/tmp/startup", `${line}\n`, { overwrite: true });
    const error = await rejection(box.exec(["printf", "ok"]));
    assert.equal(error.code, "OUTCOME_UNKNOWN", line);
    assert.match(error.message, /exit status 0.*start-up files/s);
    // Only the service's own upload still gets in.
    const form = new FormData();
    form.append("path", "/tmp/startup");
    form.append("file", new Blob([""]), "file");
    const url = `${service.url}/v1/devboxes/${box.reference.id}/upload_file`;
    const headers = { authorization: `Bearer ${KEY}` };
    assert.ok((await fetch(url, { method: "POST", headers, body: form })).ok);
  }
  await outside.assertClean();
});

test("[V27] close() ends a running command as unknown", async (t) => {
  const { box, client } = await sandbox(t);
  const running = rejection(box.exec("sleep 31.25"));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await client.close();
  const error = await running;
  assert.equal(error.code, "OUTCOME_UNKNOWN");
});
