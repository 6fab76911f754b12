/**
 * Saved references: plain, versioned JSON that an application stores.
 *
 * A reference says which resource of which account it means and what evidence
 * there is that this application made it. It holds no credential and no
 * environment value. This module owns the shapes; reference-checks.ts tells
 * whether some JSON has one of them.
 */

import type { Markers } from "./adapter.js";

/** What a mutation is called, in references, errors and recovery. */
export type OperationKind =
  | "sandbox_create"
  | "sandbox_suspend"
  | "sandbox_resume"
  | "sandbox_destroy"
  | "exec"
  | "process_start"
  | "process_terminate"
  | "file_write"
  | "snapshot_capture"
  | "snapshot_restore"
  | "snapshot_delete"
  | "volume_create"
  | "volume_delete";

/** Kinds of resource that a reference can name. */
export type ResourceKind = "sandbox" | "snapshot" | "volume" | "process";

/** One account of one provider. */
export interface Scope {
  /** The adapter's provider, for example `runloop`. */
  readonly provider: string;
  /** The provider's id of the account. */
  readonly account: string;
}

/**
 * The evidence that this application made a resource. `created` needs both
 * ids; they are compared with what the provider keeps when a reference is
 * reopened.
 */
export interface Ownership {
  /** `created`: this application made it. `unknown`: nothing proves that, and nothing cleans it up by itself. */
  readonly state: "created" | "unknown";
  /** Id of the operation that made it. */
  readonly operation?: string;
  /** Id of the submission that made it. */
  readonly submission?: string;
}

interface Reference<Kind extends string> {
  /** Version of the shape of references. */
  readonly version: 1;
  /** What it names. */
  readonly kind: Kind;
  /** The adapter's provider, for example `runloop`. */
  readonly provider: string;
  /** Where it belongs; another connection refuses it with `SCOPE_MISMATCH`. */
  readonly scope: {
    /** The provider's id of the account. */
    readonly account: string;
  };
}

interface ResourceOf<Kind extends ResourceKind> extends Reference<Kind> {
  /** The provider's id. */
  readonly id: string;
  /** Whether this application made it. */
  readonly ownership: Ownership;
}

/** A volume at a path, as recorded when it was mounted. */
export interface MountRecord {
  /** The provider's id of the volume. */
  readonly volume: string;
  /** Absolute, in the sandbox. */
  readonly path: string;
  /** A folder of the volume instead of all of it. */
  readonly subpath?: string;
  /** Whether writes fail. */
  readonly readOnly: boolean;
}

/** Names a sandbox. */
export interface SandboxReference extends ResourceOf<"sandbox"> {
  /** Volumes mounted at creation; at most {@link MAX_MOUNTS_JSON_BYTES} as JSON. */
  readonly mounts: readonly MountRecord[] | "unknown";
}

/** Names a snapshot. */
export interface SnapshotReference extends ResourceOf<"snapshot"> {
  /** Volumes that its source had mounted when it was captured. */
  readonly mounts: readonly MountRecord[] | "unknown";
}

/** Names a volume. */
export type VolumeReference = ResourceOf<"volume">;

/** Names a live process in a sandbox. */
export interface ProcessReference extends ResourceOf<"process"> {
  /** The provider's id of the sandbox. */
  readonly sandbox: string;
}

/** Any reference that names a resource. */
export type ResourceReference =
  | SandboxReference
  | SnapshotReference
  | VolumeReference
  | ProcessReference;

/** Names one submission of one mutation, for `recover()`. */
export interface OperationReference extends Reference<"operation"> {
  /** Which mutation. */
  readonly operation: OperationKind;
  /** Random id of the operation that the caller asked for; the provider keeps it as metadata. */
  readonly operationId: string;
  /** Random id of this submission of it; the provider keeps it too. */
  readonly submissionId: string;
  /** ISO 8601, by this machine's clock. */
  readonly submittedAt: string;
  /** What the operation acts on, where that exists already. */
  readonly target?: ResourceReference;
}

/**
 * Longest JSON text of a reference's mounts, in bytes. A create whose mounts
 * would not fit is refused before anything is sent.
 */
export const MAX_MOUNTS_JSON_BYTES = 16_384;

/** What to do about written storage whose durability the provider cannot confirm. */
export type StoragePolicy = "require-durable" | "allow-unconfirmed";

/** What the provider keeps beside what an operation made. */
export function markersOf({ operationId, submissionId }: OperationReference): Markers {
  return { operation: operationId, submission: submissionId };
}

/** The evidence that an operation made what carries its markers. */
export function claimOf(operation: OperationReference): Ownership {
  return { state: "created", ...markersOf(operation) };
}
