/**
 * Waiting until a live process has written something.
 *
 * Reads through a view of its own, so it takes nothing from other iterators.
 * Holds a bounded tail of each stream: a match may lie across any number of
 * pieces, as long as it fits in the tail.
 */

import type { AdapterProcess } from "./adapter.js";
import { invalid, oneOf, optional, optionsOf, signalOf, text } from "./arguments.js";
import { type Connection, cancelled } from "./connection.js";
import { BeachsideError } from "./errors.js";
import type { CallOptions } from "./operations.js";
import type { ProcessReference } from "./references.js";
import { untilAborted } from "./signals.js";
import { secondsOf, withinSeconds } from "./waits.js";

const OPERATION = "process_wait_for_output";
const MAX_TIMEOUT_SECONDS = 86_400;

/** Characters of each stream that are held: the longest match, and what lookbehind can see. */
const TAIL_LENGTH = 65_536;

/** Options of `process.waitForOutput()`. */
export interface WaitForOutputOptions extends CallOptions {
  /**
   * Which stream to look at. `output`, the default, looks at both, each by
   * itself: a match never lies across the two.
   */
  readonly stream?: "stdout" | "stderr" | "output" | undefined;
  /** More than 0, at most 86,400; for as long as the process runs when omitted. */
  readonly timeoutSeconds?: number | undefined;
}

/** What {@link ProcessHandle.waitForOutput} found. */
export interface OutputMatch {
  /** Where it was written. */
  readonly stream: "stdout" | "stderr";
  /** The text that matched. */
  readonly text: string;
  /** What each pair of parentheses matched, from the first on. */
  readonly captures: readonly (string | undefined)[];
  /** The named ones, by name. */
  readonly groups: Readonly<Record<string, string | undefined>>;
}

type Stream = "stdout" | "stderr";
type Tails = Record<Stream, string>;

export async function waitForOutput(
  connection: Connection,
  reference: ProcessReference,
  process: AdapterProcess,
  pattern: unknown,
  options: unknown,
): Promise<OutputMatch> {
  try {
    connection.refuseClosed();
    const { expression, which, seconds, signal } = request(pattern, options);
    if (signal?.aborted === true) throw cancelled(OPERATION, signal);
    const reader = process.read(which);
    try {
      const search = searched(reader, expression, async (tails) => {
        throw await ended(process, reference, tails);
      });
      const stopped = untilAborted(search, signal, (at) => cancelled(OPERATION, at));
      return await withinSeconds(stopped, seconds, "The output did not match");
    } finally {
      reader.cancel();
    }
  } catch (error) {
    throw connection.complete(error, OPERATION);
  }
}

function request(pattern: unknown, options: unknown) {
  const given = optionsOf("waitForOutput", options, ["stream", "timeoutSeconds", "signal"]);
  const { stream: which = "output" } = optional("stream", given.stream, (value) =>
    oneOf("stream", value, ["stdout", "stderr", "output"]),
  );
  const { seconds } = optional("seconds", given.timeoutSeconds, (value) =>
    secondsOf("timeoutSeconds", value, MAX_TIMEOUT_SECONDS),
  );
  return { expression: expressionOf(pattern), which, seconds, signal: signalOf(given.signal) };
}

/** A copy without `g` and `y`, which would make the expression remember where it was. */
function expressionOf(pattern: unknown): RegExp {
  // An expression of another realm fails `instanceof`.
  if (Object.prototype.toString.call(pattern) === "[object RegExp]") {
    const { source, flags } = pattern as RegExp;
    return new RegExp(source, flags.replace(/[gy]/g, ""));
  }
  if (typeof pattern !== "string") throw invalid("pattern must be a RegExp or a string.");
  return new RegExp(text("pattern", pattern).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
}

/** Reads until a stream matches. Where the streams end first, `onEnd` says so. */
async function searched(
  reader: ReturnType<AdapterProcess["read"]>,
  expression: RegExp,
  onEnd: (tails: Tails) => Promise<never>,
): Promise<OutputMatch> {
  const tails: Tails = { stdout: "", stderr: "" };
  for (;;) {
    const pieces = await reader.nextBatch();
    if (pieces === null) return await onEnd(tails);
    for (const piece of pieces) {
      const held = tails[piece.stream] + piece.text;
      const match = expression.exec(held);
      if (match !== null) return outputMatch(piece.stream, match);
      tails[piece.stream] = held.slice(-TAIL_LENGTH);
    }
  }
}

function outputMatch(stream: Stream, match: RegExpExecArray): OutputMatch {
  const [whole, ...captures] = match;
  return { stream, text: whole, captures, groups: { ...match.groups } };
}

/** The error of a process that wrote no match before its end, with the last that it wrote. */
async function ended(
  process: AdapterProcess,
  reference: ProcessReference,
  { stdout, stderr }: Tails,
): Promise<BeachsideError> {
  const { exitCode } = await process.wait();
  const encoder = new TextEncoder();
  return new BeachsideError(
    `The process ended with exit code ${exitCode} before its output matched.`,
    {
      code: "NOT_RUNNING",
      reason: "process_ended",
      resource: { kind: "process", id: reference.id },
      outcome: { process: reference, exitCode },
      stdout: encoder.encode(stdout),
      stderr: encoder.encode(stderr),
    },
  );
}
