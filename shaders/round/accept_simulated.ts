import { type Dispatch, dispatch, type Kernel } from "../../src/gpu/kernel.ts";
import {
  type AcceptBuffers,
  acceptConstants,
  acceptKernel,
  type AcceptShape,
  bound,
} from "./round.ts";

const kernels = new Map<number, Kernel>();

/** @param steps probabilities that it knows, 1 or more. */
function simulatedKernel(steps: number): Kernel {
  return kernels.getOrInsertComputed(steps, () => {
    const names = Array.from({ length: steps }, (_, j) => `P${j}`);
    return acceptKernel(`accept_simulated_${steps}`, {
      slots: { walk: "round/accept_chain", accepts: "round/accept_simulated" },
      counts: { STEPS: steps },
    }, names);
  });
}

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
  return dispatch(simulatedKernel(steps), {
    buffers: bound(buffers),
    constants: { ...acceptConstants(shape), ...Object.fromEntries(drawn) },
    workgroups: [shape.batch],
  });
}
