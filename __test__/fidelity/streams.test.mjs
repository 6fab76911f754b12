// Live output: what the streams and the objects' callbacks hand over, and when.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite, textOf } from "./support/suite.mjs";

/** A callback that keeps what it is given and when. */
function recorder() {
  const chunks = [];
  const take = (text) => chunks.push({ text, at: performance.now() });
  return Object.assign(take, { chunks, text: () => chunks.map(({ text }) => text).join("") });
}

suite("streams", (c) => {
  test("[SDK16] a stream yields the text that was echoed", async (t) => {
    const { id } = await c.box(t);
    const started = await c.api.devboxes.executeAsync(id, { command: "echo streamed text" });
    const stream = await c.api.devboxes.executions.streamStdoutUpdates(
      id,
      started.execution_id,
      {},
    );
    assert.equal(await textOf(stream), "streamed text\n");
  });

  test("[SDK29] the chunks of stdout are the result's text, byte for byte", async (t) => {
    const box = await c.box(t);
    const stdout = recorder();
    const result = await box.cmd.exec("for i in 1 2 3; do echo out $i; sleep 0.1; done", {
      stdout,
    });
    assert.equal(stdout.text(), await result.stdout());
    assert.equal(stdout.text(), "out 1\nout 2\nout 3\n");
  });

  test("[SDK29] the chunks of stderr are the result's text, byte for byte", async (t) => {
    const box = await c.box(t);
    const stderr = recorder();
    const result = await box.cmd.exec("printf 'é\\n€' >&2", { stderr });
    assert.equal(stderr.text(), await result.stderr());
    assert.equal(stderr.text(), "é\n€");
  });

  test("[SDK29] both streams and the combined one hand over everything", async (t) => {
    const box = await c.box(t);
    const stdout = recorder();
    const stderr = recorder();
    const output = recorder();
    const command = "for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.05; done";
    const result = await box.cmd.exec(command, { stdout, stderr, output });
    assert.equal(stdout.text(), await result.stdout());
    assert.equal(stderr.text(), await result.stderr());
    assert.equal(output.text().length, stdout.text().length + stderr.text().length);
  });

  test("[SDK29] the first chunk arrives while the command still runs", async (t) => {
    const box = await c.box(t);
    const stdout = recorder();
    const execution = await box.cmd.execAsync("echo early; sleep 2; echo late", { stdout });
    await execution.result();
    const completed = performance.now();
    assert.equal(stdout.text(), "early\nlate\n");
    const early = completed - stdout.chunks[0].at;
    assert.ok(early > 1000, `the first chunk came ${early} ms before the end`);
  });

  test("[SDK29] a thousand lines all arrive, live and in the result", async (t) => {
    const box = await c.box(t);
    const stdout = recorder();
    const result = await box.cmd.exec("for i in {1..1000}; do echo line $i; done", { stdout });
    const expected = Array.from({ length: 1000 }, (_, index) => `line ${index + 1}\n`).join("");
    assert.equal(stdout.text(), expected);
    assert.equal(result.result.stdout_truncated, true);
    assert.equal(await result.stdout(), expected);
  });

  test("[SDK29] two commands at once both stream line by line", async (t) => {
    const box = await c.box(t);
    const both = ["a", "b"].map(async (name) => {
      const stdout = recorder();
      const command = `for i in 1 2 3 4; do echo ${name}$i; sleep 0.4; done`;
      const execution = await box.cmd.execAsync(command, { stdout });
      const result = await execution.result();
      assert.equal(stdout.text(), await result.stdout());
      assert.ok(stdout.chunks.length >= 3, `${stdout.chunks.length} callbacks for ${name}`);
    });
    await Promise.all(both);
  });

  test("a stream can be read again and from any chunk's offset", async (t) => {
    const { id } = await c.box(t);
    const started = await c.api.devboxes.executeAsync(id, {
      command: "for i in 1 2 3; do echo part $i; sleep 0.1; done",
    });
    await c.api.devboxes.executions.awaitCompleted(id, started.execution_id);
    const read = (offset) =>
      c.api.devboxes.executions.streamStdoutUpdates(
        id,
        started.execution_id,
        offset === undefined ? {} : { offset },
      );
    assert.equal(await textOf(await read()), "part 1\npart 2\npart 3\n");
    assert.equal(await textOf(await read()), "part 1\npart 2\npart 3\n");
    assert.equal(await textOf(await read("7")), "part 2\npart 3\n");
    assert.equal(await textOf(await read("21")), "");
  });

  test("ten thousand lines replay whole after the end", async (t) => {
    const { id } = await c.box(t);
    const started = await c.api.devboxes.executeAsync(id, { command: "seq 1 10000" });
    await c.api.devboxes.executions.awaitCompleted(id, started.execution_id);
    const stream = await c.api.devboxes.executions.streamStdoutUpdates(
      id,
      started.execution_id,
      {},
    );
    const numbers = (await textOf(stream)).trim().split("\n");
    assert.equal(numbers.length, 10_000);
    assert.equal(numbers.at(-1), "10000");
  });
});

suite(
  "idle streams",
  (c) => {
    test("the SDK reopens a stream that was closed for idleness and loses nothing", async (t) => {
      const box = await c.box(t);
      const stdout = recorder();
      const command = "echo first; sleep 1.5; echo second; sleep 1.5; echo third";
      const execution = await box.cmd.execAsync(command, { stdout });
      const result = await execution.result();
      assert.equal(stdout.text(), "first\nsecond\nthird\n");
      assert.equal(stdout.text(), await result.stdout());
      const opened = await c.sent(
        `/v1/devboxes/${box.id}/executions/${execution.executionId}/stream_stdout_updates`,
      );
      assert.ok(opened.length > 1, "it was opened once only");
    });
  },
  { settings: { stream_idle_seconds: 0.5 } },
);
