/**
 * An exponential variate of rate 1 from 32 random bits: E = -log1p(-v), v = (h + 0.5) / 2^32, which
 * lies within [1.2e-10, 22.9]. The token with the largest `logit - log(E)` follows softmax(logit)
 * exactly: the first of a race of exponentials, which is the Gumbel-max trick.
 */
export function exponential(h: number): number {
  return -Math.log1p(-(h + 0.5) / 2 ** 32);
}
