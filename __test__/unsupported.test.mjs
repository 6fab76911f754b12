import assert from "node:assert/strict";
import test from "node:test";
import { memoryClient, rejection } from "./support/client.mjs";
import { memoryCapabilities } from "./support/memory-capabilities.mjs";
import { unsupportedCalls } from "./support/unsupported-calls.mjs";

const features = Object.entries(memoryCapabilities()).flatMap(([area, leaves]) =>
  Object.keys(leaves).map((leaf) => `${area}.${leaf}`),
);

test("[R34] every feature has a call that rejects, before any request, when capabilities() says unsupported", async (t) => {
  for (const feature of features) {
    const reason = `There is no ${feature} here.`;
    const memory = await memoryClient(t, {
      capabilities: { [feature]: { status: "unsupported", reason } },
    });
    const calls = unsupportedCalls[feature];
    assert.ok(calls, `${feature} has no call in support/unsupported-calls.mjs`);
    if (calls === "connect") continue;
    const leaf = (await memory.client.capabilities())[feature.split(".")[0]][feature.split(".")[1]];
    assert.equal(leaf.reason, reason);
    for (const call of calls) {
      const prepared = await call.prepare?.(memory);
      memory.world.calls.length = 0;
      const error = await rejection(call.run(memory.client, prepared, memory), feature);
      assert.equal(error.name, "UnsupportedFeatureError", `${feature}: ${error}`);
      assert.equal(error.feature, feature);
      assert.equal(error.unmetRequirements[0].reason, reason);
      assert.equal(error.provider, "memory");
      assert.deepEqual(memory.world.calls, [], feature);
    }
  }
});

test("[R34] no feature is gated that capabilities() does not have", () => {
  assert.deepEqual(Object.keys(unsupportedCalls).sort(), [...features].sort());
});
