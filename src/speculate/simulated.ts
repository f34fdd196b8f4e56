/** Acceptance that is drawn and not verified (`--simulate-acceptance`): for timing, never for text. */
import { hash32 } from "./noise.ts";

/** Keys the draw apart from the noise of tokens, whose ids are smaller. */
const PURPOSE = 0xacce97;

/**
 * Reads "0.75", or "0.8,0.6,0.5" by draft position. Each number is conditional: the probability
 * that this draft is accepted when all before it were. The last one holds for all further drafts.
 *
 * @throws RangeError when it is not a list of numbers from 0 to 1.
 */
export function parseAcceptance(text: string): readonly number[] {
  return text.split(",").map((part) => {
    const probability = /^\s*(\d+\.?\d*|\.\d+)\s*$/.test(part) ? Number(part) : NaN;
    if (probability >= 0 && probability <= 1) return probability;
    throw new RangeError(
      `Cannot simulate acceptance "${text}": "${part.trim()}" is not a number from 0 to 1`,
    );
  });
}

/**
 * How many drafts of a chain are accepted: shaders/round/accept_simulated.wgsl to the bit. Keyed by
 * (seed, position), so it depends on neither the round nor who shares the batch.
 *
 * @param acceptance as `parseAcceptance` returns it.
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
