// Layers of one row on matrix units, one after the other in one pass, each with weights of its own: microseconds a
// layer on warm clocks, the median of rounds in which all variants take turns.
//
//   EYRIE_WEBGPU=dawn deno run -A bench/units/layer.ts [--shapes 06b,8b,30b] [--reads 0,12] [--rounds 7]
//
// A variant of `reads` lets matmuls norm x themselves where their workgroups read so many MiB.
import { parseArgs } from "node:util";
import process from "node:process";
import { tileWords } from "../../shaders/experts/experts.ts";
import type { NormInput } from "../../shaders/norm/rms_norm.ts";
import type { Routing } from "../../shaders/router/route.ts";
import { median } from "../../src/bench/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import type { Matrix, Shard, TensorShard } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, within } from "../../src/gpu/program.ts";
import {
  attentionBlock,
  firstOfAttention,
  mlpBlock,
  type PlacedLayer,
} from "../../src/model/plan/decoder.ts";
import { enterBranch } from "../../src/model/plan/branch_input.ts";
import type { DecoderContext } from "../../src/model/plan/decoder_context.ts";
import { openAllocations } from "../allocations.ts";
import { attentionOf, CONTEXT, contextOf, rowsOf } from "../cases/layer.ts";

const { values: flags } = parseArgs({
  options: {
    shapes: { type: "string", default: "06b,30b,8b" },
    reads: { type: "string", default: "0,12" },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "18" },
  },
});
const started = performance.now();
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = (text: string) => process.stdout.write(`${text}\n`);
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);

const SHAPES = {
  "06b": { hidden: 1024, intermediate: 3072, heads: 16, kvHeads: 8, layers: 10, normed: true },
  "8b": { hidden: 4096, intermediate: 14336, heads: 32, kvHeads: 8, layers: 4, normed: false },
  "30b": { hidden: 2048, intermediate: 768, heads: 32, kvHeads: 4, layers: 3, normed: true },
  tiny: { hidden: 256, intermediate: 128, heads: 4, kvHeads: 2, layers: 2, normed: true },
} as const;
const [EXPERTS, TOP_K] = [128, 8];

