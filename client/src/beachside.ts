/// <reference lib="esnext.disposable" preserve="true" />
/** Making a connection, and the client that holds it. Start reading here. */

import type { Adapter, ConnectInput } from "./adapter.js";
import {
  callback,
  invalid,
  isRecord,
  knownKeys,
  optional,
  optionsOf,
  readable,
  signalOf,
  storagePolicy,
} from "./arguments.js";
import type { Capabilities } from "./capabilities.js";
import { adapterError, Connection, cancelled, type Handles } from "./connection.js";
import { enrich } from "./errors.js";
import { inspectsAs } from "./inspection.js";
import { type InventoryItem, inventory } from "./inventory.js";
import type { List, ListOptions } from "./lists.js";
import type { CallOptions } from "./operations.js";
import { type Recovery, recover } from "./recovery.js";
import type { OperationReference, Scope, StoragePolicy } from "./references.js";
import { SandboxHandle } from "./sandbox-handle.js";
import { Sandboxes } from "./sandboxes.js";
import { SnapshotHandle } from "./snapshot-handle.js";
import { Snapshots } from "./snapshots.js";
import { suggestionFor } from "./suggestions.js";
import { Tracer } from "./trace.js";
import type { TraceRecord } from "./trace-records.js";
import { Volumes } from "./volumes.js";

const HANDLES: Handles = {
  sandbox: (connection, reference) => new SandboxHandle(connection, reference),
  snapshot: (connection, reference) => new SnapshotHandle(connection, reference),
};

/** The version of the adapter interface that this client speaks. */
const CONTRACT = 1;

/** Options of every connection. */
export interface ConnectionOptions extends CallOptions {
  /**
   * Told of every request, retry, reconnect and operation of the connection,
   * as the `beachside.*` channels of `node:diagnostics_channel` are; see
   * {@link TraceRecord}. What it throws touches no call: it is not called
   * again, and a process warning with the code `BEACHSIDE_CALLBACK` says so.
   */
  readonly trace?: ((record: TraceRecord) => unknown) | undefined;
  /** How carefully sandboxes are destroyed. */
  readonly cleanup?:
    | {
        /**
         * `require-durable` (the default) refuses to destroy a sandbox whose mounted
         * storage may lose writes; `allow-unconfirmed` accepts that.
         */
        readonly storage?: StoragePolicy | undefined;
      }
    | undefined;
}

/** A connection with its adapter named, and credentials and settings unless the adapter has them bound. */
export interface ConnectOptions extends ConnectionOptions {
  /** The provider's adapter, for example `runloopAdapter`. */
  readonly adapter: Adapter;
  /** What the adapter's `setup.credentials` names. */
  readonly credentials?: object | undefined;
  /** What the adapter's `setup.config` names. */
  readonly config?: object | undefined;
}

/**
 * Where everything begins: `Beachside.connect(adapter)`.
 *
 * ```js
 * const client = await Beachside.connect(runloop({ apiKey: process.env.RUNLOOP_API_KEY }));
 * const answer = await client.sandboxes.with({}, async (box) => box.exec(["echo", "hi"]));
 * await client.close();
 * ```
 */
export const Beachside = Object.freeze({
  /** Connects to one account of a provider. */
  connect,
});

/**
 * Connects to one account of a provider. The provider checks the credentials
 * before the promise resolves.
 *
 * Takes `{ adapter, credentials, config }`, or an adapter that has both bound
 * already, alone or as `adapter`.
 *
 * @throws BeachsideError `INVALID_ARGUMENT`, also for credentials or config given twice;
 *   `UNAUTHENTICATED` or `PERMISSION_DENIED` for a key or an account that is not accepted;
 *   `UNSUPPORTED` for a setting that the provider lacks; `UNAVAILABLE`; `CANCELLED`.
 */
async function connect(
  target: Adapter | ConnectOptions,
  options?: ConnectionOptions,
): Promise<BeachsideClient> {
  let provider: string | undefined;
  try {
    const { adapter, input, storage, trace } = readable(() => connectArguments(target, options));
    provider = adapter.provider;
    const tracer = new Tracer(provider, trace);
    if (input.signal?.aborted === true) throw cancelled("connect", input.signal);
    const connection = await adapter.connect({ ...input, observer: tracer });
    return new BeachsideClient(new Connection(provider, connection, storage, HANDLES, tracer));
  } catch (error) {
    const ours = adapterError(error);
    throw enrich(ours, {
      operation: ours.operation ?? "connect",
      provider: ours.provider ?? provider,
      suggestion: ours.suggestion ?? suggestionFor(ours),
    });
  }
}

