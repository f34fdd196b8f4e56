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

/**
 * Nobody knows when runs ended that were done at the first look after a sleep. They are taken to have lasted this share
 * of the time until then, its square if it was so the time before, then its fourth power and so on: the next sleep is
 * shorter, and soon short enough.
 */
const OVERSLEPT = 0.95;

/** Times that the host has to wait for runs of a work before it sleeps: one may have been late for another reason. */
const MEASURED = 2;

/** What was seen of a work. */
interface Seen {
  /** Milliseconds of a run. */
  readonly ms: number;
  /** How often the host has waited for runs of it, at most MEASURED. */
  readonly times: number;
  /** How often in a row it has slept until they were done. */
  readonly overslept: number;
}

const UNSEEN: Seen = { ms: Infinity, times: 0, overslept: 0 };

/**
 * Learns what a run of each work takes, in milliseconds from the later of its submission and the end of the one before,
 * where the host waited for its end. An end that it came late to may have been long before.
 *
 * @returns `submitted`, called with a work and how many runs of it are submitted; they are waited for in that order.
 */
export function busyDevice<Work extends WeakKey>(
  now: () => number = () => performance.now(),
): (work: Work, count: number) => BusyRuns {
  const known = new WeakMap<Work, Seen>();
  /** When the device was done, as far as one can tell, with what the host has waited for. */
  let ended = -Infinity;
  return (work, count) => {
    const submitted = now();
    const began = () => Math.max(submitted, ended);
    const before = () => known.get(work) ?? UNSEEN;
    let [slept, waited] = [false, false];
    return {
      wait() {
        const { ms, times } = before();
        const sure = times < MEASURED ? 0 : SURE * count * ms;
        const busyMs = Math.max(0, began() + sure - now());
        slept = busyMs > 0;
        return { busyMs, stillBusy: () => void (waited = true) };
      },
      seen() {
        const { ms: least, times, overslept } = before();
        const seenMs = (now() - began()) / count;
        const share = waited || !slept ? 1 : OVERSLEPT ** (2 ** overslept);
        const ms = waited ? seenMs : Math.min(least, share * seenMs);
        ended = began() + count * ms;
        if (waited) {
          const more = Math.min(MEASURED, times + 1);
          known.set(work, { ms: Math.min(ms, GROWTH * least), times: more, overslept: 0 });
        } else if (slept) known.set(work, { ms, times, overslept: overslept + 1 });
      },
    };
  };
}
