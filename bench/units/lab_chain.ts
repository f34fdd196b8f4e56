// Layers at the rows of rounds on matrix units, one after the other in one pass, each with weights of its own.
//
//   EYRIE_WEBGPU=dawn deno run -A bench/units/rounds.ts [--shape 8b|06b|tiny] [--rows 1x1,8x1,4x4,8x4] [--kernels]
//
// Rows are sequences by rows of each, behind 512 tokens. Microseconds a layer and of the head on warm clocks, the median
// of turns; "of one" is a forward's, all layers and the head, over that of the first. --kernels names what runs.
import { parseArgs } from "node:util";
import process from "node:process";
import { matmul } from "../../shaders/matmul/matmul.ts";
import type { NormInput } from "../../shaders/norm/rms_norm.ts";
import { median } from "../../src/bench/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Dispatch, Operand, Plan } from "../../src/gpu/kernel.ts";
import type { Matrix, Shard, TensorMatrices, TensorShard } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, within } from "../../src/gpu/program.ts";
import { enterBranch } from "../../src/model/plan/branch_input.ts";
import {
  attentionBlock,
  firstOfAttention,
  mlpBlock,
  type PlacedLayer,
} from "../../src/model/plan/decoder.ts";
import type { DecoderContext } from "../../src/model/plan/decoder_context.ts";
import { openAllocations } from "../allocations.ts";
import { attentionOf, CONTEXT, contextOf, rowsOf } from "../cases/layer.ts";

const { values: flags } = parseArgs({
  options: {
    shape: { type: "string", default: "8b" },
    rows: { type: "string", default: "1x1,8x1,4x4,16x1,8x4,16x4" },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "60" },
    without: { type: "boolean", default: false },
    ahead: { type: "string", default: "1" },
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
  /** Of the model, and of those that are timed. */
  readonly layers: readonly [number, number];
  /** Whether heads of q and k are normed. */
  readonly normed: boolean;
}
const SHAPES: Readonly<Record<string, Shape>> = {
  "8b": {
    ...{ hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, headDim: 128 },
    ...{ vocab: 128256, layers: [32, 3], normed: false },
  },
  "06b": {
    ...{ hidden: 1024, intermediate: 3072, heads: 16, kvHeads: 8, headDim: 128 },
    ...{ vocab: 151936, layers: [28, 10], normed: true },
  },
  tiny: {
    ...{ hidden: 256, intermediate: 384, heads: 4, kvHeads: 2, headDim: 64 },
    ...{ vocab: 512, layers: [2, 2], normed: false },
  },
};
const shape = SHAPES[flags.shape] as Shape;

const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);
// Software adapters play what hardware has.
const of = openAllocations({ ...gpu, info: { ...gpu.info, software: false } });
const say = (text: string) => process.stdout.write(`${text}\n`);
const ones = (count: number) => of.words(new Uint32Array(count).fill(0x3f800000));

const shards = new Map<Shard, TensorShard>();
/** Random bits are numbers as f16, too. */
function onUnits(matrix: Matrix): Matrix {
  for (const shard of matrix.shards) shards.set(shard, { scales: ones(shard.rows), halved: true });
  return matrix;
}

