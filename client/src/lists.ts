/**
 * Lists: a promise of one page, and an async iterable over everything from
 * there on. Nothing is requested before it is awaited or iterated.
 */

import type { Call, Page, PageRequest } from "./adapter.js";
import { isRecord, number, readable, text } from "./arguments.js";
import type { OperationName } from "./calls.js";
import { type Connection, cancelled } from "./connection.js";
import { BeachsideError } from "./errors.js";
import type { CallOptions } from "./operations.js";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 5000;
/** Pages without items, one after the other, before a list is given up. */
const MAX_EMPTY_PAGES = 1000;

/** Options of every list. */
export interface ListOptions extends CallOptions {
  /** Items per page, 1 to 5,000 or the provider's maximum; 20 when omitted. */
  readonly limit?: number | undefined;
  /** From the page before. Opaque; good for this kind of list on the same account only. */
  readonly cursor?: string | undefined;
}

export type { Page };

/**
 * A list. `await` it for one page; `for await` it for every item from its
 * first page on, requesting pages as they are needed.
 *
 * ```js
 * const { items, cursor } = await client.sandboxes.list({ limit: 50 });
 * for await (const each of client.sandboxes.list()) console.log(each.state);
 * ```
 */
export class List<Item> implements PromiseLike<Page<Item>>, AsyncIterable<Item> {
  readonly #source: Source<Item>;
  #page: Promise<Page<Item>> | undefined;

  /** @internal */
  constructor(source: Source<Item>) {
    this.#source = source;
  }

  #first(): Promise<Page<Item>> {
    this.#page ??= this.#source.load();
    return this.#page;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its page
  then<A = Page<Item>, B = never>(
    onFulfilled?: ((page: Page<Item>) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#first().then(onFulfilled, onRejected);
  }

  /** As of the promise of the first page. */
  catch<B = never>(
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<Page<Item> | B> {
    return this.#first().catch(onRejected);
  }

  /** As of the promise of the first page. */
  finally(onFinally?: (() => void) | null): Promise<Page<Item>> {
    return this.#first().finally(onFinally);
  }

  /**
   * Page by page, each requested when it is asked for; a page holds at most `limit` items.
   *
   * @throws BeachsideError `PROTOCOL` where the provider repeats a cursor, or gives
   *   1,000 empty pages one after the other, which would never end; `CANCELLED`.
   */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    const seen = new Set<unknown>([this.#source.start]);
    let page = await this.#first();
    let empty = 0;
    for (;;) {
      yield page;
      const { cursor, items } = page;
      if (cursor === null) return;
      empty = items.length === 0 ? empty + 1 : 0;
      if (seen.has(cursor)) throw this.#source.endless("gave a cursor twice");
      if (empty === MAX_EMPTY_PAGES)
        throw this.#source.endless(`gave ${empty} empty pages in a row`);
      seen.add(cursor);
      page = await this.#source.load(cursor);
    }
  }

  /**
   * Every item that the provider gives, from the first page on; whether some may
   * be missing stands in the `coverage` of {@link pages}. An aborted `signal`
   * ends it with `CANCELLED` at the next item, also within a page.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) {
      for (const item of page.items) {
        this.#source.refuseStopped();
        yield item;
      }
    }
  }
}

/** Where a list comes from. */
interface Source<Item> {
  /** The cursor of the first page, if any. */
  readonly start: unknown;
  /** Without a cursor: the first page. */
  load(cursor?: string): Promise<Page<Item>>;
  /** Throws where the caller's signal aborted. */
  refuseStopped(): void;
  /** The error of a list that would not end, and why. */
  endless(what: string): BeachsideError;
}

/** How to read one kind of list. */
export interface Listing<Record, Item, Key extends string> {
  readonly operation: OperationName;
  /** Options besides `limit`, `cursor` and `signal`. */
  readonly keys: readonly Key[];
  load(
    page: PageRequest,
    given: { readonly [K in Key]?: unknown },
    call: Call,
  ): Promise<Page<Record>>;
  item(record: Record): Item;
}

/** The page after `cursor`, or where the caller's options say. */
function pageRequest(
  given: { readonly limit?: unknown; readonly cursor?: unknown },
  cursor: string | undefined,
): PageRequest {
  const limit =
    given.limit === undefined
      ? DEFAULT_LIMIT
      : number("limit", given.limit, { min: 1, max: MAX_LIMIT });
  const first = given.cursor === undefined ? undefined : text("cursor", given.cursor);
  const at = cursor ?? first;
  return { limit, ...(at === undefined ? {} : { cursor: at }) };
}

/** A list over an adapter's pages. Wrong options reject when it is awaited, like every call. */
export function list<Record, Item, Key extends string>(
  connection: Connection,
  options: unknown,
  { operation, keys, load, item }: Listing<Record, Item, Key>,
): List<Item> {
  // Copied, so that later changes do not reach the pages that are still to be
  // requested. What cannot be read is refused when the list is awaited.
  let taken = options;
  let start: unknown;
  let signal: unknown;
  try {
    if (isRecord(options)) ({ cursor: start, signal } = taken = { ...options });
  } catch {}
  const page = (cursor?: string) =>
    connection.read(operation, taken, [...keys, "limit", "cursor"], async (given, call) => {
      const request = readable(() => pageRequest(given, cursor));
      const { items, cursor: next, coverage } = await load(request, given, call);
      return { items: items.map(item), cursor: next, coverage };
    });
  const refuseStopped = () => {
    // Checked by the page that was loaded before.
    const checked = signal as AbortSignal | undefined;
    if (checked?.aborted !== true) return;
    throw connection.complete(cancelled(operation, checked), operation);
  };
  const endless = (what: string) => {
    const message = `The provider ${what}; the list would not end.`;
    return connection.complete(new BeachsideError(message, { code: "PROTOCOL" }), operation);
  };
  return new List({ start, load: page, refuseStopped, endless });
}
