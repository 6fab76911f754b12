/** What Runloop lacks, through the addon: predicted, refused, and nothing sent. */

import assert from "node:assert/strict";
import test from "node:test";
import { runloop, runloopAdapter } from "@beachside/runloop";
import { Beachside, Image, Preserve } from "beachside";
import { rejection } from "./support/client.mjs";
import { KEY, runloopClient, simulator } from "./support/runloop.mjs";
import { unsupportedCalls } from "./support/unsupported-calls.mjs";

test("[R34] every feature that capabilities() calls unsupported rejects with that reason and sends nothing", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const tree = await client.capabilities();
  const refused = [];
  await service.clearJournal();
  for (const [area, leaves] of Object.entries(tree)) {
    for (const [name, leaf] of Object.entries(leaves)) {
      const feature = `${area}.${name}`;
      const calls = unsupportedCalls[feature];
      assert.ok(calls, `${feature} is not known to the client`);
      if (leaf.status !== "unsupported" || calls === "connect") continue;
      // No handle to delete by: `volumes.create` and `volumes.get` give none.
      if (feature === "volumes.delete") continue;
      for (const call of calls) {
        // A prepared sandbox is the one that is there already.
        const error = await rejection(call.run(client, call.prepare && box, { client }), feature);
        assert.equal(error.name, "UnsupportedFeatureError", `${feature}: ${error}`);
        assert.equal(error.feature, feature);
        assert.equal(error.unmetRequirements[0].reason, leaf.reason);
        assert.equal(error.provider, "runloop");
      }
      refused.push(feature);
    }
  }
  assert.deepEqual((await service.journal()).lines, []);
  for (const feature of [
    "exec.callbacks",
    "files.list",
    "files.mkdir",
    "files.remove",
    "files.rename",
    "files.writeNew",
    "network.allow",
    "processes.bytes",
    "processes.stdin",
    "sandboxes.labels",
    "sandboxes.regions",
    "sandboxes.renew",
    "sandboxes.terminal",
    "volumes.create",
    "volumes.get",
    "volumes.list",
    "volumes.mount",
  ]) {
    assert.ok(refused.includes(feature), `${feature} should be unsupported`);
  }
  await box.destroy();
});

test("[R6] [R7] [R12] [R34] settings that Runloop cannot meet reject at connect, and nothing is sent", async (t) => {
  const service = await simulator(t);
  const credentials = { apiKey: KEY, baseUrl: service.url };
  const refused = {
    "network.allow": { network: { allow: ["example.com"] } },
    "images.oci": { image: Image.oci("docker.io/library/debian:12") },
    "images.build": { image: Image.build({ from: "debian" }) },
    "snapshots.preserve": { snapshots: { preserve: Preserve.FILESYSTEM_AND_MEMORY } },
    "snapshots.retentionSeconds": { snapshots: { retentionSeconds: 60 } },
  };
  for (const [feature, config] of Object.entries(refused)) {
    for (const args of [
      [{ adapter: runloopAdapter, credentials, config }],
      [runloop({ ...credentials, ...config })],
    ]) {
      const error = await rejection(Beachside.connect(...args), feature);
      assert.equal(error.name, "UnsupportedFeatureError", `${feature}: ${error}`);
      assert.equal(error.feature, feature);
      assert.ok(error.unmetRequirements[0].reason.length > 10);
    }
  }
  assert.deepEqual((await service.journal()).lines, []);
});

test("[V5] [V7] [V8] [V9] a capture's and a restore's requirements are held before any request", async (t) => {
  const { client, service } = await runloopClient(t);
  const box = await client.sandboxes.create();
  const { snapshot } = await box.snapshot({
    requirements: { preserve: "filesystem", maxInterruption: "pause" },
    retention: { minimumSeconds: 31_536_000 },
  });
  await service.clearJournal();
  const unmet = [
    [() => box.snapshot({ requirements: { preserve: "filesystem+memory" } }), "snapshots.preserve"],
    [
      () => box.snapshot({ requirements: { maxInterruption: "none" } }),
      "snapshots.maxInterruption",
    ],
    [() => snapshot.restore({ labels: { a: "b" } }), "snapshots.restore.labels"],
    [() => snapshot.restore({ resources: { vcpus: 1 } }), "snapshots.restore.resources"],
    [() => snapshot.restore({ network: { allow: ["example.com"] } }), "network.allow"],
  ];
  for (const [call, requirement] of unmet) {
    const error = await rejection(call(), requirement);
    assert.equal(error.name, "UnsupportedFeatureError", String(error));
    assert.equal(error.unmetRequirements[0].requirement, requirement);
  }
  assert.deepEqual((await service.journal()).lines, []);
  await snapshot.delete();
  await box.destroy();
});
