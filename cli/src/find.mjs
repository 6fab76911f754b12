/** From what a user types, a name, an id or the start of one, to a reference. */

import { Failure } from "./failure.mjs";

/** @import { BeachsideClient } from "@beachside/runloop/client" */
/** @import { ResourceReference } from "@beachside/runloop" */
/** @import { Store } from "./store.mjs" */

/** Items of the account that are looked at for an id that this machine did not save. */
const MOST_LISTED = 5000;

/**
 * @param {BeachsideClient} client
 * @param {Store} store
 * @param {string} text
 * @param {AbortSignal} signal
 */
export async function findSandbox(client, store, text, signal) {
  const saved = await fromStore(store, "sandbox", text);
  const found = saved ?? (await listed(client.sandboxes.list({ limit: 100, signal }), text));
  if (found === undefined) throw new Failure(`There is no sandbox ${JSON.stringify(text)}.`);
  return await client.sandboxes.get(found, { signal });
}

/**
 * @param {BeachsideClient} client
 * @param {Store} store
 * @param {string} text
 * @param {AbortSignal} signal
 */
export async function findSnapshot(client, store, text, signal) {
  const saved = await fromStore(store, "snapshot", text);
  const found = saved ?? (await listed(client.snapshots.list({ limit: 100, signal }), text));
  if (found === undefined) throw new Failure(`There is no snapshot ${JSON.stringify(text)}.`);
  return await client.snapshots.get(found, { signal });
}

/**
 * Processes have no list at the service: only what was started from here is known.
 *
 * @param {BeachsideClient} client
 * @param {Store} store
 * @param {string} text
 * @param {AbortSignal} signal
 */
export async function findProcess(client, store, text, signal) {
  const reference = await fromStore(store, "process", text);
  if (reference?.kind !== "process") {
    throw new Failure(`There is no process ${JSON.stringify(text)} that was started from here.`);
  }
  const box = await findSandbox(client, store, reference.sandbox, signal);
  return await box.processes.get(reference, { signal });
}

/**
 * @param {Store} store
 * @param {"sandbox" | "snapshot" | "process"} kind
 * @param {string} text
 * @returns {Promise<ResourceReference | undefined>}
 */
async function fromStore(store, kind, text) {
  const saved = await store.all(kind);
  const resources = saved.flatMap(({ name, reference }) =>
    reference.kind === "operation" ? [] : [{ name, reference }],
  );
  // The latest of a name that was used again.
  const exact = resources.findLast(({ name, reference }) => name === text || reference.id === text);
  if (exact !== undefined) return exact.reference;
  const starting = resources.filter(({ reference }) => reference.id.startsWith(text));
  if (starting.length > 1) {
    throw new Failure(`More than one ${kind} starts with ${JSON.stringify(text)}.`);
  }
  return starting[0]?.reference;
}

/**
 * @param {AsyncIterable<{ reference: ResourceReference }>} list
 * @param {string} id
 */
async function listed(list, id) {
  let looked = 0;
  for await (const { reference } of list) {
    if (reference.id === id) return reference;
    looked += 1;
    if (looked === MOST_LISTED) return undefined;
  }
  return undefined;
}
