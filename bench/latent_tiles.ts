/**
 * `deno run -A bench/latent_many.ts [--webgpu dawn|builtin] [--small] [PART...]`: what latent attention does of a
 * prompt's chunk of DeepSeek-V2-Lite, by the kernels of few rows and by those of many: microseconds, and whether
 * the bits are the same.
 */
import { parseArgs } from "node:util";
import { TILES } from "../shaders/latent/latent_kernels.ts";
import { latentPrepare } from "../shaders/latent/latent.ts";
import { latentValue } from "../shaders/latent/latent_value.ts";
import { latentAttention, latentPartialWords } from "../shaders/latent/latent_attention.ts";
import { manyAttended, type SumTile, type WeighTile } from "../shaders/latent/many/attend.ts";
import { type BlockTile, manyAbsorbed, manyValues } from "../shaders/latent/many/kv_b.ts";
import { storage } from "../src/gpu/arena.ts";
import { openGpu } from "../src/gpu/device.ts";
import type { Dispatch, Operand } from "../src/gpu/kernel.ts";
import { tuning } from "../src/gpu/matrix.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { blockTable, packRows } from "../tests/shaders/rows.ts";
import { openAllocations } from "./allocations.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    webgpu: { type: "string", default: "dawn" },
    small: { type: "boolean", default: false },
  },
});
const gpu = await openGpu({ webgpu: flags.webgpu === "builtin" ? "builtin" : "dawn" });
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const from = openAllocations(gpu);
const rules = tuning(false, gpu.limits, gpu.info.backend);
const COUNT = flags.small ? 70 : 512;
const sizes = flags.small
  ? { heads: 2, nope: 48, rope: 16, value: 72, rank: 136, interleaved: true }
  : { heads: 16, nope: 128, rope: 64, value: 128, rank: 512, interleaved: true };
const { heads, nope, rope, value, rank } = sizes;

interface Variant {
  readonly name: string;
  readonly plan: readonly Dispatch[];
}

async function ms(program: Program, runs: number): Promise<number> {
  const steps = Array.from({ length: runs }, () => program.steps).flat();
  return ((await profiler.time([{ steps }]))[0]?.end ?? NaN) / runs;
}

async function warm(program: Program, least: number): Promise<number> {
  const start = performance.now();
  let last = await ms(program, 1);
  while (performance.now() - start < least) last = await ms(program, 20);
  return last;
}

/** Times them by turns; the first one's `out` is what all others must have. */
async function compare(part: string, out: Operand, variants: readonly Variant[]): Promise<void> {
  if (positionals.length > 0 && !positionals.includes(part)) return;
  const made: { name: string; program: Program; same: boolean }[] = [];
  let first: Uint32Array | undefined;
  for (const { name, plan } of variants) {
    const program = await make.compile(plan);
    const encoder = gpu.device.createCommandEncoder();
    encoder.clearBuffer(out.buffer);
    gpu.device.queue.submit([encoder.finish()]);
    submit(gpu, program);
    const bits = new Uint32Array(await readBuffer(gpu, out));
    first ??= bits;
    const same = bits.every((word, i) => word === first![i]) && bits.some((word) => word !== 0);
    made.push({ name, program, same });
  }
  const each = flags.small ? { turns: 1, warmMs: 0, runs: 1 } : { turns: 1, warmMs: 30, runs: 60 };
  await warm(made[0]!.program, flags.small ? 0 : 500);
  for (let turn = 0; turn < each.turns; turn++) {
    for (const { name, same, program } of made) {
      await warm(program, each.warmMs);
      const us = 1000 * await ms(program, each.runs);
      console.log(`${part} ${name}: ${us.toFixed(1)} us${same ? "" : " DIFFERENT BITS"}`);
    }
  }
}

const tile = (rows: number, outs: number, tall: number, wide: number, staged = 8): BlockTile => ({
  ...{ rows, outs, tall, wide, staged },
});
const nameOf = ({ rows, outs, tall, wide, staged }: BlockTile) =>
  `${rows}x${outs} ${tall}x${wide} ${staged}`;
const matrix = from.matrix(heads * (nope + value), rank, "bf16");
const kvB = { ...matrix, format: "bf16" as const };
const launch = { ...sizes, count: COUNT, tuning: rules };
const rows = from.words(
  new Uint32Array(
    packRows(
      Array.from({ length: COUNT }, (_, i) => ({ position: i, cell: i, base: i + 1 })),
    ),
  ),
);
const tablePages = 64;
const pages = from.words(Uint32Array.from(blockTable(1, tablePages)));
const floats = (count: number): Operand => ({ buffer: storage(gpu.device, "out", 4 * count) });
const made = floats(COUNT * heads * (rank + rope));
const cols = heads * (nope + rope) + rank + rope;
const short = from.random(COUNT * Math.max(cols, heads * value));
const latents = from.random(tablePages * 16 * (rank + rope));
const normWeight = from.random(rank);
const turns = from.random(COUNT * rope);
await from.filled();
const input = { x: short, cols, latent: cols - rank - rope, queries: true };

