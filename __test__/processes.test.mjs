import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { validateResourceReference } from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";

async function started(t) {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  const handle = await box.processes.start({
    command: ["server"],
    cwd: "/srv",
    env: { A: "1" },
    output: { mode: "stream" },
  });
  return { ...memory, box, handle, process: memory.world.processes.get(handle.reference.id) };
}

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

test("a process streams its output as text and ends with its exit", async (t) => {
  const { handle, process, world, box } = await started(t);
  const { request } = world.calls.find((each) => each.method === "startProcess");
  assert.deepEqual(request, {
    sandboxId: box.reference.id,
    command: ["server"],
    cwd: "/srv",
    env: { A: "1" },
  });
  const reading = Promise.all([
    collect(handle.stdout),
    collect(handle.stderr),
    collect(handle.output),
    handle.stdout.text(),
  ]);
  process.write("stdout", "a");
  process.write("stderr", "b");
  process.write("stdout", "c");
  assert.deepEqual(await handle.status(), { state: "running", exitCode: null });
  process.end(3, "incomplete");
  assert.deepEqual(await reading, [
    ["a", "c"],
    ["b"],
    [
      { stream: "stdout", text: "a" },
      { stream: "stderr", text: "b" },
      { stream: "stdout", text: "c" },
    ],
    "ac",
  ]);
  assert.deepEqual(await handle.wait(), { exitCode: 3, output: "incomplete" });
  assert.deepEqual(await handle.status(), { state: "exited", exitCode: 3 });
});

test("pieces keep their order when next() is called many times at once", async (t) => {
  const { handle, process } = await started(t);
  const iterator = handle.stdout[Symbol.asyncIterator]();
  const steps = Array.from({ length: 8 }, () => iterator.next());
  process.write("stdout", "0");
  process.write("stdout", "1");
  await new Promise(setImmediate);
  for (const text of ["2", "3", "4"]) process.write("stdout", text);
  process.end(0);
  const values = (await Promise.all(steps)).map((step) => step.value);
  assert.deepEqual(values, ["0", "1", "2", "3", "4", undefined, undefined, undefined]);
});

test("leaving a quiet stream ends at once and settles a pending next()", async (t) => {
  const { handle, process } = await started(t);
  const iterator = handle.stdout[Symbol.asyncIterator]();
  const pending = iterator.next();
  assert.deepEqual(await iterator.return(), { done: true, value: undefined });
  assert.deepEqual(await pending, { done: true, value: undefined });
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  process.write("stdout", "later");
  for await (const piece of handle.stdout) {
    assert.equal(piece, "later");
    break;
  }
  assert.equal(process.readers.size, 0);
});

