import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { memoryClient, rejection } from "./support/client.mjs";
import { runloopClient } from "./support/runloop.mjs";

/** What a call tells, and the call's result. */
async function told(run) {
  const steps = [];
  const result = await run((progress) => void steps.push(progress));
  return { steps, result };
}

const phases = (steps) =>
  steps.map((step) => step.phase).filter((phase, at, all) => phase !== all[at - 1]);

test("create, restore and snapshot tell what they wait for, and that they are done", async (t) => {
  const { client } = await memoryClient(t);
  const created = await told((onProgress) => client.sandboxes.create({ onProgress }));
  assert.deepEqual(created.steps, [
    { phase: "submitting" },
    { phase: "waiting", state: "starting" },
    { phase: "done" },
  ]);
  const box = created.result;
  const captured = await told((onProgress) => box.snapshot({ onProgress }));
  assert.deepEqual(captured.steps, [
    { phase: "submitting" },
    { phase: "waiting", state: "creating" },
    { phase: "done" },
  ]);
  const { snapshot } = captured.result;
  const restored = await told((onProgress) => snapshot.restore({ onProgress }));
  assert.deepEqual(phases(restored.steps), ["submitting", "waiting", "done"]);
  const submitted = await told(async (onProgress) => {
    const operation = await client.sandboxes.submitCreate({ onProgress });
    await operation.wait();
    return await operation.wait();
  });
  assert.deepEqual(phases(submitted.steps), ["submitting", "waiting", "done"]);
});

test("a call that fails tells nothing of an end", async (t) => {
  const { client } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const steps = [];
  const onProgress = (progress) => void steps.push(progress.phase);
  assert.equal((await rejection(box.readFile("/none", { onProgress }))).code, "NOT_FOUND");
  assert.deepEqual(steps, ["downloading"]);
});

test("bytes are told at most ten times a second, a change of phase at once, the end always", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.onTransfer = (tell) => {
    for (let bytes = 1; bytes < 1000; bytes++)
      tell({ phase: "uploading", bytes, totalBytes: 1000 });
    tell({ phase: "finishing", bytes: 1000, totalBytes: 1000 });
  };
  const { steps } = await told((onProgress) =>
    box.writeFile("/a", new Uint8Array(1000), { overwrite: true, onProgress }),
  );
  assert.deepEqual(steps.at(0), { phase: "uploading", bytes: 0, totalBytes: 1000 });
  assert.ok(steps.length < 10, `${steps.length} steps`);
  assert.deepEqual(steps.slice(-2), [
    { phase: "finishing", bytes: 1000, totalBytes: 1000 },
    { phase: "done", bytes: 1000, totalBytes: 1000 },
  ]);
});

test("a callback that throws or rejects is called no more, warned of, and does not touch the call", async (t) => {
  const { client } = await memoryClient(t);
  const failing = [
    () => {
      throw new Error("mine");
    },
    async () => {
      throw new Error("mine");
    },
  ];
  for (const fail of failing) {
    let calls = 0;
    const warned = once(process, "warning");
    await client.sandboxes.create({
      onProgress() {
        calls += 1;
        return fail();
      },
    });
    const [warning] = await warned;
    assert.equal(warning.code, "BEACHSIDE_CALLBACK");
    assert.match(warning.detail, /mine/);
    assert.ok(calls < 3);
  }
  await assert.rejects(client.sandboxes.create({ onProgress: 1 }), {
    code: "INVALID_ARGUMENT",
    message: /onProgress must be a function/,
  });
});

test("an upload and a download through the addon tell of their bytes, in order, and end with all", async (t) => {
  const { client } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const content = new Uint8Array(8 * 1024 * 1024).map((_, index) => index % 251);
  const written = await told((onProgress) =>
    box.writeFile("/tmp/large", content, { overwrite: true, onProgress }),
  );
  assert.deepEqual(phases(written.steps), ["uploading", "finishing", "done"]);
  const read = await told((onProgress) => box.readFile("/tmp/large", { onProgress }));
  assert.deepEqual(phases(read.steps), ["downloading", "done"]);
  assert.ok(read.steps.some((step) => step.totalBytes === content.length && step.phase !== "done"));
  assert.ok(Buffer.from(read.result).equals(content));
  for (const { steps } of [written, read]) {
    const bytes = steps.map((step) => step.bytes);
    assert.deepEqual(
      bytes,
      bytes.toSorted((a, b) => a - b),
    );
    assert.deepEqual(steps.at(-1), {
      phase: "done",
      bytes: content.length,
      totalBytes: content.length,
    });
  }
  const small = await told((onProgress) =>
    box.writeFile("/tmp/small", "hi", { overwrite: true, onProgress }),
  );
  assert.deepEqual(phases(small.steps), ["uploading", "done"]);
  await box.destroy();
});
