/**
 * Automatic clean-up: destroys what a call is proven to have made, and says
 * what it could not clean and why, without hiding the error that came first.
 * Where a create's answer was lost, the proof is its markers, which nobody
 * else can know.
 */

import { invalid } from "./arguments.js";
import type { Connection } from "./connection.js";
import { type BeachsideError, isBeachsideError } from "./errors.js";
import { markersOf, type OperationReference, type ResourceReference } from "./references.js";
import { SandboxHandle } from "./sandbox-handle.js";
import { madeSandbox } from "./sandbox-info.js";

/** How often a lost create is looked for, and how far apart: its request may still be on its way. */
const LOOKS = 2;
const PAUSE_MS = 1000;

/** Something that the clean-up left. */
export interface NotCleaned {
  /** What is left, where it is known. */
  readonly resource?: ResourceReference;
  /** The operation that may have made something, where what it made is not known. */
  readonly operation?: OperationReference;
  /** Why, as a sentence. */
  readonly reason: string;
  /** The error of the attempt, where there was one. */
  readonly error?: BeachsideError;
}

/** What an automatic clean-up did. */
export interface CleanupReport {
  /** What was destroyed. */
  readonly cleaned: readonly ResourceReference[];
  /** What was not, and why. */
  readonly notCleaned: readonly NotCleaned[];
}

const NOTHING: CleanupReport = { cleaned: [], notCleaned: [] };

/** The reports that errors carry, and when they were put there: an error may leave several calls of `with`. */
const reports = new WeakMap<Error, { readonly report: CleanupReport; readonly at: number }>();
let ticks = 0;

function tick(): number {
  ticks += 1;
  return ticks;
}

export async function withSandbox<T>(
  connection: Connection,
  create: () => Promise<SandboxHandle>,
  use: (sandbox: SandboxHandle) => T | PromiseLike<T>,
): Promise<T> {
  connection.checked("sandbox_with", () => {
    if (typeof use !== "function")
      throw invalid(
        "sandboxes.with: the second argument must be a function; the first are the sandbox's options, {} for none.",
      );
  });
  const began = tick();
  let sandbox: SandboxHandle;
  try {
    sandbox = await create();
  } catch (error) {
    throw attach(error, await cleanFailedCreate(connection, error), began);
  }
  let value: T;
  try {
    value = await use(sandbox);
  } catch (error) {
    throw attach(error, await destroy(connection, sandbox), began);
  }
  const report = await destroy(connection, sandbox);
  const failure = report.notCleaned[0];
  if (failure?.error !== undefined) throw attach(failure.error, report, began);
  return value;
}

async function cleanFailedCreate(connection: Connection, error: unknown): Promise<CleanupReport> {
  if (!isBeachsideError(error)) return NOTHING;
  const { sandbox, operation, submitted } = error.outcome ?? {};
  if (sandbox !== undefined && connection.made("sandbox", sandbox.id)) {
    return destroy(connection, new SandboxHandle(connection, sandbox));
  }
  const isLost = error.code === "OUTCOME_UNKNOWN" || error.code === "CANCELLED";
  if (submitted === false || operation === undefined || !isLost) {
    return NOTHING;
  }
  return cleanLostCreate(connection, operation);
}

/** Destroys the one sandbox that carries the create's markers, as far as it is there. */
async function cleanLostCreate(
  connection: Connection,
  operation: OperationReference,
): Promise<CleanupReport> {
  const left = (...notCleaned: NotCleaned[]): CleanupReport => ({ cleaned: [], notCleaned });
  const unknown = "Whether the create made a sandbox is not known; ask client.recover().";
  if (connection.capability("recovery.sandboxes").status === "unsupported") {
    return left({ operation, reason: unknown });
  }
  const markers = markersOf(operation);
  for (let look = 0; look < LOOKS; look++) {
    if (look > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    try {
      connection.refuseClosed();
      const { matches } = await connection.adapter.findSandboxes({ markers });
      const references = matches.map((record) => madeSandbox(connection, record, operation));
      const [reference, ...others] = references;
      if (others.length > 0) {
        const reason = "More than one sandbox carries the markers of the create.";
        return left(...references.map((resource) => ({ resource, operation, reason })));
      }
      if (reference?.ownership.state === "created") {
        connection.remember("sandbox", reference.id, reference.ownership);
        return destroy(connection, new SandboxHandle(connection, reference));
      }
    } catch (cause) {
      const error = connection.complete(cause, "sandbox_with");
      return left({
        operation,
        reason: `${unknown} Looking for it failed: ${error.message}`,
        error,
      });
    }
  }
  return left({ operation, reason: unknown });
}

async function destroy(connection: Connection, sandbox: SandboxHandle): Promise<CleanupReport> {
  const { reference } = sandbox;
  try {
    await sandbox.destroy();
    return { cleaned: [reference], notCleaned: [] };
  } catch (error) {
    const ours = connection.complete(error, "sandbox_destroy");
    const reason = `Destroying it failed: ${ours.message}`;
    return { cleaned: [], notCleaned: [{ resource: reference, reason, error: ours }] };
  }
}

/** The first error, with the report on it; a value that cannot carry one is wrapped. */
function attach(error: unknown, report: CleanupReport, began: number): unknown {
  if (report.cleaned.length + report.notCleaned.length === 0) return error;
  if (error instanceof Error && carry(error, report, began)) return error;
  if (report.notCleaned.length === 0) return error;
  const failures = report.notCleaned.map((left) => left.error ?? new Error(left.reason));
  const both = new AggregateError([error, ...failures], "The clean-up failed as well.");
  carry(both, report, began);
  return both;
}

/** Puts the report on an error, behind that of a `with` inside this one. Whether the error takes it. */
function carry(error: Error, { cleaned, notCleaned }: CleanupReport, began: number): boolean {
  const carried = reports.get(error);
  const inner = carried !== undefined && carried.at > began ? carried.report : NOTHING;
  const report = {
    cleaned: [...inner.cleaned, ...cleaned],
    notCleaned: [...inner.notCleaned, ...notCleaned],
  };
  const property = { value: report, configurable: true, enumerable: true, writable: true };
  // Defined, not assigned: an accessor of the caller's own class would refuse that.
  if (!Reflect.defineProperty(error, "cleanup", property)) return false;
  reports.set(error, { report, at: tick() });
  return true;
}
