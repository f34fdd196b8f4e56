/** Chooses the draft steps of each round and learns from what was accepted. */
export interface Speculation {
  /** `num_steps` of the next round of `batch` requests; `wanted` is what they asked for. */
  pick(batch: number, wanted: number): number;
  /** Takes note of a round: drafts accepted by each request, the bonus not counted. */
  learn(
    batch: number,
    accepted: readonly number[],
    round: { readonly numSteps: number; readonly ms: number },
  ): void;
}

/** Every round as deep as its requests ask. */
export function asAsked(): Speculation {
  return { pick: (_, wanted) => wanted, learn: () => {} };
}
