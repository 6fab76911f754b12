import assert from "node:assert/strict";
import test from "node:test";
import { Beachside, BeachsideError, validateResourceReference } from "beachside";
import { memoryClient, rejection } from "./support/client.mjs";
import { memoryAdapter } from "./support/memory-adapter.mjs";

test("create waits until the sandbox runs, and inspect shows it in the caller's terms", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create({ lifecycle: { lifetimeSeconds: 120 } });
  assert.deepEqual(world.methods, ["createSandbox", "waitForSandbox"]);
  const info = await box.inspect();
  assert.equal(info.state, "running");
  assert.match(info.createdAt, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.equal(info.ownership.state, "created");
  assert.deepEqual(info.lifecycle, { lifetimeSeconds: 120, idleSeconds: null });
  assert.deepEqual(info.network, { policy: "blocked", policyId: null });
  assert.deepEqual(info.differences, []);
  assert.deepEqual(info.reference, box.reference);
});

test("[R13] create options reach the adapter; empty ones count as omitted", async (t) => {
  const { client, world } = await memoryClient(t);
  await client.sandboxes.create({ env: {}, lifecycle: {}, labels: {}, network: undefined });
  const { markers, ...bare } = world.calls[0].request;
  assert.deepEqual(bare, {});
  world.calls.length = 0;
  await client.sandboxes.create({
    env: { A: "1" },
    lifecycle: { lifetimeSeconds: 60 },
    network: "internet",
    labels: { job: "ci" },
    region: "eu",
  });
  const { markers: _, ...full } = world.calls[0].request;
  assert.deepEqual(full, {
    env: { A: "1" },
    lifecycle: { lifetimeSeconds: 60 },
    network: "internet",
    labels: { job: "ci" },
    region: "eu",
  });
});

test("[R13] region and labels reject where the adapter has none, before any request", async (t) => {
  const none = { status: "unsupported", reason: "There are none." };
  const { client, world } = await memoryClient(t, {
    capabilities: { "sandboxes.labels": none, "sandboxes.regions": none, "network.internet": none },
  });
  const refused = {
    "sandboxes.labels": { labels: { a: "b" } },
    "sandboxes.regions": { region: "eu" },
    "network.internet": { network: "internet" },
    "network.allow": { network: { allow: ["example.com"] } },
  };
  for (const [feature, options] of Object.entries(refused)) {
    for (const call of ["create", "submitCreate"]) {
      const error = await rejection(client.sandboxes[call](options));
      assert.equal(error.name, "UnsupportedFeatureError");
      assert.equal(error.feature, feature);
      assert.equal(error.operation, "sandbox_create");
    }
  }
  assert.deepEqual(world.calls, []);
});

test("an option that capabilities() does not list for create is refused by name", async (t) => {
  const { client, world } = await memoryClient(t, {
    capabilities: { "sandboxes.create": { options: ["env"] } },
  });
  const error = await rejection(client.sandboxes.create({ lifecycle: { lifetimeSeconds: 60 } }));
  assert.equal(error.code, "UNSUPPORTED");
  assert.equal(error.feature, "sandboxes.create.lifecycle");
  assert.deepEqual(world.calls, []);
});

test("wrong create options are refused by name before any request", async (t) => {
  const { client, world } = await memoryClient(t);
  const wrong = [
    [{ enviroment: {} }, /unknown key "enviroment"/],
    [{ lifecycle: { lifetime: 1 } }, /lifecycle has an unknown key "lifetime"; .*lifetimeSeconds/],
    [{ lifecycle: { lifetimeSeconds: "900" } }, /lifetimeSeconds must be a whole number/],
    [{ lifecycle: 900 }, /lifecycle must be \{ lifetimeSeconds \}/],
    [{ network: "open" }, /network must be "blocked", "internet" or/],
    [{ network: { allow: "x" } }, /network\.allow must be an array/],
    [{ labels: { a: 1 } }, /labels\.a must be a string/],
    [{ region: "" }, /region must not be empty/],
    [{ env: { "A B": "x" } }, /env has the name/],
    [[], /options must be a plain object/],
  ];
  for (const [options, message] of wrong) {
    await assert.rejects(client.sandboxes.create(options), { code: "INVALID_ARGUMENT", message });
  }
  assert.deepEqual(world.calls, []);
});

