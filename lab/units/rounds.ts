// Layers on matrix units with as many rows as rounds have, in order in one pass, each with its own weights.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/rounds.ts [--shape 8b|06b|tiny] [--rows 1x1,8x1,4x4,8x4] [--kernels]
//
// --rows are sequences by rows of each, after 512 tokens. Prints microseconds of a layer and of the head on warm
// clocks, the median of turns. "of one" is the time of a forward (all layers and the head) over that of the first
// --rows. --kernels prints the names of the kernels that run.
import { parseArgs } from "node:util";
import process from "node:process";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { median } from "../../src/measure/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import type { TensorMatrices, TensorShard } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, within } from "../../src/gpu/program.ts";
import type { PlacedLayer } from "../../src/model/graph/decoder.ts";
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { openAllocations } from "../allocations.ts";
import { sampleMs } from "../sample.ts";
import { attentionOf, CONTEXT, contextOf, layerPlans, rowsOf } from "../cases/layer.ts";

const { values: flags } = parseArgs({
  options: {
    shape: { type: "string", default: "8b" },
    rows: { type: "string", default: "1x1,8x1,4x4,16x1,8x4,16x4" },
    rounds: { type: "string", default: "7" },
    kernels: { type: "boolean", default: false },
  },
});

interface Shape {
  readonly hidden: number;
  readonly intermediate: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocab: number;
  /** Number of layers of the model, and of layers that are timed. */
  readonly layers: readonly [number, number];
  /** Whether heads of q and k have norms. */
  readonly normed: boolean;
}
const SHAPES: Readonly<Record<string, Shape>> = {
  "8b": {
    hidden: 4096,
    intermediate: 14336,
    heads: 32,
    kvHeads: 8,
    headDim: 128,
    vocab: 128256,
    layers: [32, 3],
    normed: false,
  },
  "06b": {
    hidden: 1024,
    intermediate: 3072,
    heads: 16,
    kvHeads: 8,
    headDim: 128,
    vocab: 151936,
    layers: [28, 10],
    normed: true,
  },
  tiny: {
    hidden: 256,
    intermediate: 384,
    heads: 4,
    kvHeads: 2,
    headDim: 64,
    vocab: 512,
    layers: [2, 2],
    normed: false,
  },
};
const shape = SHAPES[flags.shape] as Shape;

const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);
// A software adapter is treated as hardware.
const of = openAllocations({ ...gpu, info: { ...gpu.info, software: false } });
const say = (text: string) => process.stdout.write(`${text}\n`);
const ones = (count: number) => of.words(new Uint32Array(count).fill(0x3f800000));

const shards = new Map<Shard, TensorShard>();
/** Declares the weights as f16: the random bits are also finite numbers when read as f16. */
function onUnits(matrix: Matrix): Matrix {
  for (const shard of matrix.shards) shards.set(shard, { scales: ones(shard.rows), stored: "f16" });
  return matrix;
}

function layer(label: string, slots: number): PlacedLayer {
  const { hidden, intermediate, normed } = shape;
  const own = attentionOf(of, { ...shape, name: "" }, { format: "bf16", slots });
  const attention = own.attention as Extract<typeof own.attention, { kind: "heads" }>;
  const spec = { ...attention.spec, qkNorm: normed ? "head" as const : "none" as const };
  const qkNorm = normed ? attention.qkNorm : undefined;
  const rowOrder = normed ? "stacked" : "rope_halves";
  const [qkv, o] = [onUnits({ ...attention.qkv, rowOrder }), onUnits(attention.o)];
  return {
    ...own,
    attention: { ...attention, spec, qkNorm, qkv, o },
    mlp: {
      kind: "dense",
      spec: { kind: "dense", activation: "silu", intermediateSize: intermediate },
      gateUp: onUnits(of.matrix(2 * intermediate, hidden, "bf16", "gate_up")),
      down: onUnits(of.matrix(hidden, intermediate, "bf16")),
    },
    label,
  };
}

const runs = flags.rows.split(",").map((text) => {
  const [slots = 1, perSlot = 1] = text.split("x").map(Number);
  return { text, slots, perSlot };
});
const most = 64 * Math.ceil(Math.max(...runs.map((run) => run.slots * run.perSlot)) / 64);
const maxSlots = Math.max(...runs.map(({ slots }) => slots));
const [all, timed] = shape.layers;
const layers = Array.from({ length: timed }, (_, i) => layer(`layers.${i}`, maxSlots));
const norms = layers.map(() => of.random(shape.hidden));
const head = onUnits(of.matrix(shape.vocab, shape.hidden, "bf16"));
const logits = of.random(most * shape.vocab);
const tensor: TensorMatrices = {
  unit,
  limits: gpu.limits,
  shards,
  experts: new Map(),
  xScales: ones(most),
  precision: "f16",
};

/** A plan for each layer, then the head. */
function plansOf({ slots, perSlot }: typeof runs[number]): Plan[] {
  const count = slots * perSlot;
  const plain = contextOf(of, { ...shape, name: "" }, { rows: count, slots });
  const scales = { normed: ones(count), reduced: ones(2 * most), stride: most, jobs: 1 };
  const tuning = { ...plain.tuning, software: false, tensor };
  const context: DecoderContext = { ...plain, tuning, scales };
  const seen = { rows: rowsOf(of, perSlot, slots), count, perSlot };
  const [stream, x] = [of.random(count * shape.hidden), of.random(count * shape.hidden)];
  const plans = layerPlans(context, layers, { x: stream, weights: norms, seen });
  const launch = { rows: count, epilogue: "store", tuning, label: "head" } as const;
  return [...plans, matmul({ matrix: head, x, xScales: ones(count), out: logits }, launch)];
}

const programs: Program[][] = [];
for (const run of runs) {
  const made: Program[] = [];
  for (const plan of plansOf(run)) made.push(within(await make.compile(plan), CONTEXT));
  programs.push(made);
}
await of.filled();
const started = performance.now();
const [first = []] = programs;
while (!gpu.info.software && performance.now() - started < 800) await sampleMs(profiler, first, 60);
const us = runs.map((): [number[], number[]] => [[], []]);
for (let round = 0; round < Number(flags.rounds); round++) {
  for (const [i, made] of programs.entries()) {
    us[i]?.[0].push(
      1000 * await sampleMs(profiler, made.slice(0, -1), gpu.info.software ? timed : 12),
    );
    us[i]?.[1].push(1000 * await sampleMs(profiler, made.slice(-1), gpu.info.software ? 1 : 4));
  }
}
say(`${gpu.info.adapter}, ${flags.shape}`);
let one: number | undefined;
for (const [i, { text }] of runs.entries()) {
  const [layerUs, headUs] = us[i]?.map((values) => median(values)) as [number, number];
  const forward = all * layerUs + headUs;
  one ??= forward;
  const steps = programs[i]?.[1]?.steps ?? [];
  say(
    `${text}: ${layerUs.toFixed(1)} us a layer of ${steps.length}, head ${headUs.toFixed(1)}, ` +
      `forward ${(forward / 1000).toFixed(2)} ms, ${(forward / one).toFixed(3)} of one`,
  );
  if (flags.kernels) say(steps.map(({ label, kernel }) => `    ${label} ${kernel}`).join("\n"));
}
Deno.exit(0);
