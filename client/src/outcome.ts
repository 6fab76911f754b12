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
  /** The sandbox that it made or acts on, where known. */
  readonly sandboxId?: string;
  /** The snapshot likewise. */
  readonly snapshotId?: string;
  /** The volume likewise. */
  readonly volumeId?: string;
  /** The process likewise. */
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
  /** What is in the snapshot. */
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
  /** The sandbox that was captured. */
  readonly reference: SandboxReference;
  /** `unknown` also where the provider could not be asked. */
  readonly state: SandboxState;
}

/** How restarting a source went. */
export interface RestartOutcome {
  /** `unknown` also where the provider could not be asked. */
  readonly status: "running" | "failed" | "unknown";
  /** Why it did not start again. */
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
  /** The sandbox that it made or acts on, where known; it goes on existing. */
  readonly sandbox?: SandboxReference;
  /** The snapshot likewise. */
  readonly snapshot?: SnapshotReference;
  /** The volume likewise. */
  readonly volume?: VolumeReference;
  /** The process likewise; it may still run. */
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
