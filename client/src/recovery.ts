/**
 * What became of a submitted operation: `client.recover(reference)`.
 *
 * Only reads. It looks for what carries the operation's markers, or at what
 * the operation acts on, and never repeats it. A resource that is not found
 * proves nothing: the provider may still be working, so `not_observed` is no
 * licence to submit again.
 */

import type { Call, FindResult, SandboxRecord, SnapshotRecord } from "./adapter.js";
import type { VolumeRecord } from "./adapter-volumes.js";
import { optionsOf } from "./arguments.js";
import { behaviorOf, type CaptureBehavior } from "./capabilities.js";
import { restartSource, restarts } from "./capture.js";
import type { Connection } from "./connection.js";
import { type BeachsideError, isBeachsideError } from "./errors.js";
import { type CallOptions, perform } from "./operations.js";
import { validateOperationReference } from "./reference-checks.js";
import {
  claimOf,
  markersOf,
  type OperationReference,
  type ResourceReference,
} from "./references.js";
import { destroy, type SandboxHandle } from "./sandbox-handle.js";
import { foundSandbox, madeSandbox } from "./sandbox-info.js";
import type { SnapshotHandle } from "./snapshot-handle.js";
import { foundSnapshot } from "./snapshots.js";
import { adapterVolumes, foundVolume, VolumeHandle } from "./volumes.js";

/** How much was looked at. */
export interface Searched {
  /** Items of all pages that were looked at. */
  readonly items: number;
  /** `false` where the bound on pages was reached first. */
  readonly complete: boolean;
}

/** What an operation made or acts on, as far as it was found. */
export interface Found {
  /** The sandbox, where one was found. */
  readonly sandbox?: SandboxHandle;
  /** The snapshot, where one was found. */
  readonly snapshot?: SnapshotHandle;
  /** The volume, where one was found. */
  readonly volume?: VolumeHandle;
  /** Its state, as `inspect()` says it. */
  readonly state?: string;
}

/** Goes on where that is safe, and says how the operation is then. */
export type Continue = (options?: CallOptions) => Promise<Recovery>;

/** What is known of an operation. */
export type Recovery = {
  /** What was asked about. */
  readonly operation: OperationReference;
} & (
  | ({
      /** It happened. */
      readonly status: "done";
      /** How much was looked at, where something was searched for. */
      readonly searched?: Searched;
    } & Found)
  | ({
      /** It is happening. */
      readonly status: "in_progress";
      /** What it is in the middle of. */
      readonly stage: string;
      /** Waits for the rest. */
      readonly continue: Continue;
    } & Found)
  | ({
      /** It was tried and did not work. */
      readonly status: "failed";
      /** The provider's reason. */
      readonly reason: string | null;
    } & Found)
  | {
      /** Nothing of it was seen. Proves nothing. */
      readonly status: "not_observed";
      /** How much was looked at. */
      readonly searched: Searched;
      /** Only where doing it again cannot do it twice, as for a deletion. */
      readonly continue?: Continue;
    }
  | {
      /** More than one resource carries its markers. None is "the first". */
      readonly status: "ambiguous";
      /** All of them. */
      readonly matches: readonly ResourceReference[];
      /** How much was looked at. */
      readonly searched: Searched;
    }
  | {
      /** The provider could not be asked, or the bound on pages was reached. */
      readonly status: "unknown";
      /** Why, as a sentence. */
      readonly reason: string;
      /** How much was looked at, where something was searched for. */
      readonly searched?: Searched;
    }
  | {
      /** The provider refused it; known to the process that submitted it only. */
      readonly status: "refused";
      /** The refusal. */
      readonly error: BeachsideError;
    }
);

type Verdict = Recovery extends infer R
  ? R extends Recovery
    ? Omit<R, "operation">
    : never
  : never;

export async function recover(
  connection: Connection,
  reference: unknown,
  options: CallOptions | undefined,
): Promise<Recovery> {
  const operation = connection.checked("recover", () => {
    const checked = validateOperationReference(reference);
    connection.inScope(checked);
    return checked;
  });
  const verdict = await connection.read("recover", options, [], (_, call) =>
    observe(connection, operation, call),
  );
  return Object.freeze({ operation, ...verdict }) as Recovery;
}

