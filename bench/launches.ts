/**
 * `deno run -A bench/launches.ts [--seconds N] [--small] [--only TEXT] [ROWS...]`: device time of the launches of
 * small matmuls, one after the other with a barrier between, over matrices that no cache holds.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { normedRows } from "../shaders/matmul/hold/hold.ts";
import { matmul, type PlainEpilogue } from "../shaders/matmul/matmul.ts";
import { launchStages, shapeKey } from "../shaders/matmul/matmul_shape.ts";
import { normLanes } from "../shaders/norm/rms_norm.ts";
import { median } from "../src/bench/statistics.ts";
import { reason } from "../src/errors.ts";
import { type Gpu, openGpu } from "../src/gpu/device.ts";
import type { Operand, Plan } from "../src/gpu/kernel.ts";
import {
  lanesFor,
  type Matrix,
  scaleBytes,
  type Tuning,
  tuning,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../src/gpu/matrix.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program } from "../src/gpu/program.ts";
import { type Allocations, openAllocations } from "./allocations.ts";

interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
  readonly splitK: number;
  readonly epilogue: PlainEpilogue;
  readonly format: WeightFormat;
}

interface Variant {
  readonly name: string;
  readonly shape: Shape;
  readonly bytes: number;
  readonly program: Program;
  readonly runs: number;
}

const { values, positionals } = parseArgs({
  args: [...Deno.args],
  options: {
    seconds: { type: "string", default: "40" },
    only: { type: "string", default: "" },
    small: { type: "boolean", default: false },
    ahead: { type: "string", default: "4" },
    groups: { type: "string", default: "2,4,8,16" },
    formats: { type: "string", default: "bf16,q8" },
    packed: { type: "string", default: "4" },
    stages: { type: "string", default: "" },
  },
  allowPositionals: true,
});

const PART = values.small ? 4 : 1;
const POOL_BYTES = values.small ? 4 << 20 : 480 << 20;

function shapes(format: WeightFormat): Shape[] {
  const of = (name: string, n: number, k: number, splitK: number, epilogue: PlainEpilogue) => ({
    ...{ name: `${name} ${format}`, n: n / PART, k: k / PART, splitK, epilogue, format },
  });
  return [
    of("06b.qkv", 4096, 1024, 1, "store"),
    of("06b.gateUp", 6144, 1024, 1, "swiglu"),
    of("06b.o/4", 1024, 2048, 4, "store"),
    of("06b.o/2", 1024, 2048, 2, "store"),
    of("06b.o/1", 1024, 2048, 1, "store"),
    of("06b.down/4", 1024, 3072, 4, "store"),
    of("06b.down/2", 1024, 3072, 2, "store"),
    of("06b.down/6", 1024, 3072, 6, "store"),
    of("8b.o/1", 4096, 4096, 1, "store"),
    of("8b.o/4", 4096, 4096, 4, "store"),
    of("8b.gateUp", 28672, 4096, 1, "swiglu"),
    of("8b.down/1", 4096, 14336, 1, "add"),
    of("8b.qkv", 6144, 4096, 1, "store"),
  ].filter(({ name }) => name.includes(values.only));
}

/** Matrices side by side in one buffer: as many as it holds. */
function matrices(pool: Operand, scales: Operand, { n, k, format }: Shape, most: number): Matrix[] {
  const bytes = n * k * WEIGHT_BYTES[format];
  const lanes = lanesFor(format, k, most);
  const count = Math.max(1, Math.floor(POOL_BYTES / bytes));
  return Array.from({ length: Math.min(32, count) }, (_, i) => {
    const operand = { buffer: pool.buffer, offset: i * bytes, size: bytes };
    const own = scaleBytes(format, k) > 0 ? { scales } : {};
    return { format, rows: n, cols: k, lanes, shards: [{ operand, first: 0, rows: n, ...own }] };
  });
}

function normOf(from: Allocations, k: number, rows: number, lanes: number) {
  const [weight, sums, stream] = [from.random(k), from.random(4 * rows * k), from.random(rows * k)];
  const added = { sums, splitK: 4, stream };
  return normedRows({ weight, eps: 1e-6, lanes: normLanes({ cols: k, lanes }), added }, {
    cols: k,
    rows,
  });
}

