import { sum } from "./statistics.ts";

/** The number of consecutive passes that show a steady rate, and the share by which they may differ. */
const IN_A_ROW = 4;
const ALIKE = 0.05;
/**
 * Seconds of a pass that is long enough to warm a device by itself, and the most seconds of all passes if their times
 * never agree.
 */
const LONG_PASS = 0.4;
const LONGEST = 3;

/**
 * Have passes of the same work warmed the device up? A GPU with little work raises its clocks only after a second: on
 * an H200 the first cells of the embedded model run at a third of the rate of later ones.
 *
 * @param passes seconds that each pass took.
 * @param spent seconds since the first pass began, including work between the passes, such as storing contexts.
 */
export function isWarm(passes: readonly number[], spent: number = sum(passes)): boolean {
  const last = passes.slice(-IN_A_ROW);
  const steady = last.length === IN_A_ROW && Math.min(...last) >= (1 - ALIKE) * Math.max(...last);
  return steady || (last.at(-1) ?? 0) >= LONG_PASS || spent >= LONGEST;
}
