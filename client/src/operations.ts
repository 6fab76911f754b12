/**
 * Mutations: sent once, named before they are sent, and waited for by reading.
 *
 * Every mutation goes through {@link submit}. It makes the operation's
 * reference, awaits the caller's `onSubmit`, sends once, and gives back an
 * {@link Operation} whose `wait()` only reads, so that it can be called again
 * after it was cancelled or timed out. The plain form of a call is the submit
 * form plus one `wait()`.
 */

import type { Call, Markers } from "./adapter.js";
import { callback, optionsOf, signalOf } from "./arguments.js";
import type { OperationName } from "./calls.js";
import { adapterOutcome, type Connection, cancelled } from "./connection.js";
import {
  BeachsideError,
  captureStack,
  type ErrorCode,
  enrich,
  isBeachsideError,
} from "./errors.js";
import { uniqueId } from "./identifiers.js";
import type { Outcome } from "./outcome.js";
import { frozenCopy } from "./reference-checks.js";
import {
  claimOf,
  markersOf,
  type OperationKind,
  type OperationReference,
  type Ownership,
  type ResourceReference,
  type SandboxReference,
} from "./references.js";
import { untilAborted } from "./signals.js";

/** Codes with which a provider says that it did not, and will not, do it. */
const REFUSALS: readonly ErrorCode[] = [
  "INVALID_ARGUMENT",
  "UNSUPPORTED",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "NOT_FOUND",
  "CONFLICT",
  "RATE_LIMITED",
  "REJECTED",
];

/** Codes that mean, before the first answer, that no byte of a mutation was sent. */
const UNSENT: readonly ErrorCode[] = ["INVALID_ARGUMENT", "UNSUPPORTED", "UNAVAILABLE"];

/** Options of every call that waits. */
export interface CallOptions {
  /** Stops the call. It rejects with `CANCELLED`, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of every call that changes something at the provider. */
export interface MutationOptions extends CallOptions {
  /**
   * Awaited with the operation's reference before the first byte is sent. Save
   * the reference here: it is what survives a crash, for `client.recover()`.
   * If it throws or rejects, nothing is sent and the call fails with that very error.
   */
  readonly onSubmit?: ((reference: OperationReference) => unknown) | undefined;
}

/**
 * A mutation that was submitted.
 *
 * ```js
 * const operation = await client.sandboxes.submitCreate();
 * saveSomewhere(operation.reference);
 * const box = await operation.wait();
 * ```
 */
export interface Operation<Result> {
  /** Plain JSON that names this submission, for `client.recover()`. */
  readonly reference: OperationReference;
  /**
   * Waits for the result, by reading only. Can be called again, also after a
   * cancelled wait: cancelling stops the wait and undoes nothing.
   */
  wait(options?: CallOptions): Promise<Result>;
}

/** What proves that a submission made a resource. */
export interface Evidence {
  /** For the provider to keep with it. */
  readonly markers: Markers;
  /** For the reference that names it. */
  readonly ownership: Ownership;
}

/** How to run one mutation. `First` is the provider's first answer. */
export interface Mutation<First, Result> {
  readonly kind: OperationKind;
  /** The call, where several are of one kind; `kind` when omitted. */
  readonly name?: OperationName;
  /** What it acts on. */
  readonly target?: ResourceReference;
  readonly options: { readonly signal?: unknown; readonly onSubmit?: unknown };
  /** Sends, once. */
  send(evidence: Evidence, call: Call): Promise<First>;
  /** References known from the first answer. */
  known?(first: First, evidence: Evidence): Outcome;
  /** Observes until the result is there. */
  finish(first: First, call: Call, evidence: Evidence): Promise<Result>;
  /** The mounts of the sandbox that it makes. */
  readonly mounts?: SandboxReference["mounts"];
}

/** Submits, and waits for the result. */
export async function perform<First, Result>(
  connection: Connection,
  mutation: Mutation<First, Result>,
): Promise<Result> {
  const { submission, sent, signal } = await begin(connection, mutation, true);
  return await submission.result(sent, signal);
}

/** Submits, and gives back the operation without waiting for the provider. */
export async function submit<First, Result>(
  connection: Connection,
  mutation: Mutation<First, Result>,
): Promise<Operation<Result>> {
  const { submission, sent } = await begin(connection, mutation, false);
  // A wait() that never comes must not end the process with an unhandled rejection.
  sent.catch(() => {});
  return Object.freeze({
    reference: submission.reference,
    wait: (options?: CallOptions) => submission.wait(sent, options),
  });
}

/** A read that a mutation needs before it is sent; where it fails, nothing was sent. */
export async function beforeSending<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (isBeachsideError(error)) enrich(error, { outcome: { submitted: false } });
    throw error;
  }
}

