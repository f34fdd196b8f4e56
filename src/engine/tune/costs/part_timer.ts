import type { Gpu } from "../../../gpu/device.ts";
import { openProfiler } from "../../../gpu/profile.ts";
import { type Program, submit } from "../../../gpu/program.ts";
import { openReadback } from "../../../gpu/readback.ts";

/** Times the parts of a round. Each part continues from the one before, so each runs once. */
export interface PartTimer extends Disposable {
  /** Runs the programs one after the other: milliseconds of each. */
  time(programs: readonly Program[]): Promise<number[]>;
}

/** Programs of one call. */
const MOST_PARTS = 8;

/** Opens a timer that uses timestamp queries, or the host's clock if the adapter has none. */
export async function openPartTimer(gpu: Gpu): Promise<PartTimer> {
  if (!gpu.info.features.includes("timestamp-query")) return await openPartClock(gpu);
  const profiler = await openProfiler(gpu, { queries: 2 * MOST_PARTS });
  return {
    time: async (programs) => (await profiler.time(programs)).map(({ begin, end }) => end - begin),
    [Symbol.dispose]: () => profiler[Symbol.dispose](),
  };
}

/** A timer by the host's clock: each program is one submission, and the time of an empty submission is subtracted. */
export async function openPartClock(
  gpu: Gpu,
  now: () => number = () => performance.now(),
): Promise<PartTimer> {
  const readback = await openReadback(gpu, 1);
  const one = async (program: Program) => {
    const started = now();
    submit(gpu, program);
    await readback.read();
    return now() - started;
  };
  return {
    async time(programs) {
      const wait = await one({ steps: [] });
      const times: number[] = [];
      for (const program of programs) {
        times.push(program.steps.length === 0 ? 0 : Math.max(0, await one(program) - wait));
      }
      return times;
    },
    [Symbol.dispose]: () => readback[Symbol.dispose](),
  };
}
