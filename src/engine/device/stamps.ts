import type { Gpu } from "../../gpu/device.ts";

/** Programs of one submission that can be timed. */
const MOST_TIMED = 4;
/** `resolveQuerySet` writes at multiples of this. */
const ALIGNED = 256;

/** Timestamps at the two ends of each program's pass; every region keeps its own. */
export interface Stamps {
  /** What the stamps of a region take where they are copied to: u64 [MOST_TIMED, 2]. */
  readonly bytes: number;
  /** The writes of pass `index`. */
  writes(region: number, index: number): GPUComputePassTimestampWrites;
  /** Copies the stamps of the first `count` passes of a region. */
  copy(
    encoder: GPUCommandEncoder,
    of: { readonly region: number; readonly count: number },
    to: { readonly buffer: GPUBuffer; readonly offset: number },
  ): void;
}

/** Stamps for `regions` submissions in flight; undefined where the adapter has none. */
export function openStamps({ device, info }: Gpu, regions: number): Stamps | undefined {
  if (!info.features.includes("timestamp-query")) return undefined;
  const stamps = 2 * MOST_TIMED;
  const querySet = device.createQuerySet({ type: "timestamp", count: regions * stamps });
  const resolved = device.createBuffer({
    label: "timestamps",
    size: regions * ALIGNED,
    usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
  });
  return {
    bytes: stamps * 8,
    writes(region, index) {
      const first = region * stamps + 2 * index;
      return { querySet, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1 };
    },
    copy(encoder, { region, count }, { buffer, offset }) {
      const from = region * ALIGNED;
      encoder.resolveQuerySet(querySet, region * stamps, 2 * count, resolved, from);
      encoder.copyBufferToBuffer(resolved, from, buffer, offset, 2 * count * 8);
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
