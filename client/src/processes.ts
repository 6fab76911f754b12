/// <reference lib="esnext.disposable" preserve="true" />
/** Live processes of a sandbox: starting, reopening and following them. */

import type { AdapterProcess, ProcessExit, ProcessStatus, StreamOffsets } from "./adapter.js";
import { invalid, isRecord, knownKeys, number, oneOf, optional, optionsOf } from "./arguments.js";
import type { Connection } from "./connection.js";
import { type Command, type CommandOptions, commandRequest } from "./exec.js";
import { inspectsAs } from "./inspection.js";
import { type CallOptions, type MutationOptions, perform } from "./operations.js";
import { OutputStream, TextStream } from "./output.js";
import { validateResourceReference } from "./reference-checks.js";
import type { ProcessReference, ResourceReference, SandboxReference } from "./references.js";
import { type OutputMatch, type WaitForOutputOptions, waitForOutput } from "./wait-for-output.js";

/** What to start. */
export interface StartOptions extends CommandOptions, MutationOptions {
  /** An array is argv, a string is shell text. */
  readonly command: Command;
  /** How its output comes; as text when omitted. */
  readonly output?:
    | {
        /** Live output, which is the only mode. */
        readonly mode: "stream";
        /** `text` (the default) is UTF-8; `bytes` is not supported by every provider. */
        readonly format?: "text" | "bytes" | undefined;
      }
    | undefined;
  /** `ignore` (the default) is an empty input; `pipe` is not supported by every provider. */
  readonly stdin?: "ignore" | "pipe" | undefined;
}

/** Where to go on reading; `process.offsets()` gave the numbers. */
export interface OpenProcessOptions extends CallOptions {
  /** Of standard output, 0 or more; everything that the provider still has when omitted. */
  readonly stdoutOffset?: number | undefined;
  /** Of standard error likewise. */
  readonly stderrOffset?: number | undefined;
}

/**
 * `box.processes`: commands that go on while you do something else.
 *
 * ```js
 * const process = await box.processes.start({
 *   command: "python3 -m http.server 8000",
 *   output: { mode: "stream", format: "text" },
 * });
 * await box.waitForPort(8000);
 * ```
 */
export class Processes {
  readonly #connection: Connection;
  readonly #sandbox: SandboxReference;

  /** @internal */
  constructor(connection: Connection, sandbox: SandboxReference) {
    this.#connection = connection;
    this.#sandbox = sandbox;
  }

  /**
   * Starts a command without a deadline and resolves when the provider has
   * taken it. Its input is empty; its output streams.
   */
  async start(options: StartOptions): Promise<ProcessHandle> {
    const connection = this.#connection;
    const { given, request } = connection.checked("process_start", () => this.#request(options));
    return await perform(connection, {
      kind: "process_start",
      target: this.#sandbox,
      options: given,
      send: (_evidence, call) => connection.adapter.startProcess(request, call),
      known: (started, { ownership }) => ({
        process: connection.processReference(started.id, ownership, this.#sandbox.id),
      }),
      finish: async (started, _call, { ownership }) =>
        new ProcessHandle(
          connection,
          connection.processReference(started.id, ownership, this.#sandbox.id),
          started,
        ),
    });
  }

  /**
   * Reopens a saved process of this sandbox. Reading starts at the given
   * offsets, or with everything that the provider still has.
   */
  get(reference: ResourceReference, options?: OpenProcessOptions): Promise<ProcessHandle> {
    const keys = ["stdoutOffset", "stderrOffset"] as const;
    return this.#connection.read("process_get", options, keys, async (given, call) => {
      const saved = validateResourceReference(reference);
      if (saved.kind !== "process") {
        throw invalid(`processes.get() takes the reference of a process, not of a ${saved.kind}.`);
      }
      this.#connection.inScope(saved);
      if (saved.sandbox !== this.#sandbox.id) {
        throw invalid("reference.sandbox is another sandbox; reopen that one first.");
      }
      this.#connection.require("process_get", "processes.reopen");
      const request = {
        sandboxId: this.#sandbox.id,
        processId: saved.id,
        ...optional("stdoutOffset", given.stdoutOffset, (value) => offset("stdoutOffset", value)),
        ...optional("stderrOffset", given.stderrOffset, (value) => offset("stderrOffset", value)),
      };
      const opened = await this.#connection.adapter.openProcess(request, call);
      // The provider keeps no marker of a process, so a saved claim stays a claim.
      const found = this.#connection.processReference(
        saved.id,
        { state: "unknown" },
        this.#sandbox.id,
      );
      return new ProcessHandle(this.#connection, found, opened);
    });
  }

  #request(options: unknown) {
    const given = optionsOf("processes.start", options, [
      "command",
      "cwd",
      "env",
      "output",
      "stdin",
      "signal",
      "onSubmit",
    ]);
    const request = commandRequest(this.#sandbox.id, given.command, given);
    const refuse = (feature: "processes.stdin" | "processes.bytes") =>
      this.#connection.refuse("process_start", feature);
    const { stdin } = optional("stdin", given.stdin, (value) =>
      oneOf("stdin", value, ["ignore", "pipe"]),
    );
    if (stdin === "pipe") refuse("processes.stdin");
    if (outputFormat(given.output) === "bytes") refuse("processes.bytes");
    this.#connection.require("process_start", "processes.stream");
    return { given, request };
  }
}

/**
 * A command with live output. Leaving it alone does not end it; `terminate()`
 * does, and `detach()` lets go of it.
 *
 * ```js
 * for await (const text of process.stdout) console.log(text);
 * const { exitCode } = await process.wait();
 * ```
 */
export class ProcessHandle {
  /** Versioned JSON to save and to reopen with `box.processes.get()`. */
  readonly reference: ProcessReference;
  /** Standard output as text. */
  readonly stdout: TextStream;
  /** Standard error as text. */
  readonly stderr: TextStream;
  /** Both as `{ stream, text }`, in the order in which they arrived. */
  readonly output: OutputStream;
  readonly #connection: Connection;
  readonly #process: AdapterProcess;

