import type { Gpu } from "../../gpu/device.ts";
import { openProfiler } from "../../gpu/profile.ts";
import { encode, type Program } from "../../gpu/program.ts";
import { openReadback } from "../../gpu/readback.ts";

/** Times programs against each other. */
export interface LaunchTimer extends Disposable {
  /** Runs the programs one after the other: milliseconds of each, on the device. */
  time(programs: readonly Program[]): Promise<number[]>;
}

/** Programs of one submission. */
const MOST_PROGRAMS = 128;

/** Runs of a program between two looks at the clock, so that waiting for them weighs little. */
const RUNS = 16;

/** Opens a timer that uses timestamp queries, or the host's clock if the adapter has none. */
export async function openLaunchTimer(gpu: Gpu): Promise<LaunchTimer> {
  if (!gpu.info.features.includes("timestamp-query")) return await openClock(gpu);
  const profiler = await openProfiler(gpu, { queries: 2 * MOST_PROGRAMS });
  return {
    time: async (programs) => (await profiler.time(programs)).map(({ begin, end }) => end - begin),
    [Symbol.dispose]: () => profiler[Symbol.dispose](),
  };
}

/** A timer by the host's clock. Its times include the wait for the queue, which is the same for every program. */
export async function openClock(
  gpu: Gpu,
  now: () => number = () => performance.now(),
): Promise<LaunchTimer> {
  const readback = await openReadback(gpu, 1);
  return {
    async time(programs) {
      const times: number[] = [];
      for (const program of programs) {
        const encoder = gpu.device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        for (let run = 0; run < RUNS; run++) encode(pass, program);
        pass.end();
        const commands = encoder.finish();
        const started = now();
        gpu.device.queue.submit([commands]);
        await readback.read();
        times.push((now() - started) / RUNS);
      }
      return times;
    },
    [Symbol.dispose]: () => readback[Symbol.dispose](),
  };
}
