import { median } from "../src/bench/profile.ts";
import type { Gpu } from "../src/gpu/device.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, encode, type Program } from "../src/gpu/program.ts";
import { openReadback } from "../src/gpu/readback.ts";
import { openAllocations } from "./allocations.ts";
import type { MicroCase } from "./case.ts";

/** A case ready to be timed again and again. */
export interface OpenCase extends Disposable {
  /** Microseconds of one plan: the median of samples over `MEASURE_MS`, after warming the clocks. */
  measure(): Promise<number>;
}

/** A sample is a submission of this length, so that its ends do not count. */
const SAMPLE_MS = 2;
/** Idle GPUs lower their clocks. */
const WARM_MS = 100;
const MEASURE_MS = 100;
const LEAST_SAMPLES = 3;
/** Plans in one submission. */
const MOST_RUNS = 1000;

/** Makes a case's buffers and programs. */
export async function openCase(gpu: Gpu, one: MicroCase): Promise<OpenCase> {
  using stack = new DisposableStack();
  const allocations = stack.use(openAllocations(gpu));
  const { compile } = compiler(gpu);
  const programs: Program[] = [];
  for (const plan of one.make(allocations)) programs.push(await compile(plan));
  await allocations.filled();
  const timer = stack.use(await openTimer(gpu));

  const sample = async (runs: number): Promise<number> => {
    const turns = Array.from({ length: runs }, (_, i) => programs[i % programs.length] as Program);
    return await timer.ms({ steps: turns.flatMap(({ steps }) => steps) }) / runs;
  };
  await sample(programs.length); // adapters compile at the first run
  const once = await sample(programs.length);
  const runs = Math.min(MOST_RUNS, Math.max(programs.length, Math.ceil(SAMPLE_MS / once)));
  const samplesFor = async (ms: number): Promise<number[]> => {
    const samples: number[] = [];
    const start = performance.now();
    while (performance.now() - start < ms || samples.length < LEAST_SAMPLES) {
      samples.push(await sample(runs));
    }
    return samples;
  };
  const owned = stack.move();
  return {
    async measure() {
      if (!gpu.info.software) await samplesFor(WARM_MS);
      return median(await samplesFor(MEASURE_MS)) * 1000;
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

interface Timer extends Disposable {
  ms(program: Program): Promise<number>;
}

/** Device time by timestamps, or else wall time until a read that waits for the work. */
async function openTimer(gpu: Gpu): Promise<Timer> {
  if (gpu.info.features.includes("timestamp-query")) {
    const profiler = await openProfiler(gpu, { queries: 2 });
    return {
      ms: async (program) => (await profiler.time([program]))[0]?.end ?? NaN,
      [Symbol.dispose]: () => profiler[Symbol.dispose](),
    };
  }
  const readback = await openReadback(gpu, 1);
  return {
    async ms(program) {
      const start = performance.now();
      const encoder = gpu.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      encode(pass, program);
      pass.end();
      gpu.device.queue.submit([encoder.finish()]);
      await readback.read();
      return performance.now() - start;
    },
    [Symbol.dispose]: () => readback[Symbol.dispose](),
  };
}
