/**
 * `deno run -A lab/latent_many.ts [--webgpu dawn|builtin] [--small] [--counts 64,512] [--context N] [PART...]`: latent
 * attention of a DeepSeek-V2-Lite prompt chunk that ends at cell N, with the kernels for few rows and with the kernels
 * for many rows. Prints microseconds and whether both give the same bits. Parts: absorb, attention, value.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { latentPrepare } from "../kernels/mla/latent_prepare.ts";
import { latentAttention, latentPartialWords } from "../kernels/mla/latent_attention.ts";
import { TILES } from "../kernels/mla/latent_kernels.ts";
import { latentValue } from "../kernels/mla/latent_value.ts";
import { prepareRows, valueRows } from "../kernels/mla/kv_b.ts";
import { storage } from "../src/gpu/arena.ts";
import { openGpu } from "../src/gpu/device.ts";
import type { Dispatch, Operand } from "../src/gpu/kernel.ts";
import { tuning } from "../src/gpu/tuning.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program, submit, within } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { blockTable, packRows } from "../tests/kernels/rows.ts";
import { openAllocations } from "./allocations.ts";
import { sampleMs } from "./sample.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    webgpu: { type: "string", default: "dawn" },
    small: { type: "boolean", default: false },
    counts: { type: "string" },
    context: { type: "string" },
  },
});
const gpu = await openGpu({ webgpu: flags.webgpu === "builtin" ? "builtin" : "dawn" });
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const rules = tuning(false, gpu.limits, gpu.info.backend);
const sizes = flags.small
  ? { heads: 16, nope: 48, rope: 16, value: 72, rank: 144, interleaved: true }
  : { heads: 16, nope: 128, rope: 64, value: 128, rank: 512, interleaved: true };
const { heads, nope, rope, value, rank } = sizes;
const width = rank + rope;
const kvDtype = "f32";
const counts = (flags.counts ?? (flags.small ? "260" : "64,128,256,512")).split(",").map(Number);

const ms = (program: Program, runs: number) => sampleMs(profiler, [program], runs);

async function warm(program: Program, least: number): Promise<void> {
  const start = performance.now();
  do await ms(program, 5); while (performance.now() - start < least);
}

let warmed = flags.small;

/** Times both plans. The second must write the same bits to `out` as the first. */
async function compare(
  part: string,
  out: Operand,
  plans: readonly [few: readonly Dispatch[], many: readonly Dispatch[]],
  context: number,
): Promise<void> {
  if (positionals.length > 0 && !positionals.includes(part)) return;
  const lines: string[] = [];
  let first: Uint32Array | undefined;
  for (const plan of plans) {
    const program = within(await make.compile(plan), context);
    const encoder = gpu.device.createCommandEncoder();
    encoder.clearBuffer(out.buffer);
    gpu.device.queue.submit([encoder.finish()]);
    submit(gpu, program);
    const bits = new Uint32Array(await readBuffer(gpu, out));
    first ??= bits;
    const same = bits.every((word, i) => word === first![i]) && bits.some((word) => word !== 0);
    await warm(program, warmed ? 15 : 800);
    warmed = true;
    const once = await ms(program, 1);
    const us = 1000 * await ms(program, flags.small ? 1 : Math.ceil(5 / once));
    lines.push(`${us.toFixed(1)}${same ? "" : " (DIFFERENT BITS)"}`);
  }
  process.stdout.write(`${part}: ${lines.join(" -> ")} us\n`);
}

for (const count of counts) {
  using from = openAllocations(gpu);
  const context = Math.max(count, Number(flags.context ?? count));
  process.stdout.write(`${count} rows up to cell ${context}\n`);
  const floats = (count: number): Operand => ({
    buffer: storage(gpu.device, "out", 4 * count),
  });
  const matrix = from.matrix(heads * (nope + value), rank, "bf16");
  const kvB = { ...matrix, format: "bf16" as const };
  const launch = { ...sizes, count, tuning: rules };
  const rows = from.words(
    new Uint32Array(
      packRows(
        Array.from({ length: count }, (_, i) => {
          const position = context - count + i;
          return { position, cell: position, base: position + 1 };
        }),
      ),
    ),
  );
  const tablePages = Math.ceil(context / 16);
  const pages = from.words(Uint32Array.from(blockTable(1, tablePages)));
  const cols = heads * (nope + rope) + width;
  const x = from.random(count * cols);
  const latents = from.random(tablePages * 16 * width);
  const normWeight = from.random(rank);
  const turns = from.random(context * rope);
  const q = from.random(count * heads * width);
  await from.filled();
  const [mixed, values] = [floats(count * heads * width), floats(count * heads * value)];

  const prepared = {
    kvB,
    out: mixed,
    normWeight,
    rope: turns,
    rows,
    pages,
    latents,
    input: { x, cols, latent: cols - width, queries: true },
  };
  const preparing = { ...launch, eps: 1e-6, tablePages, kvDtype, label: "prepare" } as const;
  await compare("absorb", mixed, [
    [latentPrepare(prepared, preparing)],
    prepareRows(prepared, preparing),
  ], context);

  const seen = { heads, kvHeads: 1, headDim: width, rank, tablePages, kvDtype } as const;
  const words = latentPartialWords(seen, count, {});
  const partial = { sums: floats(words.sums), stats: floats(words.stats) };
  const attending = {
    ...seen,
    count,
    perSlot: count,
    paths: false,
    scale: 0.3,
    tuning: rules,
    label: "attention",
  };
  const attended = { q, latents, rows, pages, partial, out: mixed };
  await compare("attention", mixed, [
    latentAttention(attended, { ...attending, tile: TILES.many }),
    latentAttention(attended, attending),
  ], context);

  const valued = { kvB, attentionOutput: q, out: values };
  await compare("value", values, [
    [latentValue(valued, { ...launch, label: "value" })],
    [valueRows(valued, { ...launch, label: "value" })],
  ], context);
  for (const { buffer } of [mixed, values, partial.sums, partial.stats]) buffer.destroy();
}
Deno.exit(0);