test("options that throw when they are read are wrong arguments, by a rejection, and nothing is sent", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  world.calls.length = 0;
  const own = new Error("a getter of the caller's");
  const throwing = (key) => Object.defineProperty({}, key, { enumerable: true, get: () => fail() });
  const fail = () => {
    throw own;
  };
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const calls = {
    create: () => client.sandboxes.create(throwing("env")),
    "create's variables": () => client.sandboxes.create({ env: throwing("A") }),
    with: () => client.sandboxes.with(revoked, assert.fail),
    list: () => client.sandboxes.list(throwing("cursor")),
    pages: () => client.snapshots.list(revoked).pages().next(),
    limit: () => client.sandboxes.list({ limit: revoked }),
    inventory: () => client.inventory(throwing("signal")),
    get: () => client.sandboxes.get(throwing("kind")),
    recover: () => client.recover(revoked),
    inspect: () => box.inspect(throwing("signal")),
    signal: () => box.inspect({ signal: throwing("aborted") }),
    exec: () => box.exec(revoked),
    preview: () => box.preview(revoked),
    checkSnapshot: () => box.checkSnapshot({ requirements: throwing("preserve") }),
    connect: () => Beachside.connect(throwing("adapter")),
  };
  for (const [name, call] of Object.entries(calls)) {
    const error = await rejection((async () => call())(), name);
    assert.equal(error.code, "INVALID_ARGUMENT", name);
    assert.ok(error.cause === own || error.cause instanceof TypeError, name);
  }
  assert.deepEqual(world.calls, []);
});

test("an adapter that cannot name its capabilities is at fault itself", async (t) => {
  const { adapter } = memoryAdapter();
  const fault = new Error("not yet known");
  const connect = async (input) => {
    const connection = await adapter.connect(input);
    connection.capabilities = () => {
      throw fault;
    };
    return connection;
  };
  const client = await Beachside.connect({ adapter: { ...adapter, connect } });
  t.after(() => client.close());
  const error = await rejection(client.sandboxes.create({ network: "blocked" }));
  assert.deepEqual(
    [error.code, error.operation, error.cause],
    ["INTERNAL", "sandbox_create", fault],
  );
});

test("[V15] a saved reference reopens on a new connection of the same scope, with its ownership", async (t) => {
  const { client, world, adapter } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const saved = JSON.stringify(box.reference);
  await client.close();
  const next = await Beachside.connect({ adapter });
  t.after(() => next.close());
  const again = await next.sandboxes.get(validateResourceReference(JSON.parse(saved)));
  assert.deepEqual(again.reference, box.reference);
  assert.equal((await again.exec("echo back")).stdoutText(), "back\n");
  assert.equal(world.sandboxes.size, 1);
});

test("[V15] a reference of another account or provider is refused before any resource request", async (t) => {
  const { client, world } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const other = memoryAdapter({ world, account: "acct_2" });
  const stranger = await Beachside.connect({ adapter: other.adapter });
  t.after(() => stranger.close());
  world.calls.length = 0;
  const wrongAccount = await rejection(stranger.sandboxes.get(box.reference));
  assert.equal(wrongAccount.code, "SCOPE_MISMATCH");
  assert.match(wrongAccount.message, /account "acct_1"; this connection is to "acct_2"/);
  const foreign = { ...box.reference, provider: "other" };
  assert.equal((await rejection(client.sandboxes.get(foreign))).code, "SCOPE_MISMATCH");
  const volume = { ...box.reference, kind: "volume" };
  delete volume.mounts;
  await assert.rejects(client.sandboxes.get(volume), {
    code: "INVALID_ARGUMENT",
    message: /not of a volume/,
  });
  assert.deepEqual(world.calls, []);
});

test("[V16] a reference whose id or marker was changed reopens as unknown, and is not cleaned automatically", async (t) => {
  const { client, world, adapter } = await memoryClient(t);
  const mine = await client.sandboxes.create();
  const other = await client.sandboxes.create();
  const next = await Beachside.connect({ adapter });
  t.after(() => next.close());
  const changed = [
    { ...mine.reference, id: other.reference.id },
    { ...mine.reference, ownership: { ...mine.reference.ownership, submission: "guess" } },
    { ...mine.reference, ownership: { ...mine.reference.ownership, operation: "guess" } },
  ];
  for (const reference of changed) {
    const box = await next.sandboxes.get(reference);
    assert.deepEqual(box.reference.ownership, { state: "unknown" });
    await box[Symbol.asyncDispose]?.();
  }
  const gone = { ...mine.reference, id: "sandbox_404" };
  await assert.rejects(next.sandboxes.get(gone), { code: "NOT_FOUND" });
  assert.equal(world.methods.includes("destroySandbox"), false);
});

