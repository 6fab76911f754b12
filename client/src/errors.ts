/**
 * The error classes, and how to tell them apart from everything else.
 *
 * One CommonJS module owns the classes; ESM re-exports it and the native
 * loader hands the constructors to the addon, so `instanceof` holds wherever
 * an error was made. Nothing here may hold a credential, an environment value
 * or file content where `util.inspect` or `JSON.stringify` could show it: what
 * a failed command printed is kept in non-enumerable properties.
 */

import type { ExecResult } from "./exec-result.js";
import type { Outcome } from "./outcome.js";

/** Why a call failed. Stable; new codes may be added. */
export type ErrorCode = (typeof ERROR_CODES)[number];

const ERROR_CODES = [
  "INVALID_ARGUMENT",
  "UNSUPPORTED",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "NOT_FOUND",
  "CONFLICT",
  "RATE_LIMITED",
  "REJECTED",
  "FILE_ERROR",
  "NOT_RUNNING",
  "SANDBOX_FAILED",
  "DEADLINE_EXCEEDED",
  "OUTCOME_UNKNOWN",
  "SOURCE_RESTART_FAILED",
  "UNAVAILABLE",
  "CANCELLED",
  "CLOSED",
  "SCOPE_MISMATCH",
  "PROTOCOL",
  "INTERNAL",
  "COMMAND_FAILED",
  "NATIVE_BINARY_MISSING",
] as const;

/** The resource an error is about. */
export interface ErrorResource {
  /** `sandbox`, `snapshot`, `volume`, `process`, `file`, `working directory`, `image`, `network policy` or `account`. */
  readonly kind: string;
  /** The provider's id, or the path, or the name that was asked for. */
  readonly id: string;
}

/** A requirement of the caller that cannot be met. */
export interface UnmetRequirement {
  /** For example `snapshots.preserve`. */
  readonly requirement: string;
  /** Why it cannot be met, as a sentence. */
  readonly reason: string;
}

/** What an error is made from. Absent means unknown or not applicable. */
export interface ErrorDetails {
  /** What kind of failure it is. */
  readonly code: ErrorCode;
  /** The adapter's provider, for example `runloop`. */
  readonly provider?: string | undefined;
  /** The call, for example `sandbox_create`. */
  readonly operation?: string | undefined;
  /** What the error is about. */
  readonly resource?: ErrorResource | undefined;
  /** A stable reason within the code, for example `is_directory` under `FILE_ERROR`. */
  readonly reason?: string | undefined;
  /** Everything known about a mutation that did not end with an ordinary result. */
  readonly outcome?: Outcome | undefined;
  /** HTTP status of the provider's answer. */
  readonly status?: number | undefined;
  /** Request id of the provider's answer, for its support. */
  readonly requestId?: string | undefined;
  /** Seconds the provider asks to wait. */
  readonly retryAfterSeconds?: number | undefined;
  /** HTTP requests made for the failed request: 1 without a retry. */
  readonly attempts?: number | undefined;
  /** What to do about it, as a sentence. */
  readonly suggestion?: string | undefined;
  /** What was underneath, for example a signal's reason. */
  readonly cause?: unknown;
  /** What a failed command had printed. Hidden from inspection and JSON. */
  readonly stdout?: Uint8Array | undefined;
  /** As `stdout`. */
  readonly stderr?: Uint8Array | undefined;
  /** The whole result of a command, under `COMMAND_FAILED`. Hidden likewise. */
  readonly result?: ExecResult | undefined;
}

/** What {@link UnsupportedFeatureError} is made from. */
export interface UnsupportedDetails extends Omit<ErrorDetails, "code"> {
  /** Always this one. */
  readonly code?: "UNSUPPORTED";
  /** The missing feature, for example `volumes`. */
  readonly feature: string;
  /** Every requirement that cannot be met, with its reason. */
  readonly unmetRequirements: readonly UnmetRequirement[];
}

const BRAND = Symbol.for("beachside.error");
const PLAIN_FIELDS = [
  "code",
  "provider",
  "operation",
  "resource",
  "reason",
  "outcome",
  "status",
  "requestId",
  "retryAfterSeconds",
  "attempts",
  "suggestion",
  "feature",
  "unmetRequirements",
] as const;

const HIDDEN_FIELDS = ["stdout", "stderr", "result"] as const;

/**
 * Every failure of this library. `code` says what kind it is, `outcome` what is
 * known of a mutation that did not end with an ordinary result.
 *
 * ```js
 * try {
 *   await client.sandboxes.create();
 * } catch (error) {
 *   if (!isBeachsideError(error)) throw error;
 *   if (error.code === "OUTCOME_UNKNOWN") await client.recover(error.outcome.operation);
 * }
 * ```
 */
