// Disk snapshots: taken, watched, renamed, listed, restored, deleted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite, unique } from "./support/suite.mjs";

/** What the service's own tests allow for a boot and a snapshot. */
const LIMIT_MS = 30_000;

suite("snapshots", (c) => {
  /** A complete snapshot of a Devbox with a file in it. */
  async function snapshotOf(t, params = {}) {
    const box = await c.box(t);
    await box.file.write({ file_path: "mark.txt", contents: "from the source" });
    const snapshot = await box.snapshotDisk(params);
    t.after(() => snapshot.delete());
    return { box, snapshot };
  }

  test("[SDK10] boot, synchronous snapshot and shutdown fit into thirty seconds", async (t) => {
    const started = performance.now();
    const devbox = await c.api.devboxes.createAndAwaitRunning({});
    const snapshot = await c.api.devboxes.snapshotDisk(devbox.id, { name: "sync" });
    t.after(() => c.api.devboxes.diskSnapshots.delete(snapshot.id));
    await c.api.devboxes.shutdown(devbox.id);
    assert.ok(snapshot.id);
    assert.ok(performance.now() - started < LIMIT_MS);
  });

  test("[SDK11] a Devbox from a snapshot runs within thirty seconds and names it", async (t) => {
    const { snapshot } = await snapshotOf(t);
    const started = performance.now();
    const restored = await c.api.devboxes.createAndAwaitRunning({ snapshot_id: snapshot.id });
    t.after(() => c.api.devboxes.shutdown(restored.id));
    assert.equal(restored.snapshot_id, snapshot.id);
    assert.ok(performance.now() - started < LIMIT_MS);
  });

  test("[SDK28] the objects restore a snapshot, disk and all", async (t) => {
    const { snapshot } = await snapshotOf(t);
    const restored = await c.sdk.devbox.createFromSnapshot(snapshot.id, { name: "restored" });
    t.after(() => restored.shutdown());
    const info = await restored.getInfo();
    assert.equal(info.status, "running");
    assert.equal(info.snapshot_id, snapshot.id);
    assert.equal(await restored.file.read({ file_path: "mark.txt" }), "from the source");
  });

  test("[SDK28] an asynchronous snapshot answers with its id", async (t) => {
    const box = await c.box(t);
    const snapshot = await box.snapshotDiskAsync({ name: "asynchronous" });
    assert.ok(snapshot.id);
    await snapshot.awaitCompleted();
    await snapshot.delete();
  });

  test("[SDK39] snapshots that were waited for can be deleted", async (t) => {
    const box = await c.box(t);
    const waited = await box.snapshotDisk({ name: "waited" });
    await waited.delete();
    const later = await box.snapshotDiskAsync({ name: "later" });
    assert.equal((await later.awaitCompleted()).status, "complete");
    await later.delete();
  });

  test("[SDK40] a snapshot's status carries its id, name and state", async (t) => {
    const { box, snapshot } = await snapshotOf(t, { name: "told", metadata: { of: "this" } });
    const status = await snapshot.queryStatus();
    assert.equal(status.status, "complete");
    assert.equal(status.snapshot.id, snapshot.id);
    assert.equal(status.snapshot.name, "told");
    assert.deepEqual(status.snapshot.metadata, { of: "this" });
    assert.equal(status.snapshot.source_devbox_id, box.id);
    assert.deepEqual(await snapshot.getInfo(), status);
  });

  test("[SDK41] a new name shows in the status", async (t) => {
    const { snapshot } = await snapshotOf(t, { name: "old" });
    await snapshot.update({ name: "new" });
    assert.equal((await snapshot.queryStatus()).snapshot.name, "new");
  });

  test("[SDK42] a snapshot makes Devboxes in two ways, without sizes", async (t) => {
    const { snapshot } = await snapshotOf(t);
    const first = await snapshot.createDevbox({ name: "by the snapshot" });
    t.after(() => first.shutdown());
    const second = await c.sdk.devbox.createFromSnapshot(snapshot.id);
    t.after(() => second.shutdown());
    for (const box of [first, second]) {
      assert.equal((await box.getInfo()).snapshot_id, snapshot.id);
      assert.equal(await box.file.read({ file_path: "mark.txt" }), "from the source");
    }
  });

  test("[SDK43] a snapshot is deleted once and deleting it again is no error", async (t) => {
    const { snapshot } = await snapshotOf(t);
    assert.notEqual(await snapshot.delete(), undefined);
    assert.equal((await snapshot.queryStatus()).status, "deleted");
    await snapshot.delete();
  });

  test("[SDK44] snapshots are listed, all and those of one Devbox", async (t) => {
    const { box, snapshot } = await snapshotOf(t);
    const other = await snapshotOf(t);
    const ids = async (params) => (await c.sdk.snapshot.list(params)).map(({ id }) => id);
    const all = await ids({ limit: 100 });
    assert.ok(all.includes(snapshot.id) && all.includes(other.snapshot.id));
    assert.deepEqual(await ids({ devbox_id: box.id }), [snapshot.id]);
  });

  test("snapshots are found by their metadata", async (t) => {
    const owner = unique("owner");
    const { snapshot } = await snapshotOf(t, { metadata: { owner, "dotted.key": "a b" } });
    await snapshotOf(t, { metadata: { owner: "someone else" } });
    for (const query of [
      { "metadata[owner]": owner },
      { "metadata[dotted.key]": "a b", "metadata[owner]": owner },
      { "metadata[owner][in]": `nobody,${owner}` },
    ]) {
      const found = await c.api.devboxes.listDiskSnapshots(query);
      assert.deepEqual(
        found.snapshots.map(({ id }) => id),
        [snapshot.id],
      );
    }
  });

  test("[SDK45] a snapshot outlives its source and is deleted after it", async (t) => {
    const box = await c.sdk.devbox.create({});
    await box.file.write({ file_path: "mark.txt", contents: "outlived" });
    const snapshot = await box.snapshotDisk();
    await box.shutdown();
    const restored = await snapshot.createDevbox();
    t.after(() => restored.shutdown());
    assert.equal(await restored.file.read({ file_path: "mark.txt" }), "outlived");
    assert.notEqual(await snapshot.delete(), undefined);
  });
});
