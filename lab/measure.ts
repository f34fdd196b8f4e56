import { median } from "../src/measure/statistics.ts";
import type { Gpu } from "../src/gpu/device.ts";
import { workAt } from "../src/gpu/kernel.ts";
import { compiler, type Program, within } from "../src/gpu/program.ts";
import { openTimer } from "../src/gpu/timer.ts";
import { openAllocations } from "./allocations.ts";
import type { MicroCase } from "./case.ts";

/** A case ready to be timed again and again. */
export interface OpenCase extends Disposable {
  /** One plan: the median of samples over `MEASURE_MS`, after warming the clocks. */
  measure(): Promise<Measured>;
}

/** One run of a plan. */
export interface Measured {
  /** Microseconds. */
  readonly us: number;
  /** The least bytes that the work must read and write. */
  readonly bytes: number;
  readonly flops: number;
}

/** Length of a sample's submission: long enough that starting and ending it does not matter. */
const SAMPLE_MS = 2;
/** Idle GPUs lower their clocks. Later blocks need less: the other checkout has kept the clocks up in between. */
const WARM_MS = { first: 200, later: 50 };
const MEASURE_MS = 50;
const MIN_SAMPLES = 3;
/** The most plans in one submission. */
const MAX_RUNS = 1000;

/** Makes a case's buffers and programs. */
export async function openCase(gpu: Gpu, one: MicroCase): Promise<OpenCase> {
  using stack = new DisposableStack();
  const allocations = stack.use(openAllocations(gpu));
  const { compile } = compiler(gpu);
  const programs: Program[] = [];
  for (const plan of one.make(allocations)) {
    programs.push(within(await compile(plan), one.context ?? Infinity));
  }
  const work = workOf(programs[0] as Program, one.context ?? 0);
  await allocations.filled();
  const timer = stack.use(await openTimer(gpu));

  const sample = async (runs: number): Promise<number> => {
    const turns = Array.from({ length: runs }, (_, i) => programs[i % programs.length] as Program);
    return await timer.ms({ steps: turns.flatMap(({ steps }) => steps) }) / runs;
  };
  await sample(programs.length); // adapters compile at the first run
  const once = await sample(programs.length);
  const runs = Math.min(MAX_RUNS, Math.max(programs.length, Math.ceil(SAMPLE_MS / once)));
  const samplesFor = async (ms: number): Promise<number[]> => {
    const samples: number[] = [];
    const start = performance.now();
    while (performance.now() - start < ms || samples.length < MIN_SAMPLES) {
      samples.push(await sample(runs));
    }
    return samples;
  };
  if (!gpu.info.software) await samplesFor(WARM_MS.first);
  const owned = stack.move();
  return {
    async measure() {
      if (!gpu.info.software) await samplesFor(WARM_MS.later);
      return { us: median(await samplesFor(MEASURE_MS)) * 1000, ...work };
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

function workOf({ steps }: Program, context: number): { bytes: number; flops: number } {
  const works = steps.map(({ work = { bytes: 0, flops: 0 } }) =>
    workAt(work, { cells: context, seen: context })
  );
  return {
    bytes: works.reduce((sum, { bytes }) => sum + bytes, 0),
    flops: works.reduce((sum, { flops }) => sum + flops, 0),
  };
}
