// Matmuls of few rows on matrix units: workgroups of matmul_tensor_few.wgsl beside the SIMT kernels, with the
// epilogues that a model has.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/few.ts [--small] [--rows 1,8] [--shapes o,down/8] [--tiles
//   2.64.2.0,o+down=2.128.2.1]
//
// A shape may have another number of split-K ranges (down/8), or be any matrix whose outputs are stored (5120x2880). A
// tile is columns.stage.ahead.branched[.subgroups], or for matmul_tensor.wgsl (--tensor, with its grid and own tiles as
// rows by columns) subgroups.grid.grid.own.own.stage.ahead.early.joined.turn. With .p behind a tile, x is already
// stored as two f16 numbers; with shapes and = before it, the tile is used for these shapes only. Weights are f16 in
// place, as in the engine; the SIMT kernels read them as well (--bare leaves the SIMT kernels out). Figures are
// microseconds on warm clocks: the median of rounds in which all variants take turns. "over" is relative to the first
// variant's time in the same round, so that clocks matter little. All variants must give the same bits.
import { parseArgs } from "node:util";
import process from "node:process";
import {
  fewFits,
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import { type Epilogue, PLAIN, scaledEpilogue } from "../../kernels/lib/epilogue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { qkvEpilogue } from "../../kernels/matmul/qkv.ts";
import {
  matmulTensor,
  type TensorTile,
  tileBytes,
} from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { halveWeights } from "../../kernels/matmul/tensor/weight_scales.ts";
import { tensorTile } from "../../kernels/matmul/tensor/tensor_tiles.ts";
import { median } from "../../src/measure/statistics.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { lanesFor } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { blockTable, packRows } from "../../tests/kernels/rows.ts";
import { sampleMs } from "../sample.ts";
import { type Bench, type Buffers, buffersOf, free, run } from "./tensor_buffers.ts";

const DEFAULT =
  "1.64.2.0,1.64.2.1,2.64.2.0,2.64.2.1,1.128.2.0,1.128.2.1,2.128.2.0,2.128.2.1,1.256.2.0,1.256.2.1";

const { values: flags } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    rows: { type: "string", default: "1,8" },
    shapes: { type: "string", default: "gateUp,o,qkv,down" },
    tiles: { type: "string", default: DEFAULT },
    tensor: { type: "string", default: "" },
    bare: { type: "boolean", default: false },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "60" },
  },
});
const { small } = flags;
const started = performance.now();
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const sample = (programs: readonly Program[], runs: number) => sampleMs(profiler, programs, runs);
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: 9 };
const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);

interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
  readonly split: number;
  readonly end: "store" | "swiglu" | "qkv";
}
const ALL: readonly Shape[] = [
  { name: "gateUp", n: 28672, k: 4096, split: 1, end: "swiglu" },
  { name: "o", n: 4096, k: 4096, split: 4, end: "store" },
  { name: "qkv", n: 6144, k: 4096, split: 1, end: "qkv" },
  { name: "qkvStore", n: 6144, k: 4096, split: 1, end: "store" },
  { name: "down", n: 4096, k: 14336, split: 4, end: "store" },
  { name: "smallQkv", n: 4096, k: 1024, split: 1, end: "store" },
  { name: "smallGateUp", n: 6144, k: 1024, split: 1, end: "swiglu" },
  { name: "smallO", n: 1024, k: 2048, split: 4, end: "store" },
  { name: "smallDown", n: 1024, k: 3072, split: 4, end: "store" },
  { name: "mixQkv", n: 5120, k: 2048, split: 1, end: "store" },
  { name: "mixO", n: 2048, k: 4096, split: 4, end: "store" },
  { name: "latentQ", n: 3648, k: 2048, split: 1, end: "store" },
  { name: "latentO", n: 2048, k: 2048, split: 4, end: "store" },
  { name: "head", n: 128256, k: 4096, split: 1, end: "store" },
];
const ODD = ["store", "swiglu", "qkv"].map((end) =>
  ({ name: `odd ${end}`, n: 768, k: 256, split: 1, end }) as Shape
);
const SHAPES = small ? ODD : flags.shapes.split(",").map((text) => {
  const [name, split] = text.split("/");
  const [n = 0, k = 0] = (name ?? "").split("x").map(Number);
  const any: Shape = { name: text, n, k, split: 1, end: "store" };
  const shape = ALL.find((one) => one.name === name) ?? any;
  return { ...shape, split: Number(split ?? shape.split) };
});

interface Spec {
  readonly text: string;
  readonly numbers: readonly number[];
  readonly xIsF16: boolean;
}

