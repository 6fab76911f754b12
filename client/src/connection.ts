/**
 * What every call of one connection needs: its scope, whether it is still
 * open, what the adapter can do, what this connection made, and how an
 * adapter's error becomes the caller's.
 *
 * Internal: handles hold one; callers never see it.
 */

import type { AdapterConnection, Call, Markers } from "./adapter.js";
import { optionsOf, readable, signalOf } from "./arguments.js";
import { CALLS, type OperationName } from "./calls.js";
import {
  type Capabilities,
  type Capability,
  capability,
  type Feature,
  unsupported,
} from "./capabilities.js";
import { BeachsideError, enrich, isBeachsideError } from "./errors.js";
import type { AdapterOutcome, Outcome } from "./outcome.js";
import { frozenCopy } from "./reference-checks.js";
import type {
  Ownership,
  ProcessReference,
  ResourceReference,
  SandboxReference,
  SnapshotReference,
  StoragePolicy,
  VolumeReference,
} from "./references.js";
import type { SandboxHandle } from "./sandbox-handle.js";
import type { SnapshotHandle } from "./snapshot-handle.js";
import { suggestionFor } from "./suggestions.js";
import type { Tracer } from "./trace.js";

/** Kinds of resource whose origin the provider's metadata can prove. */
type Marked = "sandbox" | "snapshot" | "volume";

const MAX_REFUSALS = 1000;

/** Makes handles. Handed in, because sandboxes make snapshots and snapshots make sandboxes. */
export interface Handles {
  sandbox(connection: Connection, reference: SandboxReference): SandboxHandle;
  snapshot(connection: Connection, reference: SnapshotReference): SnapshotHandle;
}

export class Connection {
  readonly handles: Handles;
  readonly provider: string;
  readonly account: string;
  readonly adapter: AdapterConnection;
  readonly storage: StoragePolicy;
  readonly tracer: Tracer;
  readonly #created = new Map<string, Ownership>();
  readonly #refusals = new Map<string, BeachsideError>();
  readonly #completed = new WeakSet<BeachsideError>();
  #closing: Promise<void> | undefined;

  constructor(
    provider: string,
    adapter: AdapterConnection,
    storage: StoragePolicy,
    handles: Handles,
    tracer: Tracer,
  ) {
    this.tracer = tracer;
    this.handles = handles;
    this.provider = provider;
    this.account = adapter.scope.account;
    this.adapter = adapter;
    this.storage = storage;
  }

  /**
   * Checks a call's arguments: refuses it on a closed connection, and completes
   * the error that `build` fails with.
   */
  checked<T>(operation: OperationName, build: () => T): T {
    try {
      this.refuseClosed();
      return readable(build);
    } catch (error) {
      throw this.complete(error, operation);
    }
  }

  /** Runs a call that changes nothing. `keys` are its options besides `signal`. */
  async read<Key extends string, T>(
    operation: OperationName,
    options: unknown,
    keys: readonly Key[],
    run: (given: { readonly [K in Key]?: unknown }, call: Call) => Promise<T>,
  ): Promise<T> {
    try {
      this.refuseClosed();
      // So that the adapter hears of new listeners.
      void this.tracer.active;
      const { given, signal } = readable(() => {
        const checked = optionsOf<Key | "signal">(CALLS[operation], options, [...keys, "signal"]);
        return { given: checked, signal: signalOf(checked.signal) };
      });
      if (signal?.aborted === true) throw cancelled(operation, signal);
      return await run(given, signal === undefined ? {} : { signal });
    } catch (error) {
      throw this.complete(error, operation);
    }
  }

  /**
   * Provider and operation on every error; anything that is not ours becomes `INTERNAL`.
   * The operation is the innermost call's, whatever step of it the adapter names.
   */
  complete(error: unknown, operation: OperationName, outcome?: Outcome): BeachsideError {
    const ours = adapterError(error);
    enrich(ours, {
      provider: ours.provider ?? this.provider,
      operation: this.#completed.has(ours) ? ours.operation : operation,
      ...(outcome === undefined ? {} : { outcome }),
    });
    this.#completed.add(ours);
    return enrich(ours, { suggestion: ours.suggestion ?? suggestionFor(ours) });
  }

