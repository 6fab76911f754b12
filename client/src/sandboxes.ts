/** `client.sandboxes`: making, finding and reopening sandboxes. */

import type { SandboxRecord, SandboxState } from "./adapter.js";
import { invalid, oneOf, optional, optionsOf } from "./arguments.js";
import { withSandbox } from "./cleanup.js";
import type { Connection } from "./connection.js";
import {
  acceptOptions,
  type NewSandboxOptions,
  newSandbox,
  newSandboxRequest,
} from "./create-request.js";
import { type List, type ListOptions, list } from "./lists.js";
import { type CallOptions, type Mutation, type Operation, perform, submit } from "./operations.js";
import { validateResourceReference } from "./reference-checks.js";
import type { ResourceReference } from "./references.js";
import { SandboxHandle } from "./sandbox-handle.js";
import { foundSandbox, type SandboxSummary, sandboxSummary } from "./sandbox-info.js";

/** Options of `create`. */
export interface CreateOptions extends NewSandboxOptions {
  /** Not supported by every provider. */
  readonly region?: string | undefined;
}

/** Options of `sandboxes.list`. */
export interface ListSandboxesOptions extends ListOptions {
  /** Only sandboxes in this state. */
  readonly state?: SandboxState | undefined;
}

const CREATE_KEYS = [
  "env",
  "lifecycle",
  "network",
  "mounts",
  "labels",
  "region",
  "signal",
  "onSubmit",
  "onProgress",
] as const;
const STATES: readonly SandboxState[] = [
  "starting",
  "running",
  "suspending",
  "suspended",
  "resuming",
  "failed",
  "destroyed",
  "unknown",
];

/**
 * `client.sandboxes`: making, finding and reopening sandboxes.
 *
 * ```js
 * const box = await client.sandboxes.create({ lifecycle: { lifetimeSeconds: 600 } });
 * for await (const { reference, state } of client.sandboxes.list()) console.log(reference.id, state);
 * const again = await client.sandboxes.get(box.reference);
 * ```
 */
export class Sandboxes {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Makes a sandbox and waits until it runs.
   *
   * The request is sent once. A wait that ends early (`CANCELLED`,
   * `DEADLINE_EXCEEDED`) undoes nothing: `error.outcome.sandbox` names the
   * sandbox where it is known, `error.outcome.operation` goes to
   * `client.recover()`.
   *
   * `onProgress` hears of `submitting`, `waiting` with the provider's state, and `done`. Runloop
   * tells no percentage.
   */
  async create(options?: CreateOptions): Promise<SandboxHandle> {
    return await perform(this.#connection, this.#create(options));
  }

  /** Like {@link create}, without waiting for the provider. */
  async submitCreate(options?: CreateOptions): Promise<Operation<SandboxHandle>> {
    return await submit(this.#connection, this.#create(options));
  }

  /**
   * Makes a sandbox, calls `use` with it, and destroys it whatever happens.
   *
   * Resolves to what `use` gives. Where `use` or the create fails, that very
   * error is thrown, with the report of the clean-up as its `cleanup`; where
   * only the clean-up fails, its error is thrown. Destroys only what this call
   * is proven to have made; the destruction is not cancelled by `signal`.
   *
   * Where the create's answer is lost, or its wait is cancelled before the
   * answer, the sandbox is looked for by the markers of the create: twice, a
   * second apart, each time within the provider's bound on searches (5,000
   * sandboxes). If it is not seen then, `cleanup.notCleaned` holds the
   * operation's reference, for `client.recover()` later.
   */
  with<T>(options: CreateOptions, use: (sandbox: SandboxHandle) => T | PromiseLike<T>): Promise<T> {
    return withSandbox(this.#connection, () => this.create(options), use);
  }

  /**
   * Reopens a saved reference: checks its shape and scope, and reads the
   * provider. Where the markers that the provider keeps are not those of the
   * reference, the handle's ownership is `unknown`.
   */
  get(reference: ResourceReference, options?: CallOptions): Promise<SandboxHandle> {
    return this.#connection.read("sandbox_get", options, [], async (_, call) => {
      const saved = validateResourceReference(reference);
      if (saved.kind !== "sandbox") {
        throw invalid(`sandboxes.get() takes the reference of a sandbox, not of a ${saved.kind}.`);
      }
      this.#connection.inScope(saved);
      const record = await this.#connection.adapter.inspectSandbox({ sandboxId: saved.id }, call);
      return new SandboxHandle(this.#connection, foundSandbox(this.#connection, record, saved));
    });
  }

  /** The account's sandboxes, newest first where the provider sorts them. */
  list(options?: ListSandboxesOptions): List<SandboxSummary> {
    return list(this.#connection, options, {
      operation: "sandbox_list",
      keys: ["state"],
      load: (page, given, call) => {
        this.#connection.require("sandbox_list", "sandboxes.list");
        const state = optional("state", given.state, (value) => oneOf("state", value, STATES));
        return this.#connection.adapter.listSandboxes({ ...page, ...state }, call);
      },
      item: (record: SandboxRecord) =>
        sandboxSummary(record, foundSandbox(this.#connection, record)),
    });
  }

  #create(options: unknown): Mutation<SandboxRecord, SandboxHandle> {
    const connection = this.#connection;
    const { given, request } = connection.checked("sandbox_create", () => {
      const checked = optionsOf("create", options, CREATE_KEYS);
      const created = newSandboxRequest(connection, "sandbox_create", checked);
      // The leaves of their own say why; the list of options only says that.
      if (created.labels !== undefined) connection.require("sandbox_create", "sandboxes.labels");
      if (created.region !== undefined) connection.require("sandbox_create", "sandboxes.regions");
      acceptOptions(connection, "sandbox_create", "sandboxes.create", Object.keys(created));
      return { given: checked, request: created };
    });
    return newSandbox(connection, given, request);
  }
}