test("[R33] a list says created of what this connection made, and unknown of the rest", async (t) => {
  const { client, adapter } = await memoryClient(t);
  const other = await Beachside.connect({ adapter });
  t.after(() => other.close());
  const mine = await client.sandboxes.create();
  const theirs = await other.sandboxes.create();
  const { items } = await client.sandboxes.list();
  const states = Object.fromEntries(items.map((each) => [each.reference.id, each.ownership.state]));
  assert.deepEqual(states, { [mine.reference.id]: "created", [theirs.reference.id]: "unknown" });
});

test("[V18] a list is a promise of a bounded page and an iterable over everything", async (t) => {
  const { client, world } = await memoryClient(t);
  for (let index = 0; index < 5; index++) await client.sandboxes.create();
  world.calls.length = 0;
  const page = await client.sandboxes.list({ limit: 2 });
  assert.equal(page.items.length, 2);
  assert.equal(page.coverage.complete, true);
  const next = await client.sandboxes.list({ limit: 2, cursor: page.cursor });
  assert.deepEqual(
    next.items.map((each) => each.reference.id),
    ["sandbox_3", "sandbox_4"],
  );
  assert.equal(world.calls.length, 2);
  const ids = [];
  for await (const item of client.sandboxes.list({ limit: 2 })) ids.push(item.reference.id);
  assert.deepEqual(ids, ["sandbox_1", "sandbox_2", "sandbox_3", "sandbox_4", "sandbox_5"]);
  assert.equal(world.calls.length, 5);
  assert.deepEqual((await client.sandboxes.list({ state: "suspended" })).items, []);
});

test("a list asks nobody before it is awaited, and wrong options reject there", async (t) => {
  const { client, world } = await memoryClient(t);
  client.sandboxes.list();
  const wrong = [
    [{ limit: 0 }, /limit must be a whole number from 1 to 5000, not 0/],
    [{ limit: 5001 }, /limit/],
    [{ limit: 1.5 }, /limit/],
    [{ cursor: 5 }, /cursor must be a string/],
    [{ cursor: "" }, /cursor must not be empty/],
    [{ state: "sleeping" }, /state must be "starting"/],
    [{ page: 1 }, /unknown key "page"/],
  ];
  for (const [options, message] of wrong) {
    const list = client.sandboxes.list(options);
    await assert.rejects(list, { code: "INVALID_ARGUMENT", message });
    await assert.rejects(
      async () => {
        for await (const _ of list);
      },
      { code: "INVALID_ARGUMENT" },
    );
  }
  assert.deepEqual(world.calls, []);
});

test("iterating goes through empty pages and stops at a cursor that repeats", async (t) => {
  const { client, world } = await memoryClient(t);
  const pages = [
    { items: [], cursor: "a" },
    { items: [], cursor: "b" },
    { items: [], cursor: "a" },
  ];
  for (const page of pages) {
    world.answer("listSandboxes", { ...page, coverage: { complete: true } });
  }
  const error = await rejection(
    (async () => {
      for await (const _ of client.sandboxes.list());
    })(),
  );
  assert.equal(error.code, "PROTOCOL");
  assert.deepEqual([error.provider, error.operation], ["memory", "sandbox_list"]);
  assert.equal(world.calls.length, 3);
});

test("a list keeps the options that it was called with, whatever becomes of the object", async (t) => {
  const { client, world } = await memoryClient(t);
  const page = (cursor) => ({ items: [], cursor, coverage: { complete: true } });
  world.answer("listSandboxes", page("a"));
  world.answer("listSandboxes", page(null));
  const options = { limit: 1 };
  const pages = client.sandboxes.list(options).pages();
  options.limit = 2;
  await pages.next();
  options.state = "running";
  await pages.next();
  assert.deepEqual(
    world.calls.map(({ request }) => request),
    [{ limit: 1 }, { limit: 1, cursor: "a" }],
  );
});

