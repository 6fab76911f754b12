/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A sandbox in the caller's hand. Holds its reference and the connection, no
 * state of the sandbox: every question asks the provider.
 */

import { optional, optionsOf, storagePolicy } from "./arguments.js";
import type { OperationName } from "./calls.js";
import {
  type CaptureResult,
  type CheckSnapshotOptions,
  capture,
  checkSnapshot,
  type SnapshotCheck,
  type SnapshotOptions,
} from "./capture.js";
import type { Connection } from "./connection.js";
import { type Command, type ExecOptions, exec } from "./exec.js";
import type { ExecResult } from "./exec-result.js";
import {
  type ReadFileOptions,
  readFile,
  readTextFile,
  SandboxFiles,
  type WriteFileOptions,
  writeFile,
} from "./files.js";
import { inspectsAs } from "./inspection.js";
import { mountDurability } from "./mounts.js";
import {
  type CallOptions,
  type Mutation,
  type MutationOptions,
  type Operation,
  perform,
  submit,
} from "./operations.js";
import { type Preview, preview } from "./preview.js";
import { Processes } from "./processes.js";
import type { SandboxReference, StoragePolicy } from "./references.js";
import { type SandboxInfo, sandboxInfo } from "./sandbox-info.js";
import { type ListeningPort, type WaitForPortOptions, waitForPort } from "./wait-for-port.js";

/** Options of `destroy`. */
export interface DestroyOptions extends MutationOptions {
  /** What to do where mounted storage may not be durable; the connection's policy when omitted. */
  readonly storage?: StoragePolicy | undefined;
}

/** What `destroy` did. */
export interface DestroyResult {
  /** The provider confirmed it. */
  readonly state: "destroyed";
  /** Whether there was nothing left to destroy. */
  readonly alreadyGone: boolean;
  /** Whether writes to mounted volumes are known to be durable. */
  readonly mountDurability: "not_applicable" | "confirmed" | "unconfirmed";
}

/** What `suspend` and `resume` did. */
export interface PowerResult {
  /** The state that was asked for, which the provider confirmed. */
  readonly state: "suspended" | "running";
  /** Whether it was in that state already, so that nothing was done. */
  readonly alreadyThere: boolean;
}

/**
 * A sandbox. The handle holds nothing open; `box.reference` is plain JSON that
 * finds the sandbox again, in this program or another.
 *
 * ```js
 * const box = await client.sandboxes.create();
 * await box.writeFile("/tmp/name", "world", { overwrite: true });
 * console.log((await box.exec("echo hello $(cat /tmp/name)")).stdoutText());
 * await box.destroy();
 * ```
 */
