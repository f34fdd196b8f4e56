import type { Gpu } from "../gpu/device.ts";
import { encode, type Program } from "../gpu/program.ts";
import { openReadback, type Readback } from "../gpu/readback.ts";

/** Runs programs in one submission and reads one small buffer. */
export interface Submitter {
  /**
   * Runs the programs in order, one pass each, and returns the first `words` words of `source`.
   * `ms` holds the device time of each program where the submitter profiles.
   */
  run(programs: readonly Program[], words: number): Promise<Submitted>;
}

export interface Submitted {
  readonly words: Uint32Array;
  /** Device time of each program; empty when not profiling. */
  readonly ms: readonly number[];
}

/** Programs of one submission that can be timed. */
const MOST_TIMED = 8;

/** @param profile time each program with timestamp queries, where the adapter has them. */
export async function openSubmitter(
  gpu: Gpu,
  source: GPUBuffer,
  { words, profile }: { readonly words: number; readonly profile: boolean },
): Promise<Submitter> {
  const timed = profile && gpu.info.features.includes("timestamp-query");
  const readback = await openReadback(gpu, words);
  const clock = timed ? await openClock(gpu) : undefined;
  return {
    async run(programs, words) {
      const encoder = gpu.device.createCommandEncoder();
      if (clock) programs.forEach((program, i) => clock.pass(encoder, program, i));
      else {
        const pass = encoder.beginComputePass();
        for (const program of programs) encode(pass, program);
        pass.end();
      }
      encoder.copyBufferToBuffer(source, 0, readback.buffer, 0, words * 4);
      clock?.resolve(encoder, programs.length);
      gpu.device.queue.submit([encoder.finish()]);
      const result = (await readback.read()).subarray(0, words);
      return { words: result, ms: clock ? await clock.read(programs.length) : [] };
    },
  };
}

interface Clock {
  pass(encoder: GPUCommandEncoder, program: Program, index: number): void;
  resolve(encoder: GPUCommandEncoder, count: number): void;
  read(count: number): Promise<number[]>;
}

async function openClock(gpu: Gpu): Promise<Clock> {
  const { device } = gpu;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 * MOST_TIMED });
  const resolved = device.createBuffer({
    label: "timestamps",
    size: 2 * MOST_TIMED * 8,
    usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
  });
  const readback: Readback = await openReadback(gpu, 2 * MOST_TIMED * 2);
  return {
    pass(encoder, program, index) {
      const timestampWrites = {
        querySet,
        beginningOfPassWriteIndex: 2 * index,
        endOfPassWriteIndex: 2 * index + 1,
      };
      const pass = encoder.beginComputePass({ timestampWrites });
      encode(pass, program);
      pass.end();
    },
    resolve(encoder, count) {
      encoder.resolveQuerySet(querySet, 0, 2 * count, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, readback.buffer, 0, 2 * count * 8);
    },
    async read(count) {
      const stamps = new BigUint64Array((await readback.read()).buffer);
      return Array.from(
        { length: count },
        (_, i) => Number((stamps[2 * i + 1] ?? 0n) - (stamps[2 * i] ?? 0n)) / 1e6,
      );
    },
  };
}
