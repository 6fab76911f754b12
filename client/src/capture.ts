/**
 * Capturing a sandbox into a snapshot: what may be asked of a capture, the
 * mutation, and restarting a source that the provider stops for it.
 */

import type { SandboxState, SnapshotRecord } from "./adapter.js";
import {
  callback,
  invalid,
  isRecord,
  knownKeys,
  labelsOf,
  number,
  oneOf,
  optional,
  optionsOf,
  readable,
} from "./arguments.js";
import {
  behaviorOf,
  type CaptureBehavior,
  type RestoreBehavior,
  refuseUnmet,
} from "./capabilities.js";
import type { Connection } from "./connection.js";
import { BeachsideError, isBeachsideError, type UnmetRequirement } from "./errors.js";
import {
  beforeSending,
  type CallOptions,
  type Evidence,
  type Mutation,
  type MutationOptions,
} from "./operations.js";
import type { CaptureDetails, CaptureSource, RestartOutcome } from "./outcome.js";
import { Preserve } from "./preserve.js";
import { limited, type ProgressOptions, type Tell } from "./progress.js";
import type { SandboxReference } from "./references.js";
import type { SnapshotHandle } from "./snapshot-handle.js";

/** What a capture must do. Checked, never switched: the adapter's settings say how it captures. */
export interface CaptureRequirements {
  /** Exactly what the snapshot keeps. */
  readonly preserve?: Preserve | undefined;
  /** The worst that may happen to a running source. */
  readonly maxInterruption?: "none" | "pause" | "stop" | undefined;
}

/** What `checkSnapshot` and `snapshot` check. */
export interface CheckSnapshotOptions extends CallOptions {
  /** What must hold; without any, whatever the connection does is accepted. */
  readonly requirements?: CaptureRequirements | undefined;
  /** How long the provider must keep the snapshot. */
  readonly retention?:
    | {
        /** A whole number of seconds, 0 or more. */
        readonly minimumSeconds?: number | undefined;
      }
    | undefined;
}