/** The tiles of a list that are for a shape. */
function specsOf(list: string, shape: string): Spec[] {
  return list.split(",").filter((text) => text !== "").flatMap((text) => {
    const [names, spec = names] = text.includes("=") ? text.split("=") : ["", text];
    if (names !== "" && !names?.split("+").includes(shape)) return [];
    const xIsF16 = spec?.endsWith(".p") ?? false;
    const numbers = (spec ?? "").split(".").filter((part) => part !== "p").map(Number);
    return [{ text: spec ?? "", numbers, xIsF16 }];
  });
}

/** x of 16 rows with each number as two f16 numbers, [16, 2, k]. */
function pairsOf(x: Float32Array, scales: Float32Array, k: number): Uint32Array<ArrayBuffer> {
  const scaled = x.map((value, i) => value * (scales[Math.floor(i / k)] ?? NaN));
  const his = new Float32Array(
    new Uint32Array(scaled.buffer).map((bits) => bits & 0xffffe000).buffer,
  );
  const out = new Float16Array(2 * scaled.length);
  for (const [i, hi] of his.entries()) {
    const at = 2 * (i - i % k) + i % k;
    out[at] = hi;
    out[at + k] = (scaled[i] ?? NaN) - hi;
  }
  return new Uint32Array(out.buffer);
}

function words(values: Uint32Array<ArrayBuffer>): Operand {
  const buffer = storage(gpu.device, "words", values.byteLength);
  gpu.device.queue.writeBuffer(buffer, 0, values);
  return { buffer };
}

/** The epilogue that stores the heads of qkv: heads of 128, of which a third are keys and values. */
function placeOf({ n }: Shape, rows: number): Epilogue {
  const context = 512;
  const headDim = 128;
  const kvHeads = n / headDim / 6;
  const rope = { theta: 1e6, width: headDim, scaling: { kind: "default" } } as const;
  const table = ropeTable(rope, headDim, { positions: context, context });
  const fields = Array.from({ length: rows }, (_, i) => ({ position: 490 + i, cell: 490 + i }));
  const kv = () => ({ buffer: storage(gpu.device, "kv", 4 * context * kvHeads * headDim) });
  const tablePages = context / PAGE;
  return qkvEpilogue({
    rope: words(Uint32Array.from(new Uint32Array(table.buffer))),
    rows: words(Uint32Array.from(packRows(fields))),
    pages: words(Uint32Array.from(blockTable(1, tablePages))),
    keys: kv(),
    values: kv(),
  }, { heads: 4 * kvHeads, kvHeads, headDim, tablePages, kvDtype: "f32" });
}

/** The epilogue on matrix units, and the one of the SIMT kernels. */
function endsOf(shape: Shape, rows: number): readonly [Epilogue, Epilogue] {
  if (shape.end === "swiglu") {
    const outScales = { buffer: storage(gpu.device, "outScales", 64) };
    return [scaledEpilogue("silu", outScales), PLAIN.swiglu];
  }
  const end = shape.end === "qkv" ? placeOf(shape, rows) : PLAIN.store;
  return [end, end];
}

async function floatsOf({ buffer }: Operand, count: number): Promise<Float32Array> {
  return new Float32Array(await readBuffer(gpu, { buffer, size: 4 * count }));
}

interface Variant {
  readonly what: string;
  readonly programs: readonly Program[];
  readonly us: number[];
}

