// Layers of the 8B shape at one row with parts of the plan as they were: throw-away.
import { openGpu } from "../src/gpu/device.ts";
import { compiler, type Program, within } from "../src/gpu/program.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { median } from "../src/bench/statistics.ts";
import { openAllocations } from "./allocations.ts";
import { CONTEXT, contextOf, layerPlans, rowsOf, type Sizes } from "./cases/layer.ts";

const tiny = Deno.args.includes("--tiny");
const real = await openGpu({});
const gpu = tiny
  ? {
    ...real,
    info: { ...real.info, software: false, backend: "vulkan" },
    limits: {
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupStorageSize: 49152,
      maxStorageBufferBindingSize: real.limits.maxStorageBufferBindingSize,
      maxBufferSize: real.limits.maxBufferSize,
      maxStorageBuffersPerShaderStage: 20,
    } as unknown as GPUSupportedLimits,
  }
  : real;
const started = performance.now();
const from = openAllocations(gpu);
const sizes: Sizes = {
  ...{ name: "8b", hidden: 4096, intermediate: tiny ? 512 : 14336 },
  ...{ heads: 32, kvHeads: 8, headDim: 128 },
};
const { hidden, intermediate, heads, kvHeads, headDim } = sizes;
const context = contextOf(from, sizes, { rows: 1, slots: 1 });
const spec = {
  ...{ kind: "heads", numHeads: heads, numKvHeads: kvHeads, headDim, bias: false, rope: 0 },
  ...{ qkNorm: "none", scale: 1 / Math.sqrt(headDim), cap: undefined, window: undefined },
} as const;
const cells = CONTEXT * kvHeads * headDim;
const layers = Array.from({ length: tiny ? 2 : 5 }, (_, i) => ({
  attention: {
    ...{ kind: "heads", spec, bias: undefined, qkNorm: undefined },
    qkv: from.matrix((heads + 2 * kvHeads) * headDim, hidden, "bf16"),
    o: from.matrix(hidden, heads * headDim, "bf16"),
  },
  norms: { attention: undefined, post: from.random(hidden), mlp: undefined },
  kv: { keys: from.random(cells), values: from.random(cells) },
  mlp: {
    kind: "dense",
    spec: { kind: "dense", activation: "silu", intermediateSize: intermediate },
    gateUp: from.matrix(2 * intermediate, hidden, "bf16"),
    down: from.matrix(hidden, intermediate, "bf16"),
  },
  label: `layers.${i}`,
} as const));
const weights = layers.map(() => from.random(hidden));
const seen = { rows: rowsOf(from, 1, 1), count: 1, perSlot: 1 };
await from.filled();
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const flags = globalThis as unknown as { OLD: readonly string[] };
const variants: Record<string, readonly string[]> = {
  new: [],
  old: ["own", "wide", "long"],
  "old own": ["own"],
  "old wide": ["wide"],
  "old long": ["long"],
  "old own wide": ["own", "wide"],
};
const open: { name: string; program: Program; times: number[] }[] = [];
for (const [name, old] of Object.entries(variants)) {
  flags.OLD = old;
  const plan = layerPlans(context, layers, { weights, seen }).flat();
  if (tiny) console.log(name, plan.slice(0, 9).map(({ kernel }) => kernel.name).join(" "));
  open.push({ name, program: within(await make.compile(plan), CONTEXT), times: [] });
}
const sample = async ({ steps }: Program, runs: number) =>
  ((await profiler.time([{ steps: Array.from({ length: runs }, () => steps).flat() }]))[0]?.end ??
    NaN) / runs / layers.length;
for (const { program } of open) await sample(program, 1);
if (tiny) Deno.exit(0);
const warm = performance.now();
while (performance.now() - warm < 1000) await sample(open[0]!.program, 8);
const until = Number(Deno.args[0] ?? 6) * 1000;
for (let round = 0; performance.now() - started < until; round++) {
  for (const { program, times } of round % 2 ? open : open.toReversed()) {
    times.push(1000 * await sample(program, 4));
  }
}
for (const { name, times } of open) {
  console.log(name.padEnd(14), median(times).toFixed(2), times.length);
}
Deno.exit(0);
