/** A snapshot in the caller's hand: restoring it, looking at it, deleting it. */

import type { SandboxRecord, SnapshotRecord } from "./adapter.js";
import { invalid, isRecord, knownKeys, oneOf, optional, optionsOf } from "./arguments.js";
import {
  behaviorOf,
  type CaptureBehavior,
  type RestoreBehavior,
  refuseUnmet,
  unsupported,
} from "./capabilities.js";
import type { Connection } from "./connection.js";
import {
  acceptOptions,
  type NewSandboxOptions,
  newSandbox,
  newSandboxRequest,
} from "./create-request.js";
import type { UnmetRequirement } from "./errors.js";
import { inspectsAs } from "./inspection.js";
import {
  type CallOptions,
  type Mutation,
  type MutationOptions,
  type Operation,
  perform,
  submit,
} from "./operations.js";
import type { MountRecord, Ownership, SnapshotReference } from "./references.js";
import type { SandboxHandle } from "./sandbox-handle.js";
import { isoTime } from "./sandbox-info.js";

/** Options of `restore`. */
export interface RestoreOptions extends NewSandboxOptions {
  /** Only an empty one, which counts as omitted: sizes cannot be changed on restore. */
  readonly resources?: Readonly<Record<string, never>> | undefined;
  /** What must hold; checked before anything is sent. */
  readonly requirements?:
    | {
        /**
         * `independent` (the default): the new sandbox must live on when source or
         * snapshot are deleted. `any` accepts one that does not.
         */
        readonly lifecycle?: "independent" | "any" | undefined;
      }
    | undefined;
}

/** What lists say of each snapshot. */
export interface SnapshotSummary {
  /** For `client.snapshots.get()`. */
  readonly reference: SnapshotReference;
  /** Only a `ready` one can be restored. */
  readonly state: SnapshotRecord["state"];
  /** The provider's own word for the state. */
  readonly providerState: string;
  /** ISO 8601; `null` where the provider does not say. */
  readonly createdAt: string | null;
  /** Whether this application is proven to have made it. */
  readonly ownership: Ownership;
  /** `null` where the provider keeps none. */
  readonly labels: Readonly<Record<string, string>> | null;
  /** Id of the sandbox that was captured. */
  readonly source: string | null;
}

/** What `inspect()` says of one snapshot. */
export interface SnapshotInfo extends SnapshotSummary {
  /** The provider's reason, for a failed snapshot. */
  readonly reason: string | null;
  /** `null` where the provider does not say. */
  readonly sizeBytes: number | null;
  /** ISO 8601; `null` where it is kept until it is deleted. */
  readonly expiresAt: string | null;
  /** Volumes that its source had mounted. */
  readonly mounts: readonly MountRecord[] | "unknown";
}

/** What deleting did. */
export interface DeleteResult {
  /** The provider confirmed it. */
  readonly state: "deleted";
  /** Whether there was nothing left to delete. */
  readonly alreadyGone: boolean;
}

const RESTORE_KEYS = [
  "env",
  "lifecycle",
  "network",
  "labels",
  "mounts",
  "resources",
  "requirements",
  "signal",
  "onSubmit",
  "onProgress",
] as const;

/**
 * A snapshot: what it is, restoring it, deleting it. From `box.snapshot()` or
 * `client.snapshots`. Holds nothing open.
 *
 * ```js
 * const { snapshot } = await box.snapshot();
 * const copy = await snapshot.restore();
 * await snapshot.delete();
 * ```
 */
export class SnapshotHandle {
  /** Versioned JSON to save and to reopen with `client.snapshots.get()`. */
  readonly reference: SnapshotReference;
  readonly #connection: Connection;

  static {
    inspectsAs(SnapshotHandle, ({ reference }) => reference);
  }

  /** @internal */
  constructor(connection: Connection, reference: SnapshotReference) {
    this.#connection = connection;
    this.reference = reference;
  }

