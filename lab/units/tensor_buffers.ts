/** For lab/units/tensor.ts: buffers of a matrix, plans, device time, errors and bits. */
import { matmul } from "../../kernels/matmul/matmul.ts";
import { matmulTensor, type TensorTile } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import { fillParams, fillRandom } from "../../kernels/matmul/fill_random.ts";
import { median } from "../../src/measure/statistics.ts";
import { storage } from "../../src/gpu/arena.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { lanesFor } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import type { Profiler } from "../../src/gpu/profile.ts";
import { type Compiler, type Program, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { sampleMs } from "../sample.ts";

export interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
}

export interface Bench {
  readonly gpu: Gpu;
  readonly unit: MatrixUnit;
  readonly make: Compiler;
  readonly profiler: Profiler;
  /** The most tiles to try at one number of rows. */
  readonly tiles: number;
}

export interface Buffers {
  readonly weights: Operand;
  readonly wScales: Operand;
  readonly faults: Operand;
  readonly x: Operand;
  readonly xScales: Operand;
  readonly out: Operand;
}

const MEASURE_MS = 30;
const SAMPLED = 48;

/** Buffers of a shape for up to `rows` rows, filled with different numbers. */
export async function buffersOf(
  { gpu, make }: Bench,
  { n, k }: Shape,
  rows: number,
  stream: number,
): Promise<Buffers> {
  const of = (label: string, bytes: number): Operand => ({
    buffer: storage(gpu.device, label, bytes),
  });
  const made = {
    weights: of("weights", 2 * n * k),
    wScales: of("wScales", 4 * n),
    faults: of("faults", 4 * n),
    x: of("x", 4 * (rows + 16) * k),
    xScales: of("xScales", 4 * (rows + 16)),
    out: of("out", 4 * (rows + 16) * n),
  };
  const fills = [[made.weights, stream], [made.x, stream + 1000]] as const;
  const plan = fills.map(([out, stream]) => {
    const params = of("params", 16);
    gpu.device.queue.writeBuffer(params.buffer, 0, fillParams({ seed: 1, stream, std: 0.02 }));
    return fillRandom({ params, out }, "fill");
  });
  submit(
    gpu,
    await make.compile([
      ...plan,
      weightScales({ ...made, scales: made.wScales }, { rows: n, cols: k }),
    ]),
  );
  return made;
}

export function free(buffers: Buffers): void {
  for (const { buffer } of Object.values(buffers) as Operand[]) buffer.destroy();
}

export function tensorPlan(
  { unit }: Bench,
  buffers: Buffers,
  { name, n, k }: Shape,
  rows: number,
  tile: TensorTile,
): Plan {
  const shard = { operand: buffers.weights, first: 0, rows: n };
  const matrix = { rows: n, cols: k };
  return [matmulTensor(buffers, { unit, tile, rows, matrix, shard, label: name })];
}

export function simtPlan(
  { gpu }: Bench,
  { weights, x, out }: Buffers,
  { name, n, k }: Shape,
  rows: number,
): Plan {
  const tuned = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
  const shards = [{ operand: weights, first: 0, rows: n }];
  const matrix = {
    format: "bf16",
    rowOrder: "stacked",
    rows: n,
    cols: k,
    lanes: lanesFor("bf16", k, tuned.lanes),
    shards,
  } as const;
  return matmul({ matrix, x, out }, { rows, epilogue: "store", tuning: tuned, label: name });
}

/** Microseconds of a plan on warm clocks. A sample runs the programs in turn until it fills about 2 ms. */
export async function timeOf(
  { profiler }: Pick<Bench, "profiler">,
  programs: readonly Program[],
  warmMs: number,
): Promise<number> {
  const sample = (runs: number) => sampleMs(profiler, programs, runs);
  await sample(programs.length);
  const once = await sample(programs.length);
  const runs = Math.min(500, Math.max(programs.length, Math.ceil(2 / once)));
  const samples: number[] = [];
  const from = performance.now();
  while (performance.now() - from < warmMs + MEASURE_MS || samples.length < 3) {
    const ms = await sample(runs);
    if (performance.now() - from >= warmMs || samples.length < 3) samples.push(ms);
  }
  return 1000 * median(samples);
}

/** Largest error of sampled outputs in `out` against float64, in units of sum |x w|, for SIMT kernels as well. */
export async function errorsOf(
  { gpu }: Bench,
  { weights, x, out }: Buffers,
  { n, k }: Shape,
  rows: number,
): Promise<number> {
  let worst = 0;
  for (let i = 0; i < SAMPLED; i++) {
    const [r, column] = [(i * 7 + (i & 1) * (rows - 1)) % rows, (i * 7919 + 13) % n];
    const read = async (operand: Operand, offset: number, size: number) => {
      // Reads must begin at multiples of 4 bytes; rows of weights and of x do.
      return await readBuffer(gpu, { buffer: operand.buffer, offset, size });
    };
    const halves = new Uint16Array(await read(weights, 2 * column * k, 2 * k));
    const row = new Float32Array(await read(x, 4 * r * k, 4 * k));
    const [found = NaN] = new Float32Array(await read(out, 4 * (r * n + column), 4));
    const bits = Uint32Array.from(halves, (half) => half << 16);
    const w = new Float32Array(bits.buffer);
    let [sum, size] = [0, 0];
    for (let j = 0; j < k; j++) {
      const term = (row[j] ?? 0) * (w[j] ?? 0);
      sum += term;
      size += Math.abs(term);
    }
    worst = Math.max(worst, Math.abs(found - sum) / size);
    if (Number.isNaN(found)) return NaN;
  }
  return worst;
}

export async function run({ make, gpu }: Bench, plan: Plan): Promise<void> {
  submit(gpu, await make.compile(plan));
}

/** A hash of the bits of the first `rows` rows. */
export async function digest(
  { gpu }: Bench,
  { out }: Buffers,
  { n }: Shape,
  rows: number,
): Promise<string> {
  const bytes = await readBuffer(gpu, { buffer: out.buffer, size: 4 * n * rows });
  const hash = await crypto.subtle.digest("SHA-256", bytes);
  return new Uint8Array(hash).toHex().slice(0, 12);
}