  refuseClosed(): void {
    if (this.#closing === undefined) return;
    throw new BeachsideError("The connection is closed; connect again.", { code: "CLOSED" });
  }

  close(): Promise<void> {
    this.#closing ??= this.adapter.close();
    return this.#closing;
  }

  get capabilities(): Capabilities {
    try {
      return this.adapter.capabilities();
    } catch (error) {
      throw adapterError(error);
    }
  }

  /** The leaf of a feature. */
  capability<Value = unknown>(feature: Feature): Capability<Value> {
    return capability(this.capabilities, feature) as Capability<Value>;
  }

  /** The leaf of a feature, which must be supported (or unknown, for the adapter to decide). */
  require<Value = unknown>(operation: OperationName, feature: Feature): Capability<Value> {
    const leaf = this.capability<Value>(feature);
    if (leaf.status === "unsupported") {
      throw unsupported(this.provider, operation, feature, leaf.reason);
    }
    return leaf;
  }

  /** Refuses something that this client has no call for, with the adapter's reason where it has one. */
  refuse(operation: OperationName, feature: Feature): never {
    const leaf = this.capability(feature);
    const reason = leaf.status === "supported" ? "This client has no call for it." : leaf.reason;
    throw unsupported(this.provider, operation, feature, reason);
  }

  /** Refuses a reference of another provider or account. */
  inScope(reference: ResourceReference | { provider: string; scope: { account: string } }): void {
    if (reference.provider !== this.provider) {
      throw new BeachsideError(
        `The reference is of provider "${reference.provider}"; this connection is to "${this.provider}".`,
        { code: "SCOPE_MISMATCH" },
      );
    }
    if (reference.scope.account !== this.account) {
      throw new BeachsideError(
        `The reference is of account "${reference.scope.account}"; this connection is to "${this.account}".`,
        { code: "SCOPE_MISMATCH" },
      );
    }
  }

  /** Remembers that the provider refused an operation; the oldest of many are let go. */
  noteRefusal(operationId: string, error: BeachsideError): void {
    this.#refusals.set(operationId, error);
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > MAX_REFUSALS && oldest !== undefined) this.#refusals.delete(oldest);
  }

  /** The provider's refusal of an operation of this connection. */
  refusal(operationId: string): BeachsideError | undefined {
    return this.#refusals.get(operationId);
  }

  /** Remembers that this connection made a resource. */
  remember(kind: Marked, id: string, ownership: Ownership): void {
    this.#created.set(`${kind} ${id}`, ownership);
  }

  /** Forgets what is gone. */
  forget(kind: Marked, id: string): void {
    this.#created.delete(`${kind} ${id}`);
  }

  /** Whether this connection itself made a resource. */
  made(kind: Marked, id: string): boolean {
    return this.#created.has(`${kind} ${id}`);
  }

  /**
   * The ownership of a listed or reopened resource: `created` needs a claim
   * (this connection's own, or a saved one) and the same ids in the provider's
   * metadata.
   */
  ownership(kind: Marked, id: string, markers: Markers | null, saved?: Ownership): Ownership {
    const claim = saved?.state === "created" ? saved : this.#created.get(`${kind} ${id}`);
    const proven =
      claim !== undefined &&
      markers !== null &&
      claim.operation === markers.operation &&
      claim.submission === markers.submission;
    return proven ? claim : { state: "unknown" };
  }

  sandboxReference(
    id: string,
    ownership: Ownership,
    mounts: SandboxReference["mounts"],
  ): SandboxReference {
    return this.#reference({ kind: "sandbox", id, ownership, mounts });
  }

  snapshotReference(
    id: string,
    ownership: Ownership,
    mounts: SnapshotReference["mounts"],
  ): SnapshotReference {
    return this.#reference({ kind: "snapshot", id, ownership, mounts });
  }

  volumeReference(id: string, ownership: Ownership): VolumeReference {
    return this.#reference({ kind: "volume", id, ownership });
  }

  processReference(id: string, ownership: Ownership, sandbox: string): ProcessReference {
    return this.#reference({ kind: "process", id, ownership, sandbox });
  }

  #reference<Fields extends object>(fields: Fields) {
    return frozenCopy({
      version: 1 as const,
      provider: this.provider,
      scope: { account: this.account },
      ...fields,
    });
  }
}

/** What an adapter failed with; anything that is not ours becomes `INTERNAL`. */
export function adapterError(error: unknown): BeachsideError {
  if (isBeachsideError(error)) return error;
  return new BeachsideError("The adapter failed in a way that it should not.", {
    code: "INTERNAL",
    cause: error,
  });
}

/** What an adapter's error knows, whatever shape its outcome has. */
export function adapterOutcome(error: BeachsideError): AdapterOutcome {
  return (error.outcome ?? {}) as AdapterOutcome;
}

/** The error for a signal that aborted. */
export function cancelled(
  operation: OperationName,
  signal: AbortSignal,
  outcome?: Outcome,
): BeachsideError {
  return new BeachsideError("The call was cancelled by its signal.", {
    code: "CANCELLED",
    operation,
    cause: signal.reason,
    ...(outcome === undefined ? {} : { outcome }),
  });
}