  /** Asks the provider how the snapshot is. */
  inspect(options?: CallOptions): Promise<SnapshotInfo> {
    return this.#connection.read("snapshot_inspect", options, [], async (_, call) => {
      const record = await this.#connection.adapter.inspectSnapshot(
        { snapshotId: this.reference.id },
        call,
      );
      return snapshotInfo(record, this.reference);
    });
  }

  /**
   * Makes a new sandbox from the snapshot and waits until it runs. Size, life
   * cycle, network and preview are the connection's own unless given here. `onProgress` hears of
   * the same as that of `sandboxes.create`.
   *
   * @throws UnsupportedFeatureError for an option that
   *   `capabilities().snapshots.restore` does not list, before anything is sent.
   */
  async restore(options?: RestoreOptions): Promise<SandboxHandle> {
    return await perform(this.#connection, this.#restore(options));
  }

  /** Like {@link restore}, without waiting for the provider. */
  async submitRestore(options?: RestoreOptions): Promise<Operation<SandboxHandle>> {
    return await submit(this.#connection, this.#restore(options));
  }

  /**
   * Deletes the snapshot; its source and what was restored from it stay. One
   * that is gone already is a success.
   */
  async delete(options?: MutationOptions): Promise<DeleteResult> {
    return await perform(this.#connection, this.#delete(options));
  }

  /** Like {@link delete}, without waiting for the provider. */
  async submitDelete(options?: MutationOptions): Promise<Operation<DeleteResult>> {
    return await submit(this.#connection, this.#delete(options));
  }

  #delete(options: unknown): Mutation<{ alreadyGone: boolean }, DeleteResult> {
    const connection = this.#connection;
    const given = connection.checked("snapshot_delete", () => {
      connection.require("snapshot_delete", "snapshots.delete");
      return optionsOf("delete", options, ["signal", "onSubmit"]);
    });
    const snapshotId = this.reference.id;
    return {
      kind: "snapshot_delete",
      target: this.reference,
      options: given,
      send: (_evidence, call) => connection.adapter.deleteSnapshot({ snapshotId }, call),
      finish: async ({ alreadyGone }) => {
        connection.forget("snapshot", snapshotId);
        return { state: "deleted", alreadyGone };
      },
    };
  }

  #restore(options: unknown): Mutation<SandboxRecord, SandboxHandle> {
    const connection = this.#connection;
    const { given, request } = connection.checked("snapshot_restore", () => {
      const checked = optionsOf("restore", options, RESTORE_KEYS);
      refuseResources(connection, checked.resources);
      const created = newSandboxRequest(connection, "snapshot_restore", checked);
      const { network: _, ...listed } = created;
      acceptOptions(connection, "snapshot_restore", "snapshots.restore", Object.keys(listed));
      const unmet = [
        ...unmetLifecycle(connection, checked.requirements),
        ...unmetMounts(connection, this.reference, created.mounts),
      ];
      refuseUnmet(connection.provider, "snapshot_restore", "snapshots.restore", unmet);
      return { given: checked, request: created };
    });
    const restored = { ...request, snapshotId: this.reference.id };
    return newSandbox(connection, given, restored, this.reference);
  }
}

export function snapshotSummary(
  record: SnapshotRecord,
  reference: SnapshotReference,
): SnapshotSummary {
  return {
    reference,
    state: record.state,
    providerState: record.providerState,
    createdAt: isoTime(record.createdAtMs),
    ownership: reference.ownership,
    labels: record.labels ?? null,
    source: record.sourceSandboxId,
  };
}

function snapshotInfo(record: SnapshotRecord, reference: SnapshotReference): SnapshotInfo {
  return {
    ...snapshotSummary(record, reference),
    reason: record.reason,
    sizeBytes: record.sizeBytes,
    expiresAt: isoTime(record.expiresAtMs ?? null),
    mounts: reference.mounts,
  };
}

function refuseResources(connection: Connection, resources: unknown): void {
  if (resources === undefined) return;
  if (!isRecord(resources)) throw invalid("resources must be a plain object.");
  if (Object.values(resources).every((each) => each === undefined)) return;
  throw unsupported(
    connection.provider,
    "snapshot_restore",
    "snapshots.restore.resources",
    "Sizes cannot be changed on restore; configure them on the connection.",
  );
}

function unmetLifecycle(connection: Connection, requirements: unknown): UnmetRequirement[] {
  let required: "independent" | "any" = "independent";
  if (requirements !== undefined) {
    if (!isRecord(requirements)) throw invalid("requirements must be a plain object.");
    knownKeys("requirements", requirements, ["lifecycle"]);
    const given = optional("lifecycle", requirements["lifecycle"], (value) =>
      oneOf("requirements.lifecycle", value, ["independent", "any"]),
    );
    required = given.lifecycle ?? required;
  }
  const behavior = behaviorOf(connection.capability<RestoreBehavior>("snapshots.restore"));
  if (required === "any" || behavior?.lifecycle === "independent") return [];
  return [
    {
      requirement: "snapshots.restore.lifecycle",
      reason: "A restored sandbox is not known to outlive its source and its snapshot.",
    },
  ];
}

function unmetMounts(
  connection: Connection,
  { mounts: history }: SnapshotReference,
  mounts: readonly { readonly readOnly: boolean }[] | undefined,
): UnmetRequirement[] {
  if (mounts === undefined) return [];
  const unmet: UnmetRequirement[] = [];
  const need = (requirement: string, met: boolean, reason: string) => {
    if (!met) unmet.push({ requirement: `snapshots.restore.${requirement}`, reason });
  };
  const restore = behaviorOf(connection.capability<RestoreBehavior>("snapshots.restore"));
  const behavior = behaviorOf(connection.capability<CaptureBehavior>("snapshots.capture"));
  need(
    "mountInput",
    restore?.mountInput === "specs",
    "The adapter does not declare that restore takes mounts.",
  );
  need(
    "mountHistory",
    history !== "unknown" && history.length === 0,
    history === "unknown"
      ? "Whether the source had mounted volumes is not known."
      : "The source had mounted volumes.",
  );
  need(
    "execution",
    restore?.execution === "fresh" && behavior?.preserve === "filesystem",
    "Only a snapshot of files that boots fresh can be restored with mounts.",
  );
  need(
    "readOnly",
    mounts.every((mount) => !mount.readOnly),
    "Mounts of a restore must be writable.",
  );
  return unmet;
}
