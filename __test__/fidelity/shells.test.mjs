// Named shells: state that lasts, one command at a time, independence.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite } from "./support/suite.mjs";

async function output(pending) {
  return (await (await pending).stdout()).trim();
}

suite("named shells", (c) => {
  test("[SDK30] a shell keeps its working directory", async (t) => {
    const shell = (await c.box(t)).shell("cwd");
    await shell.exec("cd /tmp");
    assert.equal(await output(shell.exec("pwd")), "/tmp");
  });

  test("[SDK30] a shell keeps what it exported", async (t) => {
    const shell = (await c.box(t)).shell("exports");
    await shell.exec("export KEPT='two words'");
    assert.equal(await output(shell.exec('echo "$KEPT"')), "two words");
  });

  test("[SDK30] asynchronous commands share the shell's state too", async (t) => {
    const shell = (await c.box(t)).shell("async");
    await (await shell.execAsync("cd /usr && export FROM=async")).result();
    assert.equal(await output(shell.exec('echo "$PWD $FROM"')), "/usr async");
    const later = await shell.execAsync('echo "$PWD $FROM"');
    assert.equal(await output(later.result()), "/usr async");
  });

  test("[SDK30] three commands of a second in one shell take three seconds", async (t) => {
    const shell = (await c.box(t)).shell("queue");
    const started = performance.now();
    const results = await Promise.all([1, 2, 3].map((n) => shell.exec(`sleep 1; echo ${n}`)));
    const seconds = (performance.now() - started) / 1000;
    assert.ok(seconds >= 2.9, `${seconds} s`);
    assert.deepEqual(
      results.map((result) => result.exitCode),
      [0, 0, 0],
    );
  });

  test("[SDK30] three asynchronous commands at once in one shell all succeed", async (t) => {
    const shell = (await c.box(t)).shell("queue-async");
    const executions = await Promise.all(
      [1, 2, 3].map((n) => shell.execAsync(`sleep 0.2; echo ${n}`)),
    );
    const texts = await Promise.all(executions.map((execution) => output(execution.result())));
    assert.deepEqual(texts, ["1", "2", "3"]);
  });

  test("[SDK30] two shells of one Devbox are independent", async (t) => {
    const box = await c.box(t);
    const [one, two] = [box.shell("one"), box.shell("two")];
    await Promise.all([one.exec("cd /tmp; export VAR=1"), two.exec("cd /home; export VAR=2")]);
    assert.equal(await output(one.exec('echo "$PWD $VAR"')), "/tmp 1");
    assert.equal(await output(two.exec('echo "$PWD $VAR"')), "/home 2");
    assert.equal(await output(box.cmd.exec('echo "[$VAR]"')), "[]");
  });

  test("[SDK30] streams work inside a shell", async (t) => {
    const shell = (await c.box(t)).shell("streams");
    let stdout = "";
    let stderr = "";
    const result = await shell.exec("echo out; echo err >&2", {
      stdout: (text) => {
        stdout += text;
      },
      stderr: (text) => {
        stderr += text;
      },
    });
    assert.equal(stdout, await result.stdout());
    assert.equal(stderr, await result.stderr());
    assert.deepEqual([stdout, stderr], ["out\n", "err\n"]);
  });

  test("[SDK30] a shell's command ends with its own exit code, and the shell goes on", async (t) => {
    const shell = (await c.box(t)).shell("codes");
    assert.equal((await shell.exec("(exit 7)")).exitCode, 7);
    assert.equal((await shell.exec("false")).exitCode, 1);
    assert.equal(await output(shell.exec("echo alive")), "alive");
  });

  test("the view of a shell's command names the shell", async (t) => {
    const box = await c.box(t);
    const view = await c.api.devboxes.executeAndAwaitCompletion(box.id, {
      command: "true",
      shell_name: "named",
    });
    assert.equal(view.shell_name, "named");
  });
});
