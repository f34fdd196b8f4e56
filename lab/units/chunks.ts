// Attention of a prompt chunk on matrix units: compares workgroups, and the kernel with parts left out.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/chunks.ts [--kv f32,bf16] [--before 7680] [--parts] [--small]
//
// All variants take turns on warm clocks. Prints median microseconds of the dispatches of a layer and TFLOP/s of the
// necessary work. A kernel with parts left out computes wrong results, so its bits differ too.
import { parseArgs } from "node:util";
import process from "node:process";
import { groupOf } from "../../kernels/attention/splits.ts";
import type { AttentionShape } from "../../kernels/attention/attention.ts";
import { attentionOnDevice, attentionWords } from "../../kernels/attention/attention_on_device.ts";
import {
  chunkOnUnits,
  chunkTile,
  halvesWords,
} from "../../kernels/attention/units/chunk_on_units.ts";
import type { ChunkTile } from "../../kernels/attention/units/chunk_kernels.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit, within } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { fillParams, fillRandom } from "../../kernels/matmul/fill_random.ts";
import { PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { median } from "../../src/measure/statistics.ts";

const { values: flags } = parseArgs({
  options: {
    kv: { type: "string", default: "f32,bf16" },
    before: { type: "string", default: "7680" },
    rows: { type: "string", default: "512" },
    heads: { type: "string", default: "32" },
    parts: { type: "boolean", default: false },
    small: { type: "boolean", default: false },
    times: { type: "string", default: "7" },
    warm: { type: "string", default: "800" },
  },
});
const gpu = await openGpu({ webgpu: "dawn" });
const { device } = gpu;
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const unit = gpu.matrixUnit as MatrixUnit;
const simt = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
const units = { unit, limits: gpu.limits };
const say = (text: string) => process.stdout.write(`${text}\n`);

/** Regular expressions that match lines of a kernel, and the text that replaces them. */
type Without = readonly (readonly [RegExp, string])[];

/** Replaces a line by one that never runs. The bindings that the line uses stay in the kernel. */
const NEVER = "if (KV_HEADS == 0u) { $1 }";
const KEYS: Without = [[/^ *(kx\d+ = k_halves.*)$/gm, NEVER]];
const VALUES: Without = [
  [/^ *var (vx\d+) = (v_halves.*);$/gm, "var $1 = vec4<u32>(); if (KV_HEADS == 0u) { $1 = $2; }"],
  [/^ *(vx\d+ = v_halves.*)$/gm, NEVER],
];
const PARTS: Readonly<Record<string, Without>> = {
  "no products of scores": [[/^ *s\d+ = subgroupMatrixMultiplyAccumulate.*$/gm, ""]],
  "no products of values": [[/^ *o\d+ = subgroupMatrixMultiplyAccumulate.*$/gm, ""]],
  "no exp2": [[/return exp2\(/g, "return ("]],
  "no merge": [[/^ *sum\d+ = fma\(.*$/gm, ""]],
  "no loads of keys": KEYS,
  "no loads of values": VALUES,
  "no loads, no stores of them": [...KEYS, ...VALUES, [/^ *(pool\[[kv]_to.*)$/gm, NEVER]],
  "no barriers": [[/^ {4,}workgroupBarrier\(\);$/gm, ""]],
  "hi of queries twice": [[/MultiplyAccumulate\(ql/g, "MultiplyAccumulate(qh"]],
  "hi of queries and weights twice": [
    [/MultiplyAccumulate\(ql/g, "MultiplyAccumulate(qh"],
    [/MultiplyAccumulate\(pl/g, "MultiplyAccumulate(ph"],
  ],
};

type Way = Pick<ChunkTile, "queries" | "columns" | "direct">;

const WAYS: readonly Way[] = flags.small ? [{ queries: 16, columns: 4, direct: true }] : [
  { queries: 64, columns: 1, direct: true },
  { queries: 64, columns: 1, direct: false },
];

async function filled(count: number, stream: number): Promise<Operand> {
  const [params, out] = [storage(device, "params", 16), storage(device, "filled", 4 * count)];
  device.queue.writeBuffer(params, 0, fillParams({ seed: 1, stream, std: 1 }));
  submit(
    gpu,
    await make.compile([fillRandom({ params: { buffer: params }, out: { buffer: out } }, "")]),
  );
  return { buffer: out };
}

function words(data: Uint32Array<ArrayBuffer>): Operand {
  const buffer = storage(device, "words", data.byteLength);
  device.queue.writeBuffer(buffer, 0, data);
  return { buffer };
}

function withWay(shape: AttentionShape, tile: ChunkTile, way: Way): ChunkTile {
  const group = groupOf(shape.heads / shape.kvHeads, way.queries);
  return {
    ...tile,
    ...way,
    group,
    tile: Math.min(shape.perSlot, Math.floor(way.queries / group)),
  };
}

function without(plan: Plan, part: string): Plan {
  return plan.map((each) => {
    if (!each.kernel.name.startsWith("chunk_units")) return each;
    const code = (PARTS[part] ?? []).reduce((text, [lines, by]) => {
      if (!lines.test(text)) throw new Error(`${part}: no ${lines}`);
      return text.replaceAll(lines, by);
    }, each.kernel.code);
    return { ...each, kernel: { ...each.kernel, name: `${each.kernel.name} ${part}`, code } };
  });
}

async function measure(kvDtype: KvDtype) {
  const [heads, count, before] = [Number(flags.heads), Number(flags.rows), Number(flags.before)];
  const [kvHeads, headDim] = flags.small ? [2, 32] : [8, 128];
  const context = Math.ceil((before + count) / 1024) * 1024;
  const tablePages = context / PAGE;
  const rows = new Uint32Array(count * ROW_WORDS);
  for (let r = 0; r < count; r++) {
    rows.set([0, before + r, 0, before + r, before + r + 1, 1], r * ROW_WORDS);
  }
  const sizes = { heads, kvHeads, headDim, tablePages, kvDtype };
  const partial = attentionWords(sizes, count, { software: false, attentionUnits: units });
  const kvWords = context * kvHeads * headDim * KV_BYTES[kvDtype] / 4;
  const out: Operand = { buffer: storage(device, "out", 4 * count * heads * headDim) };
  const halves = { buffer: storage(device, "halves", 4 * halvesWords(sizes, 64, units)) };
  const buffers = {
    q: await filled(count * heads * headDim, 1),
    keys: await filled(kvWords, 2),
    values: await filled(kvWords, 3),
    rows: words(rows),
    pages: words(Uint32Array.from({ length: tablePages }, (_, i) => i)),
    partial: {
      sums: { buffer: storage(device, "sums", 4 * partial.sums) },
      stats: { buffer: storage(device, "stats", 4 * partial.stats) },
    },
    out,
  };
  const launch = {
    ...sizes,
    count,
    perSlot: count,
    paths: false,
    scale: headDim ** -0.5,
    label: "",
    tuning: simt,
  };
  const chunk = (way: Way) =>
    chunkOnUnits(buffers, launch, {
      units,
      halves,
      choose: (shape, of, span) => withWay(shape, chunkTile(shape, of, span), way),
    });
  const nameOf = ({ queries, columns, direct }: Way) =>
    `${queries}x${columns}${direct ? "" : ", segments apart"}`;
  const [best] = WAYS as [Way];
  const plans: [string, Plan][] = flags.parts
    ? [
      [nameOf(best), chunk(best)],

      ...Object.keys(PARTS).map((part): [string, Plan] => [part, without(chunk(best), part)]),
    ]
    : [
      ["simt", attentionOnDevice(buffers, launch)],
      [
        "units",
        attentionOnDevice(buffers, { ...launch, tuning: { ...simt, attentionUnits: units } }),
      ],
      ...WAYS.map((way): [string, Plan] => [nameOf(way), chunk(way)]),
    ];
  const programs: Program[] = [];
  for (const [, plan] of plans) {
    programs.push(within(await make.compile(plan) as Program, before + count));
  }
  const gflop = 4e-9 * (count * before + count * (count + 1) / 2) * heads * headDim;
  const found: Uint8Array[] = [];
  for (const program of programs) {
    submit(gpu, program);
    found.push(new Uint8Array(await readBuffer(gpu, out)));
  }
  const took: number[][] = programs.map(() => []);
  const one = async (program: Program) => 1000 * ((await profiler.time([program]))[0]?.end ?? NaN);
  const began = performance.now();
  while (performance.now() - began < Number(flags.warm)) await one(programs[2] as Program);
  for (let time = 0; time < Number(flags.times); time++) {
    for (const [i, program] of programs.entries()) {
      await one(program);
      took[i]?.push(await one(program));
    }
  }
  say(`${kvDtype}, ${count} rows behind ${before}, ${heads} heads`);
  const same = (a: Uint8Array, b: Uint8Array) => a.every((byte, i) => byte === b[i]);
  for (const [i, [name]] of plans.entries()) {
    const us = median(took[i] ?? []);
    const bits = flags.parts || i < 2
      ? ""
      : same(found[i] as Uint8Array, found[1] as Uint8Array)
      ? "same bits"
      : "OTHER BITS";
    say(`  ${name}: ${us.toFixed(0)} us ${(gflop / us * 1e3).toFixed(1)}T ${bits}`);
  }
}

for (const kv of flags.kv.split(",")) await measure(kv as KvDtype);
Deno.exit(0);