export class BeachsideError extends Error {
  /** What kind of failure it is. */
  declare readonly code: ErrorCode;
  /** The adapter's provider, for example `runloop`. */
  declare readonly provider?: string;
  /** The call that failed, for example `sandbox_create`. */
  declare readonly operation?: string;
  /** What the error is about. */
  declare readonly resource?: ErrorResource;
  /** A stable reason within the code, for example `is_directory` under `FILE_ERROR`. */
  declare readonly reason?: string;
  /** Everything known about a mutation that did not end with an ordinary result. */
  declare readonly outcome?: Outcome;
  /** HTTP status of the provider's answer. */
  declare readonly status?: number;
  /** Request id of the provider's answer, for its support. */
  declare readonly requestId?: string;
  /** Seconds the provider asks to wait before the next call. */
  declare readonly retryAfterSeconds?: number;
  /** HTTP requests made for the request that failed: 1 without a retry, absent where none was made. */
  declare readonly attempts?: number;
  /** What to do about it, as a sentence, where there is something to say beyond the message. */
  declare readonly suggestion?: string;
  /**
   * What a failed command had written to standard output, as far as it was
   * read. Not enumerable: `util.inspect` and `JSON.stringify` leave it out.
   */
  declare readonly stdout?: Uint8Array;
  /** Like {@link stdout}, for standard error. */
  declare readonly stderr?: Uint8Array;
  /** The whole result of a command that ended with a non-zero exit, under `COMMAND_FAILED`. Not enumerable. */
  declare readonly result?: ExecResult;

  constructor(message: string, details: ErrorDetails) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    assignDetails(this, details);
    captureStack(this, new.target);
  }

  /** Plain data without output, environment values or credentials; {@link isBeachsideError} knows it. */
  toJSON(): Record<string, unknown> {
    const json: Record<string, unknown> = { name: this.name, message: this.message };
    const fields = this as unknown as Record<string, unknown>;
    for (const field of PLAIN_FIELDS) {
      if (fields[field] !== undefined) json[field] = fields[field];
    }
    if (this.cause instanceof BeachsideError) json["cause"] = this.cause.toJSON();
    else if (this.cause instanceof Error) {
      json["cause"] = { name: this.cause.name, message: this.cause.message };
    }
    return json;
  }
}

/**
 * The provider, or its adapter, cannot do what was asked. Nothing was sent.
 *
 * ```js
 * try {
 *   await client.volumes.create({ name: "cache" });
 * } catch (error) {
 *   if (error instanceof UnsupportedFeatureError) console.log(error.feature, error.unmetRequirements);
 * }
 * ```
 */
export class UnsupportedFeatureError extends BeachsideError {
  /** Always this one. */
  declare readonly code: "UNSUPPORTED";
  /** The missing feature, for example `volumes`. */
  declare readonly feature: string;
  /** Each requirement that cannot be met, and why. */
  declare readonly unmetRequirements: readonly UnmetRequirement[];

  constructor(message: string, details: UnsupportedDetails) {
    super(message, { ...details, code: "UNSUPPORTED" });
    visible(this, "feature", details.feature);
    visible(this, "unmetRequirements", details.unmetRequirements);
  }
}

// On the prototypes, so that they are neither own nor enumerable.
hidden(BeachsideError.prototype, "name", "BeachsideError");
hidden(UnsupportedFeatureError.prototype, "name", "UnsupportedFeatureError");
hidden(BeachsideError.prototype, BRAND, true);

/** Sets what an error's maker did not know. What is `undefined` here stays as it was. */
export function enrich<E extends BeachsideError>(error: E, details: Partial<ErrorDetails>): E {
  assignDetails(error, details);
  return error;
}

/**
 * Gives the error the stack of the current caller, below `above`.
 *
 * An error that the addon made has no frames (Node) or no stack at all (Bun).
 * The first line carries the code, as Node's own errors do, because it is the
 * only place where a structured clone keeps it.
 */
// biome-ignore lint/complexity/noBannedTypes: the type of captureStackTrace's second parameter
export function captureStack(error: BeachsideError, above: Function = captureStack): void {
  hidden(error, "name", `${error.name} [${error.code}]`);
  Error.captureStackTrace(error, above);
  // Reading it fixes the first line; some engines build it on first use.
  void error.stack;
  Reflect.deleteProperty(error, "name");
}

const CLONE_HEAD = /^(BeachsideError|UnsupportedFeatureError) \[([A-Z_]+)\]: /;

/**
 * Whether a value is one of this library's errors, whichever copy of it made
 * the error.
 *
 * Knows an instance of another copy of the package, the plain data of
 * `toJSON()`, and a structured clone, for example one that a worker posted. A
 * structured clone keeps message, stack and (on Node) cause only; its `name` and `code`
 * are read back from the stack's first line and set on it.
 */
export function isBeachsideError(value: unknown): value is BeachsideError {
  if (typeof value !== "object" || value === null) return false;
  if (BRAND in value) return true;
  const { name, code, message, stack } = value as Record<string, unknown>;
  if (typeof message !== "string") return false;
  if (isName(name) && isCode(code)) return true;
  if (!(value instanceof Error) || typeof stack !== "string") return false;
  const head = CLONE_HEAD.exec(stack);
  if (head === null || !isCode(head[2])) return false;
  hidden(value, "name", head[1]);
  visible(value, "code", head[2]);
  return true;
}

function isName(name: unknown): boolean {
  return name === "BeachsideError" || name === "UnsupportedFeatureError";
}

function isCode(code: unknown): code is ErrorCode {
  return (ERROR_CODES as readonly unknown[]).includes(code);
}

function assignDetails(error: BeachsideError, details: Partial<ErrorDetails>): void {
  const given = details as Record<string, unknown>;
  for (const field of PLAIN_FIELDS) {
    if (given[field] !== undefined) visible(error, field, given[field]);
  }
  for (const field of HIDDEN_FIELDS) {
    if (given[field] !== undefined) hidden(error, field, given[field]);
  }
}

function visible(target: object, key: PropertyKey, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true });
}

function hidden(target: object, key: PropertyKey, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: false, configurable: true });
}
