/**
 * SGLang's `--speculative-accept-threshold-single` and `-acc`, each 0 to 1: a draft is accepted where
 * the target's probability of it is at least `single`, or of it and its siblings before it together
 * `acc` times a uniform number. Below 1 the text no longer follows the target's distribution.
 */
export interface AcceptThresholds {
  readonly single: number;
  readonly acc: number;
}

/** The thresholds where they relax acceptance; undefined where it stays lossless. */
export function relaxing(
  { single = 1, acc = 1 }: {
    readonly single?: number | undefined;
    readonly acc?: number | undefined;
  } = {},
): AcceptThresholds | undefined {
  return single < 1 || acc < 1 ? { single, acc } : undefined;
}
