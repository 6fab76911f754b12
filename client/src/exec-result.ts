/** The result of a command that ended: plain data, and its output as text on demand. */

import type { ExecRecord } from "./adapter.js";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** What a command left behind. A non-zero exit is a result, not an error. */
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
  readonly stdoutBytes: number;
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
}