/** Options of `snapshot`. */
export interface SnapshotOptions extends CheckSnapshotOptions, MutationOptions, ProgressOptions {
  /** `caller-quiesced` records that you paused the writers; nothing is paused for you. */
  readonly consistency?: "caller-quiesced" | undefined;
  /** Not supported by every provider. */
  readonly labels?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Whether a sandbox can be captured. */
export type SnapshotCheck =
  | {
      /** It could be captured now. */
      readonly status: "supported";
    }
  | {
      /** `unknown`: the provider does not say beforehand. */
      readonly status: "unsupported" | "unknown";
      /** Why, as a sentence. */
      readonly reason: string;
    };

/** What a capture gave. */
export interface CaptureResult {
  /** The snapshot, ready to be restored. */
  readonly snapshot: SnapshotHandle;
  /** What was saved. */
  readonly capture: CaptureDetails;
  /** How the source was found afterwards. */
  readonly source: CaptureSource;
}

type Given = {
  readonly requirements?: unknown;
  readonly retention?: unknown;
  readonly consistency?: unknown;
};

const INTERRUPTIONS = ["none", "pause", "stop"] as const;
const CHECK_KEYS = ["requirements", "retention"] as const;

export function checkSnapshot(
  connection: Connection,
  sandbox: SandboxReference,
  options: CheckSnapshotOptions | undefined,
): Promise<SnapshotCheck> {
  return connection.read("snapshot_check", options, CHECK_KEYS, async (given, call) => {
    const leaf = connection.capability<CaptureBehavior>("snapshots.capture");
    if (leaf.status !== "supported") return { status: leaf.status, reason: leaf.reason };
    const unmet = readable(() => unmetRequirements(behaviorOf(leaf), sandbox, given));
    if (unmet.length > 0) {
      return { status: "unsupported", reason: unmet.map((each) => each.reason).join(" ") };
    }
    const { state } = await connection.adapter.inspectSandbox({ sandboxId: sandbox.id }, call);
    return checkState(state);
  });
}

function checkState(state: SandboxState): SnapshotCheck {
  if (state === "running") return { status: "supported" };
  if (state === "failed" || state === "destroyed") {
    return { status: "unsupported", reason: `The sandbox is ${state}.` };
  }
  return { status: "unknown", reason: `The sandbox is ${state}; a running one can be captured.` };
}

/** The mutation that captures a sandbox. */
export function capture(
  connection: Connection,
  sandbox: SandboxReference,
  options: unknown,
): Mutation<Captured, CaptureResult> {
  const { given, labels, details, behavior, tell } = connection.checked("snapshot_capture", () => {
    const keys = [
      ...CHECK_KEYS,
      "consistency",
      "labels",
      "signal",
      "onSubmit",
      "onProgress",
    ] as const;
    const checked = optionsOf("snapshot", options, keys);
    const leaf = connection.require<CaptureBehavior>("snapshot_capture", "snapshots.capture");
    const value = behaviorOf(leaf);
    const labelled = optional("labels", checked.labels, labelsOf);
    const unmet = unmetRequirements(value, sandbox, checked);
    if (labelled.labels !== undefined && value?.labels !== true) {
      unmet.push({
        requirement: "snapshots.capture.labels",
        reason: "Snapshots carry no labels on this connection.",
      });
    }
    refuseUnmet(connection.provider, "snapshot_capture", "snapshots.capture", unmet);
    return {
      given: checked,
      labels: labelled,
      details: captureDetails(connection, checked.consistency),
      behavior: value,
      tell: limited(callback("onProgress", checked.onProgress)),
    };
  });
  const adapter = connection.adapter;
  const finish = finishCapture(connection, sandbox, details, behavior, tell);
  return {
    kind: "snapshot_capture",
    target: sandbox,
    options: given,
    mounts: sandbox.mounts,
    send: async ({ markers }, call) => {
      const wasRunning = await beforeSending(runsBefore(connection, sandbox, behavior, call));
      const request = { sandboxId: sandbox.id, markers, ...labels };
      tell?.({ phase: "submitting" });
      const telling = tell === undefined ? call : { ...call, onProgress: tell };
      return { record: await adapter.captureSnapshot(request, telling), wasRunning };
    },
    known: ({ record }, { ownership }) => {
      connection.remember("snapshot", record.id, ownership);
      return {
        snapshot: connection.snapshotReference(record.id, ownership, sandbox.mounts),
        capture: details,
      };
    },
    finish,
  };
}

/** A capture's first answer. */
export interface Captured {
  readonly record: SnapshotRecord;
  /** Whether the source ran before a capture that stops it. */
  readonly wasRunning: boolean;
}

/** Waits for the snapshot, restarts a source that was stopped for it, and looks at the source. */
export function finishCapture(
  connection: Connection,
  sandbox: SandboxReference,
  details: CaptureDetails,
  behavior: CaptureBehavior | undefined,
  tell?: Tell,
) {
  let restart: Promise<RestartOutcome> | undefined;
  return async (
    { record, wasRunning }: Captured,
    call: { readonly signal?: AbortSignal },
    { ownership }: Evidence,
  ): Promise<CaptureResult> => {
    if (record.state !== "ready") {
      tell?.({ phase: "waiting", state: record.providerState });
      const telling = tell === undefined ? call : { ...call, onProgress: tell };
      await connection.adapter.waitForSnapshot({ snapshotId: record.id }, telling);
    }
    const reference = connection.snapshotReference(record.id, ownership, sandbox.mounts);
    if (wasRunning && restarts(behavior)) {
      // Sent once, however often the operation is waited for.
      restart ??= restartSource(connection, sandbox);
      const { status, error } = await restart;
      if (status !== "running") {
        throw new BeachsideError(
          status === "failed"
            ? "The snapshot was captured, and restarting its source failed."
            : "The snapshot was captured, and whether its source was restarted is not known.",
          {
            code: status === "failed" ? "SOURCE_RESTART_FAILED" : "OUTCOME_UNKNOWN",
            cause: error,
            outcome: { restart: { status } },
          },
        );
      }
    }
    const source = await observeSource(connection, sandbox, call);
    tell?.({ phase: "done" });
    return {
      snapshot: connection.handles.snapshot(connection, reference),
      capture: details,
      source,
    };
  };
}

/** Whether a capture stops the source and the adapter is set to have it running again. */
export function restarts(behavior: CaptureBehavior | undefined): boolean {
  return behavior?.interruption === "stop" && behavior.sourceAfter === "running";
}

/** What a capture on this connection keeps. */
export function captureDetails(connection: Connection, consistency: unknown): CaptureDetails {
  const { consistency: claimed } = optional("consistency", consistency, (value) =>
    oneOf("consistency", value, ["caller-quiesced"]),
  );
  const behavior = behaviorOf(connection.capability<CaptureBehavior>("snapshots.capture"));
  const restore = behaviorOf(connection.capability<RestoreBehavior>("snapshots.restore"));
  return Object.freeze({
    preserve: behavior?.preserve ?? "unknown",
    interruption: behavior?.interruption ?? "unknown",
    restoredExecution: restore?.execution ?? "unknown",
    retentionSeconds: behavior === undefined ? "unknown" : behavior.retentionSeconds,
    consistency: claimed ?? "unknown",
  });
}

function unmetRequirements(
  behavior: CaptureBehavior | undefined,
  { mounts }: SandboxReference,
  given: Given,
): UnmetRequirement[] {
  const unmet: UnmetRequirement[] = [];
  if (mounts !== "unknown" && mounts.length > 0) {
    unmet.push({
      requirement: "snapshots.capture.mounts",
      reason: "A sandbox with mounted volumes cannot be captured.",
    });
  }
  const { preserve, maxInterruption } = requirementsOf(given.requirements);
  if (preserve !== undefined && preserve !== behavior?.preserve) {
    unmet.push({
      requirement: "snapshots.preserve",
      reason: `A capture keeps ${behavior?.preserve ?? "something unknown"}, not ${preserve}.`,
    });
  }
  const interruption = behavior?.interruption ?? "stop";
  if (
    maxInterruption !== undefined &&
    INTERRUPTIONS.indexOf(interruption) > INTERRUPTIONS.indexOf(maxInterruption)
  ) {
    unmet.push({
      requirement: "snapshots.maxInterruption",
      reason: `A capture may ${interruption} the source; at most "${maxInterruption}" is allowed.`,
    });
  }
  const minimum = minimumSeconds(given.retention);
  const kept = behavior === undefined ? 0 : behavior.retentionSeconds;
  if (minimum !== undefined && kept !== null && kept < minimum) {
    unmet.push({
      requirement: "snapshots.retention",
      reason: `Snapshots are kept for ${kept} seconds; at least ${minimum} are required.`,
    });
  }
  return unmet;
}

function requirementsOf(value: unknown) {
  if (value === undefined) return {};
  if (!isRecord(value)) throw invalid("requirements must be a plain object.");
  knownKeys("requirements", value, ["preserve", "maxInterruption"]);
  return {
    ...optional("preserve", value["preserve"], (each) =>
      oneOf("requirements.preserve", each, Object.values(Preserve)),
    ),
    ...optional("maxInterruption", value["maxInterruption"], (each) =>
      oneOf("requirements.maxInterruption", each, INTERRUPTIONS),
    ),
  };
}

function minimumSeconds(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) throw invalid("retention must be a plain object.");
  knownKeys("retention", value, ["minimumSeconds"]);
  const { minimumSeconds: seconds } = optional("minimumSeconds", value["minimumSeconds"], (each) =>
    number("retention.minimumSeconds", each, { min: 0, max: Number.MAX_SAFE_INTEGER }),
  );
  return seconds;
}

