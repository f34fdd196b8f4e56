import { hash32 } from "../../speculate/noise.ts";

/** A stream of random choices. */
export interface Draw {
  /** A random integer from `low` to `high`, both included. */
  integer(low: number, high: number): number;
  one<T>(items: readonly T[]): T;
  /** `count` different items, in random order. */
  some<T>(items: readonly T[], count: number): T[];
}

/**
 * A stream of choices from the counter-based noise that sampling uses. `stream` is the number of the stream of this
 * seed.
 */
export function drawFrom(seed: number, stream: number): Draw {
  let turn = 0;
  const below = (limit: number) => Math.floor(hash32(seed, stream, turn++) / 2 ** 32 * limit);
  return {
    integer: (low, high) => low + below(high - low + 1),
    one: <T>(items: readonly T[]) => items[below(items.length)] as T,
    some(items, count) {
      const left = [...items];
      return Array.from(
        { length: Math.min(count, items.length) },
        () => left.splice(below(left.length), 1),
      ).flat();
    },
  };
}

/** Token ids for the `random` workload and for filling a cache: uniform over the vocabulary. */
export function randomIds(
  count: number,
  { vocabulary, seed }: { vocabulary: number; seed: number },
): number[] {
  const draw = drawFrom(seed, vocabulary);
  return Array.from({ length: count }, () => draw.integer(0, vocabulary - 1));
}
