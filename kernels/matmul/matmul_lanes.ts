import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { isQuantized } from "../../src/gpu/weight_format.ts";

/** Lanes whose sums are added without a branch in between, at most. */
export const MAX_UNROLLED = 16;

/**
 * Invocations (lanes) that share an output. Quantized rows whose width leaves few whole lanes are packed for those few,
 * but staged with all lanes of the adapter: fewer lanes would unroll longer code and read the weights badly.
 */
export function lanesOf(
  { format, lanes }: Pick<Matrix, "format" | "lanes">,
  tuning: Pick<Tuning, "software" | "lanes">,
): number {
  const few = isQuantized(format) && !tuning.software && lanes > 1;
  return few ? Math.max(lanes, tuning.lanes) : lanes;
}