const heads4 = {
  heads,
  kvHeads: 1,
  headDim: rank + rope,
  rank,
  tablePages,
  kvDtype: "f32",
} as const;
const partial = latentPartialWords(heads4, COUNT);
const sums = floats(partial.sums);
const q = from.random(COUNT * heads * (rank + rope));
await from.filled();
const few = latentAttention(
  { q, latents, rows, pages, out: made, partial: { sums, stats: floats(partial.stats) } },
  {
    ...heads4,
    count: COUNT,
    perSlot: COUNT,
    paths: false,
    scale: 0.3,
    tuning: rules,
    label: "a",
    tile: TILES.many,
  },
).filter(({ forCells }) =>
  forCells === undefined || forCells.from <= COUNT && COUNT <= forCells.upTo
);
const many = (weigh: WeighTile, sum: SumTile) =>
  manyAttended({ q, keys: latents, rows, pages, sums, out: made }, {
    ...{ sizes: { rank, width: rank + rope, kvDtype: "f32" }, heads, tablePages, weigh, sum },
    ...{
      count: COUNT,
      perSlot: COUNT,
      firstRow: 0,
      runs: Math.ceil(COUNT / 128),
      scale: 0.3,
      label: "a",
    },
  });
const weigh = (
  queries: number,
  cells: number,
  lanes: number,
  tall: number,
  wide: number,
) => ({
  ...{ queries, cells, lanes, tall, wide },
});
const sum = (
  queries: number,
  dims: number,
  tall: number,
  fours: number,
  staged: number,
) => ({ queries, dims, tall, fours, staged });
const [W, S] = [weigh(64, 32, 8, 8, 8), sum(64, 64, 8, 1, 1)];
const pairs: [WeighTile, SumTile][] = [
  [W, S],
  [weigh(64, 32, 4, 8, 4), S],
  [weigh(64, 16, 8, 8, 8), S],
  [weigh(32, 32, 8, 8, 8), sum(32, 128, 8, 1, 1)],
  [W, sum(64, 64, 8, 1, 2)],
  [W, sum(64, 128, 8, 1, 1)],
  [W, sum(64, 64, 4, 2, 1)],
  [W, sum(64, 64, 4, 1, 1)],
  [W, sum(64, 64, 8, 2, 1)],
];
await compare("attention", made, [
  { name: "few", plan: few },
  { name: "many", plan: many(weigh(32, 32, 4, 8, 4), sum(32, 128, 8, 1, 2)) },
]);
await compare("weigh", sums, [
  ...[
    weigh(32, 32, 4, 8, 4),
    weigh(64, 32, 4, 8, 4),
    weigh(32, 32, 8, 8, 8),
    weigh(64, 32, 8, 8, 8),
    weigh(64, 64, 4, 8, 4),
  ].map((tile) => ({
    name: Object.values(tile).join(","),
    plan: many(tile, S).slice(0, 1),
  })),
]);
await compare("sum", made, [
  ...[
    sum(32, 128, 8, 1, 2),
    sum(32, 128, 8, 1, 1),
    sum(64, 64, 8, 1, 2),
    sum(64, 64, 8, 1, 1),
    sum(64, 64, 8, 2, 1),
    sum(32, 128, 8, 2, 1),
    sum(32, 64, 8, 1, 1),
  ].map((tile) => ({ name: Object.values(tile).join(","), plan: many(W, tile).slice(1) })),
]);
const values = floats(COUNT * heads * value);
const mixed = from.random(COUNT * heads * (rank + rope));
await from.filled();
await compare("value", values, [
  {
    name: "few",
    plan: [latentValue({ kvB, attentionOutput: mixed, out: values }, { ...launch, label: "v" })],
  },
  ...[
    tile(64, 64, 8, 4),
  ].map((tile) => ({
    name: nameOf(tile),
    plan: [
      manyValues({ kvB, attentionOutput: mixed, out: values }, { ...launch, label: "v", tile }),
    ],
  })),
]);

const prepare = latentPrepare(
  { kvB, input, out: made, normWeight, rope: turns, rows, pages, latents },
  { ...launch, eps: 1e-6, tablePages, kvDtype: "f32", label: "p" },
);
const rest = latentPrepare(
  { kvB, input, out: made, normWeight, rope: turns, rows, pages, latents },
  { ...launch, eps: 1e-6, tablePages, kvDtype: "f32", label: "p", absorbs: false },
);
await compare("absorb", made, [
  { name: "few", plan: [prepare] },
  { name: "all but absorbing (bits differ)", plan: [rest] },
  ...[
    tile(64, 128, 8, 4, 8),
    tile(64, 128, 8, 4, 16),
    tile(64, 128, 8, 8, 8),
    tile(64, 256, 8, 4, 8),
    tile(64, 64, 8, 4, 16),
    tile(32, 128, 8, 4, 16),
    tile(32, 128, 4, 4, 16),
  ].map((tile) => ({
    name: nameOf(tile),
    plan: [manyAbsorbed({ kvB, input, out: made }, { ...launch, label: "p", tile }), rest],
  })),
]);
from[Symbol.dispose]();
Deno.exit(0);
