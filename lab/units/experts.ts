/**
 * `deno run -A lab/units/experts.ts [--small] [--skew S] [--shapes NAME,...] ROWS...`: matmuls of
 * experts on matrix units beside the other kernels, with random routing, by `--webgpu dawn`. With a skew above 0, all
 * rows prefer some experts. The weights are those of all experts of one layer; at few rows several routings take
 * turns, so that no cache holds the weights that they read.
 *
 * Prints as it goes. A kernel that a compiler refuses is printed and skipped. With --small the matrices are
 * cut, for software adapters.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { reason } from "../../src/errors.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { ExpertBuffers, type Shape } from "./experts_buffers.ts";
import { type Bench, timeOf } from "./tensor_buffers.ts";
import { type ExpertTile, expertTilesFor, tileText } from "./experts_tiles.ts";

const DEEPSEEK = { numExperts: 64, topK: 6 };
const QWEN = { numExperts: 128, topK: 8 };
const SHAPES: readonly Shape[] = [
  { name: "deepseek.gateUp", ...DEEPSEEK, n: 2816, k: 2048, epilogue: "swiglu" },
  { name: "deepseek.down", ...DEEPSEEK, n: 2048, k: 1408, epilogue: "store" },
  { name: "qwen.gateUp", ...QWEN, n: 1536, k: 2048, epilogue: "swiglu" },
  { name: "qwen.down", ...QWEN, n: 2048, k: 768, epilogue: "store" },
];
const SMALL = { numExperts: 6, topK: 2, n: 48, k: 256 };
/** Bytes of weights that are read before a routing is repeated. */
const COLD_BYTES = 256 << 20;
const WARM_MS = 300;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** topK different experts for each row. */
function routing(
  { numExperts, topK }: Shape,
  { rows, stream, skew }: {
    readonly rows: number;
    readonly stream: number;
    readonly skew: number;
  },
): number[] {
  const liked = Array.from({ length: numExperts }, (_, e) => skew * hash32(stream, rows, e));
  return Array.from({ length: rows }, (_, r) => {
    const order = Array.from(
      { length: numExperts },
      (_, e) => ({ e, at: hash32(stream, r, e) + (liked[e] ?? 0) }),
    );
    return order.toSorted((a, b) => a.at - b.at).slice(0, topK).map(({ e }) => e);
  }).flat();
}

/** The largest difference, divided by the largest output. */
function difference(a: Float32Array, b: Float32Array): number {
  const largest = b.reduce((most, y) => Math.max(most, Math.abs(y)), 0);
  return a.reduce((most, y, i) => Math.max(most, Math.abs(y - (b[i] ?? NaN))), 0) / largest;
}

async function timeShape(
  bench: Bench,
  shape: Shape,
  { allRows, skew }: { readonly allRows: readonly number[]; readonly skew: number },
): Promise<void> {
  const { numExperts, topK, n, k } = shape;
  const buffers = new ExpertBuffers(bench, shape, Math.max(...allRows));
  await buffers.fill();
  const checked = (jobs: number) => Math.min(jobs, 64);
  const simt = new Map<number, { programs: Program[]; y: Float32Array; routings: number[][] }>();
  for (const rows of allRows) {
    const read = Math.min(numExperts, rows * topK) * 2 * n * k;
    const count = Math.min(12, Math.max(1, Math.ceil(COLD_BYTES / read)));
    const routings = Array.from(
      { length: count },
      (_, i) => routing(shape, { rows, stream: 7 + i, skew }),
    );
    const programs: Program[] = [];
    for (const experts of routings) {
      const plan = buffers.simt(experts, rows);
      await buffers.run(buffers.simtTiles);
      programs.push(await bench.make.compile(plan));
    }
    submit(bench.gpu, programs[0] as Program);
    simt.set(rows, { programs, y: await buffers.outputs(checked(rows * topK)), routings });
  }
  const bits = new Map<number, Float32Array>();
  await buffers.scale();
  for (const rows of allRows) {
    const { programs: others, y, routings } = simt.get(rows)!;
    const jobs = rows * topK;
    const made: { programs: Program[]; tile: ExpertTile }[] = [];
    // Clocks drop during a compilation, so everything is compiled before anything is timed.
    for (const tile of expertTilesFor(bench, { k, mean: jobs / numExperts, rows })) {
      try {
        const programs: Program[] = [];
        for (const experts of routings) {
          programs.push(await bench.make.compile(buffers.units(experts, tile)));
        }
        submit(bench.gpu, programs[0] as Program);
        const out = await buffers.outputs(checked(jobs));
        const first = bits.getOrInsertComputed(rows, () => out);
        const same = out.every((value, i) => value === first[i]);
        const apart = difference(out, y);
        if (!same || !(apart < 1e-5)) {
          say(`WRONG ${tileText(tile)}: ${apart.toExponential(1)} from SIMT, same bits ${same}`);
        }
        made.push({ programs, tile });
      } catch (error) {
        say(`FAILED ${tileText(tile)}: ${reason(error).split("\n").slice(0, 3).join(" | ")}`);
      }
    }
    const simtUs = await timeOf(bench, others, WARM_MS);
    const found: { us: number; tile: ExpertTile }[] = [];
    for (const { programs, tile } of made) {
      found.push({ us: await timeOf(bench, programs, 0), tile });
    }
    const again = await timeOf(bench, others, 0);
    found.sort((a, b) => a.us - b.us);
    const flops = 2 * jobs * n * k / 1e6;
    const read = new Set(routings[0]).size * 2 * n * k / 1e6;
    const rates = (us: number) =>
      `${us.toFixed(1).padStart(7)} us ${(flops / us).toFixed(1).padStart(5)} TFLOP/s ${
        (read / us).toFixed(2)
      } TB/s`;
    say(
      `${shape.name} ${rows} rows\n  ${rates(simtUs)}  SIMT, after all ${again.toFixed(1)} us`,
    );
    for (const { us, tile } of found) say(`  ${rates(us)}  ${tileText(tile)}`);
  }
  buffers.free();
}

async function timeScaling(bench: Bench, shape: Shape, rows: number): Promise<void> {
  const buffers = new ExpertBuffers(bench, { ...shape, n: 16 }, rows);
  const us = await timeOf(bench, [await bench.make.compile(buffers.scaling(rows))], 0);
  say(`${shape.name} ${rows} rows: row scales ${us.toFixed(1)} us`);
  buffers.free();
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    options: {
      small: { type: "boolean", default: false },
      skew: { type: "string", default: "0" },
      shapes: { type: "string", default: "deepseek.gateUp,deepseek.down,qwen.gateUp,qwen.down" },
    },
    allowPositionals: true,
  });
  const gpu = await openGpu({ webgpu: "dawn" });
  say(`${gpu.info.adapter}, ${gpu.info.webgpu}, unit ${JSON.stringify(gpu.matrixUnit)}`);
  if (gpu.matrixUnit === undefined) return;
  const profiler = await openProfiler(gpu, { queries: 2 });
  const unit: MatrixUnit = gpu.matrixUnit;
  const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: Infinity };
  const rows = positionals.length > 0 ? positionals.map(Number) : [1, 8];
  const names = values.shapes.split(",");
  for (const shape of SHAPES.filter(({ name }) => names.includes(name))) {
    const cut = values.small ? { ...shape, ...SMALL } : shape;
    await timeShape(bench, cut, { allRows: rows, skew: Number(values.skew) });
    for (const count of rows) await timeScaling(bench, cut, count);
  }
}

if (import.meta.main) {
  await main();
  Deno.exit(0);
}