test("[F7] a signal ends a reading, with its reason, and leaves nothing on itself", async (t) => {
  const { handle, process } = await started(t);
  const stop = new AbortController();
  const { signal } = stop;
  const reason = new Error("enough");
  const text = rejection(handle.stderr.text({ signal }));
  const iterator = handle.output.read({ signal })[Symbol.asyncIterator]();
  process.write("stdout", "one");
  assert.deepEqual((await iterator.next()).value, { stream: "stdout", text: "one" });
  const pending = rejection(iterator.next());
  stop.abort(reason);
  for (const error of [await text, await pending]) {
    assert.equal(error.code, "CANCELLED");
    assert.equal(error.operation, "process_read");
    assert.equal(error.cause, reason);
  }
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  assert.equal(process.readers.size, 0);
  assert.equal((await rejection(handle.stdout.text({ signal }))).code, "CANCELLED");

  // What is held already is not given either, and reading to the end leaves no listener.
  const later = new AbortController();
  process.write("stdout", "two");
  const held = handle.stdout.read({ signal: later.signal })[Symbol.asyncIterator]();
  assert.equal((await held.next()).value, "one");
  later.abort();
  assert.equal((await rejection(held.next())).code, "CANCELLED");
  const quiet = new AbortController();
  process.end(0);
  assert.equal(await handle.stdout.text({ signal: quiet.signal }), "onetwo");
  assert.deepEqual(getEventListeners(quiet.signal, "abort"), []);
  assert.throws(() => handle.stdout.read({ sginal: quiet.signal }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(handle.stdout.text({ signal: 7 }), { code: "INVALID_ARGUMENT" });
});

test("terminate kills and gives the exit; detach ends reading and leaves the process", async (t) => {
  const { handle, process, box } = await started(t);
  const reading = collect(handle.output);
  await handle.detach();
  assert.deepEqual(await reading, []);
  assert.equal(process.exit, null);
  const saved = JSON.parse(JSON.stringify(handle.reference));
  const again = await box.processes.get(validateResourceReference(saved));
  let operation;
  const exit = await again.terminate({
    onSubmit(reference) {
      operation = reference;
    },
  });
  assert.deepEqual(exit, { exitCode: 137, output: "complete" });
  assert.equal(operation.operation, "process_terminate");
  assert.equal(operation.target.id, handle.reference.id);
});

test("a saved process reopens at its offsets, as one whose origin is not proven", async (t) => {
  const { handle, process, box, world } = await started(t);
  process.write("stdout", "seen");
  const iterator = handle.stdout[Symbol.asyncIterator]();
  await iterator.next();
  const { stdout: stdoutOffset } = handle.offsets();
  assert.equal(stdoutOffset, 4);
  const again = await box.processes.get(handle.reference, { stdoutOffset });
  assert.deepEqual(again.reference.ownership, { state: "unknown" });
  process.write("stdout", "new");
  process.end(0);
  assert.equal(await again.stdout.text(), "new");
  assert.deepEqual(world.calls.find((each) => each.method === "openProcess").request, {
    sandboxId: box.reference.id,
    processId: handle.reference.id,
    stdoutOffset: 4,
  });
});

test("a process of another sandbox, kind or account is refused before any request", async (t) => {
  const { handle, client, box, world } = await started(t);
  const other = await client.sandboxes.create();
  world.calls.length = 0;
  const wrong = [
    [other, handle.reference, /another sandbox/],
    [box, box.reference, /not of a sandbox/],
    [box, { ...handle.reference, scope: { account: "x" } }, /account "x"/],
    [box, { ...handle.reference, sandbox: undefined }, /reference\.sandbox is missing/],
  ];
  for (const [sandbox, reference, message] of wrong) {
    assert.match((await rejection(sandbox.processes.get(reference))).message, message);
  }
  await assert.rejects(box.processes.get(handle.reference, { stdoutOffset: -1 }), {
    message: /stdoutOffset must be a whole number from 0/,
  });
  assert.deepEqual(world.calls, []);
});

test("[R34] byte output and piped input reject as unsupported before anything is sent", async (t) => {
  const { box, world } = await started(t);
  world.calls.length = 0;
  const refused = {
    "processes.bytes": { output: { mode: "stream", format: "bytes" } },
    "processes.stdin": { stdin: "pipe" },
  };
  for (const [feature, options] of Object.entries(refused)) {
    const error = await rejection(box.processes.start({ command: "x", ...options }));
    assert.equal(error.name, "UnsupportedFeatureError");
    assert.equal(error.feature, feature);
  }
  const wrong = [
    [undefined, /command must be an array/],
    [{}, /command must be an array/],
    [{ command: "x", output: "stream" }, /output must be \{ mode: "stream" \}/],
    [{ command: "x", output: { mode: "buffer" } }, /output\.mode must be "stream"/],
    [{ command: "x", output: { mode: "stream", format: "lines" } }, /output\.format/],
    [{ command: "x", stdin: "inherit" }, /stdin must be "ignore" or "pipe"/],
    [{ command: "x", timeoutSeconds: 5 }, /unknown key "timeoutSeconds"/],
  ];
  for (const [options, message] of wrong) {
    await assert.rejects(box.processes.start(options), { code: "INVALID_ARGUMENT", message });
  }
  assert.deepEqual(world.calls, []);
});

test("[V21] a start whose answer is lost names the operation, and the process where it is known", async (t) => {
  const { box, world } = await started(t);
  const { BeachsideError } = await import("beachside");
  world.fail(
    "startProcess",
    new BeachsideError("Lost.", {
      code: "OUTCOME_UNKNOWN",
      outcome: { submitted: true, processId: "process_9" },
    }),
  );
  const error = await rejection(box.processes.start({ command: "x" }));
  assert.equal(error.outcome.kind, "process_start");
  assert.equal(error.outcome.process.id, "process_9");
  assert.equal(error.outcome.process.sandbox, box.reference.id);
  assert.deepEqual(error.outcome.sandbox, box.reference);
});
