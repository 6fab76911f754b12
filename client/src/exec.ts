/** Running a command to its end. Limits and defaults that every provider shares. */

import type { ExecRequest } from "./adapter.js";
import {
  bytesOf,
  callback,
  environment,
  flag,
  invalid,
  number,
  optional,
  optionsOf,
  text,
  typeOf,
} from "./arguments.js";
import type { Connection } from "./connection.js";
import { BeachsideError } from "./errors.js";
import { ExecResult } from "./exec-result.js";
import { type MutationOptions, perform } from "./operations.js";
import type { SandboxReference } from "./references.js";

const MAX_TIMEOUT_SECONDS = 3600;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** A program with its arguments, or one line of shell text. */
export type Command = string | readonly string[];

/** Where and with what a command runs. */
export interface CommandOptions {
  /** Working directory. Omitted: the image's. */
  readonly cwd?: string | undefined;
  /** Variables added to the sandbox's own. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Options of `exec`. */
export interface ExecOptions extends CommandOptions, MutationOptions {
  /** All of standard input; a string is sent as UTF-8. Omitted: empty. */
  readonly stdin?: Uint8Array | string | undefined;
  /**
   * More than 0, at most 3,600; 600 when omitted. Past it the command is
   * killed and the call rejects with `OUTCOME_UNKNOWN`.
   */
  readonly timeoutSeconds?: number | undefined;
  /** Bytes to keep of each stream, 0 to 1,048,576; 1,048,576 when omitted. */
  readonly maxOutputBytes?: number | undefined;
  /** `true`: a non-zero exit rejects with `COMMAND_FAILED`, whose `result` is the whole result. */
  readonly check?: boolean | undefined;
  /** Not supported by every provider. */
  readonly onStdout?: ((bytes: Uint8Array) => void) | undefined;
  /** Not supported by every provider. */
  readonly onStderr?: ((bytes: Uint8Array) => void) | undefined;
}

const KEYS = [
  "cwd",
  "env",
  "stdin",
  "timeoutSeconds",
  "maxOutputBytes",
  "check",
  "onStdout",
  "onStderr",
  "signal",
  "onSubmit",
] as const;

/** Checks a command: an array is argv with at least a program, a string is shell text. */
export function commandOf(value: unknown): Command {
  if (typeof value === "string") return text("command", value);
  if (!Array.isArray(value)) {
    throw invalid(
      `command must be an array (a program with its arguments) or a string (shell text), not ${typeOf(value)}.`,
    );
  }
  if (value.length === 0) throw invalid("command must not be an empty array.");
  // Copied, so that the caller's later changes do not reach what is sent.
  return value.map((word, index) => text(`command[${index}]`, word, { allowEmpty: index > 0 }));
}

/** The part of a request that says what runs, where and with what. */
export function commandRequest(
  sandboxId: string,
  command: unknown,
  options: { readonly cwd?: unknown; readonly env?: unknown },
) {
  return {
    sandboxId,
    command: commandOf(command),
    ...optional("cwd", options.cwd, (value) => text("cwd", value)),
    ...optional("env", options.env, environment),
  };
}

export async function exec(
  connection: Connection,
  sandbox: SandboxReference,
  command: Command,
  options: ExecOptions | undefined,
): Promise<ExecResult> {
  const { given, request, check } = connection.checked("exec", () =>
    execRequest(connection, sandbox, command, options),
  );
  const result = await perform(connection, {
    kind: "exec",
    target: sandbox,
    options: given,
    send: (_evidence, call) => connection.adapter.exec(request, call),
    finish: async (record) => new ExecResult(record),
  });
  if (check && result.exitCode !== 0) throw connection.complete(failed(result, sandbox), "exec");
  return result;
}

function execRequest(
  connection: Connection,
  sandbox: SandboxReference,
  command: Command,
  options: unknown,
) {
  const given = optionsOf("exec", options, KEYS);
  for (const key of ["onStdout", "onStderr"] as const) {
    if (callback(key, given[key]) !== undefined) connection.refuse("exec", "exec.callbacks");
  }
  const check = flag("check", given.check);
  const request: ExecRequest = {
    ...commandRequest(sandbox.id, command, given),
    ...optional("stdin", given.stdin, (value) => bytesOf("stdin", value, given.onSubmit)),
    ...optional("timeoutSeconds", given.timeoutSeconds, (value) =>
      number("timeoutSeconds", value, { moreThan: 0, max: MAX_TIMEOUT_SECONDS, integer: false }),
    ),
    ...optional("maxOutputBytes", given.maxOutputBytes, (value) =>
      number("maxOutputBytes", value, { min: 0, max: MAX_OUTPUT_BYTES }),
    ),
  };
  connection.require("exec", "exec.run");
  return { given, request, check };
}

function failed(result: ExecResult, sandbox: SandboxReference): BeachsideError {
  return new BeachsideError(`The command ended with exit code ${result.exitCode}.`, {
    code: "COMMAND_FAILED",
    outcome: { kind: "exec", submitted: true, sandbox, exitCode: result.exitCode },
    result,
  });
}
