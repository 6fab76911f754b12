import assert from "node:assert/strict";
import test from "node:test";
import { memoryClient, rejection } from "./support/client.mjs";

async function started(t) {
  const memory = await memoryClient(t);
  const box = await memory.client.sandboxes.create();
  const handle = await box.processes.start({ command: ["server"] });
  return { ...memory, box, handle, process: memory.world.processes.get(handle.reference.id) };
}

const turn = () => new Promise(setImmediate);

test("waitForOutput finds what was written before the call, later, and across pieces", async (t) => {
  const { handle, process } = await started(t);
  process.write("stderr", "starting\n");
  assert.deepEqual(await handle.waitForOutput("start"), {
    stream: "stderr",
    text: "start",
    captures: [],
    groups: {},
  });
  const found = handle.waitForOutput(/port (?<port>\d+)(x)?!/g);
  for (const piece of "listening on po,rt 80,8,0!\n".split(",")) {
    process.write("stdout", piece);
    await turn();
  }
  assert.deepEqual(await found, {
    stream: "stdout",
    text: "port 8080!",
    captures: ["8080", undefined],
    groups: { port: "8080" },
  });
  assert.equal(process.readers.size, 0);
});

test("waitForOutput takes nothing from other iterators, and looks at the stream that it is told", async (t) => {
  const { handle, process } = await started(t);
  const iterator = handle.stdout[Symbol.asyncIterator]();
  const found = handle.waitForOutput("ready", { stream: "stdout" });
  process.write("stderr", "ready");
  process.write("stdout", "rea");
  await turn();
  process.write("stdout", "dy");
  assert.equal((await found).stream, "stdout");
  assert.deepEqual(
    [await iterator.next(), await iterator.next()].map((step) => step.value).join(""),
    "ready",
  );
});

test("a match never lies across the two streams", async (t) => {
  const { handle, process } = await started(t);
  const found = rejection(handle.waitForOutput("ready"));
  process.write("stdout", "rea");
  process.write("stderr", "dy");
  process.end(0);
  assert.equal((await found).code, "NOT_RUNNING");
});

test("what is held of a long output is bounded, and a match may lie anywhere in it", async (t) => {
  const { handle, process } = await started(t);
  const far = rejection(handle.waitForOutput(/a[-]*z/));
  const near = handle.waitForOutput(/b[-]*z/);
  process.write("stdout", "a");
  process.write("stdout", `${"-".repeat(65_536)}b`);
  process.write("stdout", "-".repeat(65_000));
  process.write("stdout", "z");
  assert.equal((await near).text.length, 65_002);
  process.end(0);
  const { code, stdout } = await far;
  assert.equal(code, "NOT_RUNNING");
  assert.equal(stdout.length, 65_536);
});

test("a process that ends without a match rejects with its exit code and its last, hidden output", async (t) => {
  const { handle, process } = await started(t);
  const failed = rejection(handle.waitForOutput("ready", { timeoutSeconds: 60 }));
  process.write("stderr", "hunter22: no such file\n");
  process.end(2);
  const error = await failed;
  assert.equal(error.code, "NOT_RUNNING");
  assert.equal(error.reason, "process_ended");
  assert.equal(error.operation, "process_wait_for_output");
  assert.deepEqual(error.resource, { kind: "process", id: handle.reference.id });
  assert.equal(error.outcome.exitCode, 2);
  assert.match(error.message, /ended with exit code 2 before/);
  assert.equal(Buffer.from(error.stderr).toString(), "hunter22: no such file\n");
  assert.doesNotMatch(JSON.stringify(error), /hunter22/);
});

test("waitForOutput ends with its time limit, its signal and the connection, and leaves no reader", async (t) => {
  const { handle, process, client } = await started(t);
  const late = await rejection(handle.waitForOutput("x", { timeoutSeconds: 0.01 }));
  assert.equal(late.code, "DEADLINE_EXCEEDED");
  const controller = new AbortController();
  const reason = new Error("enough");
  const stopped = rejection(handle.waitForOutput("x", { signal: controller.signal }));
  controller.abort(reason);
  assert.equal((await stopped).code, "CANCELLED");
  assert.equal((await stopped).cause, reason);
  const before = await rejection(handle.waitForOutput("x", { signal: controller.signal }));
  assert.equal(before.code, "CANCELLED");
  assert.equal(process.readers.size, 0);
  await client.close();
  assert.equal((await rejection(handle.waitForOutput("x"))).code, "CLOSED");
});

test("wrong arguments of waitForOutput are refused by name", async (t) => {
  const { handle } = await started(t);
  const wrong = [
    [undefined, undefined, /pattern must be a RegExp or a string/],
    ["", undefined, /pattern must not be empty/],
    ["x", { stream: "both" }, /stream must be "stdout" or "stderr" or "output"/],
    ["x", { timeoutSeconds: 0 }, /timeoutSeconds must be a number more than 0/],
    ["x", { timeout: 1 }, /unknown key "timeout"/],
    ["x", { signal: 1 }, /signal must be an AbortSignal/],
  ];
  for (const [pattern, options, message] of wrong) {
    const error = await rejection(handle.waitForOutput(pattern, options));
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.match(error.message, message);
  }
});

test("kill resolves when the provider has taken it, and wait gives the end", async (t) => {
  const { handle, process, world } = await started(t);
  let operation;
  assert.equal(
    await handle.kill({
      onSubmit(reference) {
        operation = reference;
      },
    }),
    undefined,
  );
  assert.equal(operation.operation, "process_terminate");
  assert.equal(operation.target.id, handle.reference.id);
  assert.deepEqual(await handle.wait(), { exitCode: 137, output: "complete" });
  assert.equal(process.exit.exitCode, 137);
  await assert.rejects(handle.kill({ force: true }), { message: /unknown key "force"/ });
  assert.deepEqual(
    world.methods.filter((each) => each === "kill"),
    ["kill"],
  );
});

test("kill is refused before anything is sent where the provider has none", async (t) => {
  const none = { status: "unsupported", reason: "There is none." };
  const { client, world } = await memoryClient(t, { capabilities: { "processes.kill": none } });
  const box = await client.sandboxes.create();
  const handle = await box.processes.start({ command: ["server"] });
  await assert.rejects(handle.kill(), { code: "UNSUPPORTED", feature: "processes.kill" });
  assert.ok(!world.methods.includes("kill"));
});
