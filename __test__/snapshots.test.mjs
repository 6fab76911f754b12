import assert from "node:assert/strict";
import test from "node:test";
import { Beachside, BeachsideError, Preserve, validateResourceReference } from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";
import { memoryAdapter } from "./support/memory-adapter.mjs";

const stops = {
  "snapshots.capture": { value: { interruption: "stop", sourceAfter: "running" } },
};

test("[V3] snapshot gives the handle, what was kept, and how the source is afterwards", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  await source.writeFile("/a", "kept", { overwrite: true });
  const captured = await source.snapshot();
  assert.equal(captured.snapshot.reference.kind, "snapshot");
  assert.equal(captured.snapshot.reference.ownership.state, "created");
  assert.deepEqual(captured.capture, {
    preserve: "filesystem",
    interruption: "pause",
    restoredExecution: "fresh",
    retentionSeconds: null,
    consistency: "unknown",
  });
  assert.deepEqual(captured.source, { reference: source.reference, state: "running" });
  assert.equal((await captured.snapshot.inspect()).state, "ready");
  const sent = world.calls.find((each) => each.method === "captureSnapshot").request;
  assert.deepEqual(captured.snapshot.reference.ownership, { state: "created", ...sent.markers });
});

test("[V1] checkSnapshot says whether a capture would be accepted, and changes nothing", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  world.calls.length = 0;
  assert.deepEqual(await source.checkSnapshot(), { status: "supported" });
  const memory = await source.checkSnapshot({
    requirements: { preserve: Preserve.FILESYSTEM_AND_MEMORY },
  });
  assert.equal(memory.status, "unsupported");
  assert.match(memory.reason, /keeps filesystem, not filesystem\+memory/);
  await source.suspend();
  assert.equal((await source.checkSnapshot()).status, "unknown");
  await source.destroy();
  assert.match((await source.checkSnapshot()).reason, /destroyed/);
  assert.equal(world.snapshots.size, 0);

  const none = { "snapshots.capture": { status: "unsupported", reason: "There are none." } };
  const other = await memoryClient(t, { capabilities: none });
  const box = await other.client.sandboxes.create();
  assert.deepEqual(await box.checkSnapshot(), { status: "unsupported", reason: "There are none." });
  const error = await rejection(box.snapshot());
  assert.equal(error.feature, "snapshots.capture");
});

test("[V7] [V8] requirements of a capture are checked, and say which is unmet and why, before anything is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  await source.snapshot({ requirements: { preserve: "filesystem", maxInterruption: "pause" } });
  await source.snapshot({ requirements: { maxInterruption: "stop" } });
  world.calls.length = 0;
  const error = await rejection(
    source.snapshot({
      requirements: { preserve: "filesystem+memory", maxInterruption: "none" },
    }),
  );
  assert.equal(error.name, "UnsupportedFeatureError");
  assert.deepEqual(
    error.unmetRequirements.map((each) => each.requirement),
    ["snapshots.preserve", "snapshots.maxInterruption"],
  );
  for (const { reason } of error.unmetRequirements) assert.match(reason, /\.$/);
  assert.deepEqual(world.calls, []);
});

test("[V9] a minimum retention is checked against the configured expiry before capture", async (t) => {
  const { client } = await memoryClient(t);
  const source = await client.sandboxes.create();
  await source.snapshot({ retention: { minimumSeconds: Number.MAX_SAFE_INTEGER } });

  const expiring = await memoryClient(t, {
    capabilities: { "snapshots.capture": { value: { retentionSeconds: 3600 } } },
  });
  const box = await expiring.client.sandboxes.create();
  await box.snapshot({ retention: { minimumSeconds: 3600 } });
  expiring.world.calls.length = 0;
  const error = await rejection(box.snapshot({ retention: { minimumSeconds: 3601 } }));
  assert.equal(error.unmetRequirements[0].requirement, "snapshots.retention");
  assert.deepEqual(expiring.world.calls, []);
});

test("[V10] the caller's consistency is recorded, and is unknown otherwise", async (t) => {
  const { client } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const { capture } = await source.snapshot({ consistency: "caller-quiesced" });
  assert.equal(capture.consistency, "caller-quiesced");
  assert.equal((await source.snapshot()).capture.consistency, "unknown");
  await assert.rejects(source.snapshot({ consistency: "quiesced" }), {
    code: "INVALID_ARGUMENT",
    message: /consistency must be "caller-quiesced"/,
  });
});

test("wrong options of a capture are refused by name before anything is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  world.calls.length = 0;
  const wrong = [
    [{ requirement: {} }, /did you mean "requirements"/],
    [{ requirements: { preserves: "x" } }, /did you mean "preserve"/],
    [{ requirements: { preserve: "disk" } }, /requirements\.preserve must be/],
    [{ requirements: { maxInterruption: "restart" } }, /maxInterruption must be/],
    [{ retention: 5 }, /retention must be a plain object/],
    [{ retention: { minimumSeconds: -1 } }, /minimumSeconds must be a whole number from 0/],
    [{ labels: { a: 1 } }, /labels\.a must be a string/],
  ];
  for (const [options, message] of wrong) {
    await assert.rejects(source.snapshot(options), { code: "INVALID_ARGUMENT", message });
  }
  assert.deepEqual(world.calls, []);
});

