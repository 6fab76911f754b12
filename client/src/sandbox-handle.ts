/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A sandbox in the caller's hand. Holds its reference and the connection, no
 * state of the sandbox: every question asks the provider.
 */

import { optional, optionsOf, storagePolicy } from "./arguments.js";
import type { Connection } from "./connection.js";
import { type Command, type ExecOptions, exec } from "./exec.js";
import type { ExecResult } from "./exec-result.js";
import {
  type CallOptions,
  type Mutation,
  type MutationOptions,
  type Operation,
  perform,
  submit,
} from "./operations.js";
import type { SandboxReference, StoragePolicy } from "./references.js";
import { type SandboxInfo, sandboxInfo } from "./sandbox-info.js";

/** Options of `destroy`. */
export interface DestroyOptions extends MutationOptions {
  /** What to do where mounted storage may not be durable; the connection's policy when omitted. */
  readonly storage?: StoragePolicy | undefined;
}

/** What `destroy` did. */
export interface DestroyResult {
  readonly state: "destroyed";
  /** Whether there was nothing left to destroy. */
  readonly alreadyGone: boolean;
  /** Whether writes to mounted volumes are known to be durable. */
  readonly mountDurability: "not_applicable" | "confirmed" | "unconfirmed";
}

/** A sandbox. */
export class SandboxHandle {
  /** Versioned JSON to save and to reopen with `client.sandboxes.get()`. */
  readonly reference: SandboxReference;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, reference: SandboxReference) {
    this.#connection = connection;
    this.reference = reference;
  }

  /** Asks the provider how the sandbox is. */
  inspect(options?: CallOptions): Promise<SandboxInfo> {
    return this.#connection.read("sandbox_inspect", options, [], async (_, call) => {
      const record = await this.#connection.adapter.inspectSandbox({ sandboxId: this.#id }, call);
      return sandboxInfo(record, this.reference);
    });
  }

  /**
   * Runs a command to its end and gives its exact output.
   *
   * An array is a program with its arguments, passed through unchanged; a
   * string is shell text. A non-zero exit is a result (see `check`). A command
   * is sent once and never replayed: where its result is lost, the call rejects
   * with `OUTCOME_UNKNOWN`. Aborting `signal` kills the command once, because
   * the caller has no handle on it, and `outcome.killed` says how that went.
   */
  exec(command: Command, options?: ExecOptions): Promise<ExecResult> {
    return exec(this.#connection, this.reference, command, options);
  }

  /**
   * Destroys the sandbox and waits until the provider confirms it. A sandbox
   * that is gone already is a success.
   */
  async destroy(options?: DestroyOptions): Promise<DestroyResult> {
    return perform(this.#connection, this.#destroy(options));
  }

  /** Like {@link destroy}, without waiting for the provider. */
  async submitDestroy(options?: DestroyOptions): Promise<Operation<DestroyResult>> {
    return submit(this.#connection, this.#destroy(options));
  }

  get #id(): string {
    return this.reference.id;
  }

  #destroy(options: unknown): Mutation<{ alreadyGone: boolean }, DestroyResult> {
    const given = this.#connection.checked("sandbox_destroy", () => {
      const checked = optionsOf("destroy", options, ["storage", "signal", "onSubmit"]);
      optional("storage", checked.storage, storagePolicy);
      return checked;
    });
    const { adapter } = this.#connection;
    const sandboxId = this.#id;
    return {
      kind: "sandbox_destroy",
      target: this.reference,
      options: given,
      send: (_markers, call) => adapter.destroySandbox({ sandboxId }, call),
      finish: async ({ alreadyGone }, call) => {
        if (!alreadyGone) await adapter.waitForSandbox({ sandboxId, state: "destroyed" }, call);
        this.#connection.forget("sandbox", sandboxId);
        return { state: "destroyed", alreadyGone, mountDurability: "not_applicable" };
      },
    };
  }

  /**
   * Destroys the sandbox at the end of an `await using` block, if this
   * connection made it; a sandbox that was reopened is left alone.
   */
  declare [Symbol.asyncDispose]: () => Promise<void>;

  static {
    // Node 20 before 20.5 has no such symbol.
    if (typeof Symbol.asyncDispose === "symbol") {
      Object.defineProperty(SandboxHandle.prototype, Symbol.asyncDispose, {
        configurable: true,
        writable: true,
        async value(this: SandboxHandle) {
          if (this.#connection.made("sandbox", this.#id)) await this.destroy();
        },
      });
    }
  }
}
