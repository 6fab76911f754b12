import assert from "node:assert/strict";
import test from "node:test";
import {
  Beachside,
  BeachsideError,
  MAX_MOUNTS_JSON_BYTES,
  validateResourceReference,
} from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";

const lenient = { cleanup: { storage: "allow-unconfirmed" } };

test("[V11] a volume is made, mounted, written through and outlives its sandbox", async (t) => {
  const { client } = await memoryClient(t, lenient);
  const volume = await client.volumes.create({ name: "workspace-data" });
  assert.equal((await volume.inspect()).state, "ready");
  const box = await client.sandboxes.create({ mounts: [volume.at("/mnt/workspace")] });
  await box.writeFile("/mnt/workspace/a.bin", new Uint8Array([0, 255]), { overwrite: true });
  const cleanup = await box.destroy();
  assert.equal(cleanup.mountDurability, "unconfirmed");
  const next = await client.sandboxes.create({ mounts: [volume.at("/data")] });
  assert.deepEqual(await next.readFile("/data/a.bin"), new Uint8Array([0, 255]));
  await next.destroy();
  assert.deepEqual(await volume.delete(), { state: "deleted", alreadyGone: false });
  const { items } = await client.volumes.list({ limit: 20 });
  assert.deepEqual(items, []);
});

test("[V11] at() calls no provider, and checks the path at once", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  world.calls.length = 0;
  assert.deepEqual(volume.at("/mnt/a", { subpath: "x/y", readOnly: true }), {
    volume: volume.reference,
    path: "/mnt/a",
    subpath: "x/y",
    readOnly: true,
  });
  const wrong = [
    [["mnt/a"], /path must be absolute/],
    [["/"], /root folder/],
    [["/mnt/"], /normalized/],
    [["/mnt//a"], /normalized/],
    [["/mnt/../a"], /normalized/],
    [["/mnt/./a"], /normalized/],
    [["/a", { subpath: "/x" }], /subpath must be relative/],
    [["/a", { subpath: "x/.." }], /subpath must be normalized/],
    [["/a", { readonly: true }], /did you mean "readOnly"/],
    [["/a", { readOnly: "yes" }], /readOnly must be true or false/],
  ];
  for (const [args, message] of wrong) {
    assert.throws(() => volume.at(...args), { code: "INVALID_ARGUMENT", message });
  }
  assert.deepEqual(world.calls, []);
});

test("[V12] mounts that are reserved, overlapping, malformed or legacy are refused before any request", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const other = await client.volumes.create({ name: "b" });
  world.calls.length = 0;
  const descriptor = volume.at("/mnt/a");
  const wrong = [
    [[volume.at("/proc/x")], /at or below \/proc, which is reserved/],
    [[volume.at("/tmp")], /reserved/],
    [[volume.at("/mnt/a"), other.at("/mnt/a/b")], /overlap/],
    [[volume.at("/mnt/a"), other.at("/mnt/a")], /overlap/],
    [[{ ...descriptor, path: "/mnt/../etc" }], /mounts\[0\]\.path must be normalized/],
    [[{ ...descriptor, mode: "rw" }], /mounts\[0\] has an unknown key "mode"/],
    [[{ ...descriptor, volume: undefined }], /must be a plain object/],
    [["/mnt/a"], /mounts\[0\] must be what volume\.at/],
    ["/mnt/a", /mounts must be an array/],
    [{ share: { "/mnt/a": volume.reference } }, /share, replace and omit maps are no longer/],
  ];
  for (const [mounts, message] of wrong) {
    await assert.rejects(client.sandboxes.create({ mounts }), {
      code: "INVALID_ARGUMENT",
      message,
    });
  }
  assert.deepEqual(world.calls, []);
  for (const mounts of [{}, [], undefined]) {
    const box = await client.sandboxes.create({ mounts });
    assert.deepEqual(box.reference.mounts, []);
  }
  const siblings = await client.sandboxes.create({
    mounts: [volume.at("/mnt/a"), other.at("/mnt/ab")],
  });
  assert.equal(siblings.reference.mounts.length, 2);
});

test("a volume of another account, or one that is not ready, is refused and nothing is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const foreign = { ...volume.reference, scope: { account: "acct_2" } };
  const strange = await rejection(
    client.sandboxes.create({ mounts: [{ volume: foreign, path: "/mnt/a", readOnly: false }] }),
  );
  assert.equal(strange.code, "SCOPE_MISMATCH");
  world.volumes.get(volume.reference.id).state = "creating";
  const early = await rejection(client.sandboxes.create({ mounts: [volume.at("/mnt/a")] }));
  assert.equal(early.code, "CONFLICT");
  assert.deepEqual(early.resource, { kind: "volume", id: volume.reference.id });
  assert.equal(early.outcome.submitted, false);
  assert.equal(world.methods.includes("createSandbox"), false);
});