test("labels of a snapshot are carried where the adapter has them, and refused where not", async (t) => {
  const { client } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot({ labels: { job: "ci" } });
  assert.deepEqual((await snapshot.inspect()).labels, { job: "ci" });

  const none = { "snapshots.capture": { value: { labels: false } } };
  const other = await memoryClient(t, { capabilities: none });
  const box = await other.client.sandboxes.create();
  const error = await rejection(box.snapshot({ labels: { job: "ci" } }));
  assert.equal(error.unmetRequirements[0].requirement, "snapshots.capture.labels");
});

test("[V4] a snapshot's reference survives JSON and reopens on a new connection after its source is gone", async (t) => {
  const { client, adapter } = await memoryClient(t);
  const source = await client.sandboxes.create();
  await source.writeFile("/a", "kept", { overwrite: true });
  const { snapshot } = await source.snapshot();
  await source.destroy();
  await client.close();
  const next = await Beachside.connect({ adapter });
  t.after(() => next.close());
  const saved = validateResourceReference(JSON.parse(JSON.stringify(snapshot.reference)));
  const again = await next.snapshots.get(saved);
  assert.deepEqual(again.reference, snapshot.reference);
  const restored = await again.restore();
  assert.equal(await restored.readTextFile("/a"), "kept");
  const tampered = { ...saved, ownership: { ...saved.ownership, operation: "guess" } };
  assert.deepEqual((await next.snapshots.get(tampered)).reference.ownership, { state: "unknown" });
  await assert.rejects(next.snapshots.get(restored.reference), { message: /not of a sandbox/ });
});

test("[V24] deleting a snapshot leaves its source and what was restored from it", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  const restored = await snapshot.restore();
  assert.deepEqual(await snapshot.delete(), { state: "deleted", alreadyGone: false });
  assert.deepEqual(await snapshot.delete(), { state: "deleted", alreadyGone: true });
  const operation = await snapshot.submitDelete();
  assert.equal((await operation.wait()).alreadyGone, true);
  assert.equal((await source.inspect()).state, "running");
  assert.equal((await restored.inspect()).state, "running");
  await source.destroy();
  assert.equal((await restored.inspect()).state, "running");
  assert.equal(world.snapshots.size, 0);
});

test("[V18] snapshots are listed in bounded pages with ownership and source", async (t) => {
  const { client, adapter } = await memoryClient(t);
  const source = await client.sandboxes.create();
  for (let index = 0; index < 3; index++) await source.snapshot();
  const page = await client.snapshots.list({ limit: 2 });
  assert.equal(page.items.length, 2);
  assert.deepEqual(page.coverage, { complete: true });
  assert.equal(page.items[0].ownership.state, "created");
  assert.equal(page.items[0].source, source.reference.id);
  assert.equal(page.items[0].reference.mounts, "unknown");
  const other = await Beachside.connect({ adapter });
  t.after(() => other.close());
  const states = [];
  for await (const item of other.snapshots.list({ limit: 2 })) states.push(item.ownership.state);
  assert.deepEqual(states, ["unknown", "unknown", "unknown"]);
});

test("[V5] restore applies its options, and an empty override counts as omitted", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  world.calls.length = 0;
  const restored = await snapshot.restore({
    env: { TOKEN: "x" },
    lifecycle: { lifetimeSeconds: 1800 },
    labels: {},
    mounts: [],
    resources: {},
  });
  const { markers, ...request } = world.calls[0].request;
  assert.deepEqual(request, {
    env: { TOKEN: "x" },
    lifecycle: { lifetimeSeconds: 1800 },
    snapshotId: snapshot.reference.id,
  });
  assert.deepEqual(restored.reference.ownership, { state: "created", ...markers });
  assert.equal((await restored.inspect()).snapshot, snapshot.reference.id);
});

test("[V2] [V5] restore refuses what capabilities().snapshots.restore does not list, before any request", async (t) => {
  const capabilities = {
    "snapshots.restore": { options: ["env"] },
    "volumes.mount": { status: "unsupported", reason: "There are no volumes." },
  };
  const { client, world } = await memoryClient(t, { capabilities });
  const leaf = (await client.capabilities()).snapshots.restore;
  assert.equal(leaf.status, "supported");
  assert.deepEqual(leaf.options, ["env"]);
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  world.calls.length = 0;
  const volume = {
    version: 1,
    kind: "volume",
    provider: "memory",
    scope: { account: "acct_1" },
    id: "vol_1",
    ownership: { state: "unknown" },
  };
  const refused = {
    "snapshots.restore.lifecycle": { lifecycle: { lifetimeSeconds: 60 } },
    "snapshots.restore.labels": { labels: { a: "b" } },
    "snapshots.restore.resources": { resources: { vcpus: 2 } },
    "volumes.mount": { mounts: [{ volume, path: "/mnt/a" }] },
    "network.allow": { network: { allow: [] } },
  };
  for (const [feature, options] of Object.entries(refused)) {
    const error = await rejection(snapshot.restore(options));
    assert.equal(error.name, "UnsupportedFeatureError", feature);
    assert.equal(error.feature, feature);
    assert.equal(error.unmetRequirements[0].requirement, feature);
  }
  await assert.rejects(snapshot.restore({ region: "eu" }), { code: "INVALID_ARGUMENT" });
  assert.deepEqual(world.calls, []);
});

