/** What commands get and give, through the addon, against the simulator. */

import assert from "node:assert/strict";
import test from "node:test";
import { requests, sandbox } from "./support/box.mjs";
import { rejection } from "./support/client.mjs";
import { times } from "./support/scale.mjs";

const bytes = (view) => Buffer.from(view);

test("[R14][E1] argv stays separate arguments", async (t) => {
  const { box } = await sandbox(t);
  const odd = [
    ..."a b||it's|$(id)|`id`|*|a\nb|-n|\\|\"|é|\t|!x|~|x\n\n|{a,b}|a=b|--|#|日本".split("|"),
  ];
  const result = await box.exec(["printf", "[%s]\n", ...odd]);
  assert.equal(result.stdoutText(), odd.map((word) => `[${word}]\n`).join(""));
  assert.equal(result.exitCode, 0);
  assert.equal(result.stderr.length, 0);
});

test("[R14] shell text and argv take cwd and env", async (t) => {
  const { box } = await sandbox(t);
  const env = { GREETING: "hello world", __proto__x: "kept", EMPTY: "", ODD: "a'b\"c$HOME\n\n" };
  for (const command of [
    'printf "%s|" "$PWD" "$GREETING" "$__proto__x" "$EMPTY" "$ODD"',
    ["sh", "-c", 'printf "%s|" "$PWD" "$GREETING" "$__proto__x" "$EMPTY" "$ODD"'],
  ]) {
    const result = await box.exec(command, { cwd: "/usr", env });
    assert.equal(result.stdoutText(), "/usr|hello world|kept||a'b\"c$HOME\n\n|");
  }
  assert.equal((await box.exec("echo $HOME | tr a-z A-Z")).stdoutText().startsWith("/"), true);
});

test("[R14] a program named like an assignment or an option runs", async (t) => {
  const { box } = await sandbox(t);
  await box.exec("mkdir bin; for n in A=B -x; do echo 'echo ran' >bin/$n; chmod +x bin/$n; done");
  const home = (await box.exec("pwd")).stdoutText().trim();
  for (const name of ["A=B", "-x"]) {
    const result = await box.exec([name], { env: { PATH: `${home}/bin:/bin:/usr/bin` } });
    assert.equal(result.stdoutText(), "ran\n", result.stderrText());
  }
});

test("[R15][C4] all 256 byte values come back on both streams, and in through stdin", async (t) => {
  const { box, outside } = await sandbox(t);
  const all = Buffer.alloc(256_000).map((_, index) => index % 256);
  const result = await box.exec("tee /dev/fd/2", { stdin: all });
  assert.ok(bytes(result.stdout).equals(all));
  assert.ok(bytes(result.stderr).equals(all));
  const few = await box.exec("printf '\\377\\376\\000\\200ok'");
  assert.deepEqual([...few.stdout], [0xff, 0xfe, 0, 0x80, 0x6f, 0x6b]);
  await outside.assertClean();
});

test("[R15][C2] output is whole up to the limit, and cut, flagged and counted above it", async (t) => {
  const { box, outside } = await sandbox(t);
  for (const size of [0, 1, 32_767, 32_768, 32_769, 1_048_575, 1_048_576, 1_048_577, 5_242_880]) {
    const both = `head -c ${size} /dev/zero | tr '\\0' o; head -c ${size} /dev/zero | tr '\\0' e >&2`;
    const result = await box.exec(both);
    const kept = Math.min(size, 1_048_576);
    assert.ok(bytes(result.stdout).equals(Buffer.alloc(kept, "o")), `${size}`);
    assert.ok(bytes(result.stderr).equals(Buffer.alloc(kept, "e")), `${size}`);
    assert.deepEqual(
      [result.stdoutBytes, result.stdoutTruncated, result.stderrBytes, result.stderrTruncated],
      [size, size > kept, size, size > kept],
    );
  }
  const none = await box.exec("head -c 100000 /dev/zero; exit 2", { maxOutputBytes: 0 });
  assert.deepEqual([none.exitCode, none.stdout.length, none.stdoutBytes], [2, 0, 100_000]);
  await outside.assertClean();
});

