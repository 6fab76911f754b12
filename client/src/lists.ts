/**
 * Lists: a promise of one page, and an async iterable over everything from
 * there on. Nothing is requested before it is awaited or iterated.
 */

import type { Page as AdapterPage, Call, PageRequest } from "./adapter.js";
import { number, text } from "./arguments.js";
import type { Connection } from "./connection.js";
import { BeachsideError } from "./errors.js";
import type { CallOptions } from "./operations.js";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 5000;

/** Options of every list. */
export interface ListOptions extends CallOptions {
  /** Items per page, 1 to 5,000 or the provider's maximum; 20 when omitted. */
  readonly limit?: number | undefined;
  /** From the page before. Opaque; good for this kind of list on the same account only. */
  readonly cursor?: string | undefined;
}

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page starts; `null` on the last one. */
  readonly cursor: string | null;
  /** Whether the page says everything that it should, and what may be missing where not. */
  readonly coverage: { readonly complete: boolean; readonly reason?: string };
}

/**
 * A list. `await` it for one page; `for await` it for every item from its
 * first page on, requesting pages as they are needed.
 */
export class List<Item> implements PromiseLike<Page<Item>>, AsyncIterable<Item> {
  readonly #load: (cursor?: string) => Promise<Page<Item>>;
  #page: Promise<Page<Item>> | undefined;

  /** @internal `load` without a cursor gives the list's first page. */
  constructor(load: (cursor?: string) => Promise<Page<Item>>) {
    this.#load = load;
  }

  #first(): Promise<Page<Item>> {
    this.#page ??= this.#load();
    return this.#page;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its page
  then<A = Page<Item>, B = never>(
    onFulfilled?: ((page: Page<Item>) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#first().then(onFulfilled, onRejected);
  }

  catch<B = never>(
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<Page<Item> | B> {
    return this.#first().catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<Page<Item>> {
    return this.#first().finally(onFinally);
  }

  /**
   * Page by page.
   *
   * @throws BeachsideError `PROTOCOL` where the provider repeats a cursor, which would never end.
   */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    const seen = new Set<string>();
    let page = await this.#first();
    for (;;) {
      yield page;
      const { cursor } = page;
      if (cursor === null) return;
      if (seen.has(cursor)) {
        throw new BeachsideError("The provider gave a cursor twice; the list would not end.", {
          code: "PROTOCOL",
        });
      }
      seen.add(cursor);
      page = await this.#load(cursor);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }
}

/** How to read one kind of list. */
export interface Listing<Record, Item, Key extends string> {
  readonly operation: string;
  /** Options besides `limit`, `cursor` and `signal`. */
  readonly keys: readonly Key[];
  load(
    page: PageRequest,
    given: { readonly [K in Key]?: unknown },
    call: Call,
  ): Promise<AdapterPage<Record>>;
  item(record: Record): Item;
}

/** A list over an adapter's pages. Wrong options reject when it is awaited, like every call. */
export function list<Record, Item, Key extends string>(
  connection: Connection,
  options: unknown,
  { operation, keys, load, item }: Listing<Record, Item, Key>,
): List<Item> {
  return new List((cursor) =>
    connection.read(operation, options, [...keys, "limit", "cursor"], async (given, call) => {
      const limit =
        given.limit === undefined
          ? DEFAULT_LIMIT
          : number("limit", given.limit, { min: 1, max: MAX_LIMIT });
      const start = given.cursor === undefined ? undefined : text("cursor", given.cursor);
      const at = cursor ?? start;
      const request = { limit, ...(at === undefined ? {} : { cursor: at }) };
      const page = await load(request, given, call);
      return { items: page.items.map(item), cursor: page.cursor, coverage: page.coverage };
    }),
  );
}
