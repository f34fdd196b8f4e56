import { UsageError } from "../errors.ts";
import type { Gpu } from "./device.ts";
import { encode, type Program } from "./program.ts";
import { openReadback } from "./readback.ts";

/** When a pass began and ended on the device, in milliseconds since the first pass began. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** Times programs on the device. */
export interface Profiler extends Disposable {
  /**
   * Runs the programs in order, each in a compute pass of its own between two timestamps. These
   * passes do not overlap, while dispatches of one pass may.
   */
  time(programs: readonly Program[]): Promise<Span[]>;
}

/** Most queries that WebGPU allows in one set. */
const MAX_QUERIES = 4096;

/**
 * Opens a profiler; more programs than a query set holds become several submissions.
 *
 * @throws UsageError where the adapter has no timestamp queries.
 */
export async function openProfiler(
  gpu: Gpu,
  { queries = MAX_QUERIES }: { readonly queries?: number } = {},
): Promise<Profiler> {
  if (!gpu.info.features.includes("timestamp-query")) {
    throw new UsageError(`Cannot profile "${gpu.info.adapter}": it has no timestamp queries`);
  }
  const stamps = await openStamps(gpu, queries);
  return {
    async time(programs) {
      const times: bigint[] = [];
      for (let from = 0; from < programs.length; from += queries / 2) {
        times.push(...await stamps.of(programs.slice(from, from + queries / 2)));
      }
      const ms = times.map((time) => Number(time - (times[0] ?? 0n)) / 1e6);
      return programs.map((_, i) => ({ begin: ms[2 * i] ?? 0, end: ms[2 * i + 1] ?? 0 }));
    },
    [Symbol.dispose]: () => stamps[Symbol.dispose](),
  };
}

interface Stamps extends Disposable {
  /** Runs the programs in one submission: begin and end of each, nanoseconds. */
  of(programs: readonly Program[]): Promise<BigUint64Array>;
}

async function openStamps(gpu: Gpu, queries: number): Promise<Stamps> {
  const { device } = gpu;
  const readback = await openReadback(gpu, queries * 2);
  const querySet = device.createQuerySet({ type: "timestamp", count: queries });
  const resolved = device.createBuffer({
    label: "timestamps",
    size: queries * 8,
    usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
  });
  return {
    async of(programs) {
      const encoder = device.createCommandEncoder();
      for (const [i, program] of programs.entries()) {
        const [beginningOfPassWriteIndex, endOfPassWriteIndex] = [2 * i, 2 * i + 1];
        const timestampWrites = { querySet, beginningOfPassWriteIndex, endOfPassWriteIndex };
        const pass = encoder.beginComputePass({ timestampWrites });
        encode(pass, program);
        pass.end();
      }
      encoder.resolveQuerySet(querySet, 0, 2 * programs.length, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, readback.buffer, 0, programs.length * 16);
      device.queue.submit([encoder.finish()]);
      return new BigUint64Array((await readback.read()).buffer, 0, 2 * programs.length);
    },
    [Symbol.dispose](): void {
      querySet.destroy();
      resolved.destroy();
      readback[Symbol.dispose]();
    },
  };
}

/** The median of several times: the larger middle one of an even number, NaN of none. */
export function medianTime(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? NaN;
}

/** Splits a program into one program per dispatch. */
export function apart({ steps }: Program): Program[] {
  return steps.map((step) => ({ steps: [step] }));
}
