/** Contract: volumes and mounts. */

import assert from "node:assert/strict";
import type { VolumeHandle } from "../volumes.js";
import { type CaseContext, contractCase, rejection, rejectsWith } from "./case.js";

async function volume(context: CaseContext): Promise<VolumeHandle> {
  const made = await context.client.volumes.create({ name: "contract" });
  context.defer(() => made.delete());
  return made;
}

const createVolume = ({ client }: CaseContext) => client.volumes.create({ name: "contract" });

export const volumes = [
  contractCase("a volume is made, listed, reopened and deleted", {
    needs: ["volumes.create", "volumes.get", "volumes.list", "volumes.delete"],
    async run(context) {
      const made = await volume(context);
      assert.equal((await made.inspect()).state, "ready");
      const other = await context.reconnect();
      const again = await other.volumes.get(JSON.parse(JSON.stringify(made.reference)));
      assert.deepEqual(again.reference, made.reference);
      const listed: string[] = [];
      for await (const item of other.volumes.list()) listed.push(item.reference.id);
      assert.ok(listed.includes(made.reference.id));
      assert.equal((await made.delete()).alreadyGone, false);
      assert.equal((await made.delete()).alreadyGone, true);
    },
    refused: createVolume,
  }),

  contractCase("a mounted volume keeps its data beyond the sandbox", {
    needs: ["volumes.create", "volumes.mount", "files.write", "files.read"],
    async run(context) {
      const made = await volume(context);
      const box = await context.sandbox({ mounts: [made.at("/mnt/contract")] });
      await box.writeFile("/mnt/contract/a", "kept", { overwrite: true });
      const { mountDurability } = await box.destroy();
      assert.match(mountDurability, /^(confirmed|unconfirmed)$/);
      const next = await context.sandbox({ mounts: [made.at("/mnt/other")] });
      assert.equal(await next.readTextFile("/mnt/other/a"), "kept");
    },
    refused: createVolume,
  }),

  contractCase("mounts that overlap are refused, and a mounted sandbox is not captured", {
    needs: ["volumes.create", "volumes.mount"],
    async run(context) {
      const made = await volume(context);
      const mounts = [made.at("/mnt/contract"), made.at("/mnt/contract/in")];
      await rejectsWith(context.client.sandboxes.create({ mounts }), "INVALID_ARGUMENT");
      const box = await context.sandbox({ mounts: [made.at("/mnt/contract")] });
      assert.equal((await box.checkSnapshot()).status, "unsupported");
      const error = await rejection(box.snapshot());
      assert.equal((error as { code?: unknown }).code, "UNSUPPORTED");
    },
    refused: createVolume,
  }),

  contractCase("destroying a mounted sandbox follows the storage policy", {
    needs: ["volumes.create", "volumes.mount"],
    async run(context) {
      const made = await volume(context);
      const leaf = (await context.client.capabilities()).volumes.mount;
      const durable = leaf.status === "supported" && leaf.value?.durability === "confirmed";
      const box = await context.sandbox({ mounts: [made.at("/mnt/contract")] });
      if (durable) {
        const { mountDurability } = await box.destroy({ storage: "require-durable" });
        assert.equal(mountDurability, "confirmed");
      } else {
        await rejectsWith(box.destroy({ storage: "require-durable" }), "UNSUPPORTED");
        const { mountDurability } = await box.destroy({ storage: "allow-unconfirmed" });
        assert.equal(mountDurability, "unconfirmed");
      }
    },
    refused: createVolume,
  }),

  contractCase("a snapshot without mounts restores with volumes chosen then", {
    needs: [
      "volumes.create",
      "volumes.mount",
      "snapshots.capture",
      "snapshots.restore",
      "files.write",
      "files.read",
    ],
    async run(context) {
      const { client } = context;
      const made = await volume(context);
      const source = await context.sandbox();
      await source.writeFile(`${context.folder}/contract-private`, "private", { overwrite: true });
      const { snapshot } = await source.snapshot();
      context.defer(() => snapshot.delete());
      const restore = (await client.capabilities()).snapshots.restore;
      const takes =
        restore.status === "supported" &&
        restore.value?.mountInput === "specs" &&
        restore.value.execution === "fresh" &&
        restore.options?.includes("mounts") !== false;
      const mounts = [made.at("/mnt/contract")];
      if (!takes) return await rejectsWith(snapshot.restore({ mounts }), "UNSUPPORTED");
      const restored = await snapshot.restore({ mounts });
      context.defer(() => restored.destroy());
      assert.equal(await restored.readTextFile(`${context.folder}/contract-private`), "private");
      await restored.writeFile("/mnt/contract/b", "selected", { overwrite: true });
      return undefined;
    },
    refused: createVolume,
  }),
];
