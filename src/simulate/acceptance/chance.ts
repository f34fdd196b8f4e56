// Chance without state: numbers that depend on a request's seed and a position alone, so that a draft
// is right or wrong whatever policy drafts it (common random numbers).
import { hash32 } from "../../speculate/noise.ts";

/** Keys the draw of acceptance as the kernel of simulated acceptance does: the same seed, the same text. */
const ACCEPT = 0xacce97;

/**
 * A number in [0, 1) for the token at a position of a request: its draft is right where this is below
 * the chance that it is.
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

/** Log-odds, finite: of 0 and 1 those of 1e-6 and 1 - 1e-6. */
export function logit(chance: number): number {
  const inside = Math.min(1 - 1e-6, Math.max(1e-6, chance));
  return Math.log(inside / (1 - inside));
}

export function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}
