import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { memoryUsage } from "node:process";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { same, sandbox, spoil, start, until } from "./support/live.mjs";
import { times } from "./support/scale.mjs";

const SCRIPT = fileURLToPath(new URL("support/live-process.mjs", import.meta.url));

test("[R20] [R22] a process streams both outputs live, has no input and ends with its exit code", async (t) => {
  const { simulator, box } = await sandbox(t);
  const process = await start(box, "cat; echo out; echo err >&2; mkfifo go; cat go; exit 3");
  assert.equal(process.reference.kind, "process");
  const seen = [];
  for await (const piece of process.output) {
    seen.push(piece);
    if (seen.length === 2) {
      assert.deepEqual(await process.status(), { state: "running", exitCode: null });
      await box.exec("echo last > go");
    }
  }
  const tagged = (stream) =>
    seen.flatMap((each) => (each.stream === stream ? each.text : [])).join("");
  assert.equal(tagged("stdout"), "out\nlast\n");
  assert.equal(tagged("stderr"), "err\n");
  assert.deepEqual(await process.wait(), { exitCode: 3, output: "complete" });
  assert.deepEqual(await process.status(), { state: "exited", exitCode: 3 });
  assert.equal(await process.stdout.text(), "out\nlast\n");
  assert.equal(await process.stderr.text(), "err\n");
  const { entries } = await simulator.journal({ method: "POST" });
  const starts = entries.filter((each) => each.path.endsWith("/execute"));
  assert.equal(starts[0].body.optimistic_timeout, 1);
  assert.ok(entries.some((each) => each.path.endsWith("/wait_for_status")));
});

test("[D5] [D8] [D10] every form of the event stream gives the same text", async (t) => {
  const { simulator, box } = await sandbox(t, { stream_chunk_bytes: 16 });
  const text = 'é日😀 \u001b[0m "quoted" \\ \ttab\n'.repeat(20);
  await box.writeFile("/tmp/text", text, { overwrite: true });
  for (const form of [
    { chunk_bytes: 1 },
    { chunk_bytes: 1, newline: "crlf", bom: true },
    { chunk_bytes: 3, newline: "cr", comment: " alive" },
    { data: "no_space" },
    { data: "many_lines", newline: "crlf", chunk_bytes: 2 },
    { bad_end: "no_blank_line" },
    { bad_end: "no_newline" },
    { bad_end: "half_event", newline: "cr" },
  ]) {
    await spoil(simulator, [form]);
    const process = await start(box, ["cat", "/tmp/text"]);
    same(await process.stdout.text(), text, JSON.stringify(form));
    assert.deepEqual(await process.wait(), { exitCode: 0, output: "complete" });
  }
});

test("[D11] what the service sends again is cut, and a thousand equal lines stay a thousand", async (t) => {
  const { simulator, box } = await sandbox(t, { stream_chunk_bytes: 100 });
  await spoil(simulator, [
    { cut_at_byte: 3000 },
    { overlap_bytes: 777, cut_at_byte: 4000 },
    { overlap_bytes: 40 },
    { overlap_bytes: 333 },
  ]);
  const process = await start(box, "yes same | head -n 1000");
  same(await process.stdout.text(), "same\n".repeat(1000));
  assert.deepEqual(await process.wait(), { exitCode: 0, output: "complete" });
});

test("[R21] output that the service no longer has is incomplete, never silent", async (t) => {
  const { simulator, box } = await sandbox(t, { stream_chunk_bytes: 100 });
  await spoil(simulator, [{ cut_at_byte: 1000 }, { window_bytes: 500 }]);
  const process = await start(box, "seq 1000");
  const text = await process.stdout.text();
  assert.ok(text.endsWith("999\n1000\n"));
  assert.deepEqual(await process.wait(), { exitCode: 0, output: "incomplete" });
});