test("[R16][G1][G3] stdin is exact, ends, and is at its end where there is none", async (t) => {
  const { box, outside } = await sandbox(t);
  for (const stdin of ["hello", "", "a\n\n", Buffer.from([0xff]), new Uint8Array(1_048_576)]) {
    const result = await box.exec(["cat"], { stdin });
    assert.ok(bytes(result.stdout).equals(Buffer.from(stdin)));
  }
  assert.equal((await box.exec(["cat"])).stdout.length, 0);
  assert.equal((await box.exec(["sort"], { stdin: "b\na\n" })).stdoutText(), "a\nb\n");
  assert.equal((await box.exec(["sh"], { stdin: "exit 3\n" })).exitCode, 3);
  await outside.assertClean();
});

test("[R16] stdin is a file of an unguessable name that is gone once the command runs", async (t) => {
  const { box, service } = await sandbox(t);
  const look =
    "ls -d /tmp/beachside-stdin-* 2>/dev/null | wc -l; stat -L -c '%a %h' /dev/fd/0; cat";
  const names = new Set();
  for (const _ of [1, 2]) {
    const result = await box.exec(look, { stdin: "in" });
    assert.equal(result.stdoutText(), "0\n600 0\nin");
  }
  const { entries } = await service.journal();
  for (const { body } of entries) {
    const found = /beachside-stdin-[0-9a-f]{32}/.exec(body?.command ?? "");
    if (found) names.add(found[0]);
  }
  assert.equal(names.size, 2);
});

test("[B2][B5] exit codes and last bytes are the program's own", async (t) => {
  const { box } = await sandbox(t);
  for (const [command, code, stdout] of [
    ["printf hello", 0, "hello"],
    ["printf 7; exit 7", 7, "7"],
    ["printf '\\n'", 0, "\n"],
    ["printf 'a\\n\\n\\n'", 0, "a\n\n\n"],
    ["exec sh -c 'exit 7'", 7, ""],
    ["trap 'exit 9' EXIT; exit 2", 9, ""],
    ["echo a; exit 255", 255, "a\n"],
    ["true", 0, ""],
    ["set -e; false; echo no", 1, ""],
    ["cat <<'EOF'\nhello\nEOF", 0, "hello\n"],
  ]) {
    const result = await box.exec(command);
    assert.deepEqual([result.exitCode, result.stdoutText()], [code, stdout], command);
    assert.equal(result.stderrText(), "");
  }
});

test("[B3] a signal is 128 and its number, without a word of any shell in stderr", async (t) => {
  for (const shell of ["bash", "dash", "busybox"]) {
    const { box } = await sandbox(t, { settings: { shell } });
    for (const [signal, code] of Object.entries({ KILL: 137, TERM: 143, ABRT: 134, SEGV: 139 })) {
      for (const command of [`kill -${signal} $$`, ["sh", "-c", `kill -${signal} $$`]]) {
        const result = await box.exec(command);
        assert.deepEqual([result.exitCode, result.stderrText()], [code, ""], `${shell} ${signal}`);
      }
    }
    const group = await box.exec("echo before; kill -TERM 0");
    assert.deepEqual([group.exitCode, group.stdoutText()], [143, "before\n"], shell);
  }
});

test("[B6] a program that cannot start is 127 or 126, a missing sandbox a typed error", async (t) => {
  const { box, client } = await sandbox(t);
  assert.equal((await box.exec(["nosuchcmd"])).exitCode, 127);
  assert.equal((await box.exec(["/etc/passwd"])).exitCode, 126);
  assert.equal((await box.exec("exit 1")).exitCode, 1);
  await box.destroy();
  const error = await rejection(box.exec("true"));
  assert.equal(error.code, "NOT_RUNNING");
  assert.equal(
    (await rejection(client.sandboxes.get({ ...box.reference, id: "dbx_none" }))).code,
    "NOT_FOUND",
  );
});