async function observe(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  const refusal = connection.refusal(operation.operationId);
  if (refusal !== undefined) return { status: "refused", error: refusal };
  switch (operation.operation) {
    case "sandbox_create":
    case "snapshot_restore":
      return observeSandbox(connection, operation, call);
    case "snapshot_capture":
      return observeCapture(connection, operation, call);
    case "volume_create":
      return observeVolume(connection, operation, call);
    case "sandbox_suspend":
    case "sandbox_resume":
    case "sandbox_destroy":
      return observePower(connection, operation, call);
    case "snapshot_delete":
    case "volume_delete":
      return observeDeletion(connection, operation, call);
    case "process_terminate":
      return observeTermination(connection, operation, call);
    case "exec":
    case "process_start":
    case "file_write":
      return {
        status: "unknown",
        reason: "The provider keeps nothing by which this operation could be found.",
      };
  }
}

/** Waits by `wait`, which only reads, and looks again. */
function continuing(
  connection: Connection,
  operation: OperationReference,
  step: (call: Call) => Promise<unknown>,
): Continue {
  return async (options) => {
    await connection.read("recover", options, [], (_, call) => step(call));
    return await recover(connection, operation, options);
  };
}

/** The one match; or the verdict where there is none or more than one. */
function single<Item>(
  { matches, searched }: FindResult<Item>,
  toReference: (item: Item) => ResourceReference,
): { readonly item: Item } | { readonly verdict: Verdict } {
  const [item, ...others] = matches;
  if (others.length > 0) {
    return { verdict: { status: "ambiguous", matches: matches.map(toReference), searched } };
  }
  if (item !== undefined) return { item };
  if (searched.complete) return { verdict: { status: "not_observed", searched } };
  const reason = "The search was ended by its bound before it had seen everything.";
  return { verdict: { status: "unknown", reason, searched } };
}

async function observeSandbox(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  connection.require("recover", "recovery.sandboxes");
  const found = await connection.adapter.findSandboxes({ markers: markersOf(operation) }, call);
  const toReference = (record: SandboxRecord) => madeSandbox(connection, record, operation);
  const one = single(found, toReference);
  if ("verdict" in one) return one.verdict;
  const { id, state, reason } = one.item;
  const sandbox = connection.handles.sandbox(connection, toReference(one.item));
  if (state === "failed") return { status: "failed", reason, sandbox, state };
  // A state that is not known may come before running.
  if (state === "starting" || state === "unknown") {
    const wait = (each: Call) =>
      connection.adapter.waitForSandbox({ sandboxId: id, state: "running" }, each);
    const next = continuing(connection, operation, wait);
    return { status: "in_progress", stage: "starting", sandbox, state, continue: next };
  }
  return { status: "done", sandbox, state, searched: found.searched };
}

async function observeCapture(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  connection.require("recover", "recovery.snapshots");
  const { adapter } = connection;
  const source = operation.target?.kind === "sandbox" ? operation.target : undefined;
  const request = {
    markers: markersOf(operation),
    ...(source === undefined ? {} : { sourceSandboxId: source.id }),
  };
  const found = await adapter.findSnapshots(request, call);
  const toReference = (record: SnapshotRecord) =>
    foundSnapshot(
      connection,
      record,
      connection.snapshotReference(record.id, claimOf(operation), source?.mounts ?? "unknown"),
    );
  const one = single(found, toReference);
  if ("verdict" in one) return one.verdict;
  const { id, state, reason } = one.item;
  const snapshot = connection.handles.snapshot(connection, toReference(one.item));
  if (state === "failed") return { status: "failed", reason, snapshot, state };
  // A state that is not known may come before ready.
  if (state === "creating" || state === "unknown") {
    const next = continuing(connection, operation, (each) =>
      adapter.waitForSnapshot({ snapshotId: id }, each),
    );
    return { status: "in_progress", stage: "capturing", snapshot, state, continue: next };
  }
  const behavior = behaviorOf(connection.capability<CaptureBehavior>("snapshots.capture"));
  if (source !== undefined && state === "ready" && restarts(behavior)) {
    const { state: sourceState } = await adapter.inspectSandbox({ sandboxId: source.id }, call);
    if (sourceState === "suspended") {
      const next: Continue = async (options) => {
        const { error } = await connection.read("recover", options, [], () =>
          restartSource(connection, source),
        );
        if (error !== undefined) throw connection.complete(error, "recover");
        return await recover(connection, operation, options);
      };
      return { status: "in_progress", stage: "restarting_source", snapshot, state, continue: next };
    }
  }
  return { status: "done", snapshot, state, searched: found.searched };
}

