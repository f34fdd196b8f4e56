/** Throw-away: a layer of DeepSeek-V2-Lite at few rows, its dispatches left out or done twice. */
import { latentPartialWords } from "../shaders/latent/latent_attention.ts";
import { matmul } from "../shaders/matmul/matmul.ts";
import { splitKOf } from "../shaders/matmul/matmul_shape.ts";
import { rmsNorm } from "../shaders/norm/rms_norm.ts";
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
  { rows, format, context, copies }: {
    rows: number;
    format: WeightFormat;
    context: number;
    copies: number;
  },
): Dispatch[][] {
  const { heads, nope, rope, value, rank, hidden, wide } = S;
  const tablePages = Math.max(PAGES, context / 16);
  const width = rank + rope;
  const t = tuning(from.gpu.info.software, from.gpu.limits, from.gpu.info.backend);
  const floats = (n: number) => from.random((rows + 8) * n);
  const words = latentPartialWords({ heads, rank, tablePages }, rows);
  const scratch = {
    ...{ x: floats(hidden), otherX: floats(hidden), normed: floats(hidden) },
    ...{ qkv: floats(heads * (nope + rope) + width), q: floats(heads * width) },
    partial: { sums: from.random(words.sums), stats: from.random(words.stats) },
    ...{ attentionOutput: floats(heads * width), act: floats(wide), sums: floats(4 * hidden) },
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
    const norm = (name: string, splitK: number) =>
      rmsNorm({ from: { x: scratch.x, sums: scratch.sums, splitK }, weight, out: scratch.normed }, {
        rows,
        cols: hidden,
        eps: 1e-6,
        lanes: t.rowLanes,
        label: name,
      });
    const splitK = splitKOf(down, t);
    return [
      ...norm("norm", splitK),
      ...latentAttention(decoder, { weights, kv, label }, {
        input: scratch.normed,
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

export async function time(gpu: Gpu, plan: Dispatch[], context: number, ms = 120): Promise<number> {
  const { compile } = compiler(gpu);
  const program = within(await compile(plan), context);
  const profiler = await openProfiler(gpu, { queries: 2 });
  const one = async () => (await profiler.time([program]))[0]?.end ?? NaN;
  const samples: number[] = [];
  const start = performance.now();
  let warm = 0;
  while (performance.now() - start < ms || samples.length < 3) {
    const value = await one();
    if (performance.now() - start > ms / 3 || warm++ > 20) samples.push(value);
  }
  profiler[Symbol.dispose]();
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 4)] as number;
}

if (import.meta.main) {
  using gpu = await openGpu();
  const copies = small ? 1 : 4;
  const repeat = small ? 1 : 4;
  const formats = Deno.args.filter((a) => /^(bf16|q8)$/.test(a)) as WeightFormat[];
  const contexts = Deno.args.filter((a) => /^\d+$/.test(a)).map(Number);
  for (const format of formats.length ? formats : ["bf16"] as const) {
    for (const context of contexts.length ? contexts : [512]) {
      using from = openAllocations(gpu);
      const made = layers(from, { rows: 1, format, context, copies });
      await from.filled();
      const of = (change: (d: Dispatch) => Dispatch[]) =>
        time(gpu, Array.from({ length: repeat }, () => made.flat().flatMap(change)).flat(), context)
          .then((ms) => ms * 1000 / copies / repeat);
      await time(gpu, made.flat(), context, small ? 10 : 400);
      const whole = await of((d) => [d]);
      console.log(`${format} context ${context}: a layer ${whole.toFixed(1)} us`);
      const names = [...new Set(made.flat().map(({ label }) => label.replace(/^l\d\./, "")))];
      for (const name of names) {
        const is = (d: Dispatch) => d.label.replace(/^l\d\./, "") === name;
        const [less, twice] = [
          await of((d) => is(d) ? [] : [d]),
          await of((d) => is(d) ? [d, d] : [d]),
        ];
        console.log(
          `  ${name.padEnd(18)} left out ${(whole - less).toFixed(1)}  twice ${
            (twice - whole).toFixed(1)
          }`,
        );
      }
      const alone = await of((d) => /gateUp|down/.test(d.label) ? [] : [d]);
      console.log(`  without gateUp, down ${alone.toFixed(1)}`);
    }
  }
}
