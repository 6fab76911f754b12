"use strict";

/**
 * A live process, as the adapter interface has it, over the addon's.
 */

const { run } = require("./calls.js");

/** @import * as Adapter from "../client/dist/adapter.js" */
/** @import { OutputReader as NativeReader, Process as Native } from "../binding.js" */

class Process {
  #native;

  /** @param {Native} native */
  constructor(native) {
    this.#native = native;
    this.id = native.id;
  }

  /**
   * @type {Adapter.AdapterProcess["read"]}
   */
  read(which) {
    return new OutputReader(this.#native.read(which));
  }

  /** @type {Adapter.AdapterProcess["wait"]} */
  wait(call) {
    return run(call, (cancellation) => this.#native.wait(cancellation), JSON.parse);
  }

  /** @type {Adapter.AdapterProcess["status"]} */
  status(call) {
    return run(call, (cancellation) => this.#native.status(cancellation), JSON.parse);
  }

  /** @type {Adapter.AdapterProcess["kill"]} */
  kill(call) {
    return run(call, (cancellation) => this.#native.kill(cancellation), asItIs);
  }

  /** @type {Adapter.AdapterProcess["terminate"]} */
  terminate(call) {
    return run(call, (cancellation) => this.#native.terminate(cancellation), JSON.parse);
  }

  detach() {
    this.#native.detach();
  }

  offsets() {
    return this.#native.offsets();
  }
}

class OutputReader {
  #native;
  /** @type {Promise<unknown>} */
  #turn = Promise.resolve();

  /** @param {NativeReader} native */
  constructor(native) {
    this.#native = native;
  }

  /** Each call waits for the one before: tasks of the addon run in no order. */
  nextBatch() {
    const next = () =>
      run(
        undefined,
        () => this.#native.nextBatch(),
        (pieces) => pieces,
      );
    const turn = this.#turn.then(next, next);
    this.#turn = turn;
    return turn;
  }

  cancel() {
    this.#native.cancel();
  }
}

/**
 * @template T
 * @param {T} value
 */
function asItIs(value) {
  return value;
}

module.exports = { Process };
