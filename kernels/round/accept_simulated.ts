import type { Dispatch } from "../../src/gpu/kernel.ts";
import { type AcceptBuffers, acceptBy, type AcceptShape } from "./round.ts";

/**
 * Records `accept` with drawn counts, for timing models whose drafts mean nothing. Bench only.
 *
 * @param shape.acceptance probability that draft j is accepted when those before it were; the last
 * one holds for all further drafts.
 */
export function acceptSimulated(
  buffers: AcceptBuffers,
  { acceptance, ...shape }: AcceptShape & { readonly acceptance: readonly number[] },
): Dispatch {
  const steps = Math.max(1, shape.depth);
  const p = (step: number) => acceptance[step] ?? acceptance.at(-1) ?? 0;
  const drawn = Array.from({ length: steps }, (_, j) => [`P${j}`, p(j)] as const);
  const walk = {
    parameters: { TREE: false, SIMULATED: true, STEPS: steps },
    constants: drawn.map(([name]) => name),
  };
  const constants = Object.fromEntries(drawn);
  return acceptBy(`accept_simulated_${steps}`, walk, buffers, { ...shape, constants });
}