async function observeVolume(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  const volumes = adapterVolumes(connection, "recover", "volumes.create");
  const found = await volumes.find({ markers: markersOf(operation) }, call);
  const toReference = (record: VolumeRecord) =>
    foundVolume(connection, record, connection.volumeReference(record.id, claimOf(operation)));
  const one = single(found, toReference);
  if ("verdict" in one) return one.verdict;
  const { state } = one.item;
  const volume = new VolumeHandle(connection, toReference(one.item));
  if (state === "failed") return { status: "failed", reason: null, volume, state };
  return { status: "done", volume, state, searched: found.searched };
}

const ONE: Searched = { items: 1, complete: true };

async function observePower(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  const { target } = operation;
  if (target?.kind !== "sandbox") return untargeted();
  const record = await unlessMissing(
    connection.adapter.inspectSandbox({ sandboxId: target.id }, call),
  );
  const goal = {
    sandbox_suspend: { state: "suspended", by: "suspending" },
    sandbox_resume: { state: "running", by: "resuming" },
    sandbox_destroy: { state: "destroyed", by: undefined },
  } as const;
  const { state, by } = goal[operation.operation as keyof typeof goal];
  if (record === undefined) {
    return state === "destroyed"
      ? { status: "done", state }
      : { status: "unknown", reason: "The provider no longer knows the sandbox." };
  }
  const sandbox = connection.handles.sandbox(connection, foundSandbox(connection, record, target));
  if (record.state === state) return { status: "done", sandbox, state };
  if (by !== undefined && record.state === by) {
    const next = continuing(connection, operation, (each) =>
      connection.adapter.waitForSandbox({ sandboxId: target.id, state }, each),
    );
    return { status: "in_progress", stage: by, sandbox, state: record.state, continue: next };
  }
  if (state !== "destroyed") return { status: "not_observed", searched: ONE };
  const next: Continue = async (options) => {
    const given = connection.checked("recover", () => optionsOf("continue", options, ["signal"]));
    await perform(connection, destroy(connection, sandbox.reference, given));
    return await recover(connection, operation, options);
  };
  return { status: "not_observed", searched: ONE, continue: next };
}

async function observeDeletion(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  const { target } = operation;
  const gone: Verdict = { status: "done", state: "deleted" };
  if (target?.kind === "snapshot") {
    const record = await unlessMissing(
      connection.adapter.inspectSnapshot({ snapshotId: target.id }, call),
    );
    if (record === undefined || record.state === "deleted") return gone;
    const reference = foundSnapshot(connection, record, target);
    const handle = connection.handles.snapshot(connection, reference);
    return { status: "not_observed", searched: ONE, continue: deleting(handle) };
  }
  if (target?.kind === "volume") {
    const volumes = adapterVolumes(connection, "recover", "volumes.get");
    const record = await unlessMissing(volumes.inspect({ volumeId: target.id }, call));
    if (record === undefined || record.state === "deleted") return gone;
    const handle = new VolumeHandle(connection, foundVolume(connection, record, target));
    return { status: "not_observed", searched: ONE, continue: deleting(handle) };
  }
  return untargeted();

  function deleting(handle: SnapshotHandle | VolumeHandle): Continue {
    return async (options) => {
      await handle.delete(options);
      return await recover(connection, operation, options);
    };
  }
}

async function observeTermination(
  connection: Connection,
  operation: OperationReference,
  call: Call,
): Promise<Verdict> {
  const { target } = operation;
  if (target?.kind !== "process") return untargeted();
  connection.require("recover", "processes.reopen");
  const request = { sandboxId: target.sandbox, processId: target.id };
  const opened = await connection.adapter.openProcess(request, call);
  try {
    const { state } = await opened.status(call);
    return state === "exited"
      ? { status: "done", state }
      : { status: "not_observed", searched: ONE };
  } finally {
    opened.detach();
  }
}

function untargeted(): Verdict {
  return { status: "unknown", reason: "The reference does not say what the operation acts on." };
}

async function unlessMissing<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isBeachsideError(error) && error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}
