// Quantized matmuls of many rows: shapes of the SIMT kernels beside those of the same weights in bf16.
//
//   deno run -A lab/quantized_rows.ts [--small] [--seconds 17] CASE ...
//
// A case is shape/rows/VARIANT,VARIANT,..., a variant format.kind.dots.rows.pairs.groups.stage[.roomy], where the kind
// may be resident2: x stays, with 2 blocks ahead. Figures are microseconds on warm clocks with weights that no cache
// holds: the median of rounds in which the variants of a case take turns. All variants of a format must give the same
// bits.
import { parseArgs } from "node:util";
import process from "node:process";
import { PLAIN } from "../kernels/lib/epilogue.ts";
import { matmulKernel } from "../kernels/matmul/matmul_kernels.ts";
import { columnWorkgroups, type MatmulShape } from "../kernels/matmul/matmul_shape.ts";
import type { ExpertShape } from "../kernels/experts/expert_shape.ts";
import { median } from "../src/measure/statistics.ts";
import { openGpu } from "../src/gpu/device.ts";
import { type Dispatch, dispatch, type Operand } from "../src/gpu/kernel.ts";
import type { Matrix } from "../src/gpu/matrix.ts";
import { WEIGHT_BYTES } from "../src/gpu/weight_format.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { openAllocations } from "./allocations.ts";
import { sampleMs } from "./sample.ts";
import { expertDispatch, lists, type Mixture } from "./quantized_experts.ts";

const { values: flags, positionals } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    seconds: { type: "string", default: "17" },
    rounds: { type: "string", default: "4" },
  },
  allowPositionals: true,
});
const started = performance.now();
const gpu = await openGpu({});
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const sample = (programs: readonly Program[], runs: number) => sampleMs(profiler, programs, runs);
const make = compiler(gpu);
const late = () => performance.now() - started > 1000 * Number(flags.seconds);

interface Shape {
  /** Outputs of the matrix; in a mixture, of one expert. */
  readonly n: number;
  readonly k: number;
  readonly splitK?: number;
  readonly mixture?: Mixture;
}
const SHAPES: Readonly<Record<string, Shape>> = {
  gateUp8: { n: 28672, k: 4096 },
  qkv8: { n: 6144, k: 4096 },
  o8: { n: 4096, k: 4096 },
  o8s: { n: 4096, k: 4096, splitK: 4 },
  down8s: { n: 4096, k: 14336, splitK: 4 },
  // Qwen3.6-27B.
  gateUp27: { n: 34816, k: 5120 },
  deltaIn27: { n: 16384, k: 5120 },
  down27: { n: 5120, k: 17408, splitK: 2 },
  o27: { n: 5120, k: 6144, splitK: 4 },
  qkv27: { n: 14336, k: 5120 },
  // Qwen3.5-9B.
  gateUp9: { n: 24576, k: 4096 },
  down9: { n: 4096, k: 12288, splitK: 4 },
  deltaIn9: { n: 12288, k: 4096 },
  // Gemma 4 26B-A4B and 12B.
  qkv26: { n: 8192, k: 2816 },
  gateUp12: { n: 30720, k: 3840 },
  down12: { n: 3840, k: 15360, splitK: 4 },
  // Qwen3.6-35B-A3B.
  deltaIn35: { n: 12288, k: 2048 },
  o35: { n: 2048, k: 4096, splitK: 4 },
  // A draft head of the 8B.
  qkvDraft: { n: 6144, k: 8192 },
  // Qwen3-0.6B.
  gateUp: { n: 6144, k: 1024 },
  qkv: { n: 4096, k: 1024 },
  // Four ranges of k of Qwen3-0.6B's o and down.
  o: { n: 4096, k: 512 },
  down: { n: 4096, k: 768 },
  tiny: { n: 256, k: 1024 },
  experts: { n: 1536, k: 2048, mixture: { experts: 128, topK: 8, epilogue: "swiglu" } },
  expertsDown: { n: 2048, k: 768, mixture: { experts: 128, topK: 8, epilogue: "store" } },
  experts35: { n: 1024, k: 2048, mixture: { experts: 256, topK: 8, epilogue: "swiglu" } },
  experts26: { n: 1408, k: 2816, mixture: { experts: 128, topK: 8, epilogue: "swiglu" } },
  expertsDown26: { n: 2816, k: 704, mixture: { experts: 128, topK: 8, epilogue: "store" } },
  tinyExperts: { n: 64, k: 512, mixture: { experts: 4, topK: 2, epilogue: "swiglu" } },
};

