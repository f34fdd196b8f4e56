/** Finds the most frequent tokens of a corpus: the token map of FR-Spec, see token_map.ts. */

/** Counts tokens text by text. */
export interface TokenCounts {
  add(ids: readonly number[]): void;
  /**
   * The `size` most frequent ids, most frequent first, the lower one on a tie. If fewer ids occur, the
   * lowest other ids follow. The ids `always` are included however rare they are: a draft that cannot end
   * a text would miss every end.
   */
  mostFrequent(size: number, always?: readonly number[]): number[];
  /** The share of these ids among all counted tokens. */
  coverage(ids: readonly number[]): number;
}

/** @param vocabSize ids are 0 to one less. */
export function countTokens(vocabSize: number): TokenCounts {
  const counts = new Float64Array(vocabSize);
  let total = 0;
  return {
    add(ids) {
      for (const id of ids) counts[id] = (counts[id] ?? 0) + 1;
      total += ids.length;
    },
    mostFrequent(size, always = []) {
      const ranked = [...counts.keys()]
        .sort((a, b) => (counts[b] as number) - (counts[a] as number) || a - b);
      const wanted = new Set(always);
      const room = Math.max(0, size - wanted.size);
      const others = ranked.filter((id) => !wanted.has(id)).slice(0, room);
      const kept = new Set([...wanted, ...others]);
      return ranked.filter((id) => kept.has(id));
    },
    coverage(ids) {
      const sum = ids.reduce((part, id) => part + (counts[id] as number), 0);
      return total === 0 ? 0 : sum / total;
    },
  };
}
