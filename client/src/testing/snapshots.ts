/** Contract: capture, restore, deletion. */

import assert from "node:assert/strict";
import { behaviorOf, type CaptureBehavior, capability } from "../capabilities.js";
import { validateResourceReference } from "../reference-checks.js";
import type { SandboxHandle } from "../sandbox-handle.js";
import { type CaseContext, contractCase, keeping, rejection } from "./case.js";

const FILE = "contract-snapshot";

/** A source with a file, and its capture, which is deleted at the end. */
async function captured(context: CaseContext, options?: Parameters<SandboxHandle["snapshot"]>[0]) {
  const source = await context.sandbox();
  await source.writeFile(`${context.folder}/${FILE}`, "captured", { overwrite: true });
  const result = await source.snapshot(options);
  context.defer(() => result.snapshot.delete());
  return result;
}

async function behavior({ client }: CaseContext): Promise<CaptureBehavior> {
  const value = behaviorOf((await client.capabilities()).snapshots.capture);
  assert.ok(value !== undefined, "a supported capture says how it behaves");
  return value;
}

export const snapshots = [
  contractCase("a capture keeps what capabilities() says, and its source is as it says", {
    needs: ["snapshots.capture", "files.write"],
    async run(context) {
      const expected = await behavior(context);
      const { capture, source, snapshot } = await captured(context, {
        requirements: { preserve: expected.preserve, maxInterruption: "stop" },
        consistency: "caller-quiesced",
      });
      assert.equal(capture.preserve, expected.preserve);
      assert.equal(capture.interruption, expected.interruption);
      assert.equal(capture.retentionSeconds, expected.retentionSeconds);
      assert.equal(capture.consistency, "caller-quiesced");
      const after = expected.sourceAfter === "running" ? "running" : "suspended";
      assert.equal(source.state, after);
      const info = await snapshot.inspect();
      assert.equal(info.state, "ready");
      assert.equal(info.ownership.state, "created");
    },
    refused: async ({ sandbox }) => (await sandbox()).snapshot(),
  }),

  contractCase("checkSnapshot() says whether a capture is possible, and makes none", {
    async run(context) {
      const { client, sandbox } = context;
      const box = await sandbox();
      const leaf = capability(await client.capabilities(), "snapshots.capture");
      const check = await box.checkSnapshot();
      assert.equal(check.status, leaf.status);
      if (leaf.status !== "supported") return;
      const other =
        (await behavior(context)).preserve === "filesystem" ? "filesystem+memory" : "filesystem";
      const requirements = { preserve: other } as const;
      assert.equal((await box.checkSnapshot({ requirements })).status, "unsupported");
      const error = await rejection(box.snapshot({ requirements }));
      assert.equal((error as { code?: unknown }).code, "UNSUPPORTED");
    },
  }),

  contractCase(
    "a saved snapshot reopens, and restores what was captured after its source is gone",
    {
      needs: ["snapshots.capture", "snapshots.restore", "files.write", "files.read"],
      async run(context) {
        const { source, snapshot } = await captured(context);
        const box = await context.client.sandboxes.get(source.reference);
        await box.writeFile(`${context.folder}/${FILE}`, "changed later", { overwrite: true });
        await box.destroy();
        const saved = validateResourceReference(JSON.parse(JSON.stringify(snapshot.reference)));
        const other = await context.reconnect();
        const again = await other.snapshots.get(saved);
        assert.deepEqual(again.reference, snapshot.reference);
        const restored = await again.restore();
        try {
          assert.equal(await restored.readTextFile(`${context.folder}/${FILE}`), "captured");
          assert.notEqual(restored.reference.id, source.reference.id);
          assert.equal(restored.reference.ownership.state, "created");
        } finally {
          await restored.destroy();
        }
      },
      refused: async (context, feature) => {
        if (feature === "snapshots.capture") return (await context.sandbox()).snapshot();
        return (await captured(context)).snapshot.restore();
      },
    },
  ),

  contractCase("restore applies each option that capabilities() lists", {
    needs: ["snapshots.capture", "snapshots.restore", "files.write", "exec.run"],
    async run(context) {
      const leaf = (await context.client.capabilities()).snapshots.restore;
      const listed = leaf.status === "supported" ? (leaf.options ?? []) : [];
      const { snapshot } = await captured(context);
      const options = {
        ...(listed.includes("env") ? { env: { CONTRACT_R: "restored" } } : {}),
        ...(listed.includes("lifecycle") ? { lifecycle: { lifetimeSeconds: 1800 } } : {}),
        ...(listed.includes("labels") ? { labels: { contract: "yes" } } : {}),
      };
      const restored = await snapshot.restore(options);
      context.defer(() => restored.destroy());
      const info = await restored.inspect();
      if ("env" in options) {
        assert.equal((await restored.exec('printf "$CONTRACT_R"')).stdoutText(), "restored");
      }
      if ("lifecycle" in options) assert.equal(info.lifecycle.lifetimeSeconds, 1800);
      if ("labels" in options) assert.equal(info.labels?.["contract"], "yes");
    },
  }),

  contractCase("a capture is recovered by its markers, in another process", {
    needs: ["snapshots.capture", "recovery.snapshots", "files.write"],
    async run(context) {
      const saved = keeping();
      const { snapshot } = await captured(context, { onSubmit: saved.onSubmit });
      const recovery = await (await context.reconnect()).recover(saved.reference);
      assert.ok(recovery.status === "done" && recovery.snapshot !== undefined, recovery.status);
      assert.equal(recovery.snapshot.reference.id, snapshot.reference.id);
      assert.equal(recovery.snapshot.reference.ownership.state, "created");
    },
  }),

  contractCase("snapshots are listed, with their source and who made them", {
    needs: ["snapshots.capture", "snapshots.list", "files.write"],
    async run(context) {
      const { snapshot, source } = await captured(context);
      const states = new Map<string, string>();
      const sources = new Map<string, string | null>();
      for await (const item of context.client.snapshots.list({ limit: 2 })) {
        states.set(item.reference.id, item.ownership.state);
        sources.set(item.reference.id, item.source);
      }
      assert.equal(states.get(snapshot.reference.id), "created");
      assert.equal(sources.get(snapshot.reference.id), source.reference.id);
    },
    refused: async (context, feature) =>
      feature === "snapshots.list"
        ? context.client.snapshots.list()
        : (await context.sandbox()).snapshot(),
  }),

  contractCase("deleting a snapshot leaves its source and what was restored, and can be repeated", {
    needs: ["snapshots.capture", "snapshots.restore", "snapshots.delete", "files.write"],
    async run(context) {
      const { snapshot, source } = await captured(context);
      const restored = await snapshot.restore();
      context.defer(() => restored.destroy());
      assert.deepEqual(await snapshot.delete(), { state: "deleted", alreadyGone: false });
      assert.equal((await snapshot.delete()).state, "deleted");
      assert.equal((await restored.inspect()).state, "running");
      const box = await context.client.sandboxes.get(source.reference);
      assert.equal((await box.inspect()).state, source.state);
    },
  }),

  contractCase("labels of a snapshot are carried where they are supported, and refused where not", {
    needs: ["snapshots.capture", "files.write"],
    async run(context) {
      const labels = { contract: "yes" };
      if ((await behavior(context)).labels) {
        const { snapshot } = await captured(context, { labels });
        assert.deepEqual((await snapshot.inspect()).labels, labels);
      } else {
        const box = await context.sandbox();
        const error = await rejection(box.snapshot({ labels }));
        assert.equal((error as { code?: unknown }).code, "UNSUPPORTED");
      }
    },
  }),
];
