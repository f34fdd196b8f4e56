/** How long the device is busy with what was submitted, as far as that was seen before. */
import type { Wait } from "../../../gpu/webgpu.ts";

/** Runs of a work: the device does them one after the other, behind those that were submitted before. */
export interface BusyRuns {
  /** What is known of them as the host begins to wait. */
  wait(): Pick<Wait, "busyMs" | "stillBusy">;
  /** The host has seen that they are done. */
  seen(): void;
}

/** The share of the time that runs took before which they will take again. */
const SURE = 0.98;

/** Runs become slower with a context; more at a time is not believed. */
const GROWTH = 1.05;

/** What runs took, of what it seemed, if they were done when somebody first looked after a sleep. */
const OVERSLEPT = 0.95;

/**
 * Learns what a run of each work takes, in milliseconds from the later of its submission and the end of the one before,
 * where the host waited for its end. An end that it came late to may have been long before.
 *
 * @returns `submitted`, called with a work and how many runs of it were submitted; they are waited for in that order.
 */
export function busyDevice<Work extends WeakKey>(
  now: () => number = () => performance.now(),
): (work: Work, count: number) => BusyRuns {
  const known = new WeakMap<Work, number>();
  /** When the device was done, as far as one can tell, with what the host has waited for. */
  let ended = -Infinity;
  return (work, count) => {
    const submitted = now();
    const began = () => Math.max(submitted, ended);
    let [slept, waited] = [false, false];
    return {
      wait() {
        const sure = SURE * count * (known.get(work) ?? 0);
        const busyMs = Math.max(0, began() + sure - now());
        slept = busyMs > 0;
        return { busyMs, stillBusy: () => void (waited = true) };
      },
      seen() {
        const before = known.get(work) ?? Infinity;
        const seenMs = (now() - began()) / count;
        const ms = waited ? seenMs : Math.min(before, slept ? OVERSLEPT * seenMs : seenMs);
        ended = began() + count * ms;
        if (waited || slept) known.set(work, Math.min(ms, GROWTH * before));
      },
    };
  };
}
