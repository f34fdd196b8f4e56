/** How long the device is busy with what was submitted, as far as that was seen before. */

/** Runs of a work: the device does them one after the other, behind those that were submitted before. */
export interface BusyRuns {
  /**
   * Called as the host begins to wait: milliseconds from now for which the device is still busy, if the runs are about
   * as fast as before; 0: not known.
   */
  leftMs(): number;
  /** The host has seen that they are done. */
  seen(): void;
}

/** The share of the time that runs took before which they will take again. */
const SURE = 0.98;

/** Runs become slower with a context; more at a time is not believed, since the host may have been late. */
const GROWTH = 1.05;

/**
 * Learns what a run of each work takes, in milliseconds from the later of its submission and the end of the one before.
 *
 * @returns `submitted`, called with a work and how many runs of it were submitted; they are seen in that order.
 */
export function busyDevice<Work extends WeakKey>(
  now: () => number = () => performance.now(),
): (work: Work, count: number) => BusyRuns {
  const known = new WeakMap<Work, number>();
  let lastEnd = -Infinity;
  return (work, count) => {
    const submitted = now();
    const began = () => Math.max(submitted, lastEnd);
    let late = false;
    return {
      leftMs() {
        const left = began() + SURE * count * (known.get(work) ?? 0) - now();
        late = left <= 0;
        return Math.max(0, left);
      },
      seen() {
        const end = now();
        const ms = (end - began()) / count;
        const before = known.get(work) ?? Infinity;
        // Who comes late does not see when they ended.
        known.set(work, Math.min(ms, late ? before : GROWTH * before));
        lastEnd = end;
      },
    };
  };
}