function denseDispatch(
  matrix: Matrix,
  { x, out }: { readonly x: Operand; readonly out: Operand },
  { shape, rows, splitK = 1 }: {
    readonly shape: MatmulShape;
    readonly rows: number;
    readonly splitK?: number | undefined;
  },
): Dispatch {
  const { format, lanes, cols } = matrix;
  const shard = matrix.shards[0]!;
  const made = matmulKernel(shape, { format, epilogue: PLAIN.store, lanes });
  return dispatch(made, {
    buffers: { weights: shard.operand, x, out, scales: shard.scales ?? shard.operand },
    constants: {
      COLS: cols,
      MATRIX_ROWS: shard.rows,
      OUT_COLS: shard.rows,
      FIRST: 0,
      SPLIT_K: splitK,
      LANES: lanes,
      GROUPS: shape.groups,
    },
    workgroups: [Math.ceil(rows / shape.rows), columnWorkgroups(shard, shape), splitK],
    label: "matmul",
  });
}

async function caseOf(text: string): Promise<void> {
  // A software adapter is treated as hardware.
  using of = openAllocations({ ...gpu, info: { ...gpu.info, software: false } });
  const [name = "", count = "", list = ""] = text.split("/");
  const shape = SHAPES[name];
  if (!shape) throw new Error(name);
  const { n, k, mixture, splitK } = shape;
  const rows = Number(count);
  const jobs = rows * (mixture?.topK ?? 1);
  const [x, out] = [of.random(jobs * k), of.random(jobs * n * (splitK ?? 1))];
  const matrices = new Map<string, Matrix[]>();
  const variants: { text: string; programs: Program[]; times: number[]; note: string }[] = [];
  const bits = new Map<string, Uint32Array>();
  for (const text of list.split(",")) {
    if (late()) break;
    const [format, kind, dots, tile, pairs, groups, stage, memory] = text.split(".");
    const stored = format as Matrix["format"];
    if (!matrices.has(stored)) {
      const copies = flags.small
        ? 1
        : Math.min(8, Math.ceil((160 << 20) / (WEIGHT_BYTES[stored] * n * k)));
      const count = mixture ? 1 : copies;
      const made = Array.from(
        { length: count },
        () => of.matrix(n * (mixture?.experts ?? 1), k, stored),
      );
      await of.filled();
      matrices.set(stored, made);
    }
    const launch = {
      kind: kind?.startsWith("resident") ? "resident" : kind,
      ahead: Number(kind?.slice("resident".length)),
      dots,
      rows: Number(tile),
      pairs: Number(pairs),
      groups: Number(groups),
      stage: Number(stage),
      roomy: memory === "roomy",
    } as MatmulShape;
    try {
      const from = performance.now();
      const programs: Program[] = [];
      for (const matrix of matrices.get(stored) ?? []) {
        const plan = mixture
          ? expertDispatch(matrix, {
            x,
            out,
            tiles: lists(gpu, mixture, { rows, tile: launch.rows }),
          }, {
            shape: { ...launch, tile: launch.rows } as unknown as ExpertShape,
            mixture,
            rows,
          })
          : denseDispatch(matrix, { x, out }, { shape: launch, rows, splitK });
        programs.push(await make.compile([plan]));
      }
      await sample(programs.slice(0, 1), 1);
      const size = 4 * n * Math.min(jobs, 16);
      const found = new Uint32Array(await readBuffer(gpu, { buffer: out.buffer, size }));
      const first = bits.getOrInsertComputed(stored, () => found);
      const differ = found.some((word, i) => word !== first[i]);
      const note = `compiled in ${(performance.now() - from).toFixed(0)} ms${
        differ ? ", OTHER BITS" : ""
      }`;
      if (performance.now() - from > 1500) say(`${text} ${note}`);
      variants.push({ text, programs, times: [], note });
    } catch (error) {
      say(`${name}/${rows} FAILED ${text}: ${String(error).slice(0, 300)}`);
    }
  }
  const from = performance.now();
  const warm = variants[0];
  while (!flags.small && warm && performance.now() - from < (n * k > 1 << 24 ? 700 : 300)) {
    await sample(warm.programs, 8);
  }
  for (let round = 0; round < (flags.small ? 1 : Number(flags.rounds)); round++) {
    if (late() && round > 0) break;
    for (const { programs, times } of variants) {
      const once = await sample(programs, programs.length);
      times.push(1000 * await sample(programs, Math.max(programs.length, Math.ceil(2.5 / once))));
    }
  }
  for (const { text, times, note } of variants) {
    const us = median(times);
    const rate = 2 * jobs * n * k / us / 1e6;
    say(
      `${name}/${rows} ${us.toFixed(1).padStart(7)} us ${rate.toFixed(1)} TFLOP/s ${text} ${note}`,
    );
  }
}

say(gpu.info.adapter);
for (const text of positionals) if (!late()) await caseOf(text);
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);
