/**
 * Live output as text: an async iterable over an adapter's reader.
 *
 * An iterator class and not an async generator: a generator's `return()` waits
 * behind a pending `next()`, so that leaving a quiet stream would hang.
 */

import type { OutputPiece, OutputReader } from "./adapter.js";
import type { Connection } from "./connection.js";

/** Text as it arrives, in pieces of any size. Each iteration is a view of its own. */
export class TextStream implements AsyncIterable<string> {
  readonly #open: () => AsyncIterator<string, undefined>;

  /** @internal */
  constructor(connection: Connection, read: () => OutputReader) {
    this.#open = () => new TextIterator(connection, read());
  }

  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    return this.#open();
  }

  /** Everything that is still to come, in one string. */
  async text(): Promise<string> {
    let all = "";
    for await (const piece of this) all += piece;
    return all;
  }
}

type Step = IteratorResult<string, undefined>;
const END: Step = { done: true, value: undefined };

class TextIterator implements AsyncIterator<string, undefined> {
  readonly #connection: Connection;
  readonly #reader: OutputReader;
  #pieces: readonly OutputPiece[] = [];
  #next = 0;
  #ended = false;
  /** The last call of `next()`: one at a time, so that pieces keep their order. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, reader: OutputReader) {
    this.#connection = connection;
    this.#reader = reader;
  }

  next(): Promise<Step> {
    const step = this.#last.then(() => this.#step());
    this.#last = step.catch(() => {});
    return step;
  }

  async return(): Promise<Step> {
    this.#ended = true;
    this.#reader.cancel();
    return END;
  }

  async #step(): Promise<Step> {
    while (!this.#ended) {
      const piece = this.#pieces[this.#next];
      if (piece !== undefined) {
        this.#next += 1;
        return { done: false, value: piece.text };
      }
      try {
        this.#pieces = (await this.#reader.nextBatch()) ?? [];
        this.#next = 0;
        if (this.#pieces.length === 0) this.#ended = true;
      } catch (error) {
        this.#ended = true;
        throw this.#connection.complete(error, "process_read");
      }
    }
    return END;
  }
}