/** A source that is stopped already must stay stopped; asked only where a capture stops it. */
async function runsBefore(
  connection: Connection,
  sandbox: SandboxReference,
  behavior: CaptureBehavior | undefined,
  call: { readonly signal?: AbortSignal },
): Promise<boolean> {
  if (!restarts(behavior)) return false;
  const { state } = await connection.adapter.inspectSandbox({ sandboxId: sandbox.id }, call);
  return state === "running";
}

/** Restarts a source once. Not cancelled by a wait's signal: it must not be left half done. */
export async function restartSource(
  connection: Connection,
  sandbox: SandboxReference,
): Promise<RestartOutcome> {
  const { adapter } = connection;
  try {
    const { alreadyThere } = await adapter.resumeSandbox({ sandboxId: sandbox.id });
    if (!alreadyThere) await adapter.waitForSandbox({ sandboxId: sandbox.id, state: "running" });
    return { status: "running" };
  } catch (error) {
    const code = isBeachsideError(error) ? error.code : "INTERNAL";
    const uncertain = ["OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "CLOSED", "UNAVAILABLE", "INTERNAL"];
    return { status: uncertain.includes(code) ? "unknown" : "failed", error };
  }
}

/** A capture that succeeded stays a success where the source cannot be looked at. */
async function observeSource(
  connection: Connection,
  sandbox: SandboxReference,
  call: { readonly signal?: AbortSignal },
): Promise<CaptureSource> {
  try {
    const { state } = await connection.adapter.inspectSandbox({ sandboxId: sandbox.id }, call);
    return { reference: sandbox, state };
  } catch (error) {
    if (isBeachsideError(error) && (error.code === "CANCELLED" || error.code === "CLOSED")) {
      throw error;
    }
    return { reference: sandbox, state: "unknown" };
  }
}
