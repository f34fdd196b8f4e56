// Searches the workgroups of matmuls on matrix units for the rows of rounds and of prompts, with x as one f16 number.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/tiles.ts [--rows 32,64,512] [--shapes gateUp,down,...] [--seconds 60]
//     [--best 10]
//   EYRIE_WEBGPU=dawn deno run -A lab/units/tiles.ts --table
//
// x is rounded to f16 beforehand (for prompts; for gate-up, qkv and head, whose norms do it; for shapes with Halves
// behind their name) or by the workgroups. The epilogues are those of a model. As many workgroups are tried as
// --seconds for a shape allow. Prints the --best fastest and what the engine picks: microseconds with weights that no
// cache holds. All must give the same bits. --table times the tiles that round_tiles.ts has.
import { parseArgs } from "node:util";
import process from "node:process";
import { PLAIN, scaledEpilogue } from "../../kernels/lib/epilogue.ts";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import { fewTile } from "../../kernels/matmul/tensor/few_tiles.ts";
import {
  fitsTile,
  matmulTensor,
  type TensorTile,
  tileBytes,
  tileSize,
} from "../../kernels/matmul/tensor/matmul_tensor.ts";
import {
  fewFits,
  fewRows,
  type FewTile,
  matmulTensorFew,
} from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import { HALF_ROUNDS, roundRows } from "../../kernels/matmul/tensor/round_tiles.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { tensorTile } from "../../kernels/matmul/tensor/tensor_tiles.ts";
import { MULTIPROCESSORS } from "../../kernels/lib/h200.ts";
import { halveWeights } from "../../kernels/matmul/tensor/weight_scales.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { median } from "../../src/measure/statistics.ts";
import { sampleMs } from "../sample.ts";
import { type Bench, type Buffers, buffersOf, free, run } from "./tensor_buffers.ts";
import { tileText } from "./tensor_tiles.ts";

const { values: flags } = parseArgs({
  options: {
    rows: { type: "string", default: "32,64" },
    shapes: { type: "string", default: "gateUp,qkv,o,down,head" },
    seconds: { type: "string", default: "60" },
    table: { type: "boolean", default: false },
    best: { type: "string", default: "10" },
  },
});
const say = (text: string) => process.stdout.write(`${text}\n`);
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const profiler = await openProfiler(gpu, { queries: 2 });
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: 9 };

const SHAPES = [
  { name: "gateUp", n: 28672, k: 4096, split: 1, halves: true, swiglu: true },
  { name: "qkv", n: 6144, k: 4096, split: 1, halves: true },
  { name: "o", n: 4096, k: 4096, split: 4, halves: false },
  { name: "down", n: 4096, k: 14336, split: 4, halves: false },
  { name: "head", n: 128256, k: 4096, split: 1, halves: true },
  { name: "gateUpF32", n: 28672, k: 4096, split: 1, halves: false, swiglu: true },
  { name: "qkvF32", n: 6144, k: 4096, split: 1, halves: false },
  { name: "oHalves", n: 4096, k: 4096, split: 4, halves: true },
  { name: "downHalves", n: 4096, k: 14336, split: 4, halves: true },
  { name: "smallGateUp", n: 6144, k: 1024, split: 1, halves: true, swiglu: true },
  { name: "smallQkv", n: 4096, k: 1024, split: 1, halves: true },
  { name: "smallO", n: 1024, k: 2048, split: 4, halves: false },
  { name: "smallDown", n: 1024, k: 3072, split: 4, halves: false },
] as const;
type Shape = typeof SHAPES[number];

const MODES: readonly Partial<TensorTile>[] = [
  { ahead: 1 },
  { ahead: 1, early: true },
  { ahead: 2, early: true },
  { ahead: 2, inTurn: true, early: true },
];

const COLUMNS = [1, 2, 3, 4, 6, 7, 8, 14];

