/**
 * `deno run -A bench/tensor_many.ts [--small] [ROWS...]`: workgroups of matmul_halves.wgsl beside those of
 * matmul_tensor.wgsl for many rows, over matrices of Llama-3.1-8B: TFLOP/s, and whether the first rows' bits
 * are the same in all. They take turns and the fastest turn counts, so that other work on the card does not.
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
import type { TensorTile } from "../shaders/tensor/matmul_tensor.ts";
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
} from "./tensor_buffers.ts";

const SHAPES: readonly Shape[] = [
  { name: "gateUp", n: 28672, k: 4096 },
  { name: "o", n: 4096, k: 4096 },
  { name: "down", n: 4096, k: 14336 },
];
const SMALL: readonly Shape[] = [{ name: "odd", n: 84, k: 256 }];
const ROWS = [32, 64, 128, 256, 512];
/** Samples of each, and how long one takes at least, ms. */
const [TURNS, SAMPLE_MS] = [12, 2];
/** Beyond what caches hold. */
const COLD_BYTES = 100 << 20;

const tensor = (
  grid: [number, number],
  own: [number, number],
  stage: number,
  ahead: number,
): TensorTile => ({ ...{ grid, own, stage, ahead }, subgroups: Math.max(4, grid[0] * grid[1]) });
const TENSOR: readonly TensorTile[] = [
  tensor([2, 2], [2, 4], 32, 1),
  tensor([1, 8], [2, 1], 64, 1),
  tensor([1, 8], [2, 1], 64, 2),
  tensor([1, 4], [2, 1], 64, 2),
  tensor([1, 4], [2, 1], 64, 4),
  tensor([1, 4], [2, 1], 128, 2),
  tensor([1, 2], [2, 1], 128, 2),
  tensor([1, 2], [2, 1], 64, 4),
  tensor([1, 2], [2, 2], 64, 2),
  tensor([1, 4], [2, 2], 64, 1),
  tensor([1, 4], [2, 2], 64, 2),
  tensor([2, 4], [2, 1], 64, 1),
  tensor([2, 4], [2, 1], 64, 2),
  tensor([2, 2], [2, 1], 64, 2),
  tensor([2, 2], [2, 1], 64, 4),
  tensor([2, 2], [2, 1], 128, 2),
  tensor([2, 2], [2, 2], 64, 2),
];

const tile = (
  grid: [number, number],
  own: [number, number],
  stage: number,
  buffers: 1 | 2,
  pad: number,
) => ({ ...{ grid, own, stage, buffers, pad } });
const HALVES: readonly HalvesTile[] = [
  tile([2, 2], [2, 4], 32, 1, 1),
  tile([2, 2], [2, 4], 32, 1, 2),
  tile([2, 2], [2, 4], 32, 1, 0),
  tile([2, 2], [2, 4], 32, 2, 1),
  tile([2, 2], [2, 4], 32, 2, 2),
  tile([2, 2], [2, 4], 16, 2, 1),
  tile([2, 2], [2, 4], 16, 2, 0),
  tile([2, 2], [2, 4], 64, 1, 2),
  tile([4, 2], [2, 4], 16, 2, 1),
  tile([4, 2], [2, 4], 16, 2, 0),
  tile([4, 2], [2, 4], 32, 1, 1),
  tile([4, 2], [2, 4], 32, 1, 2),
  tile([1, 2], [2, 4], 32, 2, 2),
  tile([1, 4], [2, 2], 32, 2, 2),
];

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface ManyBuffers extends Buffers {
  readonly halves: Operand;
}

interface Variant {
  readonly text: string;
  readonly programs: readonly Program[];
  readonly bits: string;
  /** Microseconds. */
  readonly samples: number[];
}

const { values, positionals } = parseArgs({
  args: Deno.args,
  options: { small: { type: "boolean", default: false }, only: { type: "string" } },
  allowPositionals: true,
});
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const { limits } = gpu;
const profiler = await openProfiler(gpu, { queries: 2 });
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: Infinity };
say(`${JSON.stringify(unit)}, workgroup memory ${limits.maxComputeWorkgroupStorageSize}`);

