/** How long the device is busy with what was submitted, as far as that was seen before. */

/** Runs of a work: the device does them one after the other, behind those that were submitted before. */
export interface BusyRuns {
  /** Milliseconds from now until nine tenths of the runs have passed, if they are as fast as before; 0: not known. */
  leftMs(): number;
  /** The host has seen that they are done. */
  seen(): void;
}

/** How much of the time that runs took before is left out of account: they may be faster this time. */
const SURE = 0.9;

/** Runs become slower with a context; a run that took longer because the host came late is not believed. */
const GROWTH = 1.05;

/**
 * Learns what a run of each work takes, in milliseconds from the later of its submission and the end of the one before.
 *
 * @returns `submitted`, called with a work and how many runs of it were submitted.
 */
export function busyDevice<Work extends WeakKey>(
  now: () => number = () => performance.now(),
): (work: Work, count: number) => BusyRuns {
  const known = new WeakMap<Work, number>();
  let lastEnd = -Infinity;
  return (work, count) => {
    const submitted = now();
    const began = () => Math.max(submitted, lastEnd);
    return {
      leftMs: () => Math.max(0, began() + SURE * count * (known.get(work) ?? 0) - now()),
      seen() {
        const end = now();
        const ms = (end - began()) / count;
        known.set(work, Math.min(ms, GROWTH * (known.get(work) ?? Infinity)));
        lastEnd = end;
      },
    };
  };
}
