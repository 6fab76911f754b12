/**
 * Waiting for a promise until a signal aborts.
 *
 * One listener per signal, whatever the number of waits: a listener for each
 * call makes Node warn of a leak at eleven calls, and removing them one by one
 * is quadratic. Nothing stays on a signal when its last wait is over.
 */

const groups = new WeakMap<AbortSignal, Set<() => void>>();

/** Settles like `promise`, or rejects with what `onAbort` gives when the signal aborts first. */
export function untilAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  onAbort: (signal: AbortSignal) => Error,
): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const stop = onSignal(signal, () => reject(onAbort(signal)));
    promise.then(resolve, reject).finally(stop);
  });
}

/** Calls back once when the signal aborts, at once if it has; returns how to stop listening. */
function onSignal(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  let group = groups.get(signal);
  if (group === undefined) {
    const members = new Set<() => void>();
    group = members;
    groups.set(signal, members);
    signal.addEventListener("abort", aborted);
  }
  const members = group;
  members.add(callback);
  return () => {
    members.delete(callback);
    if (members.size > 0 || groups.get(signal) !== members) return;
    groups.delete(signal);
    signal.removeEventListener("abort", aborted);
  };
}

function aborted(this: AbortSignal): void {
  const members = groups.get(this);
  groups.delete(this);
  this.removeEventListener("abort", aborted);
  for (const callback of members ?? []) callback();
}
