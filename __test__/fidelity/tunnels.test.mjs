// Tunnels: made with the Devbox, made later, removed, and their addresses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { suite } from "./support/suite.mjs";

suite("tunnels", (c) => {
  test("[SDK1] a Devbox made with an open tunnel shows its key", async (t) => {
    const created = await c.api.devboxes.create({ tunnel: { auth_mode: "open" } });
    t.after(() => c.api.devboxes.shutdown(created.id));
    const { tunnel } = await c.api.devboxes.awaitRunning(created.id);
    assert.ok(tunnel.tunnel_key);
    assert.equal(tunnel.auth_mode, "open");
    assert.ok(!tunnel.auth_token);
  });

  test("[SDK2] a Devbox made with an authenticated tunnel shows its token", async (t) => {
    const created = await c.api.devboxes.create({ tunnel: { auth_mode: "authenticated" } });
    t.after(() => c.api.devboxes.shutdown(created.id));
    const { tunnel } = await c.api.devboxes.awaitRunning(created.id);
    assert.ok(tunnel.tunnel_key);
    assert.equal(tunnel.auth_mode, "authenticated");
    assert.ok(tunnel.auth_token);
  });

  test("[SDK3] a tunnel enabled later has a key and a time and stays the same", async (t) => {
    const created = await c.api.devboxes.createAndAwaitRunning({});
    t.after(() => c.api.devboxes.shutdown(created.id));
    assert.ok(!created.tunnel);
    const tunnel = await c.api.devboxes.enableTunnel(created.id, { auth_mode: "open" });
    assert.ok(tunnel.tunnel_key);
    assert.equal(tunnel.auth_mode, "open");
    assert.ok(tunnel.create_time_ms > 0);
    const seen = await c.api.devboxes.retrieve(created.id);
    assert.equal(seen.tunnel.tunnel_key, tunnel.tunnel_key);
  });

  test("[SDK3] an authenticated tunnel enabled later has a token", async (t) => {
    const created = await c.api.devboxes.createAndAwaitRunning({});
    t.after(() => c.api.devboxes.shutdown(created.id));
    const tunnel = await c.api.devboxes.enableTunnel(created.id, { auth_mode: "authenticated" });
    assert.equal(tunnel.auth_mode, "authenticated");
    assert.ok(tunnel.auth_token);
  });

  for (const [title, params, mode] of [
    ["open", { auth_mode: "open" }, "open"],
    ["authenticated", { auth_mode: "authenticated" }, "authenticated"],
    ["default", {}, "open"],
  ]) {
    test(`[SDK27] the objects enable and remove a tunnel: ${title}`, async (t) => {
      const box = await c.box(t);
      assert.equal(await box.getTunnel(), null);
      const tunnel = await box.net.enableTunnel(params);
      assert.equal(tunnel.auth_mode, mode);
      assert.equal((await box.getTunnel()).tunnel_key, tunnel.tunnel_key);
      assert.notEqual(await box.net.removeTunnel(), undefined);
      assert.equal(await box.getTunnel(), null);
    });

    test(`[SDK27] the objects make a Devbox with a tunnel: ${title}`, async (t) => {
      const box = await c.box(t, { tunnel: params });
      const tunnel = await box.getTunnel();
      assert.ok(tunnel.tunnel_key);
      assert.equal(tunnel.auth_mode, mode);
      assert.equal(Boolean(tunnel.auth_token), mode === "authenticated");
    });
  }

  test("[SDK27] a tunnel's address carries the port and the key", async (t) => {
    const box = await c.box(t, { tunnel: { auth_mode: "open" } });
    const { tunnel_key } = await box.getTunnel();
    const { hostname } = new URL(c.simulator.url);
    for (const port of [8080, 3000]) {
      const expected = `https://${port}-${tunnel_key}.tunnel.${hostname}`;
      assert.equal(await box.getTunnelUrl(port), expected);
    }
  });

  test("[SDK27] at the service's own host the address is under tunnel.runloop", async (t) => {
    const box = await c.box(t, { tunnel: { auth_mode: "open" } });
    const { tunnel_key } = await box.getTunnel();
    const host = "https://api.runloop.ai";
    // Nothing leaves the machine: each request goes to the simulator instead.
    const { sdk } = c.client({
      baseURL: host,
      fetch: (url, init) => fetch(String(url).replace(host, c.simulator.plainUrl), init),
    });
    for (const port of [8080, 3000]) {
      const url = await sdk.devbox.fromId(box.id).getTunnelUrl(port);
      assert.ok(url.startsWith(`https://${port}-${tunnel_key}.tunnel.runloop.`), url);
    }
  });

  test("[SDK27] the SDK has no address for a Devbox without a tunnel", async (t) => {
    const box = await c.box(t);
    await assert.rejects(box.getTunnelUrl(8080), /tunnel/i);
  });

  test("a second tunnel is refused", async (t) => {
    const box = await c.box(t, { tunnel: { auth_mode: "open" } });
    await assert.rejects(box.net.enableTunnel({ auth_mode: "open" }), { status: 400 });
  });
});
