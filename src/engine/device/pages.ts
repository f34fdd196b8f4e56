/**
 * Hands out KV pages of 16 tokens; page numbers index every layer's key and value buffers. A page
 * may be held several times, by sequences that share it and once by the prefix cache (`keep`), and
 * is free when no sequence holds it.
 */
export interface PagePool {
  /** Number of pages that may be handed out: those with lower numbers than this. */
  readonly total: number;
  readonly free: number;
  /** A free page, now held once, or undefined when there is none. */
  take(): number | undefined;
  /**
   * Holds each page once more.
   *
   * @throws Error for a page without a holder.
   */
  retain(pages: readonly number[]): void;
  /**
   * Ends one hold of each page, the last page first: if pages are given in the order of their cells, a sequence's last
   * pages become idle before the pages that they follow.
   *
   * @throws Error for a page that only the cache holds.
   */
  release(pages: readonly number[]): void;
  /** Number of holds on the page, the cache's included. */
  references(page: number): number;
  /**
   * Holds the page for the cache too.
   *
   * @throws Error for a page without a holder, or that the cache holds already.
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
  /** Hands out pages 0..total-1 from now on. Higher ones that are held stay so until they are released. */
  resize(total: number): void;
  /** A page that is held and no longer handed out; undefined where there is none. */
  readonly beyond: number | undefined;
  /** Moves all holds on page `from` to page `to`, which was just taken; `from` becomes free. */
  move(from: number, to: number): void;
}

/** A pool of pages 0..total-1. */
export function pagePool(total: number): PagePool {
  return new CountedPages(total);
}

class CountedPages implements PagePool {
  #total: number;
  /** The last one is taken next. */
  #free: number[];
  /** Per page: holds other than the cache's. */
  #holds: Uint32Array;
  readonly #kept = new Set<number>();
  #idle = new Set<number>();

  constructor(total: number) {
    this.#total = total;
    this.#free = Array.from({ length: total }, (_, i) => total - 1 - i);
    this.#holds = new Uint32Array(total);
  }

  get total(): number {
    return this.#total;
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
      if (holds === 0 && !this.#idle.delete(page)) throw new Error(`page ${page} has no holder`);
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
      else this.#giveBack(page);
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
    if (this.#idle.delete(page)) this.#giveBack(page);
  }

  resize(total: number): void {
    if (total > this.#holds.length) {
      const holds = new Uint32Array(total);
      holds.set(this.#holds);
      this.#holds = holds;
    }
    const held = (page: number) => this.#holdsOf(page) > 0 || this.#kept.has(page);
    const added = Array.from({ length: Math.max(0, total - this.#total) }, (_, i) => total - 1 - i)
      .filter((page) => !held(page));
    this.#total = total;
    // The added pages are handed out last, because they may be removed again.
    this.#free = [...added, ...this.#free.filter((page) => page < total)];
  }

  get beyond(): number | undefined {
    const page = this.#holds.findLastIndex((holds, page) => holds > 0 || this.#kept.has(page));
    return page >= this.#total ? page : undefined;
  }

  move(from: number, to: number): void {
    this.#holds[to] = this.#holdsOf(from);
    this.#holds[from] = 0;
    if (this.#kept.delete(from)) this.#kept.add(to);
    // The page keeps its place in the order.
    if (this.#idle.has(from)) {
      this.#idle = new Set([...this.#idle].map((page) => page === from ? to : page));
    }
    this.#giveBack(from);
  }

  #giveBack(page: number): void {
    if (page < this.#total) this.#free.push(page);
  }

  #holdsOf(page: number): number {
    return this.#holds[page] ?? 0;
  }
}