test("[B1] [D13] streams that are refused, dropped or closed at once are no end", async (t) => {
  const { simulator, box } = await sandbox(t);
  const path = "/v1/devboxes/*/executions/*/stream_stdout_updates";
  const actions = [
    { type: "refuse", status: 503 },
    { type: "rate_limit", retry_after: "1" },
    { type: "drop_request" },
    { type: "sse", cut_at_byte: 0, cut_clean: true },
    { type: "sse", error: { code: "408" } },
  ];
  for (const [after, action] of actions.entries()) {
    await simulator.fault({ match: { path, after, count: 1 }, action });
  }
  const process = await start(box, "sleep 2; echo done; exit 7");
  assert.equal(await process.stdout.text(), "done\n");
  assert.deepEqual(await process.wait(), { exitCode: 7, output: "complete" });
});

test("[C1] a tail that comes seconds after the exit is read; [R22] one that does not come in ten is incomplete", async (t) => {
  const { simulator, box } = await sandbox(t);
  await spoil(simulator, [{ late_tail: { bytes: 3, milliseconds: 1500 } }]);
  const late = await start(box, "printf early; printf end");
  assert.equal(await late.stdout.text(), "earlyend");
  assert.deepEqual(await late.wait(), { exitCode: 0, output: "complete" });
  await spoil(simulator, [{ late_tail: { bytes: 3, milliseconds: 60_000 } }]);
  const never = await start(box, "printf early; printf end");
  const began = Date.now();
  const [text, exit] = await Promise.all([never.stdout.text(), never.wait()]);
  assert.equal(text, "early");
  assert.deepEqual(exit, { exitCode: 0, output: "incomplete" });
  const took = Date.now() - began;
  assert.ok(took > 9000 && took < 13_000, `${took} ms`);
});

test("[C1] [R22] output that comes behind the report of the exit is read and complete", async (t) => {
  const { box } = await sandbox(t, { completion_waits_for_output: false });
  const whole = Array.from({ length: 2000 }, (_, line) => `${line + 1}\n`).join("");
  for (let round = 0; round < times(5); round += 1) {
    const rounds = Array.from({ length: 8 }, async () => {
      const process = await start(box, "seq 2000; exit 3");
      const [text, exit] = await Promise.all([process.stdout.text(), process.wait()]);
      same(text, whole);
      assert.deepEqual(exit, { exitCode: 3, output: "complete" });
    });
    await Promise.all(rounds);
  }
});

test("[C1] [R22] a command that writes without end is read in bounded memory to a truthful end", async (t) => {
  const { box } = await sandbox(t);
  const process = await start(box, "timeout 0.2 yes");
  const before = memoryUsage.rss();
  let most = 0;
  let length = 0;
  let isRight = true;
  for await (const piece of process.stdout) {
    // Pieces may be cut anywhere; each is a part of "y\ny\ny\n…".
    isRight &&= piece.charCodeAt(0) === (length % 2 === 0 ? 121 : 10);
    length += piece.length;
    most = Math.max(most, memoryUsage.rss());
  }
  assert.ok(isRight && length > 500_000, `${length} bytes`);
  assert.deepEqual(await process.wait(), { exitCode: 124, output: "complete" });
  const grown = (most - before) / 1e6;
  assert.ok(grown < 200, `${grown} MB more, for ${length / 1e6} MB of output`);
  t.diagnostic(`${grown} MB more, for ${length / 1e6} MB of output`);
});

test("[F7] a signal stops a wait and not the process", async (t) => {
  const { box } = await sandbox(t);
  const process = await start(box, "sleep 600");
  const reason = new Error("enough");
  const stop = new AbortController();
  const waiting = process.wait({ signal: stop.signal });
  stop.abort(reason);
  const error = await waiting.then(assert.fail, (error) => error);
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cause, reason);
  assert.equal((await process.status()).state, "running");
});

test("[R23] terminate kills the whole group and resolves with the exit that is reported", async (t) => {
  const { box } = await sandbox(t);
  const process = await start(box, "sleep 98765 & sleep 98765; wait");
  await until("the sleeps", async () => {
    const { stdout } = await box.exec("ps ax | grep -c '[s]leep 98765'");
    return Number(Buffer.from(stdout).toString()) >= 2;
  });
  const exit = await process.terminate();
  assert.equal(exit.exitCode, 137);
  await until("the end of the sleeps", async () => {
    const { exitCode } = await box.exec("ps ax | grep '[s]leep 98765'");
    return exitCode !== 0;
  });
  assert.deepEqual(await process.status(), { state: "exited", exitCode: 137 });
});

