// Commands through the raw client and the objects: results, lines, waiting, kill.

import assert from "node:assert/strict";
import { test } from "node:test";
import { soak } from "../support/scale.mjs";
import { suite, textOf } from "./support/suite.mjs";

const LINES = "for n in 1 2 3 4 5; do echo line $n; done";

function lines(text) {
  return text.trim().split("\n");
}

suite("executions", (c) => {
  test("[SDK7] an asynchronous command completes and its stdout streams afterwards", async (t) => {
    const { id } = await c.box(t);
    const started = await c.api.devboxes.executeAsync(id, { command: "echo hello && sleep 1" });
    const ended = await c.api.devboxes.executions.awaitCompleted(id, started.execution_id);
    assert.equal(ended.status, "completed");
    assert.equal(ended.exit_status, 0);
    const stream = await c.api.devboxes.executions.streamStdoutUpdates(
      id,
      started.execution_id,
      {},
    );
    assert.equal(await textOf(stream), "hello\n");
  });

  test("[SDK7] stderr has a stream of its own", async (t) => {
    const { id } = await c.box(t);
    const started = await c.api.devboxes.executeAsync(id, { command: "echo oops >&2; echo fine" });
    await c.api.devboxes.executions.awaitCompleted(id, started.execution_id);
    const stream = await c.api.devboxes.executions.streamStderrUpdates(
      id,
      started.execution_id,
      {},
    );
    assert.equal(await textOf(stream), "oops\n");
  });

  test("[SDK8] execute and await completes with the result", async (t) => {
    const { id } = await c.box(t);
    const ended = await c.api.devboxes.executeAndAwaitCompletion(id, { command: "echo done" });
    assert.equal(ended.status, "completed");
    assert.equal(ended.exit_status, 0);
    assert.equal(ended.stdout, "done\n");
  });

  test("[SDK8] a wait out of its budget rejects and leaves the command running", async (t) => {
    const { id } = await c.box(t);
    await assert.rejects(
      c.api.devboxes.executeAndAwaitCompletion(
        id,
        { command: "echo $$ > pid; exec sleep 30", optimistic_timeout: 1 },
        { longPoll: { timeoutMs: 2000 } },
      ),
      { name: "PollingTimeoutError" },
    );
    const look = await c.api.devboxes.executeAndAwaitCompletion(id, {
      command: 'kill -0 "$(cat pid)"',
    });
    assert.equal(look.exit_status, 0);
  });

  test("[SDK8] an HTTP timeout sends the command again but runs it once", async (t) => {
    const { id } = await c.box(t);
    await assert.rejects(
      c.api.devboxes.executeAndAwaitCompletion(
        id,
        { command: "echo ran >> runs; sleep 30" },
        { timeout: 700, maxRetries: 2 },
      ),
    );
    const tries = await c.sent(`/v1/devboxes/${id}/execute`, "POST");
    assert.equal(tries.length, 3);
    assert.equal(new Set(tries.map((entry) => entry.body.command_id)).size, 1);
    const look = await c.api.devboxes.executeAndAwaitCompletion(id, { command: "cat runs" });
    assert.equal(look.stdout, "ran\n");
  });

  test("[SDK9] last_n gives exactly the last lines and says that it cut", async (t) => {
    const { id } = await c.box(t);
    const ended = await c.api.devboxes.executeAndAwaitCompletion(id, {
      command: LINES,
      last_n: "3",
    });
    assert.deepEqual(lines(ended.stdout), ["line 3", "line 4", "line 5"]);
    assert.equal(ended.stdout_truncated, true);
  });

  test("[SDK9] without last_n five lines are all there", async (t) => {
    const { id } = await c.box(t);
    const ended = await c.api.devboxes.executeAndAwaitCompletion(id, { command: LINES });
    assert.equal(lines(ended.stdout).length, 5);
    assert.ok(!ended.stdout_truncated);
  });

  test("[SDK9] stdout and stderr are never mixed", async (t) => {
    const { id } = await c.box(t);
    const ended = await c.api.devboxes.executeAndAwaitCompletion(id, {
      command: "echo to out; echo to err >&2",
    });
    assert.equal(ended.stdout, "to out\n");
    assert.equal(ended.stderr, "to err\n");
  });

  test("[SDK18] exec gives exit code and text; execAsync an id and the same", async (t) => {
    const box = await c.box(t);
    const direct = await box.cmd.exec("echo direct");
    assert.equal(direct.exitCode, 0);
    assert.ok(direct.success);
    assert.equal(await direct.stdout(), "direct\n");
    const execution = await box.cmd.execAsync("echo later");
    assert.ok(execution.executionId);
    const result = await execution.result();
    assert.equal(result.exitCode, 0);
    assert.equal(await result.stdout(), "later\n");
  });

  test("[SDK32] a running command has a state and then a result", async (t) => {
    const box = await c.box(t);
    const execution = await box.cmd.execAsync(`sleep ${soak ? 5 : 2} && echo awake`);
    const state = await execution.getState();
    assert.ok(["queued", "running"].includes(state.status), state.status);
    assert.equal(state.exit_status ?? null, null);
    const result = await execution.result();
    assert.equal(result.exitCode, 0);
    assert.equal((await execution.getState()).status, "completed");
  });

  test("[SDK33] a command's own exit code comes back", async (t) => {
    const box = await c.box(t);
    const result = await box.cmd.exec("exit 42");
    assert.equal(result.exitCode, 42);
    assert.ok(result.failed);
    assert.ok(!result.success);
  });

  test("[SDK34] a thousand lines of stderr are all retrievable, the last ten too", async (t) => {
    const box = await c.box(t);
    const result = await box.cmd.exec('for i in {1..1000}; do echo "err $i" >&2; done');
    const all = lines(await result.stderr());
    assert.equal(all.length, 1000);
    assert.equal(all[0], "err 1");
    const expected = Array.from({ length: 10 }, (_, index) => `err ${991 + index}`);
    assert.deepEqual(lines(await result.stderr(10)), expected);
    assert.equal(await result.stdout(), "");
  });

  test("[SDK35] a command without output has strings all the same", async (t) => {
    const box = await c.box(t);
    const result = await box.cmd.exec("true");
    assert.equal(await result.stdout(), "");
    assert.equal(await result.stderr(), "");
  });

  test("[SDK36] the last-lines helper works on more, as many and fewer lines than asked", async (t) => {
    const box = await c.box(t);
    const ten = await box.cmd.exec("seq 1 10");
    assert.equal(await ten.stdout(3), "8\n9\n10");
    const three = await box.cmd.exec("seq 1 3");
    assert.equal(await three.stdout(3), "1\n2\n3");
    const two = await box.cmd.exec("seq 1 2");
    assert.equal(await two.stdout(5), "1\n2");
  });

  test("[SDK36] the last-lines helper keeps stdout and stderr of one command apart", async (t) => {
    const box = await c.box(t);
    const both = await box.cmd.exec("for i in 1 2 3 4; do echo out$i; echo err$i >&2; done");
    assert.equal(await both.stdout(2), "out3\nout4");
    assert.equal(await both.stderr(2), "err3\nerr4");
  });

  test("[SDK37] killing a command that has ended is no error", async (t) => {
    const box = await c.box(t);
    const execution = await box.cmd.execAsync("true");
    await execution.result();
    await execution.kill();
    assert.equal((await execution.getState()).exit_status, 0);
  });

  test("a killed command completes with an exit code that is not zero", async (t) => {
    const box = await c.box(t);
    const execution = await box.cmd.execAsync("sleep 1000");
    await execution.kill();
    const result = await execution.result();
    assert.ok(result.failed);
  });

  test("a synchronous command answers with its whole result", async (t) => {
    const box = await c.box(t);
    const result = await c.api.devboxes.executeSync(box.id, { command: "echo sync; exit 3" });
    assert.equal(result.exit_status, 3);
    assert.equal(result.stdout, "sync\n");
  });

  test("environment variables of the Devbox are visible to its commands", async (t) => {
    const box = await c.box(t, { environment_variables: { GREETING: "hello there" } });
    const result = await box.cmd.exec('echo "$GREETING"');
    assert.equal(await result.stdout(), "hello there\n");
  });

  test("a single line of ten megabytes comes back whole", async (t) => {
    const box = await c.box(t);
    const result = await box.cmd.exec("head -c 10000000 /dev/zero | tr '\\0' x");
    const text = await result.stdout();
    assert.equal(text.length, 10_000_000);
    assert.match(text, /^x+$/);
    assert.ok(!result.result.stdout_truncated);
  });
});

