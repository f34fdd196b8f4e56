/**
 * Tokens that a request expects of a round with K drafts, the bonus included, where each has the chance alpha:
 *
 *     n = (1 - alpha^(K + 1)) / (1 - alpha)
 */
export function geometricTokens(alpha: number, depth: number): number {
  return alpha >= 1 ? depth + 1 : (1 - alpha ** (depth + 1)) / (1 - alpha);
}

/** Mean and variance of the number of accepted drafts of a chain with these conditional chances. */
export function acceptedMoments(
  rates: readonly number[],
  depth: number,
): { readonly mean: number; readonly variance: number } {
  let survival = 1;
  let mean = 0;
  let square = 0;
  for (let k = 0; k < depth; k++) {
    survival *= rates[k] ?? rates.at(-1) ?? 0;
    mean += survival;
    square += (2 * k + 1) * survival;
  }
  return { mean, variance: Math.max(0, square - mean * mean) };
}
