/** `client.snapshots`: finding and reopening snapshots. Sandboxes make them. */

import type { SnapshotRecord } from "./adapter.js";
import { invalid } from "./arguments.js";
import type { Connection } from "./connection.js";
import { type List, type ListOptions, list } from "./lists.js";
import type { CallOptions } from "./operations.js";
import { validateResourceReference } from "./reference-checks.js";
import type { ResourceReference, SnapshotReference } from "./references.js";
import { SnapshotHandle, type SnapshotSummary, snapshotSummary } from "./snapshot-handle.js";

/**
 * `client.snapshots`: finding and reopening snapshots.
 *
 * ```js
 * for await (const { reference, state } of client.snapshots.list()) {
 *   if (state === "ready") await (await client.snapshots.get(reference)).restore();
 * }
 * ```
 */
export class Snapshots {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Reopens a saved reference: checks its shape and scope, and reads the
   * provider. Where the markers that the provider keeps are not those of the
   * reference, the handle's ownership and its history of mounts are `unknown`.
   */
  get(reference: ResourceReference, options?: CallOptions): Promise<SnapshotHandle> {
    return this.#connection.read("snapshot_get", options, [], async (_, call) => {
      const saved = validateResourceReference(reference);
      if (saved.kind !== "snapshot") {
        throw invalid(`snapshots.get() takes the reference of a snapshot, not of a ${saved.kind}.`);
      }
      this.#connection.inScope(saved);
      const record = await this.#connection.adapter.inspectSnapshot({ snapshotId: saved.id }, call);
      return new SnapshotHandle(this.#connection, foundSnapshot(this.#connection, record, saved));
    });
  }

  /** The account's snapshots, newest first where the provider sorts them. */
  list(options?: ListOptions): List<SnapshotSummary> {
    return list(this.#connection, options, {
      operation: "snapshot_list",
      keys: [],
      load: (page, _given, call) => {
        this.#connection.require("snapshot_list", "snapshots.list");
        return this.#connection.adapter.listSnapshots(page, call);
      },
      item: (record) => snapshotSummary(record, foundSnapshot(this.#connection, record)),
    });
  }
}

/** The reference of a snapshot that the provider reports; see `foundSandbox`. */
export function foundSnapshot(
  connection: Connection,
  record: SnapshotRecord,
  saved?: SnapshotReference,
): SnapshotReference {
  const { id, markers } = record;
  const ownership = connection.ownership("snapshot", id, markers, saved?.ownership);
  const mounts = ownership.state === "created" ? saved?.mounts : undefined;
  return connection.snapshotReference(id, ownership, mounts ?? "unknown");
}
