// Layers of one row on matrix units, in order in one pass, each with its own weights. Prints microseconds a layer on
// warm clocks: the median of rounds in which all variants take turns.
//
//   EYRIE_WEBGPU=dawn deno run -A lab/units/layer.ts [--shapes 06b,8b,30b] [--rounds 7]
//
// Narrow models are timed as the engine runs them, and with norms as separate dispatches. Weights are random bits that
// are also finite numbers when read as f16.
import { parseArgs } from "node:util";
import process from "node:process";
import { median } from "../../src/measure/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { TensorShard } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, within } from "../../src/gpu/program.ts";
import type { PlacedLayer } from "../../src/model/graph/decoder.ts";
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { type Allocations, openAllocations } from "../allocations.ts";
import { sampleMs } from "../sample.ts";
import { attentionOf, CONTEXT, contextOf, layerPlans, rowsOf, type Sizes } from "../cases/layer.ts";
import { mixtureMlp } from "../cases/mixture_mlp.ts";

const { values: flags } = parseArgs({
  options: {
    shapes: { type: "string", default: "06b,30b,8b" },
    rounds: { type: "string", default: "7" },
  },
});
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);

interface Shape extends Sizes {
  readonly layers: number;
  /** Whether q and k have norms. */
  readonly normed: boolean;
  readonly mixture: boolean;
}
const heads = { headDim: 128, normed: true, mixture: false };
const SHAPES: readonly Shape[] = [
  { name: "06b", ...heads, hidden: 1024, intermediate: 3072, heads: 16, kvHeads: 8, layers: 10 },
  {
    name: "8b",
    ...heads,
    hidden: 4096,
    intermediate: 14336,
    heads: 32,
    kvHeads: 8,
    layers: 4,
    normed: false,
  },
  {
    name: "30b",
    ...heads,
    hidden: 2048,
    intermediate: 768,
    heads: 32,
    kvHeads: 4,
    layers: 3,
    mixture: true,
  },
  // For software adapters.
  {
    name: "tiny",
    ...heads,
    headDim: 64,
    hidden: 256,
    intermediate: 128,
    heads: 4,
    kvHeads: 2,
    layers: 2,
    mixture: true,
  },
];
const EXPERTS = { numExperts: 128, topK: 8 };

/** The rewrites that each variant leaves out. */
const VARIANTS = { "as it is": [], "norms apart": ["norm_in_matmul"] };

interface Stored {
  readonly shards: Map<Shard, TensorShard>;
  readonly experts: Map<Shard, TensorShard>;
}

const ones = (of: Allocations, count: number) => of.words(new Uint32Array(count).fill(0x3f800000));

function contextFor(of: Allocations, shape: Shape, stored: Stored): DecoderContext {
  const dense = contextOf(of, shape, { rows: 1, slots: 1 });
  const precision = "f16" as const;
  const tensor = { unit, limits: gpu.limits, ...stored, xScales: ones(of, 16), precision };
  const tuning = { ...dense.tuning, software: false, tensor };
  const jobs = shape.mixture ? EXPERTS.topK : 1;
  return {
    ...dense,
    tuning,
    scales: { normed: ones(of, 1), reduced: ones(of, 64 + jobs), stride: 64, jobs },
  };
}

function mlpOf(of: Allocations, shape: Shape, { shards, experts }: Stored): PlacedLayer["mlp"] {
  const { hidden, intermediate } = shape;
  if (shape.mixture) {
    const mlp = mixtureMlp(of, { ...shape, ...EXPERTS }, { format: "bf16", normalize: true });
    for (const shard of [...mlp.gateUp.shards, ...mlp.down.shards]) {
      experts.set(shard, { scales: ones(of, shard.rows), stored: "f16_tiles" });
    }
    return mlp;
  }
  const gateUp = of.matrix(2 * intermediate, hidden, "bf16", "gate_up");
  const down = of.matrix(hidden, intermediate, "bf16");
  place(of, shards, [gateUp, down]);
  const spec = { kind: "dense", activation: "silu", intermediateSize: intermediate } as const;
  return { kind: "dense", spec, gateUp, down };
}

function place(of: Allocations, to: Stored["shards"], matrices: readonly Matrix[]): void {
  for (const shard of matrices.flatMap(({ shards }) => shards)) {
    to.set(shard, { scales: ones(of, shard.rows), stored: "f16" });
  }
}

function layerOf(of: Allocations, shape: Shape, stored: Stored, i: number): PlacedLayer {
  const own = attentionOf(of, shape, { format: "bf16", slots: 1 });
  if (own.attention.kind !== "heads") throw new Error("latent attention");
  const { spec, qkNorm, qkv, o } = own.attention;
  place(of, stored.shards, [qkv, o]);
  const attention = shape.normed ? own.attention : {
    ...own.attention,
    spec: { ...spec, qkNorm: "none" as const },
    qkNorm: undefined,
    qkv: { ...qkv, rowOrder: "rope_halves" as const },
  };
  if (shape.normed && !qkNorm) throw new Error("no norm");
  return { ...own, attention, mlp: mlpOf(of, shape, stored), label: `layers.${i}` };
}

interface Variant {
  readonly what: string;
  readonly programs: readonly Program[];
  readonly us: number[];
}

const sample = ({ programs }: Variant, runs: number) => sampleMs(profiler, programs, runs);

async function time(shape: Shape): Promise<void> {
  // A software adapter is treated as hardware.
  using of = openAllocations({ ...gpu, info: { ...gpu.info, software: false } });
  const stored: Stored = { shards: new Map(), experts: new Map() };
  const context = contextFor(of, shape, stored);
  const layers = Array.from({ length: shape.layers }, (_, i) => layerOf(of, shape, stored, i));
  const weights = layers.map(() => of.random(shape.hidden));
  const seen = { rows: rowsOf(of, 1, 1), count: 1, perSlot: 1 };
  const x = of.random(shape.hidden);
  const variants: Variant[] = [];
  for (const [what, names] of Object.entries(VARIANTS)) {
    if (names.length > 0 && !shape.normed) continue;
    const without = new Set(names);
    const programs: Program[] = [];
    for (const plan of layerPlans({ ...context, without }, layers, { x, weights, seen })) {
      programs.push(within(await make.compile(plan), CONTEXT));
    }
    variants.push({ what, programs, us: [] });
  }
  await of.filled();
  const runs = gpu.info.software ? shape.layers : 24;
  const from = performance.now();
  for (const variant of variants) await sample(variant, runs);
  while (!gpu.info.software && performance.now() - from < 1500) {
    await sample(variants[0] as Variant, 100);
  }
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const variant of variants) variant.us.push(1000 * await sample(variant, runs));
  }
  for (const { what, us, programs } of variants) {
    const count = programs[1]?.steps.length ?? 0;
    say(`${shape.name}, ${what}: ${median(us).toFixed(1)} us a layer of ${count} dispatches`);
  }
}

const asked = flags.shapes.split(",");
for (const shape of SHAPES.filter(({ name }) => asked.includes(name))) await time(shape);
Deno.exit(0);
