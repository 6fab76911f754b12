/**
 * Telling a caller how far a long call has come.
 *
 * Adapters tell as often as they like; what reaches the caller is limited
 * here. A callback never changes what becomes of its call.
 */

/** How far a call has come. Fields that say nothing about it are absent. */
export interface Progress {
  /**
   * `submitting`: the request is on its way. `waiting`: the provider is at it.
   * `uploading` and `downloading`: content is on its way. `finishing`: what was uploaded is
   * put in its place. `done`: the call succeeded; it is told once, and last.
   */
  readonly phase: "submitting" | "waiting" | "uploading" | "downloading" | "finishing" | "done";
  /** The provider's own word for the state, while `waiting`. */
  readonly state?: string;
  /** Bytes of the content so far. Starts again at 0 where a download is tried again. */
  readonly bytes?: number;
  /** All bytes of the content, where known. */
  readonly totalBytes?: number;
}

/** Options of calls that tell of their progress. */
export interface ProgressOptions {
  /**
   * Told how far the call has come: each change of `phase` and `state` at once, `bytes` at
   * most ten times a second, and the end (`done`). A call that fails rejects and tells nothing more.
   *
   * What it throws, or rejects with, does not touch the call: it is not called
   * again, and a process warning with the code `BEACHSIDE_CALLBACK` says so.
   */
  readonly onProgress?: ((progress: Progress) => unknown) | undefined;
}

/** Shortest time between two tellings of the same phase and state. */
const INTERVAL_MS = 100;

/** Told of progress; `undefined` where nobody asked. */
export type Tell = ((progress: Progress) => void) | undefined;

/** The limited form of a caller's callback. */
export function limited(onProgress: ((progress: Progress) => unknown) | undefined): Tell {
  if (onProgress === undefined) return undefined;
  const call = guarded("onProgress", onProgress);
  let last: Progress | undefined;
  let at = 0;
  let over = false;
  return (progress) => {
    if (over) return;
    over = progress.phase === "done";
    const now = performance.now();
    const same =
      last?.phase === progress.phase &&
      last.state === progress.state &&
      last.totalBytes === progress.totalBytes;
    if (same && (progress.bytes === undefined || now - at < INTERVAL_MS)) return;
    last = progress;
    at = now;
    call(Object.freeze({ ...progress }));
  };
}

/** A caller's callback that cannot break anything: after its first failure it is called no more. */
export function guarded<T>(name: string, callback: (value: T) => unknown): (value: T) => void {
  let failed = false;
  const fail = (error: unknown) => {
    if (failed) return;
    failed = true;
    process.emitWarning(`${name} failed, and is not called again.`, {
      code: "BEACHSIDE_CALLBACK",
      detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  };
  return (value) => {
    if (failed) return;
    try {
      const result = callback(value);
      if (isThenable(result)) result.then(undefined, fail);
    } catch (error) {
      fail(error);
    }
  };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}
