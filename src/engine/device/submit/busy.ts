/** Estimates how long the device is still busy with what was submitted, from what the same work took before. */
import type { Wait } from "../../../gpu/webgpu.ts";

/** Submitted runs of one work: the device executes them in order, after all runs that were submitted before. */
export interface BusyRuns {
  /** The estimate, as the host begins to wait. */
  wait(): Pick<Wait, "busyMs" | "stillBusy">;
  /** Called when the host has seen that they are done. */
  seen(): void;
}

/** The share of its estimate for which the host sleeps before it polls: runs may be faster this time. */
const SURE = 0.98;

/**
 * If runs were done at the first poll after a sleep, the time of their end is not known. They are taken to have lasted
 * this share of the time until then, so that the next sleep is shorter.
 */
const OVERSLEPT = 0.95;

/** Sleeps in a row that were too long, after which a work is measured anew. */
const MAX_OVERSLEPT = 3;

/** What was seen of a work. */
interface Seen {
  /**
   * Milliseconds of a run the last two times. The estimate is the smaller one, because either may have waited for other
   * work.
   */
  readonly last: readonly [number, number];
  /** How often in a row the host has slept until they were done. */
  readonly overslept: number;
}

const UNSEEN: Seen = { last: [Infinity, Infinity], overslept: 0 };

/**
 * Learns what a run of each work takes, in milliseconds from the later of its submission and the end of the one before,
 * where the host waited for its end. Where the runs had ended before it polled, the time of their end is estimated.
 *
 * @returns `submitted`, called with a work and how many runs of it are submitted; they are waited for in that order.
 */
export function busyDevice<Work extends WeakKey>(
  now: () => number = () => performance.now(),
): (work: Work, count: number) => BusyRuns {
  const known = new WeakMap<Work, Seen>();
  /** When the device was done with what the host has waited for, or an estimate of that. */
  let ended = -Infinity;
  return (work, count) => {
    const submitted = now();
    const began = () => Math.max(submitted, ended);
    const before = () => known.get(work) ?? UNSEEN;
    let [slept, waited] = [false, false];
    return {
      wait() {
        const { last } = before();
        const sure = last.includes(Infinity) ? 0 : SURE * count * Math.min(...last);
        const busyMs = Math.max(0, began() + sure - now());
        slept = busyMs > 0;
        return { busyMs, stillBusy: () => void (waited = true) };
      },
      seen() {
        const { last, overslept } = before();
        const seenMs = (now() - began()) / count;
        const least = Math.min(...last, slept ? OVERSLEPT * seenMs : seenMs);
        ended = began() + count * (waited ? seenMs : least);
        if (waited) known.set(work, { last: [seenMs, last[0]], overslept: 0 });
        else if (slept && overslept + 1 < MAX_OVERSLEPT) {
          known.set(work, { last: [least, least], overslept: overslept + 1 });
        } else if (slept) known.delete(work);
      },
    };
  };
}
