/**
 * A provider that lives in memory, with what Runloop lacks: volumes, mounts,
 * labels, memory snapshots, a source that stops for a capture, snapshots that
 * expire. memory-adapter.mjs puts the adapter interface in front of it.
 *
 * A test steers it: `fail()` makes a call fail before or after it took effect,
 * `hold()` makes one wait until it is released, `calls` says what was asked.
 */

import { BeachsideError } from "@beachside/runloop/client";

export class MemoryWorld {
  sandboxes = new Map();
  snapshots = new Map();
  volumes = new Map();
  processes = new Map();
  /** Whether started processes are real ones of this machine; otherwise a test writes their output. */
  runsProcesses = false;
  /** What a test has told of a write, by its progress function. */
  onTransfer;
  /** Every call that reached the provider: `{ method, request }`. */
  calls = [];
  #faults = [];
  #holds = new Map();
  #watchers = new Set();
  #next = 1;

  /** Names of the calls so far, in order. */
  get methods() {
    return this.calls.map((call) => call.method);
  }

  /** Makes the next call of a method fail. `acted: true` lets it take effect first. */
  fail(method, error, { acted = false } = {}) {
    this.#faults.push({ method, acted, end: () => Promise.reject(error) });
  }

  /** Makes the next call of a method give this answer, without an effect. */
  answer(method, result) {
    this.#faults.push({ method, acted: false, end: async () => result });
  }

  /** Makes calls of a method wait, before they take effect, until the returned function is called. */
  hold(method) {
    let release;
    const gate = new Promise((resolve) => {
      release = () => {
        this.#holds.delete(method);
        resolve();
      };
    });
    this.#holds.set(method, gate);
    return release;
  }

  /** Resolves when a call of the method has arrived. */
  arrival(method) {
    return this.until(() => this.methods.includes(method));
  }

  /** Resolves when the predicate holds, looked at after every call and change. */
  until(predicate) {
    if (predicate()) return Promise.resolve();
    return new Promise((resolve) => {
      const watcher = () => {
        if (!predicate()) return;
        this.#watchers.delete(watcher);
        resolve();
      };
      this.#watchers.add(watcher);
    });
  }

  /** Tells everyone who waits that something changed. */
  changed() {
    for (const watcher of [...this.#watchers]) watcher();
  }

  id(kind) {
    return `${kind}_${this.#next++}`;
  }

  /** Runs one call: journal, hold, fault, effect. */
  async run(method, request, act) {
    this.calls.push({ method, request });
    this.changed();
    await this.#holds.get(method);
    const index = this.#faults.findIndex((each) => each.method === method);
    if (index !== -1) {
      const [fault] = this.#faults.splice(index, 1);
      if (fault.acted) await act();
      this.changed();
      return fault.end();
    }
    const result = await act();
    this.changed();
    return result;
  }

  find(kind, id) {
    const all = {
      sandbox: this.sandboxes,
      snapshot: this.snapshots,
      volume: this.volumes,
      process: this.processes,
    };
    const found = all[kind].get(id);
    if (found === undefined) throw missing(kind, id);
    return found;
  }

  setState(sandbox, state) {
    sandbox.state = state;
    this.changed();
  }
}

export function missing(kind, id) {
  return new BeachsideError(`${kind} "${id}" does not exist`, {
    code: "NOT_FOUND",
    resource: { kind, id },
  });
}

/** Rejects like an adapter must when the signal aborts: at once, with its reason. */
export function abortable(promise, signal, outcome) {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stop = () =>
      reject(
        new BeachsideError("The call was cancelled by its signal.", {
          code: "CANCELLED",
          cause: signal.reason,
          outcome: outcome?.(),
        }),
      );
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
