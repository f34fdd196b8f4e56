/** Rejection sampling of a chain of drafts, as exact probabilities. */

/** Law of the next token after these, over 0 .. vocab - 1. */
export type Model = (prefix: readonly number[]) => readonly number[];

/** Probability of each text that a round emits, by its tokens joined by commas. */
export type Emitted = ReadonlyMap<string, number>;

/**
 * What one round emits: drafts x_j ~ q, each kept with probability min(1, p(x) / q(x)); the first
 * that is not is replaced by a draw from (p - q)+, normed; after the last one a token of p follows.
 */
export function emittedLaw(p: Model, q: Model, depth: number): Emitted {
  const found = new Map<string, number>();
  const add = (ids: readonly number[], probability: number) => {
    if (probability > 0) found.set(ids.join(), (found.get(ids.join()) ?? 0) + probability);
  };
  const walk = (kept: readonly number[], probability: number) => {
    const target = p(kept);
    if (kept.length === depth) {
      return target.forEach((share, id) => add([...kept, id], probability * share));
    }
    const drafts = q(kept);
    const left = target.map((share, id) => Math.max(0, share - (drafts[id] ?? 0)));
    const all = left.reduce((sum, each) => sum + each, 0);
    drafts.forEach((drawn, x) => {
      if (drawn === 0) return;
      const accept = Math.min(1, (target[x] ?? 0) / drawn);
      walk([...kept, x], probability * drawn * accept);
      if (accept < 1) {
        left.forEach((share, id) =>
          add([...kept, id], probability * drawn * (1 - accept) * share / all)
        );
      }
    });
  };
  walk([], 1);
  return found;
}

/** Probability of each text of `length` tokens, where shorter ones are continued by p. */
export function continued(p: Model, emitted: Emitted, length: number): Emitted {
  const found = new Map<string, number>();
  const extend = (ids: readonly number[], probability: number) => {
    if (ids.length >= length) {
      const key = ids.slice(0, length).join();
      found.set(key, (found.get(key) ?? 0) + probability);
    } else p(ids).forEach((share, id) => extend([...ids, id], probability * share));
  };
  for (const [key, probability] of emitted) extend(key.split(",").map(Number), probability);
  return found;
}