async function variantsOf(gpu: Gpu, from: Allocations, rowCounts: number[]): Promise<Variant[]> {
  const base: Tuning = {
    ...tuning(false, gpu.limits, gpu.info.backend),
    packedRows: Number(values.packed),
  };
  const { compile } = compiler(gpu);
  const pool = from.random(POOL_BYTES / 4);
  const scales = from.random(1 << 20);
  const out = from.random(8 << 20);
  const x = from.random(1 << 20);
  const all: Variant[] = [];
  for (const shape of values.formats.split(",").flatMap((f) => shapes(f as WeightFormat))) {
    const made = matrices(pool, scales, shape, base.lanes);
    const [first] = made as [Matrix];
    const { splitK, epilogue, k, name } = shape;
    for (const rows of rowCounts) {
      for (
        const stage of launchStages(first, { rows, splitK, tuning: base }).filter((stage) =>
          stage > 0 && (values.stages === "" || values.stages.split(",").includes(`${stage}`))
        )
      ) {
        const resident = stage === k / 8 / splitK && stage > 0;
        for (const groups of values.groups.split(",").map(Number)) {
          for (const ahead of resident ? values.ahead.split(",").map(Number) : [4]) {
            for (const normed of resident && splitK === 1 && k <= 1024 ? [false, true] : [false]) {
              const launches = new Map([[shapeKey(first), new Map([[rows, { stage, groups }]])]]);
              const forced = { ...base, launches, ahead, workgroupBytes: 49152 };
              const hold = normed ? { hold: normOf(from, k, rows, base.rowLanes) } : {};
              const of = { rows, splitK, epilogue, tuning: forced, label: name, ...hold };
              const plan: Plan = made.flatMap((matrix) => matmul({ matrix, x, out }, of));
              const kind = `${stage}${resident ? "R" : ""}${ahead > 4 ? `a${ahead}` : ""}`;
              const label = `${name} r${rows} s${kind} g${groups}${normed ? " norm" : ""}`;
              try {
                all.push({
                  ...{ name: label, shape, runs: made.length },
                  bytes: shape.n * k * WEIGHT_BYTES[shape.format],
                  program: await compile(plan),
                });
              } catch (error) {
                process.stdout.write(`${label}: ${reason(error)}\n`);
              }
            }
          }
        }
      }
    }
  }
  return all;
}

using gpu = await openGpu();
using from = openAllocations(gpu);
using profiler = await openProfiler(gpu, { queries: 2 });
const started = performance.now();
const all = await variantsOf(gpu, from, positionals.map(Number));
await from.filled();
const time = async ({ program, runs }: Variant) => {
  const span = (await profiler.time([program]))[0];
  return span ? (span.end - span.begin) * 1000 / runs : NaN;
};
for (const variant of all) await time(variant); // compiles
process.stdout.write(
  `compiled ${all.length} in ${((performance.now() - started) / 1000).toFixed(1)} s\n`,
);
const warm = performance.now();
while (performance.now() - warm < (values.small ? 1 : 1500)) await time(all[0] as Variant);
const us = new Map<Variant, number[]>(all.map((variant) => [variant, []]));
const end = started + 1000 * Number(values.seconds);
for (let turn = 0; turn < 12 && (turn === 0 || performance.now() < end); turn++) {
  for (const variant of all) us.get(variant)?.push(await time(variant));
}
let title = "";
for (const variant of all) {
  const { name, bytes } = variant;
  const [shape = "", format = "", rows = "", ...rest] = name.split(" ");
  const head = `${shape} ${format} ${rows}`;
  const spent = median(us.get(variant) ?? []);
  if (head !== title) process.stdout.write(`\n${head}:`);
  title = head;
  process.stdout.write(
    ` ${rest.join("")} ${spent.toFixed(1)}us(${(bytes / spent / 1e6).toFixed(2)});`,
  );
}
process.stdout.write(`\n${us.get(all[0] as Variant)?.length} turns\n`);
Deno.exit(0);
