// Network policies: what is written, what is shown, what changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite, unique } from "./support/suite.mjs";

const HOSTS = ["api.example.com", "*.example.org"];

suite("network policies", (c) => {
  async function made(t, params = {}) {
    const policy = await c.sdk.networkPolicy.create({ name: unique("policy"), ...params });
    t.after(async () => {
      // Some tests delete their own.
      await policy.delete().catch((error) => assert.equal(error.status, 404));
    });
    return policy;
  }

  test("[SDK46] a policy shows what it was made with", async (t) => {
    const name = unique("shown");
    const policy = await made(t, { name, allowed_hostnames: HOSTS, description: "for a test" });
    const info = await policy.getInfo();
    assert.equal(info.id, policy.id);
    assert.equal(info.name, name);
    assert.equal(info.description, "for a test");
    assert.equal(info.egress.allow_all, false);
    assert.equal(info.egress.allow_devbox_to_devbox, false);
    assert.deepEqual(info.egress.allowed_hostnames, HOSTS);
  });

  test("[SDK47] name, hostnames and description change and stay changed", async (t) => {
    const policy = await made(t, { allowed_hostnames: HOSTS });
    const name = unique("renamed");
    await policy.update({ name, allowed_hostnames: ["one.example"], description: "changed" });
    const info = await policy.getInfo();
    assert.equal(info.name, name);
    assert.equal(info.description, "changed");
    assert.deepEqual(info.egress.allowed_hostnames, ["one.example"]);
  });

  test("[SDK48] a policy can be opened to everything", async (t) => {
    const policy = await made(t, { allowed_hostnames: HOSTS });
    await policy.update({ allow_all: true });
    assert.equal((await policy.getInfo()).egress.allow_all, true);
  });

  test("[SDK49] a policy can be opened between Devboxes", async (t) => {
    const policy = await made(t);
    await policy.update({ allow_devbox_to_devbox: true });
    assert.equal((await policy.getInfo()).egress.allow_devbox_to_devbox, true);
  });

  test("[SDK50] a deleted policy is gone", async (t) => {
    const policy = await made(t);
    const gone = await policy.delete();
    assert.equal(gone.id, policy.id);
    await assert.rejects(policy.getInfo(), { status: 404 });
  });

  test("[SDK51] policies are listed", async (t) => {
    const policy = await made(t);
    const listed = await c.sdk.networkPolicy.list({ limit: 100 });
    assert.ok(Array.isArray(listed));
    assert.ok(listed.some(({ id }) => id === policy.id));
  });

  test("[SDK52] a policy is made open to everything", async (t) => {
    const policy = await made(t, { allow_all: true });
    assert.equal((await policy.getInfo()).egress.allow_all, true);
  });

  test("[SDK53] a policy is made open between Devboxes", async (t) => {
    const policy = await made(t, { allow_devbox_to_devbox: true });
    assert.equal((await policy.getInfo()).egress.allow_devbox_to_devbox, true);
  });

  test("[SDK54] the raw list and the objects' list are equally long", async (t) => {
    const name = unique("counted");
    await made(t, { name: `${name}-1` });
    await made(t, { name: `${name}-2` });
    const raw = await c.api.networkPolicies.list({ name });
    const objects = await c.sdk.networkPolicy.list({ name });
    assert.equal(raw.network_policies.length, 2);
    assert.equal(objects.length, raw.network_policies.length);
  });

  test("[SDK55] an empty list of hostnames stays an empty list", async (t) => {
    const policy = await made(t, { allowed_hostnames: [] });
    assert.deepEqual((await policy.getInfo()).egress.allowed_hostnames, []);
    const silent = await made(t);
    assert.deepEqual((await silent.getInfo()).egress.allowed_hostnames, []);
  });

  test("[SDK56] wildcards are kept as they were written", async (t) => {
    const allowed_hostnames = ["*.example.com", "*.a.b.example", "plain.example"];
    const policy = await made(t, { allowed_hostnames });
    assert.deepEqual((await policy.getInfo()).egress.allowed_hostnames, allowed_hostnames);
  });

  test("[SDK57] changing one field keeps the others", async (t) => {
    const policy = await made(t, {
      allowed_hostnames: HOSTS,
      allow_devbox_to_devbox: true,
      description: "kept",
    });
    const { name } = await policy.getInfo();
    for (const change of [{ description: "new" }, { allowed_hostnames: ["x.example"] }]) {
      await policy.update(change);
    }
    const info = await policy.getInfo();
    assert.equal(info.name, name);
    assert.equal(info.description, "new");
    assert.equal(info.egress.allow_devbox_to_devbox, true);
    assert.deepEqual(info.egress.allowed_hostnames, ["x.example"]);
  });

  test("[SDK58] a policy that was open is closed to all but some hostnames", async (t) => {
    const policy = await made(t, { allow_all: true });
    await policy.update({ allow_all: false, allowed_hostnames: HOSTS });
    const { egress } = await policy.getInfo();
    assert.equal(egress.allow_all, false);
    assert.deepEqual(egress.allowed_hostnames, HOSTS);
  });

  test("a second policy of one name is refused", async (t) => {
    const name = unique("taken");
    await made(t, { name });
    await assert.rejects(c.sdk.networkPolicy.create({ name }), { status: 400 });
  });

  test("a policy that a Devbox uses cannot be deleted", async (t) => {
    const policy = await made(t);
    const box = await c.box(t, { launch_parameters: { network_policy_id: policy.id } });
    await assert.rejects(policy.delete(), { status: 400 });
    await box.shutdown();
    await policy.delete();
  });
});
