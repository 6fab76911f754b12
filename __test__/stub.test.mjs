/** `runloop-simulator --stub`: its canned answers are what the adapter and the official SDK take. */

import assert from "node:assert/strict";
import test from "node:test";
import { Runloop } from "@runloop/api-client";
import { connect, KEY, simulator } from "./support/runloop.mjs";

const LINE = "a line of output, as a build or a test prints it, 0123456789\n";
const payload = (bytes) => LINE.repeat(bytes / LINE.length + 1).slice(0, bytes);

async function box(t) {
  const service = await simulator(t, { more: ["--stub"] });
  const client = await connect(t, service, { config: { network: "internet" } });
  const sandbox = await client.sandboxes.create();
  const devboxes = new Runloop({ bearerToken: KEY, baseURL: service.url, http2: false }).devboxes;
  const report = () => service.control("GET", "/stub");
  return { service, sandbox, devboxes, report };
}

test("the stub answers a wrapped command with its record, in one request while it is short", async (t) => {
  const { sandbox, report } = await box(t);
  const { requests } = await report();
  const result = await sandbox.exec(["runloop-stub", "stdout=700", "stderr=7", "exit=3"]);
  assert.equal(result.exitCode, 3);
  assert.equal(result.stdoutText(), payload(700));
  assert.equal(result.stderrText(), payload(7));
  assert.equal((await report()).requests - requests, 2, "the command and this question");
  assert.equal((await sandbox.exec("true")).exitCode, 0);
});

test("the stub leaves long output in files that are downloaded, up to the limit", async (t) => {
  const { sandbox } = await box(t);
  const result = await sandbox.exec("runloop-stub stdout=1048576 stderr=70000");
  assert.equal(result.stdoutText(), payload(1_048_576));
  assert.equal(result.stderrText(), payload(70_000));
  const cut = await sandbox.exec("runloop-stub stdout=2000000");
  assert.deepEqual([cut.stdoutTruncated, cut.stdoutBytes], [true, 2_000_000]);
});

test("the stub streams a process's output once, with its end", async (t) => {
  const { sandbox } = await box(t);
  const command = "runloop-stub stdout=300000 stderr=70 exit=4 event=1000";
  const process = await sandbox.processes.start({ command, output: { mode: "stream" } });
  const [stdout, stderr] = await Promise.all([process.stdout.text(), process.stderr.text()]);
  assert.equal(stdout, payload(300_000));
  assert.equal(stderr, payload(70));
  assert.deepEqual(await process.wait(), { exitCode: 4, output: "complete" });
});

test("a held command of the stub ends by time or by a release", async (t) => {
  const { sandbox, service } = await box(t);
  const start = performance.now();
  assert.equal((await sandbox.exec("runloop-stub hold=300 stdout=3")).stdoutText(), "a l");
  assert.ok(performance.now() - start >= 300);
  const waiting = sandbox.exec("runloop-stub release=1 exit=9");
  const first = await Promise.race([
    waiting.then(() => "the command"),
    sandbox.exec("true").then(() => "another one"),
  ]);
  assert.equal(first, "another one");
  await service.control("POST", "/stub/release");
  assert.equal((await waiting).exitCode, 9);
});

test("the stub's files are as long as their path says, and it checks what is written", async (t) => {
  const { sandbox, report } = await box(t);
  const overwrite = { overwrite: true };
  for (const bytes of [0, 5000, 300_000]) {
    const read = await sandbox.readTextFile(`/runloop-stub/${bytes}`);
    assert.equal(read, payload(bytes));
  }
  await sandbox.writeFile("/srv/x", payload(3_000_000), overwrite);
  const { bytes, is_payload } = (await report()).last_write;
  assert.deepEqual([bytes, is_payload], [3_000_000, true]);
  await sandbox.writeFile("/srv/x", payload(200_000).replace("9", "8"), overwrite);
  assert.equal((await report()).last_write.is_payload, false);
});

test("the official SDK takes the stub's answers", async (t) => {
  const { devboxes, sandbox, report } = await box(t);
  const { id } = sandbox.reference;
  assert.equal((await devboxes.retrieve(id)).status, "running");
  const command = "runloop-stub stdout=700 exit=2 hold=50";
  const done = await devboxes.executeAndAwaitCompletion(id, { command });
  assert.deepEqual([done.exit_status, done.stdout], [2, payload(700)]);
  const started = await devboxes.executeAsync(id, { command: "runloop-stub stdout=90000" });
  const stream = await devboxes.executions.streamStdoutUpdates(id, started.execution_id, {});
  let text = "";
  for await (const { output } of stream) text += output;
  assert.equal(text, payload(90_000));
  const file_path = "/runloop-stub/500";
  assert.equal(await devboxes.readFileContents(id, { file_path }), payload(500));
  const download = await devboxes.downloadFile(id, { path: file_path });
  assert.equal(await download.text(), payload(500));
  await devboxes.writeFileContents(id, { file_path: "/x", contents: payload(300) });
  assert.deepEqual((await report()).last_write, { path: "/x", bytes: 300, is_payload: true });
});
