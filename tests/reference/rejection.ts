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

/**
 * The same of block verification (Sun et al. 2024): of a whole chain x_1 .. x_n of q the longest i is
 * kept whose coin falls below keep_i; then a token of (share_i p - q)+, normed, follows.
 */
export function emittedByBlocks(p: Model, q: Model, depth: number): Emitted {
  const found = new Map<string, number>();
  const add = (ids: readonly number[], probability: number) => {
    if (probability > 0) found.set(ids.join(), (found.get(ids.join()) ?? 0) + probability);
  };
  const restOf = (ids: readonly number[], share: number) => {
    const drafts = q(ids);
    return p(ids).map((each, id) => Math.max(0, share * each - (drafts[id] ?? 0)));
  };
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  const chains = (ids: readonly number[], probability: number, shares: readonly number[]): void => {
    if (ids.length < depth) {
      const [target, last = 1] = [p(ids), shares.at(-1)];
      return q(ids).forEach((drawn, x) => {
        if (drawn === 0) return;
        const share = Math.min(1, last * (target[x] ?? 0) / drawn);
        chains([...ids, x], probability * drawn, [...shares, share]);
      });
    }
    let left = probability; // that no longer prefix is kept
    for (let i = depth; i >= 0; i--) {
      const kept = ids.slice(0, i);
      const share = i === 0 ? 1 : shares[i - 1] ?? 0;
      const rest = i === depth ? p(kept) : restOf(kept, share);
      const all = sum(rest);
      const keep = i === 0 || share === 1 ? 1 : i === depth ? share : all / (all + 1 - share);
      rest.forEach((each, id) => add([...kept, id], all > 0 ? left * keep * each / all : 0));
      left *= 1 - keep;
    }
  };
  chains([], 1, []);
  return found;
}

/** Probability that a round keeps this many drafts, 0 .. depth. */
export function keptLaw(emitted: Emitted, depth: number): number[] {
  const found = Array<number>(depth + 1).fill(0);
  for (const [key, probability] of emitted) {
    const kept = key.split(",").length - 1;
    found[kept] = (found[kept] ?? 0) + probability;
  }
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
