/**
 * `deno run -A bench/tensor_many.ts [--small] [ROWS...]`: workgroups of matmul_halves.wgsl beside those of
 * matmul_tensor.wgsl for many rows, over the matrices of Llama-3.1-8B: microseconds, TFLOP/s, and whether the
 * first row's bits are the same in all.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import {
  type HalvesTile,
  halvesTileBytes,
  halvesTileSize,
  halvesTileThreads,
  matmulHalves,
  rowHalves,
} from "../shaders/tensor/matmul_halves.ts";
import { rowScales, type TensorTile } from "../shaders/tensor/matmul_tensor.ts";
import { reason } from "../src/errors.ts";
import { storage } from "../src/gpu/arena.ts";
import { openGpu } from "../src/gpu/device.ts";
import type { Operand, Plan } from "../src/gpu/kernel.ts";
import type { MatrixUnit } from "../src/gpu/matrix_unit.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program } from "../src/gpu/program.ts";
import {
  type Bench,
  type Buffers,
  buffersOf,
  digest,
  free,
  run,
  type Shape,
  tensorPlan,
  timeOf,
} from "./tensor_buffers.ts";

const SHAPES: readonly Shape[] = [
  { name: "gateUp", n: 28672, k: 4096 },
  { name: "o", n: 4096, k: 4096 },
  { name: "down", n: 4096, k: 14336 },
  { name: "qkv", n: 6144, k: 4096 },
];
const SMALL: readonly Shape[] = [{ name: "odd", n: 84, k: 256 }];
const ROWS = [32, 64, 128, 256, 512];
const COLD_BYTES = 160 << 20;

const TENSOR: readonly TensorTile[] = [
  { subgroups: 4, grid: [2, 2], own: [2, 4], stage: 32, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [2, 1], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [1, 8], own: [2, 1], stage: 64, ahead: 1 },
];

const tile = (grid: [number, number], own: [number, number], stage: number, buffers: 1 | 2) => ({
  ...{ grid, own, stage, buffers },
});
const HALVES: readonly HalvesTile[] = [
  tile([1, 4], [2, 1], 64, 2),
  tile([1, 4], [2, 2], 32, 2),
  tile([1, 4], [2, 2], 64, 1),
  tile([1, 8], [2, 1], 32, 2),
  tile([1, 8], [2, 2], 32, 1),
  tile([1, 4], [2, 4], 32, 1),
  tile([2, 2], [2, 2], 32, 2),
  tile([2, 4], [2, 2], 32, 1),
  tile([2, 4], [2, 2], 32, 2),
  tile([2, 2], [2, 4], 32, 1),
  tile([2, 2], [2, 4], 32, 2),
  tile([2, 2], [2, 4], 16, 2),
  tile([2, 4], [2, 4], 16, 2),
  tile([2, 4], [2, 4], 32, 1),
  tile([4, 2], [2, 4], 16, 2),
  tile([4, 2], [2, 4], 32, 1),
  tile([2, 4], [4, 2], 16, 2),
  tile([2, 4], [4, 2], 32, 1),
  tile([4, 4], [2, 2], 16, 2),
  tile([4, 4], [2, 2], 32, 1),
];

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface ManyBuffers extends Buffers {
  readonly halves: Operand;
}

const { values, positionals } = parseArgs({
  args: Deno.args,
  options: { small: { type: "boolean", default: false } },
  allowPositionals: true,
});
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const { limits } = gpu;
const profiler = await openProfiler(gpu, { queries: 2 });
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: Infinity };
say(`${JSON.stringify(unit)}, workgroup memory ${limits.maxComputeWorkgroupStorageSize}`);

function fits(tile: HalvesTile, rows: number, { k }: Shape): boolean {
  const [tileRows] = halvesTileSize(unit, tile);
  return k % tile.stage === 0 && tile.stage % unit.k === 0 &&
    halvesTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    halvesTileThreads(unit, tile) <= limits.maxComputeInvocationsPerWorkgroup &&
    tileRows <= Math.max(rows, 2 * unit.m) && tileRows >= Math.min(rows / 2, 4 * unit.m);
}

async function timeShape(shape: Shape, allRows: readonly number[]): Promise<void> {
  const { n, k, name } = shape;
  const copies = Math.max(1, Math.ceil(COLD_BYTES / (2 * n * k)));
  const most = Math.max(...allRows);
  const all: ManyBuffers[] = [];
  for (let i = 0; i < copies; i++) {
    const halves = { buffer: storage(gpu.device, "halves", 4 * most * k) };
    all.push({ ...await buffersOf(bench, shape, most, 10 + i), halves });
  }
  const first = all[0] as ManyBuffers;
  const matrix = { rows: n, cols: k };
  const split = ({ x, xScales, halves }: ManyBuffers, rows: number) =>
    rowHalves({ x, scales: xScales, halves }, { unit, rows, cols: k });
  const plans = (rows: number) => [
    ...TENSOR.map((tile) => ({
      text: `tensor ${tile.grid.join("x")} of ${tile.own.join("x")}, k ${tile.stage}`,
      plan: (buffers: ManyBuffers) => tensorPlan(bench, buffers, shape, rows, tile),
    })),
    ...HALVES.filter((tile) => fits(tile, rows, shape)).map((tile) => ({
      text: `${tile.grid.join("x")} of ${tile.own.join("x")}, k ${tile.stage}, ${tile.buffers}`,
      plan: (buffers: ManyBuffers): Plan => [
        matmulHalves(buffers, {
          ...{ unit, tile, rows, matrix, label: name },
          shard: { operand: buffers.weights, first: 0, rows: n },
        }),
      ],
    })),
  ];
  for (const rows of allRows) {
    for (const buffers of all) await run(bench, [split(buffers, rows)]);
    const timed = async (plan: (buffers: ManyBuffers) => Plan, warm: number) => {
      const programs: Program[] = [];
      for (const buffers of all) programs.push(await bench.make.compile(plan(buffers)));
      return await timeOf(bench, programs, warm);
    };
    const scaling = await timed(({ x, xScales }) => [
      rowScales({ x, scales: xScales }, { rows, cols: k }),
    ], 20);
    const splitting = await timed((buffers) => [split(buffers, rows)], 0);
    const found: { us: number; text: string; bits: string }[] = [];
    for (const { text, plan } of plans(rows)) {
      try {
        const us = await timed(plan, found.length === 0 ? 100 : 5);
        await run(bench, plan(first));
        found.push({ us, text, bits: await digest(bench, first, shape, Math.min(rows, 40)) });
      } catch (error) {
        say(`FAILED ${text}: ${reason(error).split("\n").slice(0, 3).join(" | ")}`);
      }
    }
    const bits = new Set(found.map(({ bits }) => bits)).size;
    say(
      `${name} ${rows} rows, ${bits === 1 ? "same bits" : `DIFFERENT BITS ${bits}`}, scales ${
        scaling.toFixed(1)
      }, halves ${splitting.toFixed(1)} us`,
    );
    for (const { us, text } of found.toSorted((a, b) => a.us - b.us).slice(0, 9)) {
      say(`  ${us.toFixed(1).padStart(7)} us ${(2 * rows * n * k / us / 1e6).toFixed(0)} ${text}`);
    }
    const tensor = found.filter(({ text }) => text.startsWith("tensor")).map(({ us }) => us);
    say(`  ${Math.min(...tensor).toFixed(1)} best of tensor`);
  }
  all.forEach(({ halves, ...buffers }) => {
    halves.buffer.destroy();
    free(buffers);
  });
}

const rows = positionals.length > 0 ? positionals.map(Number) : values.small ? [1, 37] : ROWS;
for (const shape of values.small ? SMALL : SHAPES) await timeShape(shape, rows);
Deno.exit(0);
