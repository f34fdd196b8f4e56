import { hash32 } from "../../src/speculate/noise.ts";

/** Keys the draw apart from the noise of tokens, whose ids are smaller. */
const PURPOSE = 0xacce97;

/**
 * How many drafts of a chain are accepted: kernels/round/accept_commit.wgsl to the bit. Keyed by
 * (seed, position), so it depends on neither the round nor who shares the batch.
 *
 * @param acceptance by draft position the probability that the draft is accepted when all before it
 * were; the last one is used for all further drafts.
 * @param chain.length tokens whose keys and values are final: the root is at this position.
 */
export function drawAccepted(
  acceptance: readonly number[],
  chain: { readonly seed: number; readonly length: number; readonly numSteps: number },
): number {
  const { seed, length, numSteps } = chain;
  for (let step = 0; step < numSteps; step++) {
    const probability = Math.fround(acceptance[step] ?? acceptance.at(-1) ?? 0);
    const bits = hash32(seed, length + 1 + step, PURPOSE) >>> 8;
    if (bits / 2 ** 24 >= probability) return step;
  }
  return numSteps;
}
