// Quantized weights on matrix units beside the SIMT kernels of the same weights and f16 ones on the units.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/quantized.ts [--small] [--seconds 26] CASE ...
//
// A case is format/shape/rows, e.g. q8/gateUp/1. Figures are microseconds on warm clocks with weights that no cache
// holds. At few rows each variant runs between two runs of the SIMT kernel. All variants must give the same bits.
import { parseArgs } from "node:util";
import process from "node:process";
import { matmul } from "../../kernels/matmul/matmul.ts";
import {
  fewFits,
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import { groupScales } from "../../kernels/matmul/tensor/group_scales.ts";
import {
  matmulTensor,
  type TensorTile,
  tileBytes,
} from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { tensorTile } from "../../kernels/matmul/tensor/tensor_tiles.ts";
import { median } from "../../src/measure/statistics.ts";
import { tileText } from "./tensor_tiles.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { isInteger, WEIGHT_BYTES } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { type Allocations, openAllocations } from "../allocations.ts";
import { sampleMs } from "../sample.ts";

const { values: flags, positionals } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    seconds: { type: "string", default: "26" },
    sweep: { type: "boolean", default: false },
    tiles: {
      type: "string",
      default: "2/64/2,1/64/2,1/128/2,2/128/1,1/128/1,1/256/1,2/128/2,1/256/2",
    },
  },
  allowPositionals: true,
});
const started = performance.now();
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const sample = (programs: readonly Program[], runs: number) => sampleMs(profiler, programs, runs);
const make = compiler(gpu);
const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);

interface Shape {
  readonly n: number;
  readonly k: number;
  readonly split: number;
}
const SHAPES: Readonly<Record<string, Shape>> = {
  gateUp: { n: 28672, k: 4096, split: 1 },
  o: { n: 4096, k: 4096, split: 4 },
  qkv: { n: 6144, k: 4096, split: 1 },
  down: { n: 4096, k: 14336, split: 4 },
  smallGateUp: { n: 6144, k: 1024, split: 1 },
  smallDown: { n: 1024, k: 3072, split: 4 },
  mixtureO: { n: 2048, k: 4096, split: 4 },
  tiny: { n: 96, k: 1024, split: 2 },
};

const TILES: readonly FewTile[] = flags.tiles.split(",").map((text) => {
  const [columns = 1, stage = 64, ahead = 1, branched = 1, subgroups = 1] = text.split("/").map(
    Number,
  );
  return { columns, stage, ahead, branched: branched === 1, subgroups };
});

/** Tiles for many rows. */
const WIDE: readonly TensorTile[] = [
  { subgroups: 8, grid: [2, 4], own: [2, 2], stage: 64, ahead: 1 },
  { subgroups: 4, grid: [2, 2], own: [2, 4], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [4, 2], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [4, 2], own: [2, 4], stage: 64, ahead: 1 },
  { subgroups: 8, grid: [2, 4], own: [2, 4], stage: 64, ahead: 1 },
  { subgroups: 4, grid: [2, 2], own: [4, 4], stage: 32, ahead: 1 },
];

async function timed(programs: readonly Program[]): Promise<number> {
  const once = await sample(programs, programs.length);
  const runs = Math.max(programs.length, Math.min(60, Math.ceil(2 / once)));
  const from = performance.now();
  while (!flags.small && performance.now() - from < 60) await sample(programs, runs);
  const found: number[] = [];
  for (let i = 0; i < 5; i++) found.push(await sample(programs, runs));
  return 1000 * median(found);
}

interface Copy {
  readonly matrix: Matrix;
  readonly wScales: Operand;
}

async function copyOf(of: Allocations, format: Matrix["format"], { n, k }: Shape): Promise<Copy> {
  const matrix = of.matrix(n, k, format);
  const wScales = of.words(new Uint32Array(n).fill(0x3f800000));
  const [groups] = matrix.shards.flatMap(({ scales }) => scales ?? []);
  if (groups && isInteger(format)) {
    const plan = [groupScales({ groups, scales: wScales }, { format, rows: n, cols: k })];
    submit(gpu, await make.compile(plan));
  }
  return { matrix, wScales };
}

