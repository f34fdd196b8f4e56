/** Hands out KV pages of 16 tokens; page numbers index every layer's key and value buffers. */
export interface PagePool {
  readonly total: number;
  readonly free: number;
  /** A page, or undefined when none is left. */
  take(): number | undefined;
  give(pages: readonly number[]): void;
}

/** A pool of pages 0..total-1. */
export function pagePool(total: number): PagePool {
  const free = Array.from({ length: total }, (_, i) => total - 1 - i);
  return {
    total,
    get free() {
      return free.length;
    },
    take: () => free.pop(),
    give: (pages) => void free.push(...pages.toReversed()),
  };
}
