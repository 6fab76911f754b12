/**
 * Live output: async iterables over an adapter's reader.
 *
 * An iterator class and not an async generator: a generator's `return()` waits
 * behind a pending `next()`, so that leaving a quiet stream would hang.
 */

import type { OutputPiece, OutputReader } from "./adapter.js";
import { optionsOf, signalOf } from "./arguments.js";
import { type Connection, cancelled } from "./connection.js";
import type { CallOptions } from "./operations.js";
import { untilAborted } from "./signals.js";

const OPERATION = "process_read";

/**
 * Text as it arrives, in pieces of any size. Each iteration is a view of its own.
 *
 * ```js
 * for await (const text of process.stdout) console.log(text);
 * ```
 */
export class TextStream implements AsyncIterable<string> {
  readonly #open: (signal?: AbortSignal) => AsyncIterator<string, undefined>;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, read: () => OutputReader) {
    this.#connection = connection;
    this.#open = (signal) => new PieceIterator(connection, read(), (piece) => piece.text, signal);
  }

  /** A reading of its own, from the same start. It rejects with the error that ended the stream, after what arrived. */
  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    return this.#open();
  }

  /**
   * The same, with a signal: where it aborts, the iteration rejects with
   * `CANCELLED` and its connection ends. That is seen while a piece is waited
   * for, or when the next one is asked for. Without a signal, `break` is enough.
   *
   * ```js
   * for await (const piece of process.stdout.read({ signal: AbortSignal.timeout(5000) })) console.log(piece);
   * ```
   *
   * @throws BeachsideError `INVALID_ARGUMENT`, at once, for other options.
   */
  read(options?: CallOptions): AsyncIterable<string> {
    const signal = readingSignal(this.#connection, options);
    return { [Symbol.asyncIterator]: () => this.#open(signal) };
  }

  /**
   * Everything from the start on, in one string. JavaScript's longest string is
   * about half a gigabyte; read longer output piece by piece.
   */
  async text(options?: CallOptions): Promise<string> {
    let all = "";
    for await (const piece of this.read(options)) all += piece;
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
  readonly #open: (signal?: AbortSignal) => AsyncIterator<OutputPiece, undefined>;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, read: () => OutputReader) {
    this.#connection = connection;
    this.#open = (signal) => new PieceIterator(connection, read(), (piece) => piece, signal);
  }

  /** A reading of its own, from the same start. It rejects with the error that ended the stream, after what arrived. */
  [Symbol.asyncIterator](): AsyncIterator<OutputPiece, undefined> {
    return this.#open();
  }

  /**
   * The same, with a signal: where it aborts, the iteration rejects with
   * `CANCELLED` and its connection ends. That is seen while a piece is waited
   * for, or when the next one is asked for. Without a signal, `break` is enough.
   *
   * ```js
   * for await (const piece of process.output.read({ signal: AbortSignal.timeout(5000) })) console.log(piece.text);
   * ```
   *
   * @throws BeachsideError `INVALID_ARGUMENT`, at once, for other options.
   */
  read(options?: CallOptions): AsyncIterable<OutputPiece> {
    const signal = readingSignal(this.#connection, options);
    return { [Symbol.asyncIterator]: () => this.#open(signal) };
  }
}

function readingSignal(connection: Connection, options: unknown): AbortSignal | undefined {
  try {
    return signalOf(optionsOf(OPERATION, options, ["signal"]).signal);
  } catch (error) {
    throw connection.complete(error, OPERATION);
  }
}

const END = { done: true, value: undefined } as const;

class PieceIterator<Item> implements AsyncIterator<Item, undefined> {
  readonly #connection: Connection;
  readonly #reader: OutputReader;
  readonly #item: (piece: OutputPiece) => Item;
  readonly #signal: AbortSignal | undefined;
  #pieces: readonly OutputPiece[] = [];
  #next = 0;
  #ended = false;
  /** The last call of `next()`: one at a time, so that pieces keep their order. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    connection: Connection,
    reader: OutputReader,
    item: (piece: OutputPiece) => Item,
    signal: AbortSignal | undefined,
  ) {
    this.#connection = connection;
    this.#reader = reader;
    this.#item = item;
    this.#signal = signal;
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
      try {
        if (this.#signal?.aborted === true) throw cancelled(OPERATION, this.#signal);
        const piece = this.#pieces[this.#next];
        if (piece !== undefined) {
          this.#next += 1;
          return { done: false, value: this.#item(piece) };
        }
        const batch = untilAborted(this.#reader.nextBatch(), this.#signal, (signal) =>
          cancelled(OPERATION, signal),
        );
        this.#pieces = (await batch) ?? [];
        this.#next = 0;
        if (this.#pieces.length === 0) this.#ended = true;
      } catch (error) {
        // The call that `return()` ended beside an abort has ended, and not failed.
        if (this.#ended) return END;
        this.#ended = true;
        this.#reader.cancel();
        throw this.#connection.complete(error, OPERATION);
      }
    }
    return END;
  }
}