test("[R23] [F9] a detached process goes on and another Node process reads on and ends it", async (t) => {
  const { simulator, box } = await sandbox(t);
  const process = await start(box, "i=0; while sleep 0.05; do i=$((i+1)); echo $i; done");
  let text = "";
  for await (const piece of process.stdout) {
    text += piece;
    if (text.includes("5\n")) break;
  }
  const { stdout } = process.offsets();
  assert.equal(stdout, text.length);
  await process.detach();
  const saved = JSON.stringify({ process: process.reference, box: box.reference, stdout });
  const other = await run(["reopen"], { SAVED: saved, RUNLOOP_BASE_URL: simulator.url });
  const lines = (text + other.printed).split("\n").filter((line) => line !== "");
  assert.deepEqual(
    lines,
    Array.from(lines, (_, line) => `${line + 1}`),
  );
  assert.ok(lines.length > 10);
  assert.equal(other.code, 137);
});

test("[C7] two hundred processes stream at once and none mixes with another", async (t) => {
  const { box } = await sandbox(t);
  const all = Array.from({ length: 200 }, async (_, index) => {
    const process = await start(
      box,
      `for i in 1 2 3; do echo out${index}; echo err${index} >&2; done; exit ${index % 100}`,
    );
    const [stdout, stderr] = await Promise.all([process.stdout.text(), process.stderr.text()]);
    assert.equal(stdout, `out${index}\n`.repeat(3));
    assert.equal(stderr, `err${index}\n`.repeat(3));
    assert.deepEqual(await process.wait(), { exitCode: index % 100, output: "complete" });
  });
  await Promise.all(all);
});

test("[C1] a slow reader loses nothing and holds no other stream back", async (t) => {
  const { box } = await sandbox(t);
  const process = await start(box, "head -c 8000000 /dev/zero | tr '\\0' x; echo end >&2");
  const slow = process.stdout[Symbol.asyncIterator]();
  let total = (await slow.next()).value.length;
  assert.equal(await process.stderr.text(), "end\n");
  for (let step = await slow.next(); !step.done; step = await slow.next()) {
    total += step.value.length;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(total, 8000000);
  assert.deepEqual(await process.wait(), { exitCode: 0, output: "complete" });
});

test("[L1] an unread process and an unfinished iterator let Node end; a pending wait does not", async (t) => {
  const { simulator, box } = await sandbox(t);
  const process = await start(box, "echo ready; sleep 3; exit 4");
  const saved = JSON.stringify({ process: process.reference, box: box.reference });
  const env = { SAVED: saved, RUNLOOP_BASE_URL: simulator.url };
  const waiting = await run(["wait"], env);
  assert.equal(waiting.code, 4, "wait() keeps the process alive until it resolves");
  const endless = await start(box, "echo ready; sleep 600");
  env.SAVED = JSON.stringify({ process: endless.reference, box: box.reference });
  for (const how of ["unread", "unfinished"]) {
    const ended = await run([how], env);
    assert.equal(ended.code, 0);
    assert.ok(ended.lingered < 1000, `${how}: ${ended.lingered} ms`);
  }
});

test("[R23] [R34] byte output and piped input are refused before any request", async (t) => {
  const { simulator, box } = await sandbox(t);
  await simulator.clearJournal();
  const refused = { code: "UNSUPPORTED", name: "UnsupportedFeatureError" };
  const output = { mode: "stream", format: "bytes" };
  await assert.rejects(box.processes.start({ command: ["true"], output }), refused);
  await assert.rejects(box.processes.start({ command: ["true"], stdin: "pipe" }), refused);
  await assert.rejects(box.exec("true", { onStdout() {} }), refused);
  assert.deepEqual((await simulator.journal()).lines, []);
});

/** Runs support/live-process.mjs, and says how long it lived after its last words. */
function run(args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SCRIPT, ...args], {
      env: { ...process.env, ...env, RUNLOOP_API_KEY: "ak_live_processes" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    let last = Date.now();
    child.stdout.setEncoding("utf8").on("data", (text) => {
      printed += text;
      last = Date.now();
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, printed, lingered: Date.now() - last }));
  });
}