/**
 * Checks, asks the caller's `onSubmit`, and sends; without an `onSubmit` all of
 * it happens before this returns. `cancellable`: the adapter sees the caller's
 * signal, because it alone knows whether a byte was sent; otherwise the request
 * goes out whatever becomes of the signal, and only waits are cancelled.
 */
async function begin<First, Result>(
  connection: Connection,
  mutation: Mutation<First, Result>,
  cancellable: boolean,
) {
  const { kind, name = kind, options } = mutation;
  const { signal, onSubmit } = connection.checked(name, () => ({
    signal: signalOf(options.signal),
    onSubmit: callback<(reference: OperationReference) => unknown>("onSubmit", options.onSubmit),
  }));
  const submission = new Submission(connection, mutation);
  submission.refuseStopped(signal);
  if (onSubmit !== undefined) {
    await onSubmit(submission.reference);
    submission.refuseStopped(signal);
  }
  return { submission, sent: submission.send(cancellable ? signal : undefined), signal };
}

class Submission<First, Result> implements Evidence {
  readonly #connection: Connection;
  readonly #mutation: Mutation<First, Result>;
  readonly #madeAt = Date.now();
  #reference: OperationReference | undefined;
  #known: Outcome | undefined;
  #submittedAt: number | undefined;
  #isAnswered = false;
  #result: { readonly value: Result } | undefined;

  constructor(connection: Connection, mutation: Mutation<First, Result>) {
    this.#connection = connection;
    this.#mutation = mutation;
  }

  /** Made when it is first read: a command that succeeds needs none. */
  get reference(): OperationReference {
    this.#reference ??= this.#refer();
    return this.#reference;
  }

  get markers(): Markers {
    return markersOf(this.reference);
  }

  get ownership(): Ownership {
    return claimOf(this.reference);
  }

