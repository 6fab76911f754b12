/** Lists and the inventory through the addon, on a service that orders, filters and repeats as it likes. */

import assert from "node:assert/strict";
import test from "node:test";
import { rejection } from "./support/client.mjs";
import { connect, runloopClient } from "./support/runloop.mjs";

const LIST = "/v1/devboxes";
const spoil = (service, action, count = 1) =>
  service.fault({
    match: { method: "GET", path: LIST, count },
    action: { type: "list", ...action },
  });

const idOf = (each) => each.reference.id;

/** Sandboxes of one account, in the order of their making. */
async function stocked(t, number, settings = {}) {
  const { client, service } = await runloopClient(t, { settings });
  const boxes = [];
  for (let made = 0; made < number; made++) boxes.push(await client.sandboxes.create());
  await service.clearJournal();
  return { client, service, boxes, ids: boxes.map(idOf) };
}

async function everything(list) {
  const items = [];
  for await (const item of list) items.push(item);
  return items;
}

test("[V18] [R33] pages of any size give every sandbox once, with ownership, time and coverage", async (t) => {
  const { client, service, ids } = await stocked(t, 5);
  for (const limit of [1, 2, 5, 100]) {
    const pages = [];
    for await (const page of client.sandboxes.list({ limit }).pages()) {
      assert.ok(page.items.length <= limit);
      assert.deepEqual(page.coverage, { complete: true });
      pages.push(page);
    }
    const items = pages.flatMap((page) => page.items);
    assert.deepEqual(items.map(idOf).sort(), [...ids].sort(), `limit ${limit}`);
    assert.equal(pages.length, Math.ceil(5 / limit));
    assert.equal(pages.at(-1).cursor, null);
    for (const item of items) {
      assert.equal(item.ownership.state, "created");
      assert.equal(item.state, "running");
      assert.ok(Math.abs(Date.parse(item.createdAt) - Date.now()) < 60_000, item.createdAt);
      assert.equal(item.labels, null);
    }
  }
  const stranger = await connect(t, service);
  const theirs = await everything(stranger.sandboxes.list());
  assert.deepEqual([...new Set(theirs.map((each) => each.ownership.state))], ["unknown"]);
});

test("[V18] a cursor goes on after deletions and creations, on another connection, with nothing twice", async (t) => {
  const { client, service, boxes, ids } = await stocked(t, 6);
  const first = await client.sandboxes.list({ limit: 3 });
  const passed = first.items.map(idOf);
  await boxes.find((box) => box.reference.id === passed.at(-1)).destroy();
  await client.sandboxes.create();
  const other = await connect(t, service);
  const rest = await everything(other.sandboxes.list({ limit: 2, cursor: first.cursor }));
  assert.deepEqual([...passed, ...rest.map(idOf)].sort(), [...ids].sort());
});

for (const unknown_cursor of ["bad_request", "empty_page"]) {
  test(`[V18] a list goes on when the item of its cursor is gone and the service answers with ${unknown_cursor}`, async (t) => {
    const { client, service, ids } = await stocked(t, 5, { unknown_cursor });
    const first = await client.sandboxes.list({ limit: 3 });
    await spoil(service, { vanished_cursor: true });
    const second = await client.sandboxes.list({ limit: 3, cursor: first.cursor });
    assert.deepEqual(second.coverage, { complete: true });
    assert.deepEqual([...first.items, ...second.items].map(idOf).sort(), [...ids].sort());
  });
}

test("[V18] ties in the time of making lose and repeat nothing", async (t) => {
  const { client, service, ids } = await stocked(t, 5);
  await spoil(service, { identical_timestamps: true }, 10);
  const items = await everything(client.sandboxes.list({ limit: 2 }));
  assert.deepEqual(items.map(idOf).sort(), [...ids].sort());
});

test("[V18] a page that repeats, or is empty with more to come, ends the list and its coverage says why", async (t) => {
  const { client, service } = await stocked(t, 5);
  for (const [fault, reason] of [
    ["repeated_cursor", /repeated a page/],
    ["empty_page_with_more", /empty page/],
  ]) {
    const first = await client.sandboxes.list({ limit: 2 });
    const seen = new Set(first.items.map(idOf));
    await spoil(service, { [fault]: true }, 20);
    const second = await client.sandboxes.list({ limit: 2, cursor: first.cursor });
    assert.equal(second.coverage.complete, false, fault);
    assert.match(second.coverage.reason, reason);
    assert.equal(second.cursor, null);
    assert.ok(second.items.every((each) => !seen.has(idOf(each))));
    const pages = [];
    for await (const page of client.sandboxes.list({ limit: 2 }).pages()) pages.push(page);
    assert.ok(pages.length <= 2, "an iteration ends as well");
    assert.equal(pages.at(-1).coverage.complete, false);
    await service.control("DELETE", "/faults");
  }
});

