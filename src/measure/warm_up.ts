import { sum } from "./statistics.ts";

/** Passes in a row that show a steady rate, and the share by which they may differ. */
const IN_A_ROW = 4;
const ALIKE = 0.05;
/** Seconds of a pass that warms a device by itself, and of all that passes take where they never get alike. */
const LONG_PASS = 0.4;
const LONGEST = 3;

/**
 * Whether passes of the same work, by the seconds that each took, have warmed the device up. A GPU with little to do
 * raises its clocks only after a second: on an H200 the embedded model's first cells have a third of the later ones' rate.
 *
 * @param spent seconds since the first of them began, with what is between their rounds, such as storing contexts.
 */
export function isWarm(passes: readonly number[], spent: number = sum(passes)): boolean {
  const last = passes.slice(-IN_A_ROW);
  const steady = last.length === IN_A_ROW && Math.min(...last) >= (1 - ALIKE) * Math.max(...last);
  return steady || (last.at(-1) ?? 0) >= LONG_PASS || spent >= LONGEST;
}
