// Quantized matmuls of many rows: shapes of the SIMT kernels beside those of the same weights in bf16.
//
//   deno run -A bench/quantized_rows.ts [--small] [--seconds 17] CASE ...
//
// A case is shape/rows/VARIANT,VARIANT,..., a variant format.kind.dots.rows.pairs.groups.stage[.edit]. Microseconds on
// warm clocks, weights that no cache holds, the median of rounds in which the variants of a case take turns. The bits
// of all variants of a format must be the same but for edits that say otherwise.
import { parseArgs } from "node:util";
import process from "node:process";
import { PLAIN } from "../shaders/fragments/epilogue.ts";
import { matmulKernel } from "../shaders/matmul/matmul_kernels.ts";
import { columnWorkgroups, type MatmulShape } from "../shaders/matmul/matmul_shape.ts";
import { fillParams, fillRandom } from "../shaders/weights/fill_random.ts";
import { median } from "../src/bench/statistics.ts";
import { storage } from "../src/gpu/arena.ts";
import { openGpu } from "../src/gpu/device.ts";
import { dispatch, type Kernel, kernel } from "../src/gpu/kernel.ts";
import {
  isInteger,
  lanesFor,
  type Matrix,
  scaleBytes,
  tuning,
  WEIGHT_BYTES,
} from "../src/gpu/matrix.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { edited } from "./quantized_edits.ts";
import { rates } from "./quantized_rates.ts";

const { values: flags, positionals } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    rates: { type: "boolean", default: false },
    seconds: { type: "string", default: "17" },
    rounds: { type: "string", default: "4" },
  },
  allowPositionals: true,
});
const started = performance.now();
const gpu = await openGpu({});
const { device } = gpu;
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);
const rules = tuning(false, gpu.limits, gpu.info.backend);
const late = () => performance.now() - started > 1000 * Number(flags.seconds);

const SHAPES: Readonly<Record<string, { readonly n: number; readonly k: number }>> = {
  gateUp8: { n: 28672, k: 4096 },
  qkv8: { n: 6144, k: 4096 },
  o8: { n: 4096, k: 4096 },
  gateUp: { n: 6144, k: 1024 },
  qkv: { n: 4096, k: 1024 },
  tiny: { n: 256, k: 1024 },
};

async function sample(programs: readonly Program[], runs: number): Promise<number> {
  const steps = Array.from(
    { length: runs },
    (_, i) => (programs[i % programs.length] as Program).steps,
  );
  return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
}

async function matrixOf(
  format: Matrix["format"],
  { n, k }: { readonly n: number; readonly k: number },
  seed: number,
): Promise<Matrix> {
  const operand = { buffer: storage(device, "weights", WEIGHT_BYTES[format] * n * k) };
  const params = storage(device, "params", 16);
  device.queue.writeBuffer(params, 0, fillParams({ seed: 1, stream: seed, std: 0.02 }));
  submit(
    gpu,
    await make.compile([fillRandom({ params: { buffer: params }, out: operand }, "fill")]),
  );
  const lanes = lanesFor(format, k, rules.lanes);
  const of = { format, rows: n, cols: k, lanes };
  if (!isInteger(format)) return { ...of, shards: [{ operand, first: 0, rows: n }] };
  const bytes = scaleBytes(format, k) * n;
  const scales = { buffer: storage(device, "scales", bytes) };
  const halves = Float16Array.from({ length: bytes / 2 }, (_, i) => 0.001 * (1 + i % 97 / 97));
  device.queue.writeBuffer(scales.buffer, 0, new Uint32Array(halves.buffer));
  return { ...of, shards: [{ operand, scales, first: 0, rows: n }] };
}

/** The kernel of a variant, its text edited. */
function kernelOf(matrix: Matrix, shape: MatmulShape, edit: string): Kernel {
  const { format, lanes } = matrix;
  const made = matmulKernel(shape, { format, epilogue: PLAIN.store, lanes });
  if (edit === "") return made;
  const names = ["COLS", "MATRIX_ROWS", "OUT_COLS", "FIRST", "SPLIT_K", "LANES", "GROUPS"];
  return kernel(`${made.name}_${edit}`, edited(made.code, edit), {
    bindings: [...made.bindings],
    constants: names,
  });
}