/** Column tiles of a workgroup with which the grid nearly fills whole waves of an H200's multiprocessors. */
function columnsOf({ n, split }: Shape, rowTiles: number, rows: number): number[] {
  return COLUMNS.filter((columns) => {
    const groups = Math.ceil(n / (16 * columns)) * split * Math.ceil(rows / (16 * rowTiles));
    const waves = groups / MULTIPROCESSORS;
    return waves / Math.ceil(waves) > 0.7 && waves <= 5 || waves > 4 && waves < 12;
  });
}

/** Workgroups with the given numbers of row tiles and column tiles. */
function tilesOf(
  rowTiles: number,
  columns: number,
  { range, most, stages }: {
    readonly range: number;
    /** The most tiles of a subgroup. */
    readonly most: number;
    readonly stages: readonly number[];
  },
): TensorTile[] {
  const found: TensorTile[] = [];
  for (let r = 1; r <= rowTiles; r++) {
    for (let c = 1; c <= columns; c++) {
      if (rowTiles % r !== 0 || columns % c !== 0) continue;
      const own = [rowTiles / r, columns / c] as const;
      const count = r * c;
      if (count < Math.min(4, rowTiles * columns) || count > 16) continue;
      if (own[0] * own[1] > most) continue;
      for (const stage of stages) {
        for (const mode of MODES) {
          const subgroups = Math.max(4, mode.inTurn && count % 2 === 1 ? count + 1 : count);
          const tile = { subgroups, grid: [r, c], own, stage, ahead: 1, ...mode } as const;
          if (range % stage === 0 && fitsTile(unit, tile, gpu.limits, 0)) found.push(tile);
        }
      }
    }
  }
  return found;
}

function fewTiles(shape: Shape, rows: number): FewTile[] {
  const found: FewTile[] = [];
  for (const subgroups of [1, 2, 3, 4, 8]) {
    for (const columns of [1, 2]) {
      for (const stage of [64, 128, 256]) {
        for (const ahead of [1, 2]) {
          for (const branched of [false, true]) {
            const tile = { subgroups, columns, stage, ahead, branched };
            const fits = shape.k / shape.split % (stage * ahead) === 0 &&
              fewFits(unit, tile, gpu.limits, { rows });
            if (fits) found.push(tile);
          }
        }
      }
    }
  }
  return found;
}

type Tile = TensorTile | FewTile;

function isPrompt(rows: number): boolean {
  return rows > roundRows(unit);
}

function candidates(shape: Shape, rows: number): Tile[] {
  const range = shape.k / shape.split;
  if (isPrompt(rows)) {
    const columns = [4, 5, 6, 8, 10, 12, 16];
    const of = { range, most: 20, stages: [32, 64, 128] };
    return [4, 8].flatMap((rowTiles) => columns.flatMap((c) => tilesOf(rowTiles, c, of)))
      .filter(({ subgroups, early, ahead, inTurn }) =>
        subgroups <= 8 && early && (ahead === 1 || inTurn)
      );
  }
  const of = { range, most: 8, stages: [64, 128] };
  const needed = Math.ceil(rows / 16);
  const all = (needed > 2 ? [needed, Math.ceil(needed / 2)] : [needed]).flatMap((rowTiles) =>
    columnsOf(shape, rowTiles, rows).flatMap((columns) => tilesOf(rowTiles, columns, of))
  );
  return rows > fewRows(unit) ? all : [...fewTiles(shape, rows), ...all];
}

function textOf(tile: Tile): string {
  if (!("own" in tile)) return `few ${JSON.stringify(tile)}`;
  const flags = (["early", "inTurn", "joined"] as const).filter((flag) => tile[flag]);
  return `${tileText(tile)} ${flags.join(" ")} [${tileSize(unit, tile).join(" x ")}]`;
}

/** Warms the clocks up: they fall while kernels are compiled. */
async function warm(programs: readonly Program[]): Promise<void> {
  const from = performance.now();
  while (performance.now() - from < 60) await sampleMs(profiler, programs, 100);
}