test("[V26] with() destroys what it made, and gives what the function gave", async (t) => {
  const { client, world } = await memoryClient(t);
  const value = await client.sandboxes.with({ env: { A: "1" } }, async (box) => {
    assert.equal(world.sandboxes.get(box.reference.id).state, "running");
    return (await box.exec("echo $A")).stdoutText();
  });
  assert.equal(value, "1\n");
  assert.deepEqual(
    [...world.sandboxes.values()].map((each) => each.state),
    ["destroyed"],
  );
});

test("[V33] with() throws the function's own error with a report of the clean-up", async (t) => {
  const { client, world } = await memoryClient(t);
  const mine = new TypeError("mine");
  const fail = () => client.sandboxes.with({}, () => Promise.reject(mine));
  assert.equal(await rejection(fail()), mine);
  assert.equal(mine.cleanup.cleaned.length, 1);
  assert.deepEqual(mine.cleanup.notCleaned, []);

  world.fail(
    "destroySandbox",
    new BeachsideError("A snapshot is under way.", { code: "CONFLICT" }),
  );
  const second = await rejection(fail());
  assert.equal(second, mine);
  const [left] = mine.cleanup.notCleaned;
  assert.equal(left.resource.kind, "sandbox");
  assert.match(left.reason, /A snapshot is under way/);
  assert.equal(left.error.code, "CONFLICT");

  world.fail("destroySandbox", new BeachsideError("Again.", { code: "CONFLICT" }));
  const wrapped = await rejection(client.sandboxes.with({}, () => Promise.reject("a string")));
  assert.ok(wrapped instanceof AggregateError);
  assert.deepEqual(
    wrapped.errors.map((each) => each.code ?? each),
    ["a string", "CONFLICT"],
  );
});

test("[V33] an error keeps its clean-up's report whatever its class, and those of both calls it leaves", async (t) => {
  const { client, world } = await memoryClient(t);
  class Taken extends Error {
    get cleanup() {
      return "taken";
    }
  }
  const mine = new Taken("mine");
  assert.equal(await rejection(client.sandboxes.with({}, () => Promise.reject(mine))), mine);
  assert.equal(mine.cleanup.cleaned.length, 1);

  const constant = Object.defineProperty(new Error("constant"), "cleanup", { value: 1 });
  assert.equal(
    await rejection(client.sandboxes.with({}, () => Promise.reject(constant))),
    constant,
  );

  const made = [];
  const nested = await rejection(
    client.sandboxes.with({}, (outer) =>
      client.sandboxes.with({}, (inner) => {
        made.push(inner.reference, outer.reference);
        world.fail("destroySandbox", new BeachsideError("Busy.", { code: "CONFLICT" }));
        throw mine;
      }),
    ),
  );
  assert.equal(nested, mine);
  assert.deepEqual(
    mine.cleanup.notCleaned.map((each) => each.resource),
    made.slice(0, 1),
  );
  assert.deepEqual(mine.cleanup.cleaned, made.slice(1));
});

test("[V33] with() throws a clean-up's error where the function succeeded", async (t) => {
  const { client, world } = await memoryClient(t);
  world.fail(
    "destroySandbox",
    new BeachsideError("A snapshot is under way.", { code: "CONFLICT" }),
  );
  const error = await rejection(client.sandboxes.with({}, () => "fine"));
  assert.equal(error.code, "CONFLICT");
  assert.equal(error.cleanup.notCleaned[0].resource.kind, "sandbox");
});

test("[V26] with() destroys a sandbox whose create failed half-way, as far as it is known", async (t) => {
  const { client, world } = await memoryClient(t);
  world.fail("waitForSandbox", new BeachsideError("Too slow.", { code: "DEADLINE_EXCEEDED" }));
  const error = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.equal(error.code, "DEADLINE_EXCEEDED");
  assert.deepEqual(error.cleanup.cleaned, [error.outcome.sandbox]);
  assert.deepEqual(
    [...world.sandboxes.values()].map((each) => each.state),
    ["destroyed"],
  );
});

const lostCreate = () =>
  new BeachsideError("Lost.", { code: "OUTCOME_UNKNOWN", outcome: { submitted: true } });

