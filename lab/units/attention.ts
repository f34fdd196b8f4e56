// Attention on matrix units beside the other kernels, from one row up to a prompt chunk.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/attention.ts [--small] [--rule] [--cases decode,prefill] [--seconds 25]
//
// Prints microseconds of all dispatches of one layer back to back on warm clocks, TFLOP/s of the necessary work, and
// the largest difference between the outputs of both.
import { parseArgs } from "node:util";
import process from "node:process";
import { attentionOnDevice, attentionWords } from "../../kernels/attention/attention_on_device.ts";
import {
  attentionOnUnits,
  RULES,
  unitsTile,
} from "../../kernels/attention/units/attention_on_units.ts";
import type { UnitsTile } from "../../kernels/attention/units/units_kernels.ts";
import { fillParams, fillRandom } from "../../kernels/matmul/fill_random.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit, within } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { timeOf } from "./tensor_buffers.ts";

const { values: flags } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    cases: { type: "string", default: "decode,prefill" },
    rule: { type: "boolean", default: false },
    seconds: { type: "string", default: "25" },
  },
});
const started = performance.now();
const gpu = await openGpu({ webgpu: "dawn" });
const { device } = gpu;
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const simt = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
const unit = gpu.matrixUnit as MatrixUnit;
const say = (text: string) => process.stdout.write(`${text}\n`);

interface Case {
  readonly name: string;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly slots?: number;
  /** KV cells before the rows of a slot. */
  readonly before: number;
  readonly perSlot: number;
  /** Cells that the block table has room for. */
  readonly context: number;
  readonly kvDtype?: KvDtype;
  /** Workgroups to try; default all. */
  readonly ways?: number;
}

const LLAMA = { name: "8B", heads: 32, kvHeads: 8, headDim: 128 } as const;
const QWEN = { name: "0.6B", heads: 16, kvHeads: 8, headDim: 128 } as const;
const MIXTURE = { name: "30B", heads: 32, kvHeads: 4, headDim: 128 } as const;
const TINY = { name: "tiny", heads: 4, kvHeads: 2, headDim: 64 } as const;

const decode = (of: typeof LLAMA | typeof QWEN | typeof MIXTURE): Case[] => [
  { ...of, before: 511, perSlot: 1, context: 1024 },
  { ...of, before: 2047, perSlot: 1, context: 8192 },
  { ...of, before: 8190, perSlot: 1, context: 8192 },
];
const CASES: Readonly<Record<string, readonly Case[]>> = {
  decode: [
    ...decode(LLAMA),
    ...decode(QWEN),
    ...decode(MIXTURE),
    { ...LLAMA, before: 508, perSlot: 4, context: 1024 },
    { ...LLAMA, before: 496, perSlot: 16, context: 1024 },
    { ...LLAMA, before: 511, perSlot: 1, slots: 8, context: 1024 },
    { ...LLAMA, before: 511, perSlot: 1, slots: 32, context: 1024 },
    { ...LLAMA, before: 8190, perSlot: 1, context: 8192, kvDtype: "bf16" },
  ],
  turn: [
    { ...LLAMA, before: 0, perSlot: 512, context: 1024 },
    { ...LLAMA, before: 8190, perSlot: 1, context: 8192 },
    { ...LLAMA, before: 7680, perSlot: 512, context: 8192 },
    { ...QWEN, before: 511, perSlot: 1, context: 1024 },
    { ...QWEN, before: 0, perSlot: 512, context: 1024, ways: 5 },
    { ...LLAMA, before: 496, perSlot: 16, context: 1024, ways: 2 },
    { ...LLAMA, before: 511, perSlot: 1, slots: 32, context: 1024, ways: 3 },
    { ...LLAMA, before: 511, perSlot: 1, context: 1024, ways: 4 },
    { ...LLAMA, before: 7680, perSlot: 512, context: 8192, kvDtype: "bf16", ways: 2 },
    { ...LLAMA, before: 2047, perSlot: 1, context: 8192, ways: 3 },
  ],
  prefill: [
    { ...LLAMA, before: 0, perSlot: 512, context: 1024 },
    { ...QWEN, before: 0, perSlot: 512, context: 1024 },
    { ...MIXTURE, before: 0, perSlot: 512, context: 1024 },
    { ...LLAMA, before: 7680, perSlot: 512, context: 8192 },
    { ...LLAMA, before: 7680, perSlot: 512, context: 8192, kvDtype: "bf16" },
    { ...LLAMA, before: 448, perSlot: 64, context: 1024 },
  ],
};

