/** Contract: connections, sandboxes, references, lists, operations. */

import assert from "node:assert/strict";
import type { BeachsideClient } from "../beachside.js";
import { type Capability, capability } from "../capabilities.js";
import { validateOperationReference, validateResourceReference } from "../reference-checks.js";
import { contractCase, keeping, rejectsWith } from "./case.js";

export const basics = [
  contractCase("capabilities() is a tree of leaves that say why where they are not supported", {
    async run({ client }) {
      const tree = await client.capabilities();
      for (const [area, leaves] of Object.entries(tree)) {
        for (const [name, leaf] of Object.entries(leaves as Record<string, Capability>)) {
          const at = `${area}.${name}`;
          assert.match(leaf.status, /^(supported|unsupported|unknown)$/, at);
          if (leaf.status !== "supported") assert.ok(leaf.reason.length > 0, at);
        }
      }
    },
  }),

  contractCase(
    "a sandbox is made, runs, is inspected and destroyed, and destroying again is fine",
    {
      async run({ sandbox, reconnect }) {
        const box = await sandbox();
        const info = await box.inspect();
        assert.equal(info.state, "running");
        assert.deepEqual(info.reference, box.reference);
        assert.equal(info.ownership.state, "created");
        const first = await box.destroy();
        assert.deepEqual([first.state, first.alreadyGone], ["destroyed", false]);
        assert.equal((await box.destroy()).alreadyGone, true);
        const other = await reconnect();
        const found = await other.sandboxes.get(box.reference);
        assert.equal((await found.inspect()).state, "destroyed");
      },
    },
  ),

  contractCase("a saved reference reopens exactly, and a changed marker is not believed", {
    async run({ sandbox, reconnect }) {
      const box = await sandbox();
      const saved = validateResourceReference(JSON.parse(JSON.stringify(box.reference)));
      const other = await reconnect();
      const again = await other.sandboxes.get(saved);
      assert.deepEqual(again.reference, box.reference);
      const tampered = { ...saved, ownership: { ...saved.ownership, submission: "guess" } };
      const stranger = await other.sandboxes.get(tampered);
      assert.deepEqual(stranger.reference.ownership, { state: "unknown" });
    },
  }),

  contractCase("a reference of another account or provider is refused", {
    async run({ sandbox, client }) {
      const { reference } = await sandbox();
      const foreign = { ...reference, scope: { account: `${reference.scope.account}-other` } };
      await rejectsWith(client.sandboxes.get(foreign), "SCOPE_MISMATCH");
      const provider = `${reference.provider}-other`;
      await rejectsWith(client.sandboxes.get({ ...reference, provider }), "SCOPE_MISMATCH");
    },
  }),

  contractCase("what does not exist is NOT_FOUND", {
    async run({ sandbox, client }) {
      const { reference } = await sandbox();
      const missing = { ...reference, id: `${reference.id}missing` };
      await rejectsWith(client.sandboxes.get(missing), "NOT_FOUND");
    },
  }),

  contractCase("a list is a page with coverage, goes on by its cursor, and says who made what", {
    needs: ["sandboxes.list"],
    async run({ sandbox, client, reconnect }) {
      const made = [await sandbox(), await sandbox()];
      const page = await client.sandboxes.list({ limit: 1 });
      assert.equal(page.items.length, 1);
      assert.equal(typeof page.coverage.complete, "boolean");
      assert.ok(page.cursor !== null);
      const seen = new Map<string, string>();
      for await (const item of client.sandboxes.list({ limit: 1 })) {
        assert.equal(seen.has(item.reference.id), false, "an item twice");
        seen.set(item.reference.id, item.ownership.state);
      }
      for (const box of made) assert.equal(seen.get(box.reference.id), "created");
      const other = await reconnect();
      for await (const item of other.sandboxes.list()) {
        assert.equal(item.ownership.state, "unknown");
      }
    },
    refused: ({ client }) => Promise.resolve(client.sandboxes.list()),
  }),

  contractCase("inventory() goes through every kind of resource", {
    needs: ["sandboxes.list"],
    async run({ sandbox, client }) {
      const box = await sandbox();
      const ids = new Set<string>();
      for await (const item of client.inventory({ limit: 2 })) ids.add(item.reference.id);
      assert.ok(ids.has(box.reference.id));
    },
  }),

  contractCase(
    "onSubmit has the reference before anything is made, and nothing is made if it fails",
    {
      async run({ client }) {
        const mine = new Error("storage is full");
        const before = await ids(client);
        await assert.rejects(
          client.sandboxes.create({ onSubmit: () => Promise.reject(mine) }),
          (error) => error === mine,
        );
        assert.deepEqual(await ids(client), before);
      },
    },
  ),

  contractCase(
    "a submitted create is waited for again and again, and recovered by another process",
    {
      needs: ["recovery.sandboxes"],
      async run({ client, reconnect, defer }) {
        const saved = keeping();
        const operation = await client.sandboxes.submitCreate({ onSubmit: saved.onSubmit });
        assert.deepEqual(validateOperationReference(saved.reference), operation.reference);
        const box = await operation.wait();
        defer(() => box.destroy());
        assert.equal((await operation.wait()).reference.id, box.reference.id);
        const other = await reconnect();
        const recovery = await other.recover(saved.reference);
        assert.equal(recovery.status, "done");
        assert.ok(recovery.status === "done" && recovery.sandbox !== undefined);
        assert.deepEqual(recovery.sandbox.reference.ownership, box.reference.ownership);
        assert.equal(recovery.sandbox.reference.id, box.reference.id);
      },
    },
  ),

  contractCase("a submission that never was is not observed, and that is not called a failure", {
    needs: ["recovery.sandboxes"],
    async run({ client }) {
      const saved = keeping();
      await assert.rejects(
        client.sandboxes.create({
          onSubmit(reference) {
            saved.onSubmit(reference);
            throw new Error("stop here");
          },
        }),
      );
      const recovery = await client.recover(saved.reference);
      assert.match(recovery.status, /^(not_observed|unknown)$/);
    },
  }),

  contractCase("an aborted signal sends nothing and gives its reason back", {
    async run({ client }) {
      const before = await ids(client);
      const reason = new Error("enough");
      await assert.rejects(
        client.sandboxes.create({ signal: AbortSignal.abort(reason) }),
        (error: { code?: unknown; cause?: unknown; outcome?: { submitted?: unknown } }) => {
          assert.deepEqual(
            [error.code, error.cause, error.outcome?.submitted],
            ["CANCELLED", reason, false],
          );
          return true;
        },
      );
      assert.deepEqual(await ids(client), before);
    },
  }),

  contractCase("a destruction is recovered as done", {
    async run({ sandbox, reconnect }) {
      const box = await sandbox();
      const saved = keeping();
      await box.destroy({ onSubmit: saved.onSubmit });
      const recovery = await (await reconnect()).recover(saved.reference);
      assert.equal(recovery.status, "done");
    },
  }),

  contractCase(
    "suspend keeps the files, resume brings the sandbox back, and both can be repeated",
    {
      needs: ["sandboxes.suspend", "sandboxes.resume", "files.write", "files.read"],
      async run({ sandbox, folder }) {
        const box = await sandbox();
        await box.writeFile(`${folder}/contract-kept`, "kept", { overwrite: true });
        assert.deepEqual(await box.suspend(), { state: "suspended", alreadyThere: false });
        assert.equal((await box.inspect()).state, "suspended");
        assert.equal((await box.suspend()).alreadyThere, true);
        assert.deepEqual(await box.resume(), { state: "running", alreadyThere: false });
        assert.equal((await box.resume()).alreadyThere, true);
        assert.equal(await box.readTextFile(`${folder}/contract-kept`), "kept");
      },
      refused: async ({ sandbox }, feature) => {
        const box = await sandbox();
        return feature === "sandboxes.resume" ? box.resume() : box.suspend();
      },
    },
  ),

  contractCase("after close() every call rejects with CLOSED", {
    async run({ reconnect, sandbox }) {
      const box = await sandbox();
      const other = await reconnect();
      const again = await other.sandboxes.get(box.reference);
      await other.close();
      await rejectsWith(other.sandboxes.create(), "CLOSED");
      await rejectsWith(again.inspect(), "CLOSED");
      await rejectsWith(again.exec("true"), "CLOSED");
      assert.equal((await box.inspect()).state, "running");
    },
  }),
];

/** The sandboxes that there are, where the adapter can list them; otherwise none are seen. */
async function ids(client: BeachsideClient): Promise<string[]> {
  const tree = await client.capabilities();
  if (capability(tree, "sandboxes.list").status === "unsupported") return [];
  const all: string[] = [];
  for await (const item of client.sandboxes.list()) all.push(item.reference.id);
  return all.sort();
}