function fits(tile: HalvesTile, rows: number, { n, k }: Shape): boolean {
  const [tileRows] = halvesTileSize(unit, tile);
  return k % tile.stage === 0 && tile.stage % unit.k === 0 &&
    halvesTileBytes(unit, tile) <= limits.maxComputeWorkgroupStorageSize &&
    halvesTileThreads(unit, tile) <= limits.maxComputeInvocationsPerWorkgroup &&
    (n > 10_000 || rows > 64) && tileRows <= Math.max(rows, 2 * unit.m) &&
    tileRows >= Math.min(rows / 2, 4 * unit.m);
}

async function sample({ programs }: Variant, runs: number): Promise<number> {
  const steps = Array.from(
    { length: runs },
    (_, i) => (programs[i % programs.length] as Program).steps,
  ).flat();
  return 1000 * ((await profiler.time([{ steps }]))[0]?.end ?? NaN) / runs;
}

async function timeShape(shape: Shape, allRows: readonly number[]): Promise<void> {
  const { n, k, name } = shape;
  const copies = values.small ? 1 : Math.ceil(COLD_BYTES / (2 * n * k));
  const most = Math.max(...allRows);
  const all: ManyBuffers[] = [];
  for (let i = 0; i < copies; i++) {
    const halves = { buffer: storage(gpu.device, "halves", 4 * most * k) };
    all.push({ ...await buffersOf(bench, shape, most, 10 + i), halves });
  }
  const first = all[0] as ManyBuffers;
  const matrix = { rows: n, cols: k };
  for (const rows of allRows) {
    const split = ({ x, xScales, halves }: ManyBuffers): Plan => [
      rowHalves({ x, scales: xScales, halves }, { unit, rows, cols: k }),
    ];
    for (const buffers of all) await run(bench, split(buffers));
    const plans = [
      ...TENSOR.filter((_, i) => rows < 128 || i < 1).map((tile) => ({
        text: `tensor ${tile.grid.join("x")} of ${
          tile.own.join("x")
        }, k ${tile.stage}, ${tile.ahead}`,
        plan: (buffers: ManyBuffers) => tensorPlan(bench, buffers, shape, rows, tile),
      })),
      ...HALVES.filter((tile) => fits(tile, rows, shape)).map((tile) => ({
        text: `${tile.grid.join("x")} of ${
          tile.own.join("x")
        }, k ${tile.stage}, ${tile.buffers}, pad ${tile.pad}`,
        plan: (buffers: ManyBuffers): Plan => [
          matmulHalves(buffers, {
            ...{ unit, tile, rows, matrix, label: name },
            shard: { operand: buffers.weights, first: 0, rows: n },
          }),
        ],
      })),
      { text: "split", plan: split },
    ];
    const variants: Variant[] = [];
    for (const { text, plan } of plans.filter(({ text }) => text.includes(values.only ?? ""))) {
      try {
        const programs: Program[] = [];
        for (const buffers of all) programs.push(await bench.make.compile(plan(buffers)));
        await run(bench, plan(first));
        const bits = text === "split" ? "" : await digest(bench, first, shape, Math.min(rows, 40));
        variants.push({ text, programs, bits, samples: [] });
      } catch (error) {
        say(`FAILED ${text}: ${reason(error).split("\n").slice(0, 3).join(" | ")}`);
      }
    }
    for (let turn = 0; turn < (values.small ? 1 : TURNS); turn++) {
      for (const variant of variants) {
        const us = variant.samples[0] ?? await sample(variant, copies);
        const runs = copies * Math.max(1, Math.ceil(1000 * SAMPLE_MS / us / copies));
        variant.samples.push(await sample(variant, runs));
      }
    }
    const bits = new Set(variants.map(({ bits }) => bits).filter((text) => text !== "")).size;
    say(
      `${name} ${rows} rows, ${
        bits === 1 ? "same bits" : `DIFFERENT BITS ${bits}`
      }, ${seconds()} s`,
    );
    for (const { text, samples } of variants) {
      const us = Math.min(...samples);
      const rate = (2 * rows * n * k / us / 1e6).toFixed(0);
      say(`  ${us.toFixed(1).padStart(7)} us ${rate} ${text}`);
    }
  }
  all.forEach(({ halves, ...buffers }) => {
    halves.buffer.destroy();
    free(buffers);
  });
}

const started = performance.now();
function seconds(): string {
  return ((performance.now() - started) / 1000).toFixed(1);
}
const rows = positionals.length > 0 ? positionals.map(Number) : values.small ? [37] : ROWS;
for (const shape of values.small ? SMALL : SHAPES) await timeShape(shape, rows);
Deno.exit(0);
