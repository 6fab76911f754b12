/** `network: "blocked"` through the addon: one deny-all policy, checked before each create. */

import assert from "node:assert/strict";
import test from "node:test";
import { rejection } from "./support/client.mjs";
import { connect, count, KEY, runloopClient, simulator } from "./support/runloop.mjs";

const NAME = "beachside-blocked";
const MAKE = "POST /v1/network-policies";
const LOOK = "GET /v1/network-policies";
const CHECK = "GET /v1/network-policies/*";
const CREATE = "POST /v1/devboxes";

/** A request of somebody else with the same key. */
async function api(service, method, path, body) {
  const response = await fetch(`${service.url}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
}

async function policies(service) {
  const { network_policies } = await api(service, "GET", `/network-policies?name=${NAME}`);
  return network_policies.filter((each) => each.name === NAME);
}

const policyOf = async (box) => (await box.inspect()).network;

/** How many requests were made on each of the policy's routes. */
async function asked(service) {
  const counts = await Promise.all([LOOK, MAKE, CHECK, CREATE].map((it) => count(service, it)));
  return { look: counts[0], make: counts[1], check: counts[2], create: counts[3] };
}

test("[R5] the policy is made on first use, found by another process, and costs one request a create from then on", async (t) => {
  const { client, service } = await runloopClient(t);
  const first = await client.sandboxes.create();
  assert.deepEqual(await asked(service), { look: 1, make: 1, check: 0, create: 1 });
  const [policy] = await policies(service);
  assert.deepEqual(await policyOf(first), { policy: "blocked", policyId: policy.id });
  assert.equal(policy.egress.allow_all, false);
  await service.clearJournal();
  await client.sandboxes.create();
  assert.deepEqual(await asked(service), { look: 0, make: 0, check: 1, create: 1 });
  const other = await connect(t, service);
  await service.clearJournal();
  const found = await other.sandboxes.create();
  assert.deepEqual(await asked(service), { look: 1, make: 0, check: 0, create: 1 });
  assert.equal((await policyOf(found)).policyId, policy.id);
  const { exitCode } = await first.exec(
    "exec 3<>/dev/tcp/192.0.2.1/80 || busybox nc -w 1 192.0.2.1 80",
    { timeoutSeconds: 20 },
  );
  assert.notEqual(exitCode, 0);
});

test("[R6] network: internet attaches no policy and asks for none, and one create can differ", async (t) => {
  const { service } = await runloopClient(t);
  const client = await connect(t, service, { config: { network: "internet" } });
  await service.clearJournal();
  const open = await client.sandboxes.create();
  assert.deepEqual(await asked(service), { look: 0, make: 0, check: 0, create: 1 });
  assert.deepEqual(await policyOf(open), { policy: "internet", policyId: null });
  const { body } = (await service.journal()).entries[0];
  assert.equal(body.launch_parameters.network_policy_id, undefined);
  const closed = await client.sandboxes.create({ network: "blocked" });
  assert.equal((await policyOf(closed)).policy, "blocked");
});

test("[R5] a policy behind pages of partial matches is found by its whole name", async (t) => {
  const { client, service } = await runloopClient(t);
  const kept = await api(service, "POST", "/network-policies", { name: NAME, allow_all: false });
  const near = { name: `${NAME}-2`, allow_all: true };
  const partial = await api(service, "POST", "/network-policies", near);
  // The service allows no more policies than fit on one page.
  const edit = { set: { "/has_more": true }, remove: ["/network_policies/1"] };
  await service.fault({
    match: { method: "GET", path: "/v1/network-policies", count: 1 },
    action: { type: "edit_reply", ...edit },
  });
  await service.clearJournal();
  const box = await client.sandboxes.create();
  assert.equal((await policyOf(box)).policyId, kept.id);
  assert.deepEqual(await asked(service), { look: 2, make: 0, check: 0, create: 1 });
  const { entries } = await service.journal();
  assert.equal(entries[1].query.starting_after, partial.id);
});

for (const status of [400, 409]) {
  test(`[R5] a lost race on the name, answered ${status}, is settled by a look, in four requests`, async (t) => {
    const { client, service } = await runloopClient(t);
    const match = { method: "POST", path: "/v1/network-policies", count: 1 };
    await service.fault({ match, action: { type: "latency", milliseconds: 200 } });
    if (status === 409) await service.fault({ match, action: { type: "replace_reply", status } });
    const creating = client.sandboxes.create();
    while ((await count(service, LOOK)) === 0) await new Promise((go) => setTimeout(go, 5));
    // The winner, while the loser's own request is held back.
    if (status === 400) {
      await api(service, "POST", "/network-policies", { name: NAME, allow_all: false });
    }
    const box = await creating;
    const all = await policies(service);
    assert.equal(all.length, 1);
    assert.deepEqual(await policyOf(box), { policy: "blocked", policyId: all[0].id });
    const { entries } = await service.journal();
    const ours = entries.filter((each) => each.headers["user-agent"]?.includes("beachside"));
    const lines = ours.map((each) => `${each.method} ${each.path}`);
    assert.deepEqual(lines.slice(0, 4), [LOOK, MAKE, LOOK, CREATE]);
    assert.equal(ours[1].status, status);
  });
}

const openings = {
  "a host": { set: { "/egress/allowed_hostnames": ["example.com"] }, field: "allowed_hostnames" },
  everything: { set: { "/egress/allow_all": true }, field: "allow_all" },
  "other Devboxes": {
    set: { "/egress/allow_devbox_to_devbox": true },
    field: "allow_devbox_to_devbox",
  },
  "a gateway": { set: { "/egress/allow_agent_gateway": true }, field: "allow_agent_gateway" },
  "a field that nobody knows": { set: { "/egress/allow_moon": true }, field: "allow_moon" },
  "a list that nobody knows": { set: { "/egress/moons": ["io"] }, field: "moons" },
  "an object that nobody knows": { set: { "/egress/moons": { io: 1 } }, field: "moons" },
  "what is not reported": { remove: ["/egress/allow_all"], field: "allow_all" },
  "no egress at all": { remove: ["/egress"], field: "egress" },
};

test("[R5] a policy that opens anything refuses create and restore by the field's name; nothing is created or edited", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const { snapshot } = await box.snapshot();
  await service.clearJournal();
  for (const [name, { field, ...edit }] of Object.entries(openings)) {
    for (const call of [() => client.sandboxes.create(), () => snapshot.restore()]) {
      const path = "/v1/network-policies/*";
      await service.fault({
        match: { method: "GET", path, count: 1 },
        action: { type: "edit_reply", ...edit },
      });
      const error = await rejection(call(), name);
      assert.equal(error.code, "CONFLICT", `${name}: ${error}`);
      assert.ok(error.message.includes(NAME) && error.message.includes(field), error.message);
      assert.equal(error.outcome.submitted, false);
    }
  }
  const { entries } = await service.journal();
  assert.deepEqual([...new Set(entries.map((each) => each.method))], ["GET"]);
  await client.sandboxes.create();
});

test("[R5] unknown fields of a policy that open nothing are no reason to refuse", async (t) => {
  const { client, service } = await runloopClient(t);
  await client.sandboxes.create();
  const set = { "/egress/allow_moon": false, "/egress/moons": [], "/egress/star": null };
  const match = { method: "GET", path: "/v1/network-policies/*", count: 1 };
  await service.fault({ match, action: { type: "edit_reply", set } });
  await client.sandboxes.create();
});

test("[R5] a box whose echo names another policy, or none, is shut down once; the error is PROTOCOL and names it", async (t) => {
  const { client, service } = await runloopClient(t);
  await client.sandboxes.create();
  const pointer = "/launch_parameters/network_policy_id";
  const edits = [{ set: { [pointer]: "np_other" } }, { set: { [pointer]: null } }];
  for (const edit of [...edits, { remove: [pointer] }, { remove: ["/launch_parameters"] }]) {
    const match = { method: "POST", path: "/v1/devboxes", count: 1 };
    await service.fault({ match, action: { type: "edit_reply", ...edit } });
    const error = await rejection(client.sandboxes.create(), JSON.stringify(edit));
    assert.equal(error.code, "PROTOCOL", String(error));
    const { id, ownership } = error.outcome.sandbox;
    assert.equal(ownership.state, "created");
    assert.equal(await count(service, `POST /v1/devboxes/${id}/shutdown`), 1);
    const reopened = await client.sandboxes.get(error.outcome.sandbox);
    assert.equal((await reopened.inspect()).state, "destroyed");
    assert.match(error.message, /it was shut down/);
  }
  const match = { method: "POST", path: "/v1/devboxes", count: 1 };
  await service.fault({ match, action: { type: "edit_reply", remove: [pointer] } });
  const path = "/v1/devboxes/*/shutdown";
  await service.fault({
    match: { method: "POST", path, count: 1 },
    action: { type: "refuse", status: 409 },
  });
  const error = await rejection(client.sandboxes.create());
  assert.equal(error.code, "PROTOCOL");
  assert.match(error.message, /shutting it down failed/);
  assert.equal(await count(service, `POST /v1/devboxes/${error.outcome.sandbox.id}/shutdown`), 1);
  assert.equal(
    (await (await client.sandboxes.get(error.outcome.sandbox)).destroy()).state,
    "destroyed",
  );
});

test("[R5] four creates that are called together share one check, and a later one makes its own", async (t) => {
  const { client, service } = await runloopClient(t);
  await client.sandboxes.create();
  await service.clearJournal();
  await Promise.all([1, 2, 3, 4].map(() => client.sandboxes.create()));
  const { check, ...others } = await asked(service);
  assert.deepEqual(others, { look: 0, make: 0, create: 4 });
  // Two where this machine took longer than a moment to call all four.
  assert.ok(check <= 2, `${check} checks`);
  await client.sandboxes.create();
  assert.equal((await asked(service)).check, check + 1);
});

test("[R5] a create that is called while a check is on its way is covered by a later one", async (t) => {
  const { client, service } = await runloopClient(t);
  await client.sandboxes.create();
  const match = { method: "GET", path: "/v1/network-policies/*", count: 1 };
  await service.fault({ match, action: { type: "delay_reply", milliseconds: 200 } });
  await service.clearJournal();
  const first = client.sandboxes.create();
  while ((await count(service, CHECK)) === 0) await new Promise((go) => setTimeout(go, 5));
  await Promise.all([first, client.sandboxes.create(), client.sandboxes.create()]);
  assert.deepEqual(await asked(service), { look: 0, make: 0, check: 2, create: 3 });
});

test("[R5] a policy that was deleted or renamed meanwhile is made anew, and the old one is not edited", async (t) => {
  const service = await simulator(t, { settings: { suspended_uses_policy: false } });
  const client = await connect(t, service);
  const box = await client.sandboxes.create();
  const before = await policyOf(box);
  await box.destroy();
  await api(service, "POST", `/network-policies/${before.policyId}`, { name: "somebody-elses" });
  const next = await client.sandboxes.create();
  const after = await policyOf(next);
  assert.equal(after.policy, "blocked");
  assert.notEqual(after.policyId, before.policyId);
  const { entries } = await service.journal();
  const edits = entries.filter(({ path }) => path === `/v1/network-policies/${before.policyId}`);
  const ours = edits.filter((each) => each.headers["user-agent"]?.includes("beachside"));
  assert.ok(ours.every((each) => each.method === "GET"));
});