async function shapeOf(name: keyof typeof SHAPES): Promise<void> {
  // Software adapters play what hardware has.
  using of = openAllocations({ ...gpu, info: { ...gpu.info, software: false } });
  const sizes = { ...SHAPES[name], name, headDim: name === "tiny" ? 64 : 128 };
  const { hidden, intermediate, layers } = sizes;
  const mixture = name === "30b" || name === "tiny";
  const scale = (rows: number) => of.words(new Uint32Array(rows).fill(0x3f800000));
  const shards = new Map<Shard, TensorShard>();
  const experts = new Map<Shard, Operand>();
  // Random bits are numbers as f16, too.
  const onUnits = (matrix: Matrix) => {
    for (const shard of matrix.shards) {
      shards.set(shard, { scales: scale(shard.rows), halved: true });
    }
    return matrix;
  };
  const stacked = (matrix: Matrix) => {
    for (const shard of matrix.shards) experts.set(shard, scale(shard.rows));
    return matrix;
  };
  const dense = contextOf(of, sizes, { rows: 1, slots: 1 });
  const tensor = { unit, limits: gpu.limits, shards, experts, xScales: scale(16) };
  const tuning = { ...dense.tuning, software: false, tensor };
  const jobs = { rows: 1, topK: TOP_K, numExperts: EXPERTS };
  const context: DecoderContext = {
    ...dense,
    tuning,
    scratch: {
      ...dense.scratch,
      act: of.random(TOP_K * intermediate),
      scales: {
        normed: scale(1),
        lowered: scale(64 + TOP_K),
        stride: 64,
        jobs: mixture ? TOP_K : 1,
      },
      mixture: {
        ...{ logits: of.random(EXPERTS), experts: of.random(TOP_K), weights: of.random(TOP_K) },
        ...{ tiles: of.random(tileWords(jobs, tuning, unit)), outputs: of.random(TOP_K * hidden) },
      },
    },
  };
  const routing: Routing = {
    ...{ scores: "softmax", numExperts: EXPERTS, topK: TOP_K, normalize: true, scale: 1 },
    ...{ groups: 1, topGroups: 1, groupBest: 1 },
  };
  const placed = Array.from({ length: layers }, (_, i): PlacedLayer => {
    const own = attentionOf(of, sizes, { format: "bf16", slots: 1 });
    const attention = own.attention as Extract<typeof own.attention, { kind: "heads" }>;
    onUnits(attention.qkv);
    onUnits(attention.o);
    const spec = { ...attention.spec, qkNorm: sizes.normed ? "head" as const : "none" as const };
    return {
      ...own,
      attention: { ...attention, spec, qkNorm: sizes.normed ? attention.qkNorm : undefined },
      mlp: mixture
        ? {
          ...{ kind: "mixture", stacked: 0, shared: undefined, bias: undefined },
          spec: { kind: "mixture", routing, intermediateSize: intermediate, shared: undefined },
          router: of.matrix(EXPERTS, hidden, "bf16"),
          gateUp: stacked(of.matrix(EXPERTS * 2 * intermediate, hidden, "bf16")),
          down: stacked(of.matrix(EXPERTS * hidden, intermediate, "bf16")),
        }
        : {
          kind: "dense",
          spec: { kind: "dense", activation: "silu", intermediateSize: intermediate },
          gateUp: onUnits(of.matrix(2 * intermediate, hidden, "bf16")),
          down: onUnits(of.matrix(hidden, intermediate, "bf16")),
        },
      label: `layers.${i}`,
    };
  });
  const norms = placed.map(() => of.random(hidden));
  const seen = { rows: rowsOf(of, 1, 1), count: 1, perSlot: 1 };
  const planOf = (context: DecoderContext): Plan[] => {
    let from: NormInput = { x: context.scratch.x };
    return placed.map((layer, i) => {
      const entry = { from, weight: norms[i] as Operand, first: firstOfAttention(layer) };
      const entered = enterBranch(context, entry, 1, `layers.${i}.inputNorm`);
      const attention = attentionBlock(context, layer, entered.input, seen);
      const mlp = mlpBlock(context, layer, { stream: attention.stream, rows: 1, end: "sums" });
      from = mlp.stream;
      return [...entered.plan, ...attention.plan, ...mlp.plan];
    });
  };
  const variants: { what: string; programs: Program[]; us: number[]; count: number }[] = [];
  for (const text of flags.reads.split(",")) {
    const [mib = 0, picks = 1] = text.split(".").map(Number);
    (globalThis as { WIDEST?: number }).WIDEST = 2048;
    (globalThis as { NORM_READ?: number }).NORM_READ = mib * 2 ** 20;
    const rules = picks === 1 ? tuning : { ...tuning, storageBuffers: 9 };
    const plans = planOf({ ...context, tuning: rules });
    const programs: Program[] = [];
    for (const plan of plans) programs.push(within(await make.compile(plan), CONTEXT));
    const count = programs[1]?.steps.length ?? 0;
    variants.push({ what: text, programs, us: [], count });
  }
  await of.filled();
  const sample = async ({ programs }: typeof variants[0], runs: number) => {
    const steps = Array.from({ length: runs }, (_, i) => programs[i % layers]?.steps ?? []);
    return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
  };
  const runs = gpu.info.software ? 2 : 24;
  const from = performance.now();
  for (const variant of variants) await sample(variant, runs);
  while (!gpu.info.software && performance.now() - from < 1500) await sample(variants[0]!, 100);
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const variant of variants) variant.us.push(1000 * await sample(variant, runs));
  }
  for (const { what, us, count } of variants) {
    say(
      `${name} ${what}: ${median(us).toFixed(1)} us a layer of ${count}, best ${
        Math.min(...us).toFixed(1)
      }`,
    );
  }
}

for (const name of flags.shapes.split(",")) await shapeOf(name as keyof typeof SHAPES);
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);
