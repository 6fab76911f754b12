/**
 * What is known about a mutation that did not end with an ordinary result.
 *
 * An absent field means "nothing is known", never "no".
 */

import type {
  OperationKind,
  OperationReference,
  ProcessReference,
  SandboxReference,
  SnapshotReference,
  VolumeReference,
} from "./references.js";

/**
 * What an adapter knows, by the provider's ids. The client turns the ids into
 * references before a caller sees them.
 */
export interface AdapterOutcome {
  /** Whether a byte of the mutation was sent. */
  readonly submitted?: boolean;
  readonly sandboxId?: string;
  readonly snapshotId?: string;
  readonly volumeId?: string;
  readonly processId?: string;
  /** What became of the one kill that was attempted. */
  readonly killed?: boolean | "unknown";
  /** Paths in the sandbox that may still hold something of this call. */
  readonly leftovers?: readonly string[];
  /** The command's exit code, where only its output could not be fetched. */
  readonly exitCode?: number;
  /** Set where output was expected and could not be read. */
  readonly outputUnavailable?: boolean;
}

/** `error.outcome`. */
export interface Outcome {
  /** Which mutation. */
  readonly kind?: OperationKind;
  /** Whether a byte of it was sent. */
  readonly submitted?: boolean;
  /** Save this to ask `client.recover()` later. */
  readonly operation?: OperationReference;
  readonly sandbox?: SandboxReference;
  readonly snapshot?: SnapshotReference;
  readonly volume?: VolumeReference;
  readonly process?: ProcessReference;
  /** What was kept, of a capture that succeeded. */
  readonly capture?: unknown;
  /** How restarting the source went, where capture stops it. */
  readonly restart?: unknown;
  /** What became of the one kill that was attempted. */
  readonly killed?: boolean | "unknown";
  /** Paths in the sandbox that may still hold something of this call. */
  readonly leftovers?: readonly string[];
  /** The command's exit code, where only its output could not be fetched. */
  readonly exitCode?: number;
  /** Set where output was expected and could not be read. */
  readonly outputUnavailable?: boolean;
}