test("[V32] mounts that would not fit into a saved reference are refused before anything is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  world.calls.length = 0;
  const mounts = Array.from({ length: 100 }, (_, index) =>
    volume.at(`/mnt/${"x".repeat(200)}${index}`),
  );
  await assert.rejects(client.sandboxes.create({ mounts }), {
    code: "INVALID_ARGUMENT",
    message: new RegExp(`${MAX_MOUNTS_JSON_BYTES} bytes`),
  });
  assert.deepEqual(world.calls, []);
});

test("[V14] [V31] require-durable prevents destroying a mounted sandbox, and the call's policy wins over the connection's", async (t) => {
  for (const [policy, override] of [
    [undefined, "allow-unconfirmed"],
    ["require-durable", "allow-unconfirmed"],
  ]) {
    const { client, world } = await memoryClient(t, { cleanup: policy && { storage: policy } });
    const volume = await client.volumes.create({ name: "a" });
    const box = await client.sandboxes.create({ mounts: [volume.at("/mnt/a")] });
    world.calls.length = 0;
    for (const call of ["destroy", "submitDestroy"]) {
      const error = await rejection(box[call]());
      assert.equal(error.name, "UnsupportedFeatureError");
      assert.equal(error.unmetRequirements[0].requirement, "cleanup.storage");
    }
    assert.deepEqual(world.calls, []);
    assert.equal((await box.destroy({ storage: override })).mountDurability, "unconfirmed");
  }
  const { client, world } = await memoryClient(t, lenient);
  const volume = await client.volumes.create({ name: "a" });
  const box = await client.sandboxes.create({ mounts: [volume.at("/mnt/a")] });
  await assert.rejects(box.destroy({ storage: "require-durable" }), { code: "UNSUPPORTED" });
  assert.equal(world.methods.includes("destroySandbox"), false);
  await assert.rejects(box.destroy({ storage: "maybe" }), { code: "INVALID_ARGUMENT" });
});

test("[V14] destroy says not_applicable without writable mounts, and confirmed where the provider can", async (t) => {
  const { client } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const bare = await client.sandboxes.create();
  assert.equal((await bare.destroy()).mountDurability, "not_applicable");
  const reading = await client.sandboxes.create({
    mounts: [volume.at("/mnt/a", { readOnly: true })],
  });
  assert.equal((await reading.destroy()).mountDurability, "not_applicable");

  const durable = await memoryClient(t, {
    capabilities: { "volumes.mount": { value: { durability: "confirmed" } } },
  });
  const disk = await durable.client.volumes.create({ name: "a" });
  const box = await durable.client.sandboxes.create({ mounts: [disk.at("/mnt/a")] });
  assert.equal((await box.destroy()).mountDurability, "confirmed");
});

test("[V31] a reopened sandbox keeps its mounts, so the policy still holds", async (t) => {
  const { client, adapter, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const box = await client.sandboxes.create({ mounts: [volume.at("/mnt/a", { subpath: "s" })] });
  const next = await Beachside.connect({ adapter });
  t.after(() => next.close());
  const again = await next.sandboxes.get(JSON.parse(JSON.stringify(box.reference)));
  assert.deepEqual(again.reference.mounts, [
    { volume: volume.reference.id, path: "/mnt/a", subpath: "s", readOnly: false },
  ]);
  await assert.rejects(again.destroy(), { code: "UNSUPPORTED" });
  assert.equal(world.methods.includes("destroySandbox"), false);
});

test("[V28] a sandbox with mounted volumes cannot be captured, and checkSnapshot says so", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const box = await client.sandboxes.create({ mounts: [volume.at("/mnt/a")] });
  world.calls.length = 0;
  const check = await box.checkSnapshot();
  assert.equal(check.status, "unsupported");
  assert.match(check.reason, /mounted volumes cannot be captured/);
  const error = await rejection(box.snapshot());
  assert.equal(error.unmetRequirements[0].requirement, "snapshots.capture.mounts");
  assert.deepEqual(world.calls, []);
});

test("[V13] [V29] a restore with mounts needs a snapshot known to have none, and writable mounts", async (t) => {
  const { client, world, adapter } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const source = await client.sandboxes.create();
  await source.writeFile("/data/hidden", "private", { overwrite: true });
  const { snapshot } = await source.snapshot();
  assert.deepEqual(snapshot.reference.mounts, []);
  await source.destroy();

  const next = await Beachside.connect({ adapter, cleanup: { storage: "allow-unconfirmed" } });
  t.after(() => next.close());
  const saved = validateResourceReference(JSON.parse(JSON.stringify(snapshot.reference)));
  const reopened = await next.snapshots.get(saved);
  const data = await next.volumes.get(volume.reference);
  const restored = await reopened.restore({ mounts: [data.at("/data")] });
  assert.deepEqual(restored.reference.mounts, [
    { volume: volume.reference.id, path: "/data", readOnly: false },
  ]);
  await assert.rejects(restored.readFile("/data/hidden"), { code: "NOT_FOUND" });
  const plain = await reopened.restore();
  assert.equal(await plain.readTextFile("/data/hidden"), "private");

  const { items } = await next.snapshots.list();
  const listed = await next.snapshots.get(items[0].reference);
  assert.equal(listed.reference.mounts, "unknown");
  world.calls.length = 0;
  const unknown = await rejection(listed.restore({ mounts: [data.at("/data")] }));
  assert.equal(unknown.unmetRequirements[0].requirement, "snapshots.restore.mountHistory");
  const readOnly = await rejection(
    reopened.restore({ mounts: [data.at("/data", { readOnly: true })] }),
  );
  assert.equal(readOnly.unmetRequirements[0].requirement, "snapshots.restore.readOnly");
  assert.deepEqual(world.calls, []);
});