  #refer(): OperationReference {
    const { kind, target } = this.#mutation;
    return frozenCopy({
      version: 1 as const,
      kind: "operation" as const,
      provider: this.#connection.provider,
      scope: { account: this.#connection.account },
      operation: kind,
      operationId: uniqueId(this.#madeAt),
      submissionId: uniqueId(this.#madeAt),
      submittedAt: new Date(this.#madeAt).toISOString(),
      ...(target === undefined ? {} : { target }),
    });
  }

  /** Nothing was sent so far: a stopped call must not send anything later. */
  refuseStopped(signal: AbortSignal | undefined): void {
    const { kind, name = kind } = this.#mutation;
    try {
      if (signal?.aborted === true) throw cancelled(name, signal);
      this.#connection.refuseClosed();
    } catch (error) {
      const unsent: Outcome = { kind, submitted: false, operation: this.reference };
      throw this.#connection.complete(error, name, unsent);
    }
  }

  /** Waits under a signal of its own: the caller's, for this wait only. */
  async wait(sent: Promise<First>, options: CallOptions | undefined): Promise<Result> {
    const { kind, name = kind } = this.#mutation;
    let signal: AbortSignal | undefined;
    try {
      signal = signalOf(optionsOf("wait", options, ["signal"]).signal);
    } catch (error) {
      throw this.#connection.complete(error, name);
    }
    if (this.#result !== undefined) return this.#result.value;
    try {
      return await this.result(
        untilAborted(sent, signal, (at) => this.#stopped(at)),
        signal,
      );
    } catch (error) {
      // It may have failed before this wait began, away from who waits now.
      captureStack(error as BeachsideError, this.wait);
      throw error;
    }
  }

  async result(sent: Promise<First>, signal: AbortSignal | undefined): Promise<Result> {
    try {
      const first = await sent;
      const value = await this.#mutation.finish(first, this.#call(signal), this);
      this.#result = { value };
      this.#tellSettled();
      return value;
    } catch (error) {
      const ours = this.#explain(error);
      this.#tellSettled(ours);
      throw ours;
    }
  }

  /** The adapter's options; they name the operation where somebody listens. */
  #call(signal: AbortSignal | undefined): Call {
    const call = signal === undefined ? {} : { signal };
    if (!this.#connection.tracer.active) return call;
    return { ...call, operationId: this.reference.operationId };
  }

  #tellSubmitted(): void {
    const { tracer } = this.#connection;
    if (!tracer.active) return;
    this.#submittedAt = Date.now();
    tracer.publish({ type: "operation.submit", time: this.#submittedAt, ...this.#traced() });
  }

  /** The operation, or one wait for it, ended. */
  #tellSettled(error?: BeachsideError): void {
    const { tracer } = this.#connection;
    if (!tracer.active) return;
    const time = Date.now();
    tracer.publish({
      type: "operation.settle",
      time,
      ...this.#traced(),
      ...(error === undefined ? {} : { code: error.code }),
      ...(error?.requestId === undefined ? {} : { requestId: error.requestId }),
      durationMs: time - (this.#submittedAt ?? time),
    });
  }

  #traced() {
    const { operation, operationId, target } = this.reference;
    if (target === undefined) return { operation, operationId };
    return { operation, operationId, targetKind: target.kind, targetId: target.id };
  }

  #stopped(signal: AbortSignal): BeachsideError {
    const outcome = { ...this.#base(), submitted: true, ...this.#known };
    const { kind, name = kind } = this.#mutation;
    return cancelled(name, signal, outcome);
  }

  async send(signal: AbortSignal | undefined): Promise<First> {
    this.#tellSubmitted();
    let first: First;
    try {
      first = await this.#mutation.send(this, this.#call(signal));
    } catch (error) {
      if (isBeachsideError(error) && REFUSALS.includes(error.code)) {
        this.#connection.noteRefusal(this.reference.operationId, error);
      }
      throw error;
    }
    this.#isAnswered = true;
    this.#known = this.#mutation.known?.(first, this);
    return first;
  }

  #base(): Outcome {
    const { kind, target } = this.#mutation;
    return {
      kind,
      operation: this.reference,
      ...(target?.kind === "sandbox" ? { sandbox: target } : {}),
      ...(target?.kind === "snapshot" ? { snapshot: target } : {}),
      ...(target?.kind === "volume" ? { volume: target } : {}),
      ...(target?.kind === "process" ? { process: target } : {}),
    };
  }

  /** Completes the error with everything known: what it says itself wins over what was known before. */
  #explain(failure: unknown): BeachsideError {
    const { kind, name = kind } = this.#mutation;
    const error = this.#unlessClosed(failure);
    if (!isBeachsideError(error) || error.outcome?.operation === undefined) {
      const sent = this.#sentBefore(error);
      const outcome = {
        ...this.#base(),
        ...sent,
        ...this.#known,
        ...(isBeachsideError(error) ? this.#named(error) : {}),
      };
      return this.#connection.complete(error, name, outcome);
    }
    return this.#connection.complete(error, name);
  }

  /** That the connection was closed says nothing of a mutation that was sent. */
  #unlessClosed(error: unknown): unknown {
    if (!isBeachsideError(error) || error.code !== "CLOSED") return error;
    const { outcome } = error;
    if (!this.#isAnswered && outcome?.submitted !== true) return error;
    const message = `The outcome is not known: ${error.message}`;
    return new BeachsideError(message, { code: "OUTCOME_UNKNOWN", outcome, cause: error });
  }

  /** What the stage and the code say by themselves; the adapter's own word comes on top. */
  #sentBefore(error: unknown): Outcome {
    if (this.#isAnswered) return { submitted: true };
    return isBeachsideError(error) && UNSENT.includes(error.code) ? { submitted: false } : {};
  }

  /** An adapter's outcome with references in place of ids. */
  #named(error: BeachsideError): Outcome {
    const { sandboxId, snapshotId, volumeId, processId, ...rest } = adapterOutcome(error);
    const connection = this.#connection;
    const { target, kind, mounts = [] } = this.#mutation;
    const base = this.#base();
    const named: { -readonly [K in keyof Outcome]: Outcome[K] } = { ...rest };
    const made = (maker: readonly OperationKind[]): Ownership =>
      maker.includes(kind) ? this.ownership : { state: "unknown" };
    if (sandboxId !== undefined && base.sandbox?.id !== sandboxId) {
      const ownership = made(["sandbox_create", "snapshot_restore"]);
      if (ownership.state === "created") connection.remember("sandbox", sandboxId, ownership);
      named.sandbox = connection.sandboxReference(sandboxId, ownership, mounts);
    }
    if (snapshotId !== undefined && base.snapshot?.id !== snapshotId) {
      const ownership = made(["snapshot_capture"]);
      if (ownership.state === "created") connection.remember("snapshot", snapshotId, ownership);
      named.snapshot = connection.snapshotReference(snapshotId, ownership, mounts);
    }
    if (volumeId !== undefined && base.volume?.id !== volumeId) {
      named.volume = connection.volumeReference(volumeId, made(["volume_create"]));
    }
    if (processId !== undefined && base.process?.id !== processId) {
      const sandbox = target?.kind === "process" ? target.sandbox : target?.id;
      named.process = connection.processReference(
        processId,
        made(["process_start", "exec"]),
        sandbox ?? "unknown",
      );
    }
    return named;
  }
}
