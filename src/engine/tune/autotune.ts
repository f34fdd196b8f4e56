import { matmul } from "../../../kernels/matmul/matmul.ts";
import type { MatmulUse } from "../../../kernels/matmul/matmul_rows.ts";
import { defaultLaunch, shapeKey } from "../../../kernels/matmul/matmul_shape.ts";
import { axes, chooseLaunch, type Timed } from "../../../kernels/matmul/matmul_tune.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Launch, Launches, Tuning } from "../../gpu/tuning.ts";
import { medianTime } from "../../gpu/profile.ts";
import { type Compiler, compiler, type Program } from "../../gpu/program.ts";
import { openProgramTimer, openRepeatClock, type ProgramTimer } from "./program_timer.ts";
import { type Matmul, type MatmulGroup, unmeasured } from "../matrices/matmuls.ts";

/** The result of tuning. */
export interface Autotuned {
  readonly launches: Launches;
  /** Shapes at a row count that were measured now, and those that the budget left to the rules. */
  readonly measured: number;
  readonly left: number;
}

/** Milliseconds for measuring, of the 2 s that tuning may take; opening and writing the cache take the rest. */
const BUDGET_MS = 1800;

/** Matrices of one shape that runs alternate between, so that no matrix is still in a cache. */
export const MAX_MATRICES = 8;

/** Runs of each launch: the first ones warm up, the median of the others counts. */
const WARM_UP = 2;
const RUNS = 7;

/**
 * Measures the launches of every shape that `known` lacks, on the loaded weights, until the budget
 * is spent. Changes no result: see `Launch`.
 *
 * @param groups the largest first; one row of all of them is measured before more rows of any.
 * @param options.now milliseconds; tests have their own.
 */
export async function autotune(
  gpu: Gpu,
  groups: readonly MatmulGroup[],
  { tuning, known, budgetMs = BUDGET_MS, now = () => performance.now() }: {
    readonly tuning: Tuning;
    readonly known: Launches;
    readonly budgetMs?: number;
    readonly now?: () => number;
  },
): Promise<Autotuned> {
  const jobs = unmeasured(groups, known);
  const launches = new Map([...known].map(([key, rows]) => [key, new Map(rows)]));
  if (jobs.length === 0) return { launches, measured: 0, left: 0 };
  const end = now() + budgetMs;
  using bench = await openBench(gpu, jobs, now);
  const late = () => now() + bench.slowestMs() > end;
  let measured = 0;
  for (const { group, rows } of jobs) {
    // One at least, so that every start gets further.
    if (measured > 0 && late()) break;
    const launch = await fastest(bench, group, { rows, tuning, late });
    launches.getOrInsertComputed(group.key, () => new Map()).set(rows, launch);
    measured++;
  }
  return { launches, measured, left: jobs.length - measured };
}

/**
 * Tries other launches than the default, axis by axis: always on the first axis that has any, on later ones only if
 * there is time.
 */
async function fastest(
  bench: Bench,
  { matmuls }: MatmulGroup,
  { rows, tuning, late }: {
    readonly rows: number;
    readonly tuning: Tuning;
    readonly late: () => boolean;
  },
): Promise<Launch> {
  const [{ matrix, splitK }] = matmuls;
  const use = { rows, splitK, tuning };
  let held = defaultLaunch(matrix, use);
  let timed = false;
  for (const vary of axes(matrix, use, bench.limits)) {
    const others = vary(held);
    if (others.length === 0) continue;
    if (timed && late()) break;
    held = chooseLaunch(await bench.time(matmuls, use, [held, ...others]));
    timed = true;
  }
  return held;
}

interface Bench extends Disposable {
  readonly limits: GPUSupportedLimits;
  /** What the longest `time` so far took, compiling included. */
  slowestMs(): number;
  /** Milliseconds of each launch, Infinity where the adapter refuses it. */
  time(
    matmuls: readonly Matmul[],
    use: MatmulUse,
    launches: readonly [Launch, ...Launch[]],
  ): Promise<[Timed, ...Timed[]]>;
}

/** Opens a bench whose x and out buffers have room for the largest job. */
async function openBench(
  gpu: Gpu,
  jobs: readonly { readonly group: MatmulGroup; readonly rows: number }[],
  now: () => number,
): Promise<Bench> {
  using stack = new DisposableStack();
  const most = (size: (matmul: Matmul) => number) =>
    Math.max(...jobs.map(({ group, rows }) => rows * size(group.matmuls[0])));
  const floats = (label: string, count: number): Operand => {
    const buffer = gpu.device.createBuffer({
      label,
      size: 4 * count,
      usage: GPUBufferUsage.STORAGE,
    });
    stack.defer(() => buffer.destroy());
    return { buffer };
  };
  const x = floats("tune.x", most(({ matrix }) => matrix.cols));
  const out = floats("tune.out", most(({ matrix, splitK }) => matrix.rows * splitK));
  const timer = stack.use(await openProgramTimer(gpu, openRepeatClock));
  const compile = compiler(gpu);
  let slowest = 0;
  const owned = stack.move();
  return {
    limits: gpu.limits,
    slowestMs: () => slowest,
    async time(matmuls, use, launches) {
      const started = now();
      const programs = await Promise.all(
        launches.map((launch) => compiled(compile, matmuls, { use, launch, x, out })),
      );
      const ms = await medians(timer, programs);
      slowest = Math.max(slowest, now() - started);
      return launches.map((launch, i) => ({ launch, ms: ms[i] ?? Infinity })) as [
        Timed,
        ...Timed[],
      ];
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** One program for each matrix; undefined if a driver rejects the kernel. */
async function compiled(
  { compile }: Compiler,
  matmuls: readonly Matmul[],
  { use: { rows, tuning }, launch, x, out }: {
    readonly use: MatmulUse;
    readonly launch: Launch;
    readonly x: Operand;
    readonly out: Operand;
  },
): Promise<Program[] | undefined> {
  const forced = { ...tuning, launches: always(matmuls, rows, launch) };
  const programs: Program[] = [];
  try {
    for (const { matrix, splitK } of matmuls.slice(0, MAX_MATRICES)) {
      const shape = { rows, splitK, epilogue: "store", tuning: forced, label: "tune" } as const;
      programs.push(await compile(matmul({ matrix, x, out }, shape)));
    }
    return programs;
  } catch {
    return undefined; // it is not chosen
  }
}

function always(matmuls: readonly Matmul[], rows: number, launch: Launch): Launches {
  return new Map(matmuls.map(({ matrix }) => [shapeKey(matrix), new Map([[rows, launch]])]));
}

/** Median time of each launch. The launches take turns, and each run uses the next matrix. */
export async function medians(
  timer: ProgramTimer,
  launches: readonly (readonly Program[] | undefined)[],
): Promise<number[]> {
  let turn = 0;
  const order = Array.from(
    { length: WARM_UP + RUNS },
    () =>
      launches.flatMap((programs, launch) => {
        const program = programs?.[turn++ % programs.length];
        return program ? [{ program, launch }] : [];
      }),
  ).flat();
  const times = await timer.time(order.map(({ program }) => program));
  return launches.map((_, launch) => {
    const runs = times.filter((_, i) => order[i]?.launch === launch).slice(WARM_UP);
    return runs.length > 0 ? medianTime(runs) : Infinity;
  });
}
