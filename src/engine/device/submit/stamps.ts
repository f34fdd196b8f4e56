import type { Gpu } from "../../../gpu/device.ts";

/** Programs of one submission that can be timed. */
const MAX_TIMED = 4;
/** `resolveQuerySet` writes at multiples of this. */
const ALIGNED = 256;

/** Timestamps at the begin and end of the passes of runs; all runs have the same number of passes. */
export interface Stamps {
  /** Most bytes that the stamps of a run take where they are copied to: u64 [MAX_TIMED, 2]. */
  readonly bytes: number;
  /** The writes of pass `index` of a run's `passes`. */
  writes(run: number, index: number, passes: number): GPUComputePassTimestampWrites;
  /** Copies the stamps of runs `first` to `end`; `offset` is where those of run 0 would be. */
  copy(
    encoder: GPUCommandEncoder,
    of: { readonly first: number; readonly end: number; readonly passes: number },
    to: { readonly buffer: GPUBuffer; readonly offset: number },
  ): void;
}

/** Stamps for `runs` runs in flight; undefined where the adapter has none. */
export function openStamps({ device, info }: Gpu, runs: number): Stamps | undefined {
  if (!info.features.includes("timestamp-query")) return undefined;
  const most = 2 * MAX_TIMED;
  const querySet = device.createQuerySet({ type: "timestamp", count: runs * most });
  const resolved = device.createBuffer({
    label: "timestamps",
    size: runs * ALIGNED,
    usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
  });
  return {
    bytes: most * 8,
    writes(run, index, passes) {
      const first = 2 * (run * passes + index);
      return { querySet, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1 };
    },
    copy(encoder, { first, end, passes }, { buffer, offset }) {
      const count = 2 * (end - first) * passes;
      if (count === 0) return;
      const at = 2 * first * passes;
      encoder.resolveQuerySet(querySet, at, count, resolved, first * ALIGNED);
      encoder.copyBufferToBuffer(resolved, first * ALIGNED, buffer, offset + at * 8, count * 8);
    },
  };
}

/** Milliseconds of `count` passes from their copied stamps, nanoseconds in u64. */
export function passMs(words: Uint32Array, count: number): number[] {
  const stamps = new BigUint64Array(words.buffer, words.byteOffset, 2 * count);
  return Array.from(
    { length: count },
    (_, i) => Number((stamps[2 * i + 1] ?? 0n) - (stamps[2 * i] ?? 0n)) / 1e6,
  );
}