async function caseOf(text: string): Promise<void> {
  using of = openAllocations(gpu);
  const [format = "", name = "", count = ""] = text.split("/");
  const shape = SHAPES[name] as Shape;
  const { n, k, split } = shape;
  const rows = Number(count);
  const halved = format === "f16";
  const stored: "bf16" | "q8" | "q4" = halved ? "bf16" : format as "q8" | "q4";
  const bytes = WEIGHT_BYTES[stored] * n * k;
  const all: Copy[] = [];
  const copies = flags.small ? 1 : Math.max(2, Math.ceil((160 << 20) / bytes));
  for (let i = 0; i < copies; i++) all.push(await copyOf(of, stored, shape));
  const [x, out] = [of.random(rows * k), of.random(rows * n * split)];
  const xScales = of.random(rows);
  await of.filled();
  submit(gpu, await make.compile([rowScales({ x, scales: xScales }, { rows, cols: k })]));
  const compiled = async (planOf: (copy: Copy) => Plan) => {
    const programs: Program[] = [];
    for (const copy of all) programs.push(await make.compile(planOf(copy)));
    return programs;
  };
  const simt = halved ? undefined : await compiled(({ matrix }) =>
    matmul({ matrix, x, out }, {
      rows,
      epilogue: "store",
      splitK: split,
      tuning: rules,
      label: "SIMT",
    })
  );
  const numbers = async () =>
    new Float32Array(
      await readBuffer(gpu, { buffer: out.buffer, size: 4 * n * split * Math.min(rows, 8) }),
    );
  let reference: Uint32Array | undefined;
  let expected: Float32Array | undefined;
  if (simt) {
    say(`${text} ${(await timed(simt)).toFixed(1).padStart(7)} us  SIMT`);
    await sample(simt.slice(0, 1), 1);
    expected = await numbers();
  }
  const attempt = async (what: string, planOf: (copy: Copy) => Plan) => {
    if (performance.now() - started > 1000 * Number(flags.seconds)) return;
    try {
      const programs = await compiled(planOf);
      const before = simt && rows <= 8 ? await timed(simt) : NaN;
      const us = await timed(programs);
      await sample(programs.slice(0, 1), 1);
      const found = await numbers();
      const bits = new Uint32Array(found.buffer);
      reference ??= bits;
      const differ = bits.some((word, i) => word !== reference?.[i]);
      const error = expected?.reduce((most, y, i) =>
        Math.max(most, Math.abs(y - (found[i] ?? NaN))), 0) ?? NaN;
      const largest = expected?.reduce((most, y) => Math.max(most, Math.abs(y)), 0) ?? NaN;
      say(
        `${text} ${us.toFixed(1).padStart(7)} us, over SIMT ${(us / before).toFixed(3)}, ${
          (bytes / us / 1e6).toFixed(2)
        } TB/s, error ${(error / largest).toExponential(1)}  ${what}${differ ? " OTHER BITS" : ""}`,
      );
    } catch (error) {
      say(`${text} FAILED ${what}: ${String(error).slice(0, 300)}`);
    }
  };
  const launch = { unit, rows, splitK: split, halved, label: name };
  const use = {
    format: stored,
    rows,
    columns: n,
    range: k / split,
    splitK: split,
    low: 0,
  } as const;
  const large = tensorTile(unit, gpu.limits, use);
  const buffers = { x, out, xScales };
  const wide = flags.sweep ? WIDE.filter((tile) => tileBytes(unit, tile) <= 49152) : [];
  for (const tile of rows > fewRows(unit) / 2 || flags.small ? [large, ...wide] : []) {
    if (tile === undefined || k / split % tile.stage !== 0) continue;
    await attempt(tileText(tile), ({ matrix, wScales }) => [
      matmulTensor({ ...buffers, wScales }, { ...launch, matrix, shard: matrix.shards[0]!, tile }),
    ]);
  }
  for (const few of rows > fewRows(unit) ? [] : TILES) {
    if (k / split % few.stage !== 0 || !fewFits(unit, few, gpu.limits, { rows })) continue;
    await attempt(JSON.stringify(few).replaceAll('"', ""), ({ matrix, wScales }) => [
      matmulTensorFew({ ...buffers, wScales }, {
        ...launch,
        matrix,
        shard: matrix.shards[0]!,
        tile: few,
      }),
    ]);
  }
}

say(`${gpu.info.adapter}, unit ${JSON.stringify(unit)}`);
for (const text of positionals) await caseOf(text);
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);
