/**
 * Live output: async iterables over an adapter's reader.
 *
 * An iterator class and not an async generator: a generator's `return()` waits
 * behind a pending `next()`, so that leaving a quiet stream would hang.
 */

import type { OutputPiece, OutputReader } from "./adapter.js";
import type { Connection } from "./connection.js";

/**
 * Text as it arrives, in pieces of any size. Each iteration is a view of its own.
 *
 * ```js
 * for await (const text of process.stdout) console.log(text);
 * ```
 */
export class TextStream implements AsyncIterable<string> {
  readonly #open: () => AsyncIterator<string, undefined>;

  /** @internal */
  constructor(connection: Connection, read: () => OutputReader) {
    this.#open = () => new PieceIterator(connection, read(), (piece) => piece.text);
  }

  /** A reading of its own, from the same start. It rejects with the error that ended the stream, after what arrived. */
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

/**
 * Both streams, in the order in which they arrived: `{ stream, text }`, where
 * `stream` is `"stdout"` or `"stderr"`. The order between the two is that of
 * arrival, not of writing. Each iteration is a view of its own.
 *
 * ```js
 * for await (const { stream, text } of process.output) console.log(stream, text);
 * ```
 */
export class OutputStream implements AsyncIterable<OutputPiece> {
  readonly #open: () => AsyncIterator<OutputPiece, undefined>;

  /** @internal */
  constructor(connection: Connection, read: () => OutputReader) {
    this.#open = () => new PieceIterator(connection, read(), (piece) => piece);
  }

  /** A reading of its own, from the same start. It rejects with the error that ended the stream, after what arrived. */
  [Symbol.asyncIterator](): AsyncIterator<OutputPiece, undefined> {
    return this.#open();
  }
}

const END = { done: true, value: undefined } as const;

class PieceIterator<Item> implements AsyncIterator<Item, undefined> {
  readonly #connection: Connection;
  readonly #reader: OutputReader;
  readonly #item: (piece: OutputPiece) => Item;
  #pieces: readonly OutputPiece[] = [];
  #next = 0;
  #ended = false;
  /** The last call of `next()`: one at a time, so that pieces keep their order. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, reader: OutputReader, item: (piece: OutputPiece) => Item) {
    this.#connection = connection;
    this.#reader = reader;
    this.#item = item;
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    const step = this.#last.then(() => this.#step());
    this.#last = step.catch(() => {});
    return step;
  }

  async return(): Promise<IteratorResult<Item, undefined>> {
    this.#ended = true;
    this.#reader.cancel();
    return END;
  }

  async #step(): Promise<IteratorResult<Item, undefined>> {
    while (!this.#ended) {
      const piece = this.#pieces[this.#next];
      if (piece !== undefined) {
        this.#next += 1;
        return { done: false, value: this.#item(piece) };
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