async function caseOf(text: string): Promise<void> {
  const [name = "", count = "", list = ""] = text.split("/");
  const shape = SHAPES[name];
  if (!shape) throw new Error(name);
  const { n, k } = shape;
  const rows = Number(count);
  const x = { buffer: storage(device, "x", 4 * rows * k) };
  const out = { buffer: storage(device, "out", 4 * rows * n) };
  device.queue.writeBuffer(
    x.buffer,
    0,
    Float32Array.from({ length: rows * k }, (_, i) => Math.sin(i * 12.9898) * (1 + i % 7)),
  );
  const matrices = new Map<string, Matrix[]>();
  const variants: { text: string; programs: Program[]; times: number[]; note: string }[] = [];
  const bits = new Map<string, Uint32Array>();
  for (const text of list.split(",")) {
    if (late()) break;
    const [format, kind, dots, tile, pairs, groups, stage, edit = ""] = text.split(".");
    const stored = format as Matrix["format"];
    if (!matrices.has(stored)) {
      const copies = flags.small
        ? 1
        : Math.min(8, Math.max(2, Math.ceil((160 << 20) / (WEIGHT_BYTES[stored] * n * k))));
      const made: Matrix[] = [];
      for (let i = 0; i < copies; i++) made.push(await matrixOf(stored, shape, 10 + i));
      matrices.set(stored, made);
    }
    const launch = {
      kind,
      dots,
      rows: Number(tile),
      pairs: Number(pairs),
      groups: Number(groups),
      stage: Number(stage),
    } as MatmulShape;
    try {
      const from = performance.now();
      const programs: Program[] = [];
      for (const matrix of matrices.get(stored) ?? []) {
        const shard = matrix.shards[0]!;
        programs.push(
          await make.compile([dispatch(kernelOf(matrix, launch, edit), {
            buffers: { weights: shard.operand, x, out, scales: shard.scales ?? shard.operand },
            constants: {
              COLS: k,
              MATRIX_ROWS: n,
              OUT_COLS: n,
              FIRST: 0,
              SPLIT_K: 1,
              LANES: matrix.lanes,
              GROUPS: launch.groups,
            },
            workgroups: [Math.ceil(rows / launch.rows), columnWorkgroups(shard, launch), 1],
            label: "matmul",
          })]),
        );
      }
      await sample(programs.slice(0, 1), 1);
      const size = 4 * n * Math.min(rows, 16);
      const found = new Uint32Array(await readBuffer(gpu, { buffer: out.buffer, size }));
      const first = bits.getOrInsertComputed(stored, () => found);
      const differ = found.some((word, i) => word !== first[i]);
      const note = `compiled in ${(performance.now() - from).toFixed(0)} ms${
        differ ? ", OTHER BITS" : ""
      }`;
      variants.push({ text, programs, times: [], note });
    } catch (error) {
      say(`${name}/${rows} FAILED ${text}: ${String(error).slice(0, 300)}`);
    }
  }
  const from = performance.now();
  const warm = variants[0];
  while (!flags.small && warm && performance.now() - from < 300) await sample(warm.programs, 8);
  for (let round = 0; round < (flags.small ? 1 : Number(flags.rounds)); round++) {
    if (late() && round > 0) break;
    for (const { programs, times } of variants) {
      const once = await sample(programs, programs.length);
      times.push(1000 * await sample(programs, Math.max(programs.length, Math.ceil(2.5 / once))));
    }
  }
  for (const { text, times, note } of variants) {
    const us = median(times);
    const rate = 2 * rows * n * k / us / 1e6;
    say(
      `${name}/${rows} ${us.toFixed(1).padStart(7)} us ${rate.toFixed(1)} TFLOP/s ${text} ${note}`,
    );
  }
  for (const { shards } of [...matrices.values()].flat()) {
    for (const { operand, scales } of shards) [operand, scales].forEach((o) => o?.buffer.destroy());
  }
  for (const { buffer } of [x, out]) buffer.destroy();
}

say(gpu.info.adapter);
if (flags.rates) await rates({ gpu, make, sample, say, small: flags.small });
for (const text of positionals) if (!late()) await caseOf(text);
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);