test("[V13] an adapter that does not declare mount specs is given none on restore", async (t) => {
  const { client, world } = await memoryClient(t, {
    capabilities: { "snapshots.restore": { value: { mountInput: undefined } } },
  });
  const volume = await client.volumes.create({ name: "a" });
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  world.calls.length = 0;
  const error = await rejection(snapshot.restore({ mounts: [volume.at("/data")] }));
  assert.equal(error.unmetRequirements[0].requirement, "snapshots.restore.mountInput");
  assert.deepEqual(world.calls, []);
  await snapshot.restore({ mounts: [] });
});

test("[V29] a snapshot that keeps memory cannot be restored with mounts", async (t) => {
  const { client } = await memoryClient(t, {
    capabilities: {
      "snapshots.capture": { value: { preserve: "filesystem+memory" } },
      "snapshots.restore": { value: { execution: "resumed" } },
    },
  });
  const volume = await client.volumes.create({ name: "a" });
  const source = await client.sandboxes.create();
  const { snapshot, capture } = await source.snapshot({
    requirements: { preserve: "filesystem+memory" },
  });
  assert.equal(capture.restoredExecution, "resumed");
  const error = await rejection(snapshot.restore({ mounts: [volume.at("/data")] }));
  assert.equal(error.unmetRequirements[0].requirement, "snapshots.restore.execution");
});

test("[V33] clean-up never adopts borrowed volumes", async (t) => {
  const { client, world } = await memoryClient(t, lenient);
  const volume = await client.volumes.create({ name: "a" });
  await client.sandboxes.with({ mounts: [volume.at("/mnt/a")] }, () => {});
  assert.equal(world.methods.includes("deleteVolume"), false);
  assert.equal((await volume.inspect()).state, "ready");
});

test("[V33] under require-durable, with() reports the mounted sandbox that it left", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  const mine = new Error("mine");
  const error = await rejection(
    client.sandboxes.with({ mounts: [volume.at("/mnt/a")] }, () => Promise.reject(mine)),
  );
  assert.equal(error, mine);
  const [left] = error.cleanup.notCleaned;
  assert.equal(left.resource.kind, "sandbox");
  assert.match(left.reason, /durable/);
  assert.equal(world.methods.includes("destroySandbox"), false);
});

test("[V19] volumes have submit forms, and [V15] reopen by reference", async (t) => {
  const { client, world } = await memoryClient(t);
  const operation = await client.volumes.submitCreate({ name: "a" });
  assert.equal(operation.reference.operation, "volume_create");
  const volume = await operation.wait();
  const { markers } = world.calls.find((each) => each.method === "createVolume").request;
  assert.deepEqual(volume.reference.ownership, { state: "created", ...markers });
  const again = await client.volumes.get(volume.reference);
  assert.deepEqual(again.reference, volume.reference);
  const deletion = await again.submitDelete();
  assert.deepEqual(await deletion.wait(), { state: "deleted", alreadyGone: false });
  await assert.rejects(client.volumes.get(volume.reference), { code: "NOT_FOUND" });
  for (const options of [undefined, {}, { name: "" }, { name: 5 }]) {
    await assert.rejects(client.volumes.create(options), { code: "INVALID_ARGUMENT" });
  }
});

test("[V18] volumes are listed in bounded pages", async (t) => {
  const { client } = await memoryClient(t);
  for (const name of ["a", "b", "c"]) await client.volumes.create({ name });
  const page = await client.volumes.list({ limit: 2 });
  assert.deepEqual(
    page.items.map((each) => [each.name, each.ownership.state]),
    [
      ["a", "created"],
      ["b", "created"],
    ],
  );
  assert.deepEqual(page.coverage, { complete: true });
  const rest = await client.volumes.list({ limit: 2, cursor: page.cursor });
  assert.deepEqual([rest.items.length, rest.cursor], [1, null]);
});

test("[V33] a failed create with mounts keeps the sandbox's mounts in its reference", async (t) => {
  const { client, world } = await memoryClient(t);
  const volume = await client.volumes.create({ name: "a" });
  world.fail("waitForSandbox", new BeachsideError("Slow.", { code: "DEADLINE_EXCEEDED" }));
  const error = await rejection(client.sandboxes.create({ mounts: [volume.at("/mnt/a")] }));
  assert.deepEqual(error.outcome.sandbox.mounts, [
    { volume: volume.reference.id, path: "/mnt/a", readOnly: false },
  ]);
});
