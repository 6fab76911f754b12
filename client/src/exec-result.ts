/** The result of a command that ended: plain data, and its output as text on demand. */

import type { ExecRecord } from "./adapter.js";
import { inspectsLike } from "./inspection.js";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/**
 * What a command left behind. A non-zero exit is a result, not an error.
 *
 * Plain data: two results compare with `assert.deepEqual`, `{ ...result }` is
 * a plain object, `structuredClone` keeps every field (and no method),
 * `JSON.stringify` loses nothing, and `console.log` shows output as text.
 *
 * ```js
 * const result = await box.exec(["ls", "/"]);
 * console.log(result.exitCode, result.stdoutText());
 * ```
 */
export class ExecResult {
  /** 0 to 255; 128 plus the signal's number for a command that a signal ended. */
  readonly exitCode: number;
  /** The exact bytes of standard output, up to `maxOutputBytes`. */
  readonly stdout: Uint8Array;
  /** The exact bytes of standard error, up to `maxOutputBytes`. */
  readonly stderr: Uint8Array;
  /** Whether `stdout` was cut; `stdoutBytes` is its true length. */
  readonly stdoutTruncated: boolean;
  /** Whether `stderr` was cut; `stderrBytes` is its true length. */
  readonly stderrTruncated: boolean;
  /** How many bytes the command wrote to standard output, also where they were cut. */
  readonly stdoutBytes: number;
  /** How many bytes it wrote to standard error. */
  readonly stderrBytes: number;
  /** Wall-clock time of the call, in milliseconds. */
  readonly durationMs: number;

  constructor(record: ExecRecord) {
    this.exitCode = record.exitCode;
    this.stdout = record.stdout;
    this.stderr = record.stderr;
    this.stdoutTruncated = record.stdoutTruncated;
    this.stderrTruncated = record.stderrTruncated;
    this.stdoutBytes = record.stdoutBytes;
    this.stderrBytes = record.stderrBytes;
    this.durationMs = record.durationMs;
  }

  /** Standard output as UTF-8; invalid bytes become U+FFFD, a byte-order mark is kept. */
  stdoutText(): string {
    return decoder.decode(this.stdout);
  }

  /** Standard error as UTF-8; invalid bytes become U+FFFD, a byte-order mark is kept. */
  stderrText(): string {
    return decoder.decode(this.stderr);
  }

  /**
   * For `JSON.stringify`. Output that is UTF-8 is a string, other output is
   * `{ base64 }`, so that nothing is lost; the other fields are as they are.
   */
  toJSON(): ExecResultJson {
    return { ...this, stdout: textOrBase64(this.stdout), stderr: textOrBase64(this.stderr) };
  }

  static {
    inspectsLike(ExecResult, (result, inspect) => {
      const texts = { stdout: result.stdoutText(), stderr: result.stderrText() };
      return `ExecResult ${inspect({ ...result, ...texts })}`;
    });
  }
}

/** Bytes that are not UTF-8, as JSON has them. */
export interface Base64 {
  /** With padding, on one line. */
  readonly base64: string;
}

/** An {@link ExecResult} as JSON has it. */
export type ExecResultJson = {
  readonly [Field in "stdout" | "stderr"]: string | Base64;
} & {
  readonly [Field in Exclude<
    keyof ExecResult,
    "stdout" | "stderr" | "stdoutText" | "stderrText" | "toJSON"
  >]: ExecResult[Field];
};

function textOrBase64(bytes: Uint8Array): string | Base64 {
  try {
    return strict.decode(bytes);
  } catch {
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64") };
  }
}