function layer(label: string, slots: number): PlacedLayer {
  const { hidden, intermediate, normed } = shape;
  const own = attentionOf(of, { ...shape, name: "" }, { format: "bf16", slots });
  const attention = own.attention as Extract<typeof own.attention, { kind: "heads" }>;
  const spec = { ...attention.spec, qkNorm: normed ? "head" as const : "none" as const };
  const qkNorm = normed ? attention.qkNorm : undefined;
  const [qkv, o] = [onUnits(attention.qkv), onUnits(attention.o)];
  return {
    ...own,
    attention: { ...attention, spec, qkNorm, qkv, o },
    mlp: {
      kind: "dense",
      spec: { kind: "dense", activation: "silu", intermediateSize: intermediate },
      gateUp: onUnits(of.matrix(2 * intermediate, hidden, "bf16")),
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
const mostSlots = Math.max(...runs.map(({ slots }) => slots));
const [all, timed] = shape.layers;
const layers = Array.from({ length: timed }, (_, i) => layer(`layers.${i}`, mostSlots));
const norms = layers.map(() => of.random(shape.hidden));
const head = onUnits(of.matrix(shape.vocab, shape.hidden, "bf16"));
const logits = of.random(most * shape.vocab);
const tensor: TensorMatrices = {
  ...{ unit, limits: gpu.limits, shards, experts: new Map(), xScales: ones(most) },
};

/** A plan for each layer, then the head. */
function plansOf({ slots, perSlot }: typeof runs[number]): Plan[] {
  const count = slots * perSlot;
  const plain = contextOf(of, { ...shape, name: "" }, { rows: count, slots });
  const scales = { normed: ones(count), lowered: ones(2 * most), stride: most, jobs: 1 };
  const tuning = { ...plain.tuning, software: false, tensor };
  const context: DecoderContext = { ...plain, tuning, scratch: { ...plain.scratch, scales } };
  const seen = { rows: rowsOf(of, perSlot, slots), count, perSlot };
  let from: NormInput = { x: context.scratch.x };
  const plans = layers.map((layer, i): Plan => {
    const entry = { from, weight: norms[i] as Operand, first: firstOfAttention(layer) };
    const entered = enterBranch(context, entry, count, `${layer.label}.inputNorm`);
    const attention = attentionBlock(context, layer, entered.input, seen);
    const mlp = mlpBlock(context, layer, { stream: attention.stream, rows: count, end: "sums" });
    from = mlp.stream;
    return [...entered.plan, ...attention.plan, ...mlp.plan];
  });
  const { normed: x } = context.scratch;
  const launch = { rows: count, epilogue: "store", tuning, label: "head" } as const;
  return [...plans, matmul({ matrix: head, x, xScales: ones(count), out: logits }, launch)];
}

async function sample(programs: readonly Program[], times: number): Promise<number> {
  const steps = Array.from({ length: times }, (_, i) => programs[i % programs.length]?.steps ?? []);
  return 1000 * ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / times;
}


const begun = performance.now();
const LOADS = 8;

/** A dispatch whose further workgroups ask for what the next matmul begins with. */
function asking(of: Dispatch, next: Dispatch, chunks: number, ranges: number): Dispatch {
  const { kernel } = of;
  const isNorm = kernel.name.startsWith("rms_norm");
  const dim = isNorm ? "tile.x" : "tile.y";
  const rowsOf = (next.buffers.weights as Operand);
  const cols = next.constants.COLS as number;
  const rows = next.constants.MATRIX_ROWS as number;
  const total = rows * ranges * chunks;
  const lanes = isNorm ? of.constants.LANES as number : Number(/LANES = (\d+)u/.exec(kernel.code)?.[1]) * Number(/QUADS = (\d+)u/.exec(kernel.code)?.[1]);
  const [x, y, z] = of.workgroups;
  const perRow = isNorm ? 1 : x * z;
  const extra = Math.ceil(total / (lanes * LOADS * perRow));
  const first = isNorm ? x : y;
  const thread = isNorm ? "lane" : "thread";
  const own = isNorm ? "tile.x - AHEAD_FIRST" : "((tile.y - AHEAD_FIRST) * " + z + "u + tile.z) * " + x + "u + tile.x";
  const body = `
fn ask(group: u32, thread: u32) {
  var all_of = vec4<u32>();
` + Array.from({ length: LOADS }, (_, j) => `  {
    let i = group * ${lanes * LOADS}u + ${j * lanes}u + thread;
    let row = i / ${chunks}u;
    all_of ^= ahead[min((row / ${ranges}u) * ${cols / 8}u + (row % ${ranges}u) * ${cols / 8 / ranges}u + i % ${chunks}u, arrayLength(&ahead) - 1u)];
  }
`).join("") + `  if (all(all_of == vec4(0x12345678u, 0x9abcdef1u, 0x33445566u, 0x77665544u))) {
    out[0] = ${kernel.code.includes("out: array<vec4<u32>>") ? "all_of" : "vec4<f32>(all_of)"};
  }
}
@group(0) @binding(12) var<storage, read> ahead: array<vec4<u32>>;
override AHEAD_FIRST: u32;
`;
  const at = kernel.code.indexOf("@compute");
  const open = kernel.code.indexOf(") {", at) + 3;
  const code = kernel.code.slice(0, at) + body + kernel.code.slice(at, open) +
    `\n  if (${dim} >= AHEAD_FIRST) {\n    ask(${own}, ${thread});\n    return;\n  }\n` + kernel.code.slice(open);
  const place = kernel.numbers.findIndex((number) => number > 12);
  const at2 = place < 0 ? kernel.numbers.length : place;
  return {
    ...of,
    kernel: {
      name: `${kernel.name}_asks_${chunks}_${ranges}_${cols}_${lanes}_${x}_${z}_${rows}`,
      code,
      bindings: kernel.bindings.toSpliced(at2, 0, "ahead"),
      numbers: kernel.numbers.toSpliced(at2, 0, 12),
      constants: [...kernel.constants, "AHEAD_FIRST"],
    },
    buffers: { ...of.buffers, ahead: rowsOf },
    constants: { ...of.constants, AHEAD_FIRST: first },
    workgroups: isNorm ? [x + extra, y, z] : [x, y + extra, z],
  };
}

const AHEAD: Readonly<Record<string, readonly [next: string, chunks: number, ranges: number]>> = {
  inputNorm: ["qkv", 64, 1],
  combine: ["o", 32, 4],
  postNorm: ["gateUp", 16, 1],
};

function withAhead(plan: Plan, factor: (key: string) => number): Plan {
  return plan.map((one) => {
    const key = Object.keys(AHEAD).find((name) => one.label.endsWith(name));
    const [to = "", chunks = 0, ranges = 1] = AHEAD[key ?? ""] ?? [];
    const next = plan.find(({ label }) => label.endsWith(to));
    const factored = key ? factor(key) : 0;
    return key && next && factored > 0 ? asking(one, next, Math.max(1, chunks * factored), ranges) : one;
  });
}

interface Variant {
  readonly what: string;
  readonly programs: readonly Program[];
  readonly us: number[];
}

say(`${gpu.info.adapter}, ${flags.shape}`);
for (const run of runs) {
  const plans = plansOf(run).slice(0, -1);
  const variants: Variant[] = [];
  const add = async (what: string, change: (plan: Plan) => Plan) => {
    if (performance.now() - begun > 1000 * Number(flags.seconds)) return;
    const made: Program[] = [];
    for (const plan of plans) made.push(within(await make.compile(change(plan)), CONTEXT));
    variants.push({ what, programs: made, us: [] });
  };
  await add("as it is", (plan) => plan);
  for (const text of flags.ahead.split(",")) {
    if (text === "") continue;
    const [keys = "", factor = "1"] = text.split("=");
    await add(`ahead ${text}`, (plan) => withAhead(plan, (key) => keys === "all" || key === keys ? Number(factor) : 0));
  }
  const labels = plans[0]?.map(({ label }) => label.replace(/^layers\.\d+\./, "")) ?? [];
  if (flags.without) {
    for (const label of labels) await add(`without ${label}`, (plan) => plan.filter((one) => !one.label.endsWith(`.${label}`) ));
  }
  await of.filled();
  const started = performance.now();
  while (!gpu.info.software && performance.now() - started < 300) await sample(variants[0]?.programs ?? [], 60);
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const { programs, us } of variants) us.push(await sample(programs, gpu.info.software ? timed : 12));
  }
  const base = median(variants[0]?.us ?? []);
  for (const { what, us } of variants) say(`${run.text} ${what}: ${median(us).toFixed(1)} us a layer, ${(base - median(us)).toFixed(1)} less`);
  if (flags.kernels) say((variants[0]?.programs[1]?.steps ?? []).map(({ label, kernel }) => `    ${label} ${kernel}`).join("\n"));
}
Deno.exit(0);