  /** @internal */
  constructor(connection: Connection, reference: ProcessReference, process: AdapterProcess) {
    this.reference = reference;
    this.#connection = connection;
    this.#process = process;
    this.stdout = new TextStream(connection, () => process.read("stdout"));
    this.stderr = new TextStream(connection, () => process.read("stderr"));
    this.output = new OutputStream(connection, () => process.read("output"));
  }

  /**
   * Waits for the end. `output` says whether everything that the process wrote
   * was received.
   */
  wait(options?: CallOptions): Promise<ProcessExit> {
    return this.#connection.read("process_wait", options, [], (_, call) =>
      this.#process.wait(call),
    );
  }

  /** Asks whether it still runs. */
  status(options?: CallOptions): Promise<ProcessStatus> {
    return this.#connection.read("process_status", options, [], (_, call) =>
      this.#process.status(call),
    );
  }

  /**
   * Waits until the process has written what `pattern` matches: a RegExp, or
   * a string that is looked for as it is.
   *
   * Looks at everything that this handle can read, from its start on, so that
   * what was written before the call counts too. It reads through a view of its
   * own: other iterators miss nothing. Reading counts for {@link offsets}.
   * A match may lie across any number of pieces; the last 65,536 characters of
   * each stream are held, so that is the longest match, and `^` without the
   * flag `m` stands for where they begin. The flags `g` and `y` are ignored.
   *
   * ```js
   * const server = await box.processes.start({ command: ["./server"] });
   * const { groups } = await server.waitForOutput(/listening on port (?<port>\d+)/, {
   *   timeoutSeconds: 30,
   * });
   * ```
   *
   * @throws BeachsideError `NOT_RUNNING` with the reason `process_ended` when
   *   the process ends without a match (`outcome.exitCode` is its exit code, the hidden
   *   `stdout` and `stderr` are the last that it wrote); `DEADLINE_EXCEEDED`; `CANCELLED`;
   *   `CLOSED` also after {@link detach}; and what reading fails with.
   */
  waitForOutput(pattern: RegExp | string, options?: WaitForOutputOptions): Promise<OutputMatch> {
    return waitForOutput(this.#connection, this.reference, this.#process, pattern, options);
  }

  /**
   * Kills it with everything that it started, and resolves as soon as the
   * provider has taken the kill; {@link wait} gives the end. There is one kind
   * of kill, and it cannot be caught (SIGKILL): no signal can be chosen. A
   * process that has ended already is a success.
   *
   * @throws BeachsideError `NOT_FOUND` where the process is gone; `OUTCOME_UNKNOWN`
   *   where the answer to the kill is lost (killing again is harmless); `CANCELLED`.
   */
  async kill(options?: MutationOptions): Promise<void> {
    const given = this.#connection.checked("process_kill", () => {
      this.#connection.require("process_kill", "processes.kill");
      return optionsOf("kill", options, ["signal", "onSubmit"]);
    });
    await perform(this.#connection, {
      kind: "process_terminate",
      name: "process_kill",
      target: this.reference,
      options: given,
      send: (_evidence, call) => this.#process.kill(call),
      finish: async () => {},
    });
  }

  /**
   * Like {@link kill}, and waits until the provider reports the end.
   *
   * @throws BeachsideError also `OUTCOME_UNKNOWN` where no end is reported in
   *   the time that the connection's settings allow.
   */
  async terminate(options?: MutationOptions): Promise<ProcessExit> {
    const given = this.#connection.checked("process_terminate", () =>
      optionsOf("terminate", options, ["signal", "onSubmit"]),
    );
    return await perform(this.#connection, {
      kind: "process_terminate",
      target: this.reference,
      options: given,
      send: (_evidence, call) => this.#process.terminate(call),
      finish: async (exit) => exit,
    });
  }

  /** Lets go of it: reading ends here, the process goes on. */
  async detach(): Promise<void> {
    this.#process.detach();
  }

  /** How far each stream was read, for `box.processes.get()`. */
  offsets(): StreamOffsets {
    return this.#process.offsets();
  }

  /** Detaches at the end of an `await using` block. */
  declare [Symbol.asyncDispose]: () => Promise<void>;

  static {
    inspectsAs(ProcessHandle, ({ reference }) => reference);
    // Node 20 before 20.5 has no such symbol.
    if (typeof Symbol.asyncDispose === "symbol") {
      Object.defineProperty(ProcessHandle.prototype, Symbol.asyncDispose, {
        configurable: true,
        writable: true,
        value(this: ProcessHandle) {
          return this.detach();
        },
      });
    }
  }
}

function outputFormat(output: unknown): "text" | "bytes" {
  if (output === undefined) return "text";
  if (!isRecord(output)) throw invalid('output must be { mode: "stream" }.');
  knownKeys("output", output, ["mode", "format"]);
  oneOf("output.mode", output["mode"], ["stream"]);
  const given = optional("format", output["format"], (value) =>
    oneOf("output.format", value, ["text", "bytes"]),
  );
  return given.format ?? "text";
}

function offset(name: string, value: unknown): number {
  return number(name, value, { min: 0, max: Number.MAX_SAFE_INTEGER });
}