test("[B7] a non-zero exit is a result, and with check an error that has all of it", async (t) => {
  const { box } = await sandbox(t);
  const result = await box.exec("echo o; echo e >&2; exit 4");
  assert.deepEqual([result.exitCode, result.stdoutText(), result.stderrText()], [4, "o\n", "e\n"]);
  const error = await rejection(box.exec("echo o; exit 4", { check: true }));
  assert.equal(error.code, "COMMAND_FAILED");
  assert.equal(error.result.stdoutText(), "o\n");
});

test("[C7] twenty commands side by side do not mix", async (t) => {
  const { box, outside } = await sandbox(t);
  const run = async (number) => {
    const loop = `i=0; while [ $i -lt 1000 ]; do echo out-${number}; echo err-${number} >&2; i=$((i+1)); done`;
    const result = await box.exec(`${loop}; exit ${number}`);
    assert.equal(result.exitCode, number);
    assert.equal(result.stdoutText(), `out-${number}\n`.repeat(1000));
    assert.equal(result.stderrText(), `err-${number}\n`.repeat(1000));
  };
  await Promise.all(Array.from({ length: 20 }, (_, number) => run(number)));
  await outside.assertClean();
});

test("[C1][I8] many short commands in a row are never empty and leave nothing", async (t) => {
  const { box, outside } = await sandbox(t);
  // Counted by the shell itself: a pipe's programs may count each other or not.
  const look = "ls -A /tmp; set -- /proc/[0-9]*; echo $#";
  const before = await outside.run(look);
  for (let number = 0; number < times(500); number++) {
    const result = await box.exec(`sleep 0.01 & echo running ${number}`);
    assert.equal(result.stdoutText(), `running ${number}\n`);
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(await outside.run(look), before);
});

test("[E3] a missing working directory is named and nothing runs", async (t) => {
  const { box, outside } = await sandbox(t);
  const error = await rejection(box.exec("true; touch marker", { cwd: "/nope", stdin: "x" }));
  assert.equal(error.code, "NOT_FOUND");
  assert.deepEqual(error.resource, { kind: "working directory", id: "/nope" });
  assert.equal((await box.exec("ls marker /marker", {})).exitCode, 2);
  await outside.assertClean();
});

test("[E5][E7][E8] what no program can be given is refused before any request", async (t) => {
  const { box, service } = await sandbox(t);
  const long = "x".repeat(131_072);
  for (const [command, options] of [
    ["a\0b"],
    [["echo", "a\0b"]],
    [["echo", "\ud800"]],
    [["echo", long]],
    [long],
    ["true", { env: { "A-B": "x" } }],
    ["true", { env: { "": "x" } }],
    ["true", { env: { "X;touch /tmp/p": "x" } }],
    ["true", { env: { A: "x\0" } }],
    ["true", { env: { A: long } }],
    ["true", { cwd: "a\0" }],
    ["true", { cwd: "" }],
    ["true", { timeoutSeconds: 0 }],
    ["true", { timeoutSeconds: Number.NaN }],
    ["true", { timeoutSeconds: Number.POSITIVE_INFINITY }],
    ["true", { timeoutSeconds: 3601 }],
    ["true", { timeoutSeconds: "1" }],
    ["true", { maxOutputBytes: 1_048_577 }],
    [[]],
  ]) {
    const error = await rejection(box.exec(command, options), JSON.stringify(options));
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.ok(error.message.length < 300, error.message.slice(0, 300));
  }
  assert.deepEqual(await requests(service), []);
});

test("[E7] long arguments arrive and travel as a file where they must", async (t) => {
  const { box, service, outside } = await sandbox(t);
  for (const size of [102_400, 131_071]) {
    const result = await box.exec(["/bin/echo", "-n", "x".repeat(size)]);
    assert.equal(result.stdout.length, size);
  }
  const words = Array.from({ length: 3_000 }, (_, number) => String(number).padStart(100, "0"));
  await service.clearJournal();
  assert.equal((await box.exec(["printf", "%s", ...words])).stdoutText(), words.join(""));
  assert.deepEqual((await requests(service)).slice(0, 2), ["upload_file", "execute"]);
  const quotes = "'".repeat(131_071);
  assert.equal((await box.exec(["printf", "%s", quotes])).stdoutText(), quotes);
  await outside.assertClean();
});

test("[R18] a result of up to 32 KiB is one round trip, and each kind of command its requests", async (t) => {
  const { box, service, outside } = await sandbox(t);
  const download = ["execute", "download_file", "execute"];
  for (const [command, options, expected] of [
    ["true", {}, ["execute"]],
    ["head -c 32768 /dev/zero", {}, ["execute"]],
    ["head -c 16384 /dev/zero; head -c 16384 /dev/zero >&2", {}, ["execute"]],
    ["head -c 32769 /dev/zero", {}, download],
    ["head -c 9 /dev/zero; head -c 1048576 /dev/zero >&2", {}, download],
    ["cat", { stdin: "x" }, ["upload_file", "execute"]],
    ["head -c 1000000 /dev/zero", { maxOutputBytes: 1000 }, ["execute"]],
  ]) {
    await service.clearJournal();
    await box.exec(command, options);
    assert.deepEqual(await requests(service), expected, command);
  }
  await outside.assertClean();
});

test("[R19] three shells will do, with exactly the documented tools, and a missing one is named", async (t) => {
  const tools = ["sh", "mktemp", "base64", "head", "wc", "tr", "env", "rm"];
  for (const shell of ["bash", "dash", "busybox"]) {
    const { box } = await sandbox(t, { settings: { shell, tools: JSON.stringify(tools) } });
    const command = "head -c 40000 /dev/zero; head -c 5 >&2; exit 3";
    const result = await box.exec(command, { stdin: "input", cwd: "/tmp" });
    assert.deepEqual(
      [result.exitCode, result.stdout.length, result.stderrText()],
      [3, 40_000, "input"],
    );
  }
  const settings = { tools: JSON.stringify(tools.filter((tool) => tool !== "base64")) };
  const { box } = await sandbox(t, { settings });
  const error = await rejection(box.exec("true"));
  assert.equal(error.code, "UNSUPPORTED");
  assert.match(error.message, /no base64 on its PATH/);
});

test("[F4] a background child neither holds the result back nor enters it", async (t) => {
  const { box } = await sandbox(t, { settings: { completion_waits_for_output: true } });
  for (const command of ["sleep 7 & echo done", "setsid sleep 7 & echo done"]) {
    const began = performance.now();
    const result = await box.exec(command);
    assert.ok(performance.now() - began < 4_000, command);
    assert.deepEqual([result.exitCode, result.stdoutText()], [0, "done\n"]);
  }
  const chatty = await box.exec("while :; do echo x; sleep 0.05; done & sleep 0.3; echo done >&2");
  assert.equal(chatty.stdout.length, chatty.stdoutBytes);
  assert.equal((await box.exec("echo next")).stdoutText(), "next\n");
});

test("what a caller passes may change right after the call", async (t) => {
  const { box } = await sandbox(t);
  const command = ["printf", "%s", "before"];
  const env = { A: "before" };
  const buffer = new Uint8Array(100_000).fill(97);
  const view = buffer.subarray(10, 20);
  const first = box.exec(command, { env });
  const second = box.exec(["cat"], { stdin: view });
  command[2] = "after";
  env.A = "after";
  buffer.fill(98);
  structuredClone(buffer.buffer, { transfer: [buffer.buffer] });
  assert.equal((await first).stdoutText(), "before");
  assert.equal((await second).stdoutText(), "a".repeat(10));
});
