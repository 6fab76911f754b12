"use strict";

/**
 * What every call of the addon shares: the caller's signal on the way in, and
 * the caller's stack on the way out.
 */

const { BeachsideError, captureStack } = require("../client/dist/errors.js");
const { native } = require("./native.js");

/**
 * Runs one native call.
 *
 * `start` is called at once, so that what it reads of its arguments is read
 * before the caller goes on. It gets a `Cancellation` when there is a signal.
 *
 * The addon makes its errors outside any JavaScript frame: they would have no
 * stack. Being `async`, this function is resumed with the caller's frames,
 * and gives the error those below itself.
 *
 * @template T, R
 * @param {{ readonly signal?: AbortSignal, readonly operationId?: string } | undefined} call
 * @param {(cancellation?: import("../binding.js").Cancellation) => T | Promise<T>} start
 * @param {(value: T) => R} read
 * @returns {Promise<R>}
 */
async function run(call, start, read) {
  const signal = call?.signal;
  const operationId = call?.operationId;
  if (signal === undefined) {
    try {
      const named = operationId && new (native().Cancellation)(operationId);
      return read(await start(named || undefined));
    } catch (error) {
      throw located(error);
    }
  }
  let listener;
  try {
    listener = Listener.of(signal);
    const { cancellation } = listener;
    return read(await start(operationId ? cancellation.of(operationId) : cancellation));
  } catch (error) {
    const ours = located(error);
    if (ours.code === "CANCELLED") attach(ours, "cause", signal.reason);
    throw ours;
  } finally {
    listener?.leave();
  }
}

/**
 * Our error with the stack of `run`'s caller.
 *
 * @param {unknown} error
 */
function located(error) {
  const ours = error instanceof BeachsideError ? error : foreign(error);
  captureStack(ours, run);
  return ours;
}

/**
 * Runs what reads values of the caller's, whose getters may throw.
 *
 * @template T
 * @param {() => T} read
 * @returns {T}
 */
function reading(read) {
  try {
    return read();
  } catch (error) {
    throw error instanceof BeachsideError ? error : foreign(error);
  }
}

/**
 * The error for what is not ours: a value of the wrong type, which N-API
 * refuses before the addon sees it, or code of the caller that threw, such as
 * a getter of the request.
 *
 * @param {unknown} error
 */
function foreign(error) {
  if (error instanceof Error && "code" in error && error.code === "GenericFailure") {
    // N-API's word for a panic. Its message may hold anything, so it goes no further.
    return new BeachsideError("The adapter failed; this is a fault of the adapter.", {
      code: "INTERNAL",
      provider: "runloop",
    });
  }
  return new BeachsideError("The arguments of the call could not be read.", {
    code: "INVALID_ARGUMENT",
    provider: "runloop",
    cause: error,
  });
}

/**
 * @param {BeachsideError} error
 * @param {string} key
 * @param {unknown} value
 */
function attach(error, key, value) {
  Object.defineProperty(error, key, { value, writable: true, configurable: true });
}

/** @type {WeakMap<AbortSignal, Listener>} */
const listeners = new WeakMap();

/**
 * The one listener on a signal, for all calls that wait under it.
 *
 * A listener for each call makes Node warn of a leak at eleven calls, and
 * removing them one by one is quadratic. The last call to leave takes the
 * listener off, so nothing of ours stays on the signal.
 */
class Listener {
  cancellation = new (native().Cancellation)();
  #calls = 0;
  #signal;
  #stop = () => {
    // A call that comes now must find the signal aborted, not this.
    this.#retire();
    this.cancellation.cancel();
  };

  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.#signal = signal;
  }

  /** @param {AbortSignal} signal */
  static of(signal) {
    let listener = listeners.get(signal);
    if (listener === undefined) {
      listener = new Listener(checked(signal));
      // An aborted signal fires no event again; the call sees it at once.
      if (signal.aborted) listener.cancellation.cancel();
      else {
        signal.addEventListener("abort", listener.#stop);
        listeners.set(signal, listener);
      }
    }
    listener.#calls += 1;
    return listener;
  }

  leave() {
    this.#calls -= 1;
    if (this.#calls === 0) this.#retire();
  }

  #retire() {
    if (listeners.get(this.#signal) !== this) return;
    listeners.delete(this.#signal);
    this.#signal.removeEventListener("abort", this.#stop);
  }
}

/**
 * @param {AbortSignal} signal of this realm or another
 * @returns {AbortSignal}
 */
function checked(signal) {
  const looksRight =
    typeof signal === "object" &&
    typeof signal?.aborted === "boolean" &&
    typeof signal.addEventListener === "function" &&
    typeof signal.removeEventListener === "function";
  if (looksRight) return signal;
  throw invalid("signal must be an AbortSignal.");
}

/** @param {string} message */
function invalid(message) {
  return new BeachsideError(message, { code: "INVALID_ARGUMENT", provider: "runloop" });
}

module.exports = { invalid, reading, run };