async function filled(count: number, stream: number, std: number): Promise<Operand> {
  const [params, out] = [storage(device, "params", 16), storage(device, "filled", 4 * count)];
  device.queue.writeBuffer(params, 0, fillParams({ seed: 1, stream, std }));
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

interface Way extends Partial<UnitsTile> {
  readonly name: string;
  /** By default the value of the engine's rule. */
  readonly enough?: number;
  /** Cells of one split. */
  readonly cells?: number;
}

/** Workgroups to try beside the rule's. */
function waysOf({ perSlot, slots = 1, ways: most }: Case): Way[] {
  if (flags.rule) return [];
  const each = perSlot * slots < 64 ? { enough: Infinity } : { enough: 0 };
  const ways: Way[] = perSlot * slots < 64
    ? [
      { name: "early fetched", inRegisters: false, cells: 32 },
      { name: "late fetched", early: false, inRegisters: false, cells: 32 },
      { name: "late", early: false },
      { name: "early in registers", inRegisters: true, cells: 32 },
      { name: "fetched 256", inRegisters: false, threads: 256, cells: 32 },
      { name: "256", threads: 256 },
    ]
    : [
      { name: "64q", queries: 64, cells: 32 },
      { name: "32q 256", queries: 32, threads: 256 },
      { name: "32q fetched", queries: 32, inRegisters: false, cells: 32 },
      { name: "32q", queries: 32, cells: 32 },
      { name: "64q 256", queries: 64, threads: 256, cells: 32 },
      { name: "32q early", queries: 32, early: true },
      { name: "16q", queries: 16 },
    ];
  return ways.slice(0, most).map((way) => ({ ...each, ...way }));
}

function tileWith(
  tile: UnitsTile,
  { heads, kvHeads, perSlot }: Pick<Case, "heads" | "kvHeads" | "perSlot">,
  more: Partial<UnitsTile>,
): UnitsTile {
  const of = { ...tile, ...more };
  const rows = Math.floor(of.queries / (heads / kvHeads));
  return { ...of, group: heads / kvHeads, tile: Math.min(perSlot, rows) };
}

async function measure(of: Case): Promise<void> {
  const { heads, kvHeads, headDim, slots = 1, before, perSlot, context, kvDtype = "f32" } = of;
  const tablePages = context / PAGE;
  const count = slots * perSlot;
  const kvWords = slots * context * kvHeads * headDim * KV_BYTES[kvDtype] / 4;
  const rows = new Uint32Array(count * ROW_WORDS);
  for (let r = 0; r < count; r++) {
    const at = before + r % perSlot;
    rows.set([0, at, Math.floor(r / perSlot), at, at + 1, 1], r * ROW_WORDS);
  }
  const sizes = { heads, kvHeads, headDim, tablePages, kvDtype };
  const onUnits = { unit, limits: gpu.limits };
  const most = { ...onUnits, cells: 32 };
  const partial = attentionWords(sizes, count, { software: false, attentionUnits: most });
  const out: Operand = { buffer: storage(device, "out", 4 * count * heads * headDim) };
  const buffers = {
    q: await filled(count * heads * headDim, 1, 1),
    keys: await filled(kvWords, 2, 1),
    values: await filled(kvWords, 3, 1),
    rows: words(rows),
    pages: words(Uint32Array.from({ length: slots * tablePages }, (_, i) => i)),
    partial: {
      sums: { buffer: storage(device, "sums", 4 * partial.sums) },
      stats: { buffer: storage(device, "stats", 4 * partial.stats) },
    },
    out,
  };
  const cells = count * before + slots * perSlot * (perSlot + 1) / 2;
  const gflop = 4e-9 * cells * heads * headDim;
  const found: Float32Array[] = [];
  const lines: string[] = [];
  const launch = { ...sizes, count, perSlot, paths: false, scale: headDim ** -0.5, label: "" };
  const plans: [string, Plan][] = [
    ["simt", attentionOnDevice(buffers, { ...launch, tuning: simt })],
    [
      "units",
      attentionOnDevice(buffers, { ...launch, tuning: { ...simt, attentionUnits: onUnits } }),
    ],
    ...waysOf(of).map(({ name, enough = RULES.enough, cells = 64, ...more }): [string, Plan] => [
      `${name} ${cells}`,
      attentionOnUnits(
        buffers,
        { ...launch, tuning: simt },
        { ...onUnits, cells },
        {
          ...RULES,
          enough,
          choose: (shape, units, span) => tileWith(unitsTile(shape, units, span), launch, more),
        },
      ),
    ]),
  ];
  const programs = await Promise.all(plans.map(([, plan]) => make.compile(plan)));
  for (const [i, [name]] of plans.entries()) {
    const program = within(programs[i] as Program, before + perSlot);
    lines.push(await timed(program, { name, gflop }));
    found.push(new Float32Array(await readBuffer(gpu, out)));
  }
  const worst = (a: Float32Array, b: Float32Array) =>
    a.reduce((most, value, i) => Math.max(most, Math.abs(value - (b[i] ?? NaN))), 0);
  const [first = new Float32Array()] = found;
  const differ = found.slice(1).map((other) => worst(first, other).toExponential(0));
  const { name } = of;
  say(
    `${name} ${slots} x ${perSlot} rows behind ${before}, ${kvDtype}: ${lines.join("; ")}; ` +
      `outputs differ by ${differ.join(" ")}`,
  );
  const { partial: { sums, stats }, ...others } = buffers;
  for (const { buffer } of [sums, stats, ...Object.values(others)]) buffer.destroy();
}

async function timed(
  all: Program,
  { name, gflop }: { readonly name: string; readonly gflop: number },
): Promise<string> {
  submit(gpu, all);
  const us = await timeOf({ profiler }, [all], flags.small ? 1 : 20);
  const parts: string[] = [];
  if (all.steps.length > 1 && us < 100) {
    for (const [i, step] of all.steps.entries()) {
      if (i === 2) break;
      parts.push((await timeOf({ profiler }, [{ ...all, steps: [step] }], 5)).toFixed(1));
    }
  }
  const rate = (gflop / us * 1e3).toFixed(1);
  return `${name} ${us.toFixed(1)} us${parts.length > 0 ? ` (${parts.join(" + ")})` : ""} ${rate}T`;
}

const wanted = flags.small
  ? [
    { ...TINY, before: 70, perSlot: 1, context: 128, ways: 4 },
    { ...TINY, before: 0, perSlot: 70, context: 128, ways: 1 },
  ]
  : flags.cases.split(",").flatMap((name) => CASES[name] ?? []);
for (const one of wanted) {
  if (performance.now() - started > 1000 * Number(flags.seconds)) say("out of time");
  else await measure(one);
}
Deno.exit(0);
