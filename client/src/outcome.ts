/**
 * What is known about a mutation that did not end with an ordinary result.
 *
 * An absent field means "nothing is known", never "no".
 */

import type { SandboxState } from "./adapter.js";
import type { Preserve } from "./preserve.js";
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

/** What a capture keeps. `unknown` is what the provider does not say. */
export interface CaptureDetails {
  readonly preserve: Preserve | "unknown";
  /** The worst that it does to a running source. */
  readonly interruption: "none" | "pause" | "stop" | "unknown";
  /** Whether a restored sandbox boots fresh or goes on where the source was. */
  readonly restoredExecution: "fresh" | "resumed" | "unknown";
  /** Seconds until the snapshot expires; `null` where it is kept until deleted. */
  readonly retentionSeconds: number | null | "unknown";
  /** `caller-quiesced` where the caller said so. */
  readonly consistency: "caller-quiesced" | "unknown";
}

/** The source of a capture, as it was found afterwards. */
export interface CaptureSource {
  readonly reference: SandboxReference;
  /** `unknown` also where the provider could not be asked. */
  readonly state: SandboxState;
}

/** How restarting a source went. */
export interface RestartOutcome {
  readonly status: "running" | "failed" | "unknown";
  readonly error?: unknown;
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
  /** What a capture that was submitted keeps. */
  readonly capture?: CaptureDetails;
  /** How restarting the source went, where a capture stops it. */
  readonly restart?: Pick<RestartOutcome, "status">;
  /** What became of the one kill that was attempted. */
  readonly killed?: boolean | "unknown";
  /** Paths in the sandbox that may still hold something of this call. */
  readonly leftovers?: readonly string[];
  /** The command's exit code, where only its output could not be fetched. */
  readonly exitCode?: number;
  /** Set where output was expected and could not be read. */
  readonly outputUnavailable?: boolean;
}
