/** Times programs on the device, for the choice of launches and for the costs of rounds. */
import type { Gpu } from "../../gpu/device.ts";
import { openProfiler } from "../../gpu/profile.ts";
import { encode, type Program, submit } from "../../gpu/program.ts";
import { openReadback } from "../../gpu/readback.ts";

export interface ProgramTimer extends Disposable {
  /** Runs the programs one after the other, each once if the device has timestamps: milliseconds of each. */
  time(programs: readonly Program[]): Promise<number[]>;
}

/** Programs of one submission. */
const MAX_PROGRAMS = 128;

/** Opens a timer that uses timestamp queries, or the host's clock if the adapter has none. */
export async function openProgramTimer(
  gpu: Gpu,
  openClock: (gpu: Gpu) => Promise<ProgramTimer>,
): Promise<ProgramTimer> {
  if (!gpu.info.features.includes("timestamp-query")) return await openClock(gpu);
  const profiler = await openProfiler(gpu, { queries: 2 * MAX_PROGRAMS });
  return {
    time: async (programs) => (await profiler.time(programs)).map(({ begin, end }) => end - begin),
    [Symbol.dispose]: () => profiler[Symbol.dispose](),
  };
}

/** Runs of a program between two looks at the clock, so that waiting for them weighs little. */
const RUNS = 16;

/**
 * A timer by the host's clock for programs that are compared: each runs several times. Its times include the wait for
 * the queue, which is the same for every program.
 */
export async function openRepeatClock(
  gpu: Gpu,
  now: () => number = () => performance.now(),
): Promise<ProgramTimer> {
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

/**
 * A timer by the host's clock for the parts of a round. Each part continues from the one before, so each runs once, in
 * a submission of its own; the time of an empty submission is subtracted.
 */
export async function openPartClock(
  gpu: Gpu,
  now: () => number = () => performance.now(),
): Promise<ProgramTimer> {
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