test("[V18] a filter that the service ignores is applied all the same", async (t) => {
  const { client, service, boxes } = await stocked(t, 3);
  await boxes[0].destroy();
  await boxes[1].suspend();
  for (const ignored of [false, true]) {
    if (ignored) await spoil(service, { ignore_filters: true }, 20);
    for (const [state, box] of [
      ["destroyed", boxes[0]],
      ["suspended", boxes[1]],
      ["running", boxes[2]],
    ]) {
      const { items, coverage } = await client.sandboxes.list({ state });
      assert.deepEqual(items.map(idOf), [box.reference.id], `${state}, ignored: ${ignored}`);
      assert.equal(coverage.complete, true);
    }
    assert.deepEqual((await client.sandboxes.list({ state: "starting" })).items, []);
  }
});

test("a cursor that was tampered with, or is of another list, is refused before any request", async (t) => {
  const { client, service } = await stocked(t, 3);
  const { cursor } = await client.sandboxes.list({ limit: 1 });
  await service.clearJournal();
  const decoded = JSON.parse(Buffer.from(cursor, "base64url"));
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const wrong = [
    "dbx_1",
    cursor.slice(1),
    `${cursor}\r\nx-evil: 1`,
    encoded({ ...decoded, list: "snapshots" }),
    encoded({ ...decoded, after: [] }),
    encoded({ ...decoded, more: 1 }),
    "A".repeat(5000),
  ];
  for (const each of wrong) {
    const error = await rejection(client.sandboxes.list({ cursor: each }), each);
    assert.equal(error.code, "INVALID_ARGUMENT", `${each.slice(0, 20)}: ${error}`);
  }
  await assert.rejects(client.snapshots.list({ cursor }), { code: "INVALID_ARGUMENT" });
  await assert.rejects(client.sandboxes.list({ cursor, state: "running" }), {
    code: "INVALID_ARGUMENT",
  });
  assert.deepEqual((await service.journal()).lines, []);
  // An id of the caller's own making goes into the query as one value.
  const odd = encoded({ ...decoded, after: ["x&limit=5000#\r\n/../ü"] });
  await client.sandboxes.list({ cursor: odd }).catch(() => {});
  const { entries } = await service.journal();
  assert.equal(entries[0].query.starting_after, "x&limit=5000#\r\n/../ü");
  assert.equal(entries[0].path, LIST);
});

test("[R28] the inventory holds sandboxes and snapshots, whatever the page", async (t) => {
  const { client, boxes, ids } = await stocked(t, 3);
  const { snapshot } = await boxes[0].snapshot();
  for (const limit of [1, 2, 100]) {
    const found = { sandbox: [], snapshot: [] };
    for await (const page of client.inventory({ limit }).pages()) {
      assert.ok(page.items.length <= limit);
      assert.equal(page.coverage.complete, true);
      for (const item of page.items) {
        assert.equal(item.ownership.state, "created");
        found[item.reference.kind].push(idOf(item));
      }
    }
    assert.deepEqual(found.sandbox.sort(), [...ids].sort());
    assert.deepEqual(found.snapshot, [snapshot.reference.id]);
  }
});

test("what keeps a list from being read is that error, and no page", async (t) => {
  const { client, service } = await stocked(t, 1);
  for (const [action, code] of [
    [{ type: "refuse", status: 401 }, "UNAUTHENTICATED"],
    [{ type: "refuse", status: 403 }, "PERMISSION_DENIED"],
    [{ type: "rate_limit", retry_after: "60" }, "RATE_LIMITED"],
    [{ type: "replace_reply", status: 200, text: "<html>" }, "PROTOCOL"],
    [{ type: "edit_reply", set: { "/devboxes": "none" } }, "PROTOCOL"],
  ]) {
    await service.fault({ match: { method: "GET", path: LIST, count: 1 }, action });
    assert.equal((await rejection(client.sandboxes.list(), code)).code, code);
  }
});
