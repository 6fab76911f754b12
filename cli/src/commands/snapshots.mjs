/** `snapshot create`, `snapshot ls`, `snapshot rm`. */

import { findSandbox, findSnapshot } from "../find.mjs";
import { withSession } from "../session.mjs";

/** @import { GlobalOptions } from "../session.mjs" */
/** @import { OperationReference } from "@beachside/runloop" */

/**
 * @param {string} sandbox
 * @param {{ name?: string } & GlobalOptions} options
 */
export function createSnapshot(sandbox, options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    const box = await findSandbox(client, store, sandbox, signal);
    /** @type {OperationReference | undefined} */
    let operation;
    const { snapshot } = await box.snapshot({
      signal,
      onProgress: screen.progress("capturing"),
      onSubmit: async (/** @type {OperationReference} */ reference) => {
        operation = reference;
        await store.save(reference);
      },
    });
    await store.save(snapshot.reference, options.name);
    if (operation !== undefined) await store.forget(operation);
    screen.result(snapshot.reference, snapshot.reference.id);
  });
}

/** @param {GlobalOptions} options */
export function listSnapshots(options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    const saved = await store.all("snapshot");
    const rows = [];
    for await (const item of client.snapshots.list({ limit: 100, signal })) {
      const mine = saved.find(
        ({ reference }) => "id" in reference && reference.id === item.reference.id,
      );
      rows.push({
        id: item.reference.id,
        name: mine?.name ?? null,
        // The service's list does not always say it.
        state: item.state === "unknown" ? null : item.state,
        created: item.createdAt,
        source: item.source,
        mine: mine === undefined ? "no" : "yes",
      });
    }
    screen.table(rows, ["id", "name", "state", "created", "source", "mine"]);
  });
}

/**
 * @param {string[]} names
 * @param {GlobalOptions} options
 */
export function removeSnapshots(names, options) {
  return withSession(options, {}, async ({ client, store, screen, signal }) => {
    for (const name of names) {
      const snapshot = await findSnapshot(client, store, name, signal);
      const { alreadyGone } = await snapshot.delete({ signal });
      await store.forget(snapshot.reference);
      const { id } = snapshot.reference;
      screen.result({ id, alreadyGone }, `${id} ${alreadyGone ? "was gone already" : "deleted"}`);
    }
  });
}
