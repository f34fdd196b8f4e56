// Stateless random numbers that depend only on a request's seed and a position, so a draft is right or
// wrong regardless of the policy that drafts it (common random numbers).
import { hash32 } from "../../speculate/noise.ts";

/** Keys the draw of acceptance as the kernel of simulated acceptance does: the same seed, the same text. */
const ACCEPT = 0xacce97;

/**
 * A uniform number in [0, 1) for the token at a position of a request. The draft of that token is right if the
 * number is below its acceptance probability.
 *
 * @param seed u32 of the request.
 * @param position absolute in its sequence.
 */
export function acceptUniform(seed: number, position: number): number {
  return (hash32(seed, position, ACCEPT) >>> 8) / 2 ** 24;
}

/** A number within (0, 1); neither end is reached. */
export function uniformAt(seed: number, position: number, purpose: number): number {
  return (hash32(seed, position, purpose) + 0.5) / 2 ** 32;
}

/** A standard normal number (Box and Muller). */
export function normalAt(seed: number, position: number, purpose: number): number {
  const radius = Math.sqrt(-2 * Math.log(uniformAt(seed, position, purpose)));
  return radius * Math.cos(2 * Math.PI * uniformAt(seed ^ 0x5bd1e995, position, purpose));
}
