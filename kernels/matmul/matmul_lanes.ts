import { isQuantized, type Matrix, type Tuning } from "../../src/gpu/matrix.ts";

/**
 * Invocations that share an output: rows of a width that leaves few whole lanes are packed for those, and
 * staged with all that the adapter has, for fewer would unroll longer texts and read weights badly.
 */
export function lanesOf(
  { format, lanes }: Pick<Matrix, "format" | "lanes">,
  tuning: Pick<Tuning, "software" | "lanes">,
): number {
  const few = isQuantized(format) && !tuning.software && lanes > 1;
  return few ? Math.max(lanes, tuning.lanes) : lanes;
}