interface Variant {
  readonly what: string;
  readonly programs: readonly Program[];
  us: number;
}

async function search(shape: Shape, rows: number): Promise<void> {
  const { name, n, k, split } = shape;
  const halves = shape.halves || isPrompt(rows);
  const all: Buffers[] = [];
  for (let i = 0; i < Math.max(1, Math.ceil((160 << 20) / (2 * n * k))); i++) {
    const buffers = await buffersOf(bench, shape, rows * split, 10 + i);
    await run(bench, [
      rowScales({ x: buffers.x, scales: buffers.xScales }, { rows, cols: k }),
      halveWeights({ ...buffers, scales: buffers.wScales }, { rows: n, cols: k }),
    ]);
    if (halves) {
      const out: Operand = { buffer: storage(gpu.device, "halves", 2 * rows * k) };
      await run(bench, [
        halfRows({ x: buffers.x, scales: buffers.xScales, out }, { rows, cols: k, label: "x" }),
      ]);
      all.push({ ...buffers, x: out });
    } else all.push(buffers);
  }
  const swiglu = "swiglu" in shape;
  const outScales = { buffer: storage(gpu.device, "outScales", 4 * rows) };
  const epilogue = swiglu ? scaledEpilogue("silu", outScales) : PLAIN.store;
  const use = { rows, columns: n, range: k / split, splitK: split, low: 0, halves } as const;
  const rule = fewTile(unit, gpu.limits, use) ?? tensorTile(unit, gpu.limits, use) as TensorTile;
  // Candidates are shuffled, so that the ones that time is left for are of all kinds.
  const mixed = candidates(shape, rows).map((tile, i) => ({ tile, at: i * 0.618034 % 1 }));
  const tiles = [rule, ...mixed.toSorted((a, b) => a.at - b.at).map(({ tile }) => tile)];
  const make = async (tile: Tile): Promise<Variant | undefined> => {
    try {
      const programs = await Promise.all(all.map((b) => {
        const of = {
          unit,
          rows,
          matrix: { rows: n, cols: k },
          shard: { operand: b.weights, first: 0, rows: n },
          splitK: split,
          halved: true,
          precision: "f16",
          xIsF16: halves,
          epilogue,
          label: name,
        } as const;
        return bench.make.compile([
          "own" in tile ? matmulTensor(b, { ...of, tile }) : matmulTensorFew(b, { ...of, tile }),
        ]);
      }));
      return { what: textOf(tile), programs, us: NaN };
    } catch (error) {
      say(`FAILED ${textOf(tile)}: ${String(error).slice(0, 120)}`);
    }
  };
  const started = performance.now();
  const variants: Variant[] = [];
  let reference: Uint32Array | undefined;
  const size = 4 * rows * Math.round(n * epilogue.outShare) * split;
  let tried = 0;
  for (let i = 0; i < tiles.length; i += 16) {
    if (performance.now() - started > 1000 * Number(flags.seconds)) break;
    const made = await Promise.all(tiles.slice(i, i + 16).map(make));
    await warm((variants[0] ?? made[0])?.programs ?? []);
    for (const variant of made) {
      if (!variant) continue;
      tried++;
      const { programs } = variant;
      await sampleMs(profiler, programs, programs.length);
      const bits = new Uint32Array(
        await readBuffer(gpu, { buffer: (all[0] as Buffers).out.buffer, size }),
      );
      reference ??= bits;
      if (bits.some((word, j) => word !== reference?.[j])) say(`OTHER BITS: ${variant.what}`);
      await sampleMs(profiler, programs, 60);
      variant.us = 1000 * await sampleMs(profiler, programs, 40);
      variants.push(variant);
    }
  }
  const [first, ...others] = variants as [Variant, ...Variant[]];
  const best = [first, ...others.toSorted((a, b) => a.us - b.us).slice(0, Number(flags.best))];
  await warm(first.programs);
  const us = best.map((): number[] => []);
  for (let round = 0; round < 9; round++) {
    for (const [i, { programs }] of best.entries()) {
      us[i]?.push(1000 * await sampleMs(profiler, programs, 48));
    }
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  say(`\n${name} [${n}, ${k}]/${split}, ${rows} rows, ${tried} of ${tiles.length} in ${seconds} s`);
  const lines = best.map(({ what }, i) => ({ what, us: median(us[i] ?? []), rule: i === 0 }));
  for (const line of lines.toSorted((a, b) => a.us - b.us)) {
    say(`${line.us.toFixed(1).padStart(7)}  ${line.what}${line.rule ? "  <- the rule's" : ""}`);
  }
  all.forEach(free);
}

/**
 * Microseconds of the tiles of round_tiles.ts at k = 4,096, with x as f16 and as f32. Each multiprocessor gets one,
 * two, ... workgroups, up to as many as fit.
 */
async function table(): Promise<void> {
  const k = 4096;
  const most = MULTIPROCESSORS * 3 * 256;
  const buffers = await buffersOf(bench, { name: "table", n: most, k }, 64, 3);
  const out: Operand = { buffer: storage(gpu.device, "halves", 2 * 64 * k) };
  await run(bench, [
    halfRows({ x: buffers.x, scales: buffers.xScales, out }, { rows: 64, cols: k, label: "x" }),
    halveWeights({ ...buffers, scales: buffers.wScales }, { rows: most, cols: k }),
  ]);
  // The programs take turns and have separate weights, so that no cache holds them.
  const programsOf = (tile: TensorTile, each: number, xIsF16: boolean) => {
    const [rows, columns] = tileSize(unit, tile);
    const n = columns * MULTIPROCESSORS * each;
    const size = 2 * n * k;
    return Promise.all(
      Array.from({ length: Math.ceil((160 << 20) / size) }, (_, i) =>
        bench.make.compile([
          matmulTensor(xIsF16 ? { ...buffers, x: out } : buffers, {
            unit,
            tile,
            rows,
            matrix: { rows: n, cols: k },
            shard: { operand: { ...buffers.weights, offset: i * size, size }, first: 0, rows: n },
            halved: true,
            precision: "f16",
            xIsF16,
            label: "table",
          }),
        ])),
    );
  };
  const time = async (programs: readonly Program[]) => {
    await warm(programs);
    const us: number[] = [];
    for (let i = 0; i < 5; i++) us.push(1000 * await sampleMs(profiler, programs, 40));
    return median(us).toFixed(1);
  };
  const tiles = HALF_ROUNDS.flatMap(({ tile }) =>
    tile.inTurn ? [{ ...tile, early: false }, { ...tile, early: true }] : [tile]
  );
  for (const tile of tiles) {
    if (!fitsTile(unit, tile, gpu.limits, 0)) {
      say(`no room: ${textOf(tile)}`);
      continue;
    }
    const room = Math.min(4, Math.floor(49152 / tileBytes(unit, tile, 0)));
    const counts = Array.from({ length: room }, (_, i) => i + 1);
    const made = await Promise.all(
      [true, false].map((xIsF16) =>
        Promise.all(counts.map((each) => programsOf(tile, each, xIsF16)))
      ),
    );
    const texts: string[] = [];
    for (const counted of made) {
      const all: string[] = [];
      for (const programs of counted) all.push(await time(programs));
      texts.push(all.join(", "));
    }
    say(`[${texts[0]}] f32 [${texts[1]}] ${textOf(tile)}`);
  }
}

say(`${gpu.info.adapter} ${JSON.stringify(unit)}`);
if (flags.table) await table();
for (const rows of flags.table ? [] : flags.rows.split(",").map(Number)) {
  for (const name of flags.shapes.split(",")) {
    const shape = SHAPES.find((one) => one.name === name);
    if (shape) await search(shape, rows);
  }
}
Deno.exit(0);