export class SandboxHandle {
  /** Versioned JSON to save and to reopen with `client.sandboxes.get()`. */
  readonly reference: SandboxReference;
  /** Live processes. */
  readonly processes: Processes;
  /** Directories and names, where the provider has them. */
  readonly files: SandboxFiles;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, reference: SandboxReference) {
    this.#connection = connection;
    this.reference = reference;
    this.processes = new Processes(connection, reference);
    this.files = new SandboxFiles(connection);
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
   * The whole content of a file, up to `capabilities().files.read.value.maxBytes`.
   *
   * `onProgress` hears of `downloading` with bytes, then of `done`.
   *
   * @throws BeachsideError `NOT_FOUND` or `FILE_ERROR` with a `reason`.
   */
  readFile(path: string, options?: ReadFileOptions): Promise<Uint8Array> {
    return readFile(this.#connection, this.reference, path, options);
  }

  /** {@link readFile} as UTF-8; invalid bytes become U+FFFD, a byte-order mark is kept. */
  readTextFile(path: string, options?: ReadFileOptions): Promise<string> {
    return readTextFile(this.#connection, this.reference, path, options);
  }

  /**
   * Replaces a file in one step, up to `capabilities().files.write.value.maxBytes`;
   * a string is written as UTF-8. `onProgress` hears of `uploading` with bytes (those that the
   * connection has taken; small files go in one step), `finishing`, and `done`.
   *
   * @throws UnsupportedFeatureError without `overwrite: true` where the provider
   *   cannot refuse to replace a file.
   */
  writeFile(path: string, content: Uint8Array | string, options?: WriteFileOptions): Promise<void> {
    return writeFile(this.#connection, this.reference, path, content, options);
  }

  /** Stops the sandbox and keeps its disk; processes and connections end. */
  async suspend(options?: MutationOptions): Promise<PowerResult> {
    return await perform(this.#connection, this.#power("suspend", options));
  }

  /** Starts a suspended sandbox; processes start afresh. */
  async resume(options?: MutationOptions): Promise<PowerResult> {
    return await perform(this.#connection, this.#power("resume", options));
  }

  /**
   * Where a port of the sandbox can be reached.
   *
   * @param port 1 to 65,535.
   */
  preview(port: number, options?: CallOptions): Promise<Preview> {
    return preview(this.#connection, this.reference, port, options);
  }

  /**
   * Waits until something in the sandbox listens on a TCP port.
   *
   * It is asked inside, by one command that looks again and again, so the port
   * need not be open to the outside. Listening means that the kernel's table
   * (`/proc/net/tcp` and `tcp6`) has a socket of that port in the state LISTEN, whatever its
   * address; it says nothing about whether the program answers yet. Needs
   * `/bin/sh` and no other program; a sandbox without that table is asked by connecting to 127.0.0.1,
   * with bash or nc.
   *
   * ```js
   * const server = await box.processes.start({ command: ["./server"] });
   * await box.waitForPort(8080, { timeoutSeconds: 30 });
   * const { url } = await box.preview(8080);
   * ```
   *
   * @param port 1 to 65,535.
   * @throws BeachsideError `DEADLINE_EXCEEDED`, at most about two seconds after
   *   `timeoutSeconds`; `CANCELLED`, after the command was killed; `REJECTED` with the reason `port_probe`
   *   where there is no way to look; and what {@link exec} fails with, but never `OUTCOME_UNKNOWN`.
   */
  waitForPort(port: number, options?: WaitForPortOptions): Promise<ListeningPort> {
    return waitForPort(this.#connection, this.reference, port, options);
  }

  /** Whether this sandbox could be captured now. Changes nothing and reserves nothing. */
  checkSnapshot(options?: CheckSnapshotOptions): Promise<SnapshotCheck> {
    return checkSnapshot(this.#connection, this.reference, options);
  }

  /**
   * Captures the sandbox into a snapshot and waits until it is ready.
   *
   * Where it fails, keep the sandbox and `error.outcome`: a snapshot may exist. `onProgress` hears
   * of `submitting`, `waiting` with the provider's state, and `done`.
   *
   * @throws UnsupportedFeatureError for a requirement that this connection does
   *   not meet, before anything is sent.
   */
  async snapshot(options?: SnapshotOptions): Promise<CaptureResult> {
    return await perform(this.#connection, capture(this.#connection, this.reference, options));
  }

  /** Like {@link snapshot}, without waiting for the provider. */
  async submitSnapshot(options?: SnapshotOptions): Promise<Operation<CaptureResult>> {
    return await submit(this.#connection, capture(this.#connection, this.reference, options));
  }

  /**
   * Destroys the sandbox and waits until the provider confirms it. A sandbox
   * that is gone already is a success.
   *
   * @throws UnsupportedFeatureError where mounted storage may lose writes and
   *   the policy requires durability, before anything is sent.
   */
  async destroy(options?: DestroyOptions): Promise<DestroyResult> {
    return await perform(this.#connection, destroy(this.#connection, this.reference, options));
  }

  /** Like {@link destroy}, without waiting for the provider. */
  async submitDestroy(options?: DestroyOptions): Promise<Operation<DestroyResult>> {
    return await submit(this.#connection, destroy(this.#connection, this.reference, options));
  }

  /** @throws UnsupportedFeatureError `sandboxes.renew` */
  async renew(_options?: object): Promise<never> {
    return this.#refuse("sandbox_renew", "sandboxes.renew");
  }

  /** @throws UnsupportedFeatureError `sandboxes.terminal` */
  async terminal(_options?: object): Promise<never> {
    return this.#refuse("sandbox_terminal", "sandboxes.terminal");
  }

  /** @throws UnsupportedFeatureError `sandboxes.fork` */
  async fork(_options?: object): Promise<never> {
    return this.#refuse("sandbox_fork", "sandboxes.fork");
  }

  /** @throws UnsupportedFeatureError `sandboxes.fork` */
  async submitFork(_options?: object): Promise<never> {
    return this.#refuse("sandbox_fork", "sandboxes.fork");
  }

  get #id(): string {
    return this.reference.id;
  }

  #refuse(
    operation: OperationName,
    feature: "sandboxes.renew" | "sandboxes.terminal" | "sandboxes.fork",
  ): never {
    return this.#connection.checked(operation, () => this.#connection.refuse(operation, feature));
  }

  #power(
    verb: "suspend" | "resume",
    options: unknown,
  ): Mutation<{ alreadyThere: boolean }, PowerResult> {
    const connection = this.#connection;
    const kind = `sandbox_${verb}` as const;
    const given = connection.checked(kind, () => {
      connection.require(kind, `sandboxes.${verb}`);
      return optionsOf(verb, options, ["signal", "onSubmit"]);
    });
    const { adapter } = connection;
    const sandboxId = this.#id;
    const state = verb === "suspend" ? "suspended" : "running";
    return {
      kind,
      target: this.reference,
      options: given,
      send: (_evidence, call) =>
        verb === "suspend"
          ? adapter.suspendSandbox({ sandboxId }, call)
          : adapter.resumeSandbox({ sandboxId }, call),
      finish: async ({ alreadyThere }, call) => {
        if (!alreadyThere) await adapter.waitForSandbox({ sandboxId, state }, call);
        return { state, alreadyThere };
      },
    };
  }

  /**
   * Destroys the sandbox at the end of an `await using` block, if this
   * connection made it; a sandbox that was reopened is left alone.
   */
  declare [Symbol.asyncDispose]: () => Promise<void>;

  static {
    inspectsAs(SandboxHandle, ({ reference }) => reference);
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

/** The mutation that destroys a sandbox and waits for the confirmation. */
export function destroy(
  connection: Connection,
  sandbox: SandboxReference,
  options: unknown,
): Mutation<{ alreadyGone: boolean }, DestroyResult> {
  const { given, durability } = connection.checked("sandbox_destroy", () => {
    const checked = optionsOf("destroy", options, ["storage", "signal", "onSubmit"]);
    const { storage = connection.storage } = optional("storage", checked.storage, storagePolicy);
    return { given: checked, durability: mountDurability(connection, sandbox, storage) };
  });
  const { adapter } = connection;
  const sandboxId = sandbox.id;
  return {
    kind: "sandbox_destroy",
    target: sandbox,
    options: given,
    send: (_evidence, call) => adapter.destroySandbox({ sandboxId }, call),
    finish: async ({ alreadyGone }, call) => {
      if (!alreadyGone) await adapter.waitForSandbox({ sandboxId, state: "destroyed" }, call);
      connection.forget("sandbox", sandboxId);
      return { state: "destroyed", alreadyGone, mountDurability: durability };
    },
  };
}
