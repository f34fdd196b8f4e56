// Matmuls of few rows on matrix units: workgroups of matmul_tensor_few.wgsl beside the SIMT kernels.
//
//   EYRIE_WEBGPU=dawn deno run -A bench/units/few.ts [--small] [--rows 1,8] [--shapes o,qkv] [--seconds 40] [--halved]
//
// With --halved the weights are f16 in place, as the engine has them; the SIMT kernels read them all the same.
// Microseconds on warm clocks: each variant runs between two runs of the SIMT kernel of the same matrices, and
// "over SIMT" is what does not depend on clocks. The bits of all variants must be the same.
import { parseArgs } from "node:util";
import process from "node:process";
import { matmul } from "../../shaders/matmul/matmul.ts";
import {
  fewFits,
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../shaders/tensor/matmul_tensor_few.ts";
import { halveWeights, matmulTensor, rowScales } from "../../shaders/tensor/matmul_tensor.ts";
import { tensorTile } from "../../shaders/tensor/tensor_tiles.ts";
import { median } from "../../src/bench/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import { lanesFor, tuning } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { type Bench, type Buffers, buffersOf, free, run } from "./tensor_buffers.ts";

const { values: flags } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    halved: { type: "boolean", default: false },
    rows: { type: "string", default: "1,8" },
    shapes: { type: "string", default: "gateUp,o,qkv,down" },
    seconds: { type: "string", default: "40" },
  },
});
const { small } = flags;
const started = performance.now();
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: 9 };
const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);

interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
  readonly split: number;
}
const SHAPES: readonly Shape[] = small ? [{ name: "odd", n: 96, k: 1024, split: 2 }] : [
  { name: "gateUp", n: 28672, k: 4096, split: 1 },
  { name: "o", n: 4096, k: 4096, split: 4 },
  { name: "qkv", n: 6144, k: 4096, split: 1 },
  { name: "down", n: 4096, k: 14336, split: 4 },
].filter(({ name }) => flags.shapes.split(",").includes(name));

const TILES: readonly FewTile[] = [1, 2, 4].flatMap((columns) =>
  [64, 128, 256].flatMap((stage) => [1, 2, 3, 4].map((ahead) => ({ columns, stage, ahead })))
).filter(({ columns, stage, ahead }) => columns * stage * ahead <= 768);

/** Milliseconds of one run of all the programs in turn. */
async function sample(programs: readonly Program[], runs: number): Promise<number> {
  const steps = Array.from(
    { length: runs },
    (_, i) => (programs[i % programs.length] as Program).steps,
  );
  return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
}

async function keepBusy(programs: readonly Program[], ms: number): Promise<void> {
  const from = performance.now();
  while (performance.now() - from < ms) await sample(programs, 60);
}

async function timed(programs: readonly Program[]): Promise<number> {
  const found: number[] = [];
  for (let i = 0; i < 5; i++) found.push(await sample(programs, 24));
  return 1000 * median(found);
}

async function shapeAt(shape: Shape, rows: number): Promise<void> {
  const { name, n, k, split } = shape;
  const bytes = 2 * n * k;
  const all: Buffers[] = [];
  for (let i = 0; i < (small ? 1 : Math.max(1, Math.ceil((160 << 20) / bytes))); i++) {
    const buffers = await buffersOf(bench, shape, 33 * split, 10 + i);
    await run(bench, [
      rowScales({ x: buffers.x, scales: buffers.xScales }, { rows: 32, cols: k }),
      ...flags.halved
        ? [halveWeights({ ...buffers, scales: buffers.wScales }, { rows: n, cols: k })]
        : [],
    ]);
    all.push(buffers);
  }
  const compiled = async (planOf: (buffers: Buffers) => Plan) => {
    const programs: Program[] = [];
    for (const buffers of all) programs.push(await bench.make.compile(planOf(buffers)));
    return programs;
  };
  const shardOf = ({ weights }: Buffers) => ({ operand: weights, first: 0, rows: n });
  const lanes = lanesFor("bf16", k, rules.lanes);
  const simt = await compiled((b) =>
    matmul(
      { matrix: { format: "bf16", rows: n, cols: k, lanes, shards: [shardOf(b)] }, ...b },
      { rows, epilogue: "store", splitK: split, tuning: rules, label: "SIMT" },
    )
  );
  let reference: Uint32Array | undefined;
  const attempt = async (what: string, planOf: (buffers: Buffers) => Plan) => {
    if (performance.now() - started > 1000 * Number(flags.seconds)) return;
    try {
      const programs = await compiled(planOf);
      await keepBusy(simt, small ? 0 : 120);
      const before = await timed(simt);
      await timed(programs);
      const us = await timed(programs);
      const after = await timed(simt);
      const buffer = (all[0] as Buffers).out.buffer;
      await sample(programs, programs.length);
      const bits = new Uint32Array(await readBuffer(gpu, { buffer, size: 4 * n * rows * split }));
      reference ??= bits;
      const differ = bits.some((word, i) => word !== reference?.[i]);
      say(
        `${name} ${rows} rows ${us.toFixed(1).padStart(7)} us, SIMT ${before.toFixed(1)} ${
          after.toFixed(1)
        }, over SIMT ${(2 * us / (before + after)).toFixed(3)}  ${what}${
          differ ? " OTHER BITS" : ""
        }`,
      );
    } catch (error) {
      say(`${name} ${rows} rows FAILED ${what}: ${String(error).slice(0, 200)}`);
    }
  };
  const matrix = { rows: n, cols: k };
  const of = { unit, rows, matrix, splitK: split, label: name };
  const large = tensorTile(unit, gpu.limits, { rows, columns: n, range: k / split, splitK: split });
  if (large) {
    await attempt("matmul_tensor", (b) => [
      matmulTensor(b, { ...of, shard: shardOf(b), tile: large, halved: flags.halved }),
    ]);
  }
  for (const few of rows > fewRows(unit) ? [] : TILES) {
    if (k / split % few.stage !== 0 || !fewFits(unit, few, gpu.limits)) continue;
    await attempt(JSON.stringify(few).replaceAll('"', ""), (b) => [
      matmulTensorFew(b, { ...of, shard: shardOf(b), tile: few, halved: flags.halved }),
    ]);
  }
  all.forEach(free);
}

say(`${gpu.info.adapter}, unit ${JSON.stringify(unit)}`);
for (const rows of flags.rows.split(",").map(Number)) {
  for (const shape of SHAPES) await shapeAt(shape, rows);
}
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);
