/** Throw-away: a layer of DeepSeek-V2-Lite at few rows, its dispatches left out or done twice. */
import { latentPartialWords } from "../shaders/latent/latent_attention.ts";
import { matmul } from "../shaders/matmul/matmul.ts";
import { shapeKey, splitKOf } from "../shaders/matmul/matmul_shape.ts";
import { enterBranch } from "../src/model/plan/branch_input.ts";
import { latentAttention } from "../src/model/plan/latent_attention.ts";
import type { DecoderContext } from "../src/model/plan/decoder_context.ts";
import type { ModelConfig } from "../src/model/config/types.ts";
import { KV_BYTES } from "../src/gpu/kv.ts";
import { type FloatFormat, tuning, type WeightFormat } from "../src/gpu/matrix.ts";
import type { Dispatch } from "../src/gpu/kernel.ts";
import { type Gpu, openGpu } from "../src/gpu/device.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, within } from "../src/gpu/program.ts";
import { blockTable, packRows } from "../tests/shaders/rows.ts";
import { type Allocations, openAllocations } from "./allocations.ts";

const small = Deno.args.includes("small");
const p = small ? 8 : 1;
const S = {
  heads: 16 / p,
  nope: 128 / p,
  rope: 64 / p,
  value: 128 / p,
  rank: 512 / p,
  hidden: 2048 / p,
  wide: 11264 / p,
};
const PAGES = 64;

export function layers(
  from: Allocations,
  { rows, format, context, copies, hold = true, threads }: {
    rows: number;
    format: WeightFormat;
    context: number;
    copies: number;
    hold?: boolean;
    threads?: number;
  },
): Dispatch[][] {
  const { heads, nope, rope, value, rank, hidden, wide } = S;
  const tablePages = Math.max(PAGES, context / 16);
  const width = rank + rope;
  const rules = tuning(from.gpu.info.software, from.gpu.limits, from.gpu.info.backend);
  const t = { ...rules, ...threads ? { rowLanes: threads } : {} };
  const floats = (n: number) => from.random((rows + 8) * n);
  const words = latentPartialWords({ heads, rank, tablePages }, rows);
  const scratch = {
    ...{ x: floats(hidden), otherX: floats(hidden), normed: floats(hidden) },
    ...{ qkv: floats(heads * (nope + rope) + width), q: floats(heads * width) },
    partial: { sums: from.random(words.sums), stats: from.random(words.stats) },
    ...{ attentionOutput: floats(heads * width), act: floats(wide), sums: floats(4 * hidden) },
    ...{ experts: floats(8 * hidden), shares: floats(8) },
  };
  const list = from.words(
    new Uint32Array(packRows(Array.from({ length: rows }, (_, i) => {
      const position = context - rows + i;
      return { position, cell: position, base: position + 1 };
    }))),
  );
  const pages = from.words(Uint32Array.from(blockTable(1, tablePages)));
  const ropes = [from.random(tablePages * 16 * rope)];
  const decoder = {
    config: { hiddenSize: hidden, rmsNormEps: 1e-6 } as ModelConfig,
    tuning: t,
    scratch,
    ropes,
    pages,
    tablePages,
    kvDtype: "f32",
  } as unknown as DecoderContext;
  const spec = {
    kind: "latent",
    numHeads: heads,
    nopeDim: nope,
    ropeDim: rope,
    valueDim: value,
    rank,
    queryRank: undefined,
    scale: 0.1,
    interleaved: true,
    window: undefined,
    rope: 0,
  } as const;
  return Array.from({ length: copies }, (_, i) => {
    const label = `l${i}`;
    const kvB = {
      ...from.matrix(heads * (nope + value), rank, "bf16"),
      format: "bf16" as FloatFormat,
    } as never;
    const weights = {
      kind: "latent",
      spec,
      kvNorm: from.random(rank),
      kvB,
      input: { kind: "joined", matrix: from.matrix(heads * (nope + rope) + width, hidden, format) },
      o: from.matrix(hidden, heads * value, format),
    } as const;
    const kv = {
      keys: from.random(tablePages * 16 * width * KV_BYTES.f32 / 4),
      values: from.random(4),
    };
    const gateUp = from.matrix(2 * wide, hidden, format);
    const down = from.matrix(hidden, wide, format);
    const weight = from.random(hidden);
    const splitK = splitKOf(down, t);
    const outputs = {
      stream: scratch.x,
      outputs: scratch.experts,
      shares: scratch.shares,
      experts: 8,
    };
    const first = hold ? { matrix: weights.input.matrix, bound: 0 } : undefined;
    const entered = enterBranch(
      { ...decoder, tuning: rules },
      { from: outputs, weight, first },
      rows,
      "norm",
    );
    return [
      ...entered.plan,
      ...latentAttention(decoder, { weights, kv, label }, {
        input: entered.input,
        of: { rows: list, count: rows, perSlot: rows },
      }).plan,
      ...matmul({ matrix: gateUp, x: scratch.normed, out: scratch.act }, {
        rows,
        epilogue: "swiglu",
        tuning: t,
        label: "gateUp",
      }),
      ...matmul({ matrix: down, x: scratch.act, out: scratch.sums }, {
        rows,
        epilogue: "store",
        splitK,
        tuning: t,
        label: "down",
      }),
    ];
  });
}