// Holds this short need as many rounds for a command of seconds as real ones
// for a command of minutes.
const slow = soak
  ? { seconds: 70, settings: {} }
  : {
      seconds: 3,
      settings: { optimistic_max_seconds: 0.5, execution_hold_max_seconds: 0.5 },
    };

suite(
  "long commands",
  (c) => {
    test("[SDK8] a command of many polls' length completes across them", async (t) => {
      const { id } = await c.box(t);
      const ended = await c.api.devboxes.executeAndAwaitCompletion(
        id,
        {
          command: `sleep ${slow.seconds} && echo awake`,
        },
        soak ? { timeout: 600_000 } : {},
      );
      assert.equal(ended.status, "completed");
      assert.equal(ended.stdout, "awake\n");
      const [first] = await c.sent(`/v1/devboxes/${id}/execute`, "POST");
      assert.equal(first.response_body.status, "running");
      const polls = await c.sent(`/v1/devboxes/${id}/executions`, "POST");
      assert.ok(polls.filter((entry) => entry.status === 408).length >= 1, `${polls.length} polls`);
      assert.equal(polls.at(-1).status, 200);
    });

    test("[SDK8] an object's command of many polls' length completes across them", async (t) => {
      const box = await c.box(t);
      const execution = await box.cmd.execAsync(`sleep ${slow.seconds}; exit 6`);
      assert.equal((await execution.result()).exitCode, 6);
      const polls = await c.sent(`/v1/devboxes/${box.id}/executions`, "POST");
      assert.ok(polls.filter((entry) => entry.status === 408).length >= 2, `${polls.length} polls`);
    });
  },
  { settings: slow.settings },
);