test("[V26] [V33] with() finds and destroys what a create made whose answer was lost, by its markers", async (t) => {
  const { client, world } = await memoryClient(t);
  const stranger = await client.sandboxes.create();
  world.fail("createSandbox", lostCreate(), { acted: true });
  const error = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.equal(error.code, "OUTCOME_UNKNOWN");
  const [cleaned] = error.cleanup.cleaned;
  assert.equal(cleaned.ownership.operation, error.outcome.operation.operationId);
  assert.deepEqual(error.cleanup.notCleaned, []);
  assert.equal(world.sandboxes.get(cleaned.id).state, "destroyed");
  assert.equal(world.sandboxes.get(stranger.reference.id).state, "running");
  const asked = world.methods.filter((each) => each === "findSandboxes").length;
  assert.equal(asked, 1);
});

test("[V26] [V33] with() looks again for a sandbox that appears late, and reports the operation where none does", async (t) => {
  const { client, world } = await memoryClient(t);
  world.fail("createSandbox", lostCreate(), { acted: true });
  world.answer("findSandboxes", { matches: [], searched: { items: 0, complete: true } });
  const late = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.equal(late.cleanup.cleaned.length, 1);

  world.fail("createSandbox", lostCreate());
  world.calls.length = 0;
  const error = await rejection(client.sandboxes.with({}, () => assert.fail()));
  const [left] = error.cleanup.notCleaned;
  assert.deepEqual(left.operation, error.outcome.operation);
  assert.equal(left.resource, undefined);
  assert.match(left.reason, /not known/);
  assert.deepEqual(world.methods, ["createSandbox", "findSandboxes", "findSandboxes"]);
});

test("[V26] [V33] with() destroys nothing where two sandboxes carry the markers, the search fails, or there is none", async (t) => {
  const { client, world } = await memoryClient(t);
  const lose = () => world.fail("createSandbox", lostCreate(), { acted: true });
  lose();
  const record = { state: "running", markers: null, mounts: [] };
  world.answer("findSandboxes", {
    matches: [
      { ...record, id: "one" },
      { ...record, id: "two" },
    ],
    searched: { items: 2, complete: true },
  });
  const twice = await rejection(client.sandboxes.with({}, () => assert.fail()));
  assert.deepEqual(twice.cleanup.cleaned, []);
  assert.deepEqual(
    twice.cleanup.notCleaned.map((each) => each.resource.id),
    ["one", "two"],
  );

  lose();
  world.fail("findSandboxes", new BeachsideError("Down.", { code: "UNAVAILABLE" }));
  const down = await rejection(client.sandboxes.with({}, () => assert.fail()));
  const [left] = down.cleanup.notCleaned;
  assert.deepEqual([left.error.code, left.operation], ["UNAVAILABLE", down.outcome.operation]);

  const reason = "It keeps no markers.";
  const blind = await memoryClient(t, {
    capabilities: { "recovery.sandboxes": { status: "unsupported", reason } },
  });
  blind.world.fail("createSandbox", lostCreate(), { acted: true });
  const unseen = await rejection(blind.client.sandboxes.with({}, () => assert.fail()));
  assert.match(unseen.cleanup.notCleaned[0].reason, /not known/);
  assert.equal(blind.world.methods.includes("destroySandbox"), false);
});

test("[V26] with() finds and destroys what a create made that was cancelled on its way", async (t) => {
  const { client, world } = await memoryClient(t);
  const controller = new AbortController();
  const release = world.hold("createSandbox");
  const using = rejection(
    client.sandboxes.with({ signal: controller.signal }, () => assert.fail()),
  );
  await world.arrival("createSandbox");
  controller.abort();
  await world.arrival("findSandboxes");
  release();
  const error = await using;
  assert.equal(error.code, "CANCELLED");
  assert.equal(error.cleanup.cleaned.length, 1);
});

test("await using destroys what create made and leaves what get reopened", {
  skip: typeof Symbol.asyncDispose !== "symbol" && "no Symbol.asyncDispose",
}, async (t) => {
  const { client, world, adapter } = await memoryClient(t);
  const box = await client.sandboxes.create();
  const other = await Beachside.connect({ adapter });
  const reopened = await other.sandboxes.get(box.reference);
  await reopened[Symbol.asyncDispose]();
  assert.equal(world.sandboxes.get(box.reference.id).state, "running");
  await box[Symbol.asyncDispose]();
  assert.equal(world.sandboxes.get(box.reference.id).state, "destroyed");
  await other[Symbol.asyncDispose]();
  await assert.rejects(other.capabilities(), { code: "CLOSED" });
});
