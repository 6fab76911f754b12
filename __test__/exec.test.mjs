import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { memoryClient, rejection } from "./support/client.mjs";

test("exec gives exit code, exact bytes and text, and a non-zero exit is a result", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const result = await box.exec(["/bin/sh", "-c", "printf ready; printf oops >&2; exit 4"]);
  assert.equal(result.exitCode, 4);
  assert.deepEqual(result.stdout, new TextEncoder().encode("ready"));
  assert.equal(result.stdoutText(), "ready");
  assert.equal(result.stderrText(), "oops");
  assert.deepEqual(
    [result.stdoutBytes, result.stderrBytes, result.stdoutTruncated, result.stderrTruncated],
    [5, 4, false, false],
  );
  assert.equal((await box.exec("echo $((1+1))")).stdoutText(), "2\n");
});

test("output as text keeps a byte-order mark and marks invalid bytes", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const { stdout, stdoutText } = await box.exec(String.raw`printf '\357\273\277a\377'`);
  assert.deepEqual([...stdout], [0xef, 0xbb, 0xbf, 0x61, 0xff]);
  assert.equal(stdoutText.call({ stdout }), "\ufeffa\ufffd");
});

test("options reach the adapter, stdin as bytes; changes to the caller's array come too late", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const argv = ["cat"];
  const running = box.exec(argv, {
    cwd: "/tmp",
    env: { A: "1", NONE: undefined, __proto__: "kept" },
    stdin: "héllo",
    timeoutSeconds: 0.5,
    maxOutputBytes: 3,
  });
  argv[0] = "changed";
  const result = await running;
  assert.deepEqual(
    [result.stdoutText().length, result.stdoutBytes, result.stdoutTruncated],
    [2, 6, true],
  );
  const { request } = world.calls.at(-1);
  assert.deepEqual(request, {
    sandboxId: box.reference.id,
    command: ["cat"],
    cwd: "/tmp",
    env: { A: "1" },
    stdin: new TextEncoder().encode("héllo"),
    timeoutSeconds: 0.5,
    maxOutputBytes: 3,
  });
});

test("[E5] a variable called __proto__ is kept", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  await box.exec("true", { env: JSON.parse('{ "__proto__": "kept" }') });
  assert.deepEqual(Object.entries(world.calls.at(-1).request.env), [["__proto__", "kept"]]);
});

test("[E8] wrong arguments of exec are refused by name, show no value, and nothing is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.calls.length = 0;
  const wrong = [
    [[undefined], /command must be an array/],
    [[""], /command must not be empty/],
    [[[]], /command must not be an empty array/],
    [[[""]], /command\[0\] must not be empty/],
    [[["a", 1]], /command\[1\] must be a string, not a number/],
    [[["a", "s3cret\0"]], /command\[1\] must not hold a NUL/],
    [["s3cret\ud800"], /command must not hold half of a surrogate pair/],
    [["true", 7], /options must be a plain object/],
    [
      ["true", { timeout: 1 }],
      /unknown key "timeout"; .*timeoutSeconds|unknown key "timeout"; known are/,
    ],
    [["true", { timeoutSecs: 1 }], /did you mean "timeoutSeconds"/],
    [
      ["true", { timeoutSeconds: 0 }],
      /timeoutSeconds must be a number more than 0 and at most 3600, not 0/,
    ],
    [["true", { timeoutSeconds: 3601 }], /not 3601/],
    [["true", { timeoutSeconds: Number.NaN }], /not NaN/],
    [["true", { timeoutSeconds: "1" }], /not a string/],
    [["true", { maxOutputBytes: -1 }], /maxOutputBytes must be a whole number from 0 to 1048576/],
    [["true", { maxOutputBytes: 1048577 }], /maxOutputBytes/],
    [["true", { maxOutputBytes: 1.5 }], /maxOutputBytes/],
    [["true", { cwd: 1 }], /cwd must be a string/],
    [["true", { env: [] }], /env must be a plain object/],
    [["true", { env: { A: 1 } }], /env\.A must be a string, not a number/],
    [["true", { env: { A: "s3cret\0" } }], /env\.A must not hold a NUL/],
    [["true", { env: { "A-B": "s3cret" } }], /env has the name "A-B"/],
    [["true", { env: { "1X": "" } }], /env has the name "1X"/],
    [["true", { env: { "": "" } }], /env has the name ""/],
    [["true", { env: { "X;touch /tmp/p": "" } }], /env has the name/],
    [["true", { stdin: 5 }], /stdin must be a Uint8Array or a string, not a number/],
    [["true", { check: "yes" }], /check must be true or false/],
    [
      ["true", { signal: { aborted: false, addEventListener() {} } }],
      /signal must be an AbortSignal/,
    ],
    [["true", { signal: {} }], /signal must be an AbortSignal, not an object/],
    [["true", { onSubmit: "x" }], /onSubmit must be a function/],
    [["true", { onStdout: "x" }], /onStdout must be a function/],
  ];
  for (const [args, message] of wrong) {
    const error = await rejection(box.exec(...args));
    assert.equal(error.code, "INVALID_ARGUMENT", String(message));
    assert.match(error.message, message);
    assert.equal(error.operation, "exec");
    assert.doesNotMatch(error.message, /s3cret/);
  }
  assert.deepEqual(world.calls, []);
});

test("[R34] exec with callbacks rejects as an unsupported feature before anything is sent", async (t) => {
  const { client, world, capabilities } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.calls.length = 0;
  for (const options of [{ onStdout() {} }, { onStderr() {} }]) {
    const error = await rejection(box.exec("true", options));
    assert.equal(error.name, "UnsupportedFeatureError");
    assert.equal(error.feature, "exec.callbacks");
    assert.deepEqual(error.unmetRequirements, [
      { requirement: "exec.callbacks", reason: capabilities.exec.callbacks.reason },
    ]);
  }
  assert.deepEqual(world.calls, []);
});

test("with check, a non-zero exit rejects with COMMAND_FAILED and the whole hidden result", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  assert.equal((await box.exec("exit 0", { check: true })).exitCode, 0);
  const error = await rejection(box.exec("echo printed; exit 3", { check: true }));
  assert.equal(error.code, "COMMAND_FAILED");
  assert.equal(error.outcome.exitCode, 3);
  assert.equal(error.result.stdoutText(), "printed\n");
  assert.doesNotMatch(JSON.stringify(error), /printed/);
  assert.equal(Object.keys(error).includes("result"), false);
});

test("stdin is what it was when exec was called, with and without an onSubmit", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  for (const options of [{}, { onSubmit: () => new Promise(setImmediate) }]) {
    const stdin = new TextEncoder().encode("before");
    const running = box.exec(["cat"], { stdin, ...options });
    stdin.fill(0);
    assert.equal((await running).stdoutText(), "before");
  }
});

test("a result is plain data: it compares, copies, and serialises without losing a byte", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const result = await box.exec("printf 'hé'; printf '\\377\\000' >&2; exit 3");
  const json = JSON.parse(JSON.stringify(result));
  assert.equal(json.stdout, "hé");
  assert.deepEqual(json.stderr, { base64: "/wA=" });
  assert.deepEqual([json.exitCode, json.stdoutBytes, json.stderrTruncated], [3, 3, false]);
  assert.equal(json.durationMs, result.durationMs);
  const copy = structuredClone(result);
  assert.deepEqual(copy, { ...result });
  const shown = inspect(result);
  assert.match(shown, /^ExecResult \{/);
  assert.match(shown, /stdout: 'hé'/);
  assert.doesNotMatch(shown, /Uint8Array|stdoutText/);
});