const compilers = new WeakMap<Gpu, ReturnType<typeof compiler>>();

export async function time(gpu: Gpu, plan: Dispatch[], context: number, ms = 80): Promise<number> {
  const { compile } = compilers.getOrInsertComputed(gpu, () => compiler(gpu));
  const program = within(await compile(plan), context);
  const profiler = await openProfiler(gpu, { queries: 2 });
  const one = async () => (await profiler.time([program]))[0]?.end ?? NaN;
  const samples: number[] = [];
  const start = performance.now();
  while (performance.now() - start < ms || samples.length < 3) {
    const value = await one();
    if (performance.now() - start > ms / 2 || samples.length < 3) samples.push(value);
  }
  profiler[Symbol.dispose]();
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 3)] as number;
}

/** A matrix of an uneven width at rows, by a launch or by rule, us. */
async function uneven(
  gpu: Gpu,
  [n, k]: readonly [number, number],
  format: WeightFormat,
  launches: readonly [rows: number, stage?: number, splitK?: number][],
) {
  using from = openAllocations(gpu);
  const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
  const bytes = n * k * (format === "bf16" ? 2 : format === "q8" ? 1 : 0.5);
  const copies = small ? 1 : Math.min(12, Math.ceil(1.5e8 / bytes));
  const matrices = Array.from({ length: copies }, () => from.matrix(n, k, format));
  const [x, out] = [from.random(272 * k), from.random(4 * 272 * n)];
  await from.filled();
  const one = matrices[0]!;
  const texts = [];
  for (const [rows, stage, splitK = splitKOf(one, rules)] of launches) {
    const forced = new Map([[shapeKey(one), new Map([[rows, { stage: stage ?? 0, groups: 8 }]])]]);
    const t = stage === undefined ? rules : { ...rules, launches: forced };
    const of = { rows, epilogue: "store", splitK, tuning: t, label: "m" } as const;
    const plan = matrices.flatMap((matrix) => matmul({ matrix, x, out }, of));
    const turns = rows > 8 || small ? 1 : Math.ceil(48 / copies);
    const all = Array.from({ length: turns }, () => plan).flat();
    const ms = await time(gpu, all, Infinity, 70);
    texts.push(`${rows} rows ${(ms * 1000 / copies / turns).toFixed(1)} (${plan[0]!.kernel.name})`);
  }
  console.log(`${n}x${k} ${format}: ${texts.join(", ")}`);
}

if (import.meta.main) {
  using gpu = await openGpu();
  const copies = small ? 1 : 3;
  const repeat = small ? 1 : 5;
  for (const text of Deno.args.filter((arg) => arg.includes("/"))) {
    const [format, cells, how = "", threads, rows = "1"] = text.split("/") as [
      WeightFormat,
      string,
      string,
      string,
      string,
    ];
    const context = Number(cells);
    using from = openAllocations(gpu);
    const made = layers(from, {
      ...{ rows: Number(rows), format, context, copies },
      ...{ hold: how.includes("hold"), threads: Number(threads) },
    });
    await from.filled();
    const of = (change: (d: Dispatch) => Dispatch[], ms = 70) =>
      time(
        gpu,
        Array.from({ length: repeat }, () => made.flat().flatMap(change)).flat(),
        context,
        ms,
      )
        .then((ms) => ms * 1000 / copies / repeat);
    const whole = await of((d) => [d], small ? 10 : 200);
    const texts = [`${text}: a layer ${whole.toFixed(1)} us;`];
    const names = [...new Set(made.flat().map(({ label }) => label.replace(/^l\d\./, "")))];
    for (const name of how.includes("each") ? names : []) {
      const is = (d: Dispatch) => d.label.replace(/^l\d\./, "") === name;
      texts.push(`less ${name} ${(whole - await of((d) => is(d) ? [] : [d])).toFixed(1)};`);
    }
    console.log(texts.join(" "));
  }
  await uneven(gpu, small ? [64, 192] : [2048, 10944], "q8", [[1], [8], [256]]);
  await uneven(gpu, small ? [64, 192] : [2048, 10944], "bf16", [[1, 0, 1], [1], [8], [256]]);
  await uneven(gpu, small ? [64, 192] : [2048, 10944], "q4", [[1], [8], [256]]);
  await uneven(gpu, [256, 704], "bf16", [[1, 0], [1], [8, 0], [8]]);
  await uneven(gpu, [4096, 11008], "bf16", [[1, 32, 1], [1], [8, 32, 1], [8]]);
}