async function shapeAt(shape: Shape, rows: number): Promise<void> {
  const { name, n, k, split } = shape;
  const all: Buffers[] = [];
  for (let i = 0; i < (small ? 1 : Math.max(1, Math.ceil((160 << 20) / (2 * n * k)))); i++) {
    const buffers = await buffersOf(bench, shape, 16 * split, 10 + i);
    await run(bench, [
      rowScales({ x: buffers.x, scales: buffers.xScales }, { rows: 16, cols: k }),
      halveWeights({ ...buffers, scales: buffers.wScales }, { rows: n, cols: k }),
    ]);
    all.push(buffers);
  }
  const [epilogue, other] = endsOf(shape, rows);
  const variants: Variant[] = [];
  const add = async (what: string, planOf: (buffers: Buffers) => Plan) => {
    if (performance.now() - started > 1000 * Number(flags.seconds)) return;
    try {
      const programs: Program[] = [];
      for (const buffers of all) programs.push(await bench.make.compile(planOf(buffers)));
      variants.push({ what, programs, us: [] });
    } catch (error) {
      say(`${name} ${rows} rows FAILED ${what}: ${String(error).slice(0, 200)}`);
    }
  };
  const shardOf = ({ weights }: Buffers) => ({ operand: weights, first: 0, rows: n });
  const lanes = lanesFor("bf16", k, rules.lanes);
  const whole = { format: "bf16", rowOrder: "stacked", rows: n, cols: k, lanes } as const;
  if (!flags.bare) {
    await add("SIMT", (b) =>
      matmul(
        { matrix: { ...whole, shards: [shardOf(b)] }, ...b },
        { rows, epilogue: other, splitK: split, tuning: rules, label: "SIMT" },
      ));
  }
  const of = {
    unit,
    rows,
    matrix: { rows: n, cols: k },
    splitK: split,
    label: name,
    halved: true,
    epilogue,
  };
  const range = k / split;
  const tile = tensorTile(unit, gpu.limits, { rows, columns: n, range, splitK: split, low: 1 });
  if (tile && !flags.bare) {
    await add(
      `matmul_tensor ${JSON.stringify(Object.values(tile))}`,
      (b) => [matmulTensor(b, { ...of, shard: shardOf(b), tile })],
    );
  }
  const inputs = new Map<Buffers, Operand>();
  for (const b of all) {
    const [x, scales] = [await floatsOf(b.x, 16 * k), await floatsOf(b.xScales, 16)];
    inputs.set(b, words(pairsOf(x, scales, k)));
  }
  const given = (b: Buffers, xIsF16: boolean): Buffers =>
    xIsF16 ? { ...b, x: inputs.get(b) as Operand } : b;
  for (const { text, numbers, xIsF16 } of specsOf(flags.tensor, name)) {
    const [subgroups = 1, r = 1, c = 1, ownR = 1, ownC = 1, stage = 64, ahead = 1] = numbers;
    const [early = false, joined = false, inTurn = false] = numbers.slice(7).map((number) =>
      number === 1
    );
    const one: TensorTile = {
      subgroups,
      grid: [r, c],
      own: [ownR, ownC],
      stage,
      ahead,
      early,
      joined,
      inTurn,
    };
    if (range % stage !== 0 || tileBytes(unit, one) > gpu.limits.maxComputeWorkgroupStorageSize) {
      continue;
    }
    const multiply = { ...of, tile: one, xIsF16 };
    await add(
      `tensor ${text}`,
      (b) => [matmulTensor(given(b, xIsF16), { ...multiply, shard: shardOf(b) })],
    );
  }
  for (const { text, numbers, xIsF16 } of specsOf(flags.tiles, name)) {
    const [columns = 1, stage = 64, ahead = 2, branched, subgroups = 1] = numbers;
    const few: FewTile = { columns, stage, ahead, branched: branched === 1, subgroups };
    if (rows > fewRows(unit) || range % stage !== 0 || !fewFits(unit, few, gpu.limits, { rows })) {
      continue;
    }
    const multiply = { ...of, tile: few, xIsF16 };
    await add(
      text,
      (b) => [matmulTensorFew(given(b, xIsF16), { ...multiply, shard: shardOf(b) })],
    );
  }
  await timeRounds(variants);
  const out = (all[0] as Buffers).out.buffer;
  const size = 4 * rows * Math.round(n * epilogue.outShare) * split;
  let reference: Uint32Array | undefined;
  const [first] = variants;
  say(`${name}/${split} ${rows} rows, ${first?.what}: ${median(first?.us ?? []).toFixed(1)} us`);
  for (const { what, programs, us } of flags.bare ? variants : variants.slice(1)) {
    await sample(programs, programs.length);
    const bits = new Uint32Array(await readBuffer(gpu, { buffer: out, size }));
    reference ??= bits;
    const differ = bits.some((word, i) => word !== reference?.[i]);
    const over = median(us.map((time, i) => time / (first?.us[i] ?? NaN)));
    say(
      `  ${median(us).toFixed(1).padStart(6)} us ${over.toFixed(3)}  ${what}${
        differ ? " OTHER BITS" : ""
      }`,
    );
  }
  all.forEach(free);
}

/** Times all variants in turn, after running the first one until clocks are up. */
async function timeRounds(variants: readonly Variant[]): Promise<void> {
  const [first] = variants;
  const from = performance.now();
  while (first && !small && !gpu.info.software && performance.now() - from < 300) {
    await sample(first.programs, 600);
  }
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const { programs, us } of variants) us.push(1000 * await sample(programs, small ? 2 : 48));
  }
}

say(`${gpu.info.adapter}, unit ${JSON.stringify(unit)}`);
for (const rows of flags.rows.split(",").map(Number)) {
  for (const shape of SHAPES) await shapeAt(shape, rows);
}
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);
