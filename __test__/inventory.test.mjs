import assert from "node:assert/strict";
import test from "node:test";
import { memoryClient } from "./support/client.mjs";

async function stocked(t, options) {
  const memory = await memoryClient(t, options);
  const source = await memory.client.sandboxes.create();
  await memory.client.sandboxes.create();
  await source.snapshot();
  if (options === undefined) await memory.client.volumes.create({ name: "a" });
  memory.world.calls.length = 0;
  return memory;
}

test("[R28] inventory goes through every kind of resource, page by page, with ownership and coverage", async (t) => {
  const { client } = await stocked(t);
  const kinds = [];
  const list = client.inventory({ limit: 1 });
  for await (const page of list.pages()) {
    assert.ok(page.items.length <= 1);
    assert.deepEqual(page.coverage, { complete: true });
    for (const item of page.items) {
      assert.equal(item.ownership.state, "created");
      kinds.push(item.reference.kind);
    }
  }
  assert.deepEqual(kinds, ["sandbox", "sandbox", "snapshot", "volume"]);
  const first = await client.inventory({ limit: 2 });
  const rest = await client.inventory({ limit: 2, cursor: first.cursor });
  assert.deepEqual(
    rest.items.map((each) => each.reference.kind),
    ["snapshot"],
  );
});

test("inventory asks only for kinds that the provider lists", async (t) => {
  const none = { status: "unsupported", reason: "There are none." };
  const { client, world } = await stocked(t, { capabilities: { "volumes.list": none } });
  const kinds = [];
  for await (const item of client.inventory()) kinds.push(item.reference.kind);
  assert.deepEqual(kinds, ["sandbox", "sandbox", "snapshot"]);
  assert.deepEqual(world.methods, ["listSandboxes", "listSnapshots"]);
});

test("a cursor that inventory did not give is refused before anything is asked", async (t) => {
  const { client, world } = await stocked(t);
  const cursors = ["2", "!!!", Buffer.from("[]").toString("base64url")];
  cursors.push(Buffer.from('["planet",null]').toString("base64url"));
  for (const cursor of cursors) {
    await assert.rejects(client.inventory({ cursor }), {
      code: "INVALID_ARGUMENT",
      message: /cursor is not one/,
    });
  }
  assert.deepEqual(world.calls, []);
});

test("a list that would never end is given up: a repeated cursor, or empty pages without end", async (t) => {
  const { client, world } = await stocked(t);
  const page = (cursor) => ({ items: [], cursor, coverage: { complete: true } });
  const read = async (options) => {
    for await (const _ of client.sandboxes.list(options)) assert.fail("there are no items");
  };
  world.answer("listSandboxes", page("a"));
  world.answer("listSandboxes", page("b"));
  world.answer("listSandboxes", page("a"));
  await assert.rejects(read(), { code: "PROTOCOL", message: /a cursor twice/ });
  world.answer("listSandboxes", page("start"));
  await assert.rejects(read({ cursor: "start" }), { code: "PROTOCOL", message: /a cursor twice/ });
  world.calls.length = 0;
  for (let index = 0; index < 1001; index++) world.answer("listSandboxes", page(`c${index}`));
  await assert.rejects(read(), { code: "PROTOCOL", message: /1000 empty pages/ });
  assert.equal(world.calls.length, 1000);
});

test("an aborted signal ends an iteration at the next item, also within a page", async (t) => {
  const { client } = await stocked(t);
  const controller = new AbortController();
  const seen = [];
  const reading = async () => {
    for await (const item of client.sandboxes.list({ signal: controller.signal })) {
      seen.push(item);
      controller.abort(new Error("enough"));
    }
  };
  await assert.rejects(reading(), { code: "CANCELLED", operation: "sandbox_list" });
  assert.equal(seen.length, 1);
});
