/**
 * `deno run -A bench/attention_many.ts [--webgpu dawn|builtin] [--small]`: attention of a prefill chunk of
 * Llama-3.1-8B, by attention_tiled.wgsl and without it: microseconds of both kernels, and whether the bits are
 * the same.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { attention, partialWords } from "../shaders/attention/attention.ts";
import { fillParams, fillRandom } from "../shaders/weights/fill_random.ts";
import { storage } from "../src/gpu/arena.ts";
import { openGpu } from "../src/gpu/device.ts";
import type { Operand } from "../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../src/gpu/kv.ts";
import { tuning } from "../src/gpu/matrix.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program, submit, within } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { PAGE, ROW_WORDS } from "../src/model/plan/rows_layout.ts";
import { timeOf } from "./units/tensor_buffers.ts";

const { values: flags } = parseArgs({
  options: {
    webgpu: { type: "string", default: "dawn" },
    small: { type: "boolean", default: false },
  },
});
const gpu = await openGpu({ webgpu: flags.webgpu === "builtin" ? "builtin" : "dawn" });
const { device } = gpu;
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });

async function filled(count: number, stream: number, std: number): Promise<Operand> {
  const [params, out] = [storage(device, "params", 16), storage(device, "filled", 4 * count)];
  device.queue.writeBuffer(params, 0, fillParams({ seed: 1, stream, std }));
  const plan = [fillRandom({ params: { buffer: params }, out: { buffer: out } }, "fill")];
  submit(gpu, await make.compile(plan));
  return { buffer: out };
}

function words(data: Uint32Array<ArrayBuffer>): Operand {
  const buffer = storage(device, "words", data.byteLength);
  device.queue.writeBuffer(buffer, 0, data);
  return { buffer };
}

interface Chunk {
  /** Cells before the chunk. */
  readonly before: number;
  readonly count: number;
  /** Cells that the block table has room for. */
  readonly context: number;
  readonly headDim: number;
  readonly kvDtype: KvDtype;
}

async function timeChunk({ before, count, context, headDim, kvDtype }: Chunk): Promise<void> {
  const [heads, kvHeads] = flags.small ? [4, 1] : [32, 8];
  const tablePages = context / PAGE;
  const kvWords = context * kvHeads * headDim * KV_BYTES[kvDtype] / 4;
  const rows = new Uint32Array(count * ROW_WORDS);
  for (let r = 0; r < count; r++) {
    rows.set([0, before + r, 0, before + r, before + r + 1, 1], r * ROW_WORDS);
  }
  const sizes = { heads, kvHeads, headDim, tablePages, kvDtype };
  const partial = partialWords(sizes, count, { software: false });
  const out: Operand = { buffer: storage(device, "out", 4 * count * heads * headDim) };
  const buffers = {
    q: await filled(count * heads * headDim, 1, 1),
    // As bf16 or f16 these are numbers too.
    keys: await filled(kvWords, 2, 1),
    values: await filled(kvWords, 3, 1),
    rows: words(rows),
    pages: words(Uint32Array.from({ length: tablePages }, (_, i) => i)),
    partial: {
      sums: { buffer: storage(device, "sums", 4 * partial.sums) },
      stats: { buffer: storage(device, "stats", 4 * partial.stats) },
    },
    out,
  };
  const tuned = tuning(false, gpu.limits, gpu.info.backend);
  const lines: string[] = [];
  const bits: Uint32Array[] = [];
  for (const tiles of [false, true]) {
    const plan = attention(buffers, {
      ...{ ...sizes, count, perSlot: count, paths: false, scale: headDim ** -0.5, label: "many" },
      tuning: { ...tuned, tiles: tuned.tiles && tiles },
    });
    const all = within(await make.compile(plan), before + count);
    submit(gpu, all);
    bits.push(new Uint32Array(await readBuffer(gpu, out)));
    const parts = [plan.filter((_, i) => i % 2 === 0), plan.filter((_, i) => i % 2 === 1)];
    const programs: Program[] = [all];
    for (const part of parts) programs.push(within(await make.compile(part), before + count));
    const us: number[] = [];
    for (const program of programs) us.push(await timeOf({ profiler }, [program], 50));
    lines.push(`${plan.length} dispatches ${us.map((each) => each.toFixed(1)).join(" ")} us`);
  }
  const cells = count * before + count * (count + 1) / 2;
  const same = bits[0]?.every((word, i) => word === bits[1]?.[i]);
  process.stdout.write(
    `${count} rows after ${before}, context ${context}, ${headDim} ${kvDtype}, ${
      (4e-9 * cells * heads * headDim).toFixed(2)
    } GFLOP: ${lines.join("; tiled ")}; ${same ? "same bits" : "DIFFERENT BITS"}\n`,
  );
  const { partial: { sums, stats }, ...others } = buffers;
  for (const { buffer } of [sums, stats, ...Object.values(others)]) buffer.destroy();
}

const shape = { before: 0, count: 512, context: 1024, headDim: 128, kvDtype: "f32" } as const;
const chunks: readonly Chunk[] = flags.small ? [{ ...shape, count: 40, context: 64 }] : [
  shape,
  { ...shape, context: 8192 },
  { ...shape, count: 256 },
  { ...shape, count: 64 },
  { ...shape, before: 7680, context: 8192 },
  { ...shape, before: 7680, context: 8192, kvDtype: "bf16" },
  { ...shape, headDim: 64 },
  { ...shape, count: 32, before: 480 },
];
for (const chunk of chunks) await timeChunk(chunk);
Deno.exit(0);