test("[V6] restore uses the connection's network when it is omitted, and passes a supported override", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  await snapshot.restore();
  assert.equal(
    "network" in world.calls.findLast((c) => c.method === "createSandbox").request,
    false,
  );
  await snapshot.restore({ network: "internet" });
  assert.equal(
    world.calls.findLast((c) => c.method === "createSandbox").request.network,
    "internet",
  );
});

test("[V30] a restore requires an independent life cycle unless the caller accepts another", async (t) => {
  const capabilities = { "snapshots.restore": { value: { lifecycle: "dependent" } } };
  const { client, world } = await memoryClient(t, { capabilities });
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  world.calls.length = 0;
  const error = await rejection(snapshot.restore());
  assert.equal(error.unmetRequirements[0].requirement, "snapshots.restore.lifecycle");
  assert.deepEqual(world.calls, []);
  await snapshot.restore({ requirements: { lifecycle: "any" } });
});

test("a source that a capture stops is restarted, and one that was stopped stays stopped", async (t) => {
  const { client, world } = await memoryClient(t, { capabilities: stops });
  const source = await client.sandboxes.create();
  const captured = await source.snapshot();
  assert.equal(captured.source.state, "running");
  assert.equal(world.methods.filter((each) => each === "resumeSandbox").length, 1);
  await source.suspend();
  assert.equal((await source.snapshot()).source.state, "suspended");
  assert.equal(world.methods.filter((each) => each === "resumeSandbox").length, 1);
});

test("[V22] a restart that fails keeps the snapshot: SOURCE_RESTART_FAILED", async (t) => {
  const { client, world } = await memoryClient(t, { capabilities: stops });
  const source = await client.sandboxes.create();
  world.fail("resumeSandbox", new BeachsideError("No capacity.", { code: "REJECTED" }));
  const operation = await source.submitSnapshot();
  const error = await rejection(operation.wait());
  assert.equal(error.code, "SOURCE_RESTART_FAILED");
  assert.equal(error.outcome.kind, "snapshot_capture");
  assert.deepEqual(error.outcome.restart, { status: "failed" });
  assert.equal(error.outcome.capture.preserve, "filesystem");
  assert.equal(error.cause.code, "REJECTED");
  assert.deepEqual(error.outcome.sandbox, source.reference);
  assert.equal((await rejection(operation.wait())).code, "SOURCE_RESTART_FAILED");
  assert.equal(world.methods.filter((each) => each === "resumeSandbox").length, 1);
  const snapshot = await client.snapshots.get(error.outcome.snapshot);
  assert.equal((await snapshot.inspect()).state, "ready");
});

test("[V22] a restart whose answer is lost is OUTCOME_UNKNOWN with the capture's details", async (t) => {
  const { client, world } = await memoryClient(t, { capabilities: stops });
  const source = await client.sandboxes.create();
  world.fail("resumeSandbox", new BeachsideError("Lost.", { code: "OUTCOME_UNKNOWN" }));
  const error = await rejection(source.snapshot());
  assert.equal(error.code, "OUTCOME_UNKNOWN");
  assert.deepEqual(error.outcome.restart, { status: "unknown" });
  assert.ok(world.snapshots.has(error.outcome.snapshot.id));
  assert.equal(error.outcome.capture.preserve, "filesystem");
});

test("[V25] a capture that succeeded is a success where its source cannot be looked at", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  world.fail("inspectSandbox", new BeachsideError("Down.", { code: "UNAVAILABLE" }));
  const captured = await source.snapshot();
  assert.equal(captured.source.state, "unknown");
  assert.equal(captured.capture.restoredExecution, "fresh");
});

test("[V21] a capture that ends in error carries the snapshot's reference and what it was to keep", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const release = world.hold("waitForSnapshot");
  const capturing = rejection(source.snapshot());
  await world.arrival("waitForSnapshot");
  const [snapshot] = world.snapshots.values();
  Object.assign(snapshot, { state: "failed", reason: "disk error" });
  release();
  const error = await capturing;
  assert.match(error.message, /disk error/);
  assert.equal(error.outcome.kind, "snapshot_capture");
  assert.equal(error.outcome.snapshot.id, snapshot.id);
  assert.deepEqual(error.outcome.sandbox, source.reference);
});

test("a client can connect to another account of the same provider and sees its own scope only", async (t) => {
  const { client, world } = await memoryClient(t);
  const source = await client.sandboxes.create();
  const { snapshot } = await source.snapshot();
  const other = memoryAdapter({ world, account: "acct_2" });
  const stranger = await Beachside.connect({ adapter: other.adapter });
  t.after(() => stranger.close());
  await assert.rejects(stranger.snapshots.get(snapshot.reference), { code: "SCOPE_MISMATCH" });
});