function connectArguments(target: unknown, options: unknown) {
  if (typeof target === "function") {
    throw invalid("connect: it was given a function that makes adapters; call it.");
  }
  const bare = isAdapter(target);
  if (!bare && options !== undefined) {
    throw invalid("connect: give cleanup, signal and trace beside adapter, in the one object.");
  }
  const given = bare
    ? { adapter: target, ...optionsOf("connect", options, ["cleanup", "signal", "trace"]) }
    : optionsOf("connect", target, [
        "adapter",
        "credentials",
        "config",
        "cleanup",
        "signal",
        "trace",
      ]);
  const { adapter } = given;
  if (typeof adapter === "function") {
    throw invalid("connect: adapter is a function that makes adapters; call it.");
  }
  if (!isAdapter(adapter)) {
    throw invalid(
      "connect: adapter is missing, or is not an adapter (it has no connect function).",
    );
  }
  if (adapter.contract !== CONTRACT) {
    throw invalid(
      `connect: the adapter speaks version ${String(adapter.contract)} of the adapter interface; this client speaks ${CONTRACT}.`,
    );
  }
  const { credentials, config } = given as ConnectOptions;
  if (adapter.bound === true) {
    for (const [name, value] of Object.entries({ credentials, config })) {
      if (value === undefined) continue;
      throw invalid(`connect: ${name} are given twice; this adapter has them bound already.`);
    }
  }
  const signal = signalOf(given.signal);
  const input: ConnectInput = {
    ...(credentials === undefined ? {} : { credentials }),
    ...(config === undefined ? {} : { config }),
    ...(signal === undefined ? {} : { signal }),
  };
  const trace = callback<(record: TraceRecord) => unknown>("trace", given.trace);
  return { adapter, input, storage: cleanupStorage(given.cleanup), trace };
}

function cleanupStorage(cleanup: unknown): StoragePolicy {
  if (cleanup === undefined) return "require-durable";
  if (!isRecord(cleanup)) throw invalid("cleanup must be a plain object.");
  knownKeys("cleanup", cleanup, ["storage"]);
  return optional("storage", cleanup["storage"], storagePolicy).storage ?? "require-durable";
}

function isAdapter(value: unknown): value is Adapter {
  const like = value as Partial<Adapter> | null | undefined;
  return typeof like === "object" && typeof like?.connect === "function";
}

/**
 * A connection to one account of a provider. From `Beachside.connect`.
 *
 * ```js
 * const client = await Beachside.connect(runloop({ apiKey }));
 * try {
 *   await client.sandboxes.with({}, (box) => box.exec(["uname", "-a"]));
 * } finally {
 *   await client.close();
 * }
 * ```
 */
export class BeachsideClient {
  /** What every reference of this connection belongs to. */
  readonly scope: Scope;
  /** Making, finding and reopening sandboxes. */
  readonly sandboxes: Sandboxes;
  /** Finding and reopening snapshots. */
  readonly snapshots: Snapshots;
  /** Storage that outlives sandboxes, where the provider has it. */
  readonly volumes: Volumes;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
    this.scope = Object.freeze({ provider: connection.provider, account: connection.account });
    this.sandboxes = new Sandboxes(connection);
    this.snapshots = new Snapshots(connection);
    this.volumes = new Volumes(connection);
  }

  /** What this connection can do. Asks nobody: it depends on the adapter and its settings only. */
  async capabilities(): Promise<Capabilities> {
    return this.#connection.checked("capabilities", () => this.#connection.capabilities);
  }

  /**
   * Everything that the account holds: sandboxes, then snapshots, then volumes,
   * as far as the provider lists them. A page holds one kind.
   */
  inventory(options?: ListOptions): List<InventoryItem> {
    return inventory(this.#connection, options);
  }

  /**
   * Says what became of a submitted operation, from its saved reference. Only
   * reads: it never repeats the operation. `not_observed` proves nothing.
   */
  async recover(reference: OperationReference, options?: CallOptions): Promise<Recovery> {
    return await recover(this.#connection, reference, options);
  }

  /**
   * Ends the connection; can be repeated. Reads in flight reject with
   * `CLOSED`, mutations that were sent with `OUTCOME_UNKNOWN` and their
   * reference, later calls with `CLOSED`. Nothing is cleaned up.
   */
  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Closes the connection at the end of an `await using` block. */
  declare [Symbol.asyncDispose]: () => Promise<void>;

  static {
    inspectsAs(BeachsideClient, ({ scope }) => ({ provider: scope.provider, id: scope.account }));
    // Node 20 before 20.5 has no such symbol.
    if (typeof Symbol.asyncDispose === "symbol") {
      Object.defineProperty(BeachsideClient.prototype, Symbol.asyncDispose, {
        configurable: true,
        writable: true,
        value(this: BeachsideClient) {
          return this.close();
        },
      });
    }
  }
}
