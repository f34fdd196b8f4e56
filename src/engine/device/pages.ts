/**
 * Hands out KV pages of 16 tokens; page numbers index every layer's key and value buffers. A page
 * may be held several times, by sequences that share it and once by the prefix cache (`keep`), and
 * is free when nobody holds it.
 */
export interface PagePool {
  readonly total: number;
  readonly free: number;
  /** A free page, now held once, or undefined when there is none. */
  take(): number | undefined;
  /**
   * Holds each page once more.
   *
   * @throws Error for a page that nobody holds.
   */
  retain(pages: readonly number[]): void;
  /**
   * Ends one hold of each page, the last page first: given in the order of their cells, a sequence's
   * last pages become idle before those that they follow.
   *
   * @throws Error for a page that nobody but the cache holds.
   */
  release(pages: readonly number[]): void;
  /** Holds on the page, the cache's among them. */
  references(page: number): number;
  /**
   * Holds the page for the cache too.
   *
   * @throws Error for a page that nobody holds, or that the cache holds already.
   */
  keep(page: number): void;
  /**
   * Ends the cache's hold.
   *
   * @throws Error for a page that the cache does not hold.
   */
  drop(page: number): void;
  /** Pages that only the cache holds; those released first come first. */
  readonly idle: ReadonlySet<number>;
}

/** A pool of pages 0..total-1. */
export function pagePool(total: number): PagePool {
  return new CountedPages(total);
}

class CountedPages implements PagePool {
  readonly total: number;
  /** The last is the next. */
  readonly #free: number[];
  /** Per page: holds other than the cache's. */
  readonly #holds: Uint32Array;
  readonly #kept = new Set<number>();
  readonly #idle = new Set<number>();

  constructor(total: number) {
    this.total = total;
    this.#free = Array.from({ length: total }, (_, i) => total - 1 - i);
    this.#holds = new Uint32Array(total);
  }

  get free(): number {
    return this.#free.length;
  }

  get idle(): ReadonlySet<number> {
    return this.#idle;
  }

  take(): number | undefined {
    const page = this.#free.pop();
    if (page !== undefined) this.#holds[page] = 1;
    return page;
  }

  retain(pages: readonly number[]): void {
    for (const page of pages) {
      const holds = this.#holdsOf(page);
      if (holds === 0 && !this.#idle.delete(page)) throw new Error(`nobody holds page ${page}`);
      this.#holds[page] = holds + 1;
    }
  }

  release(pages: readonly number[]): void {
    for (const page of pages.toReversed()) {
      const holds = this.#holdsOf(page);
      if (holds === 0) throw new Error(`no sequence holds page ${page}`);
      this.#holds[page] = holds - 1;
      if (holds > 1) continue;
      if (this.#kept.has(page)) this.#idle.add(page);
      else this.#free.push(page);
    }
  }

  references(page: number): number {
    return this.#holdsOf(page) + (this.#kept.has(page) ? 1 : 0);
  }

  keep(page: number): void {
    if (this.#holdsOf(page) === 0) throw new Error(`no sequence holds page ${page}`);
    if (this.#kept.has(page)) throw new Error(`page ${page} is cached already`);
    this.#kept.add(page);
  }

  drop(page: number): void {
    if (!this.#kept.delete(page)) throw new Error(`page ${page} is not cached`);
    if (this.#idle.delete(page)) this.#free.push(page);
  }

  #holdsOf(page: number): number {
    return this.#holds[page] ?? 0;
  }
}
