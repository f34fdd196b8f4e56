// A layer of Qwen3-0.6B at one row, with variants of its kernels' texts: throw-away.
//   deno run -A bench/small_layer.ts [--tiny] [--seconds 17] [NAME...]
import { parseArgs } from "node:util";
import process from "node:process";
import { openGpu } from "../src/gpu/device.ts";
import { type Dispatch, dispatch, type Kernel, kernel } from "../src/gpu/kernel.ts";
import { compiler, type Program, within } from "../src/gpu/program.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { median } from "../src/bench/statistics.ts";
import { openAllocations } from "./allocations.ts";
import { CONTEXT, layerCases } from "./cases/layer.ts";
import { variants } from "./small_variants.ts";

const { values: flags, positionals: names } = parseArgs({
  options: {
    tiny: { type: "boolean", default: false },
    seconds: { type: "string", default: "17" },
    case: { type: "string", default: "layer/qwen3-0.6b/bf16/1" },
  },
  allowPositionals: true,
});
const started = performance.now();
const real = await openGpu({});
const gpu = flags.tiny
  ? {
    ...real,
    info: { ...real.info, software: false },
    limits: {
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupStorageSize: 49152,
      maxStorageBufferBindingSize: real.limits.maxStorageBufferBindingSize,
      maxBufferSize: real.limits.maxBufferSize,
      maxStorageBuffersPerShaderStage: 16,
    } as unknown as GPUSupportedLimits,
  }
  : real;
const say = (text: string) => process.stdout.write(`${text}\n`);
const late = () => performance.now() - started > 1000 * Number(flags.seconds);
const allocations = openAllocations(gpu);
const one = layerCases(false).find(({ name }) => name === flags.case)!;
const apart = globalThis as unknown as { APART: boolean };
apart.APART = true;
const lone = one.make(allocations);
apart.APART = false;
const made = flags.tiny ? one.make(allocations).slice(0, 1) : one.make(allocations);
const fits = (d: Dispatch) =>
  d.forCells === undefined || (CONTEXT >= d.forCells.from && CONTEXT <= d.forCells.upTo);
const layers = made.map((plan) => plan.filter(fits));
const apartLayers = lone.slice(0, layers.length).map((plan) => plan.filter(fits));
await allocations.filled();
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);

interface Open {
  readonly name: string;
  readonly programs: readonly Program[];
  readonly times: number[];
}
const open: Open[] = [];
const sample = async (programs: readonly Program[], runs: number) => {
  const steps = Array.from({ length: runs }, (_, i) => programs[i % programs.length]!.steps);
  return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
};
const outOf = (layer: Dispatch[]) => (layer.at(-1)!.buffers.out ?? layer.at(-1)!.buffers.b_out)!;
const inOf = (layer: Dispatch[]) => [
  (layer[0]!.buffers.x ?? layer[0]!.buffers.a_x)!,
  (layer[0]!.buffers.sums ?? layer[0]!.buffers.a_sums)!,
];
let first: Float32Array | undefined;
async function outcome(program: Program, layer: Dispatch[]): Promise<Float32Array> {
  for (const { buffer } of inOf(layer)) {
    const values = Float32Array.from(
      { length: buffer.size / 4 },
      (_, i) => Math.sin(i * 12.9898) * (1 + i % 7),
    );
    gpu.device.queue.writeBuffer(buffer, 0, values);
  }
  await sample([program], 1);
  const { buffer } = outOf(layer);
  return new Float32Array((await readBuffer(gpu, { buffer, size: 16384 })).slice(0));
}
const extra = {
  buffer(words: number, fill: number) {
    return allocations.words(new Uint32Array(words).fill(fill));
  },
};
for (const [name, vary] of Object.entries(variants(extra))) {
  if (names.length > 0 && !names.some((n) => name.startsWith(n))) continue;
  if (late()) break;
  try {
    const programs: Program[] = [];
    for (const layer of name.startsWith("apart") ? apartLayers : layers) {
      programs.push(within(await make.compile(vary([...layer], { dispatch, kernel })), CONTEXT));
    }
    const bits = await outcome(
      programs[0]!,
      name.startsWith("apart") ? apartLayers[0]! : layers[0]!,
    );
    first ??= bits;
    let most = 0;
    const same = bits.every((v, i) => {
      most = Math.max(most, Math.abs(v - first![i]!) / (1e-6 + Math.abs(first![i]!)));
      return v === first![i];
    });
    open.push({ name: name + (same ? "" : ` *${most.toExponential(0)}`), programs, times: [] });
  } catch (error) {
    say(`FAILED ${name}: ${String(error).slice(0, 600)}`);
  }
}
say(`compiled ${open.length} in ${((performance.now() - started) / 1000).toFixed(1)} s`);
if (flags.tiny) {
  for (const o of open) say(o.name);
  Deno.exit(0);
}
const from = performance.now();
while (performance.now() - from < 1000) await sample(open[0]!.programs, 32);
let rounds = 0;
while (!late() && rounds < 400) {
  for (const { programs, times } of rounds % 2 ? open : open.toReversed()) {
    times.push(1000 * await sample(programs, 32));
  }
  rounds++;
}
const base = median(open[0]!.times);
say(`${rounds} rounds; us a layer, less base`);
for (const { name, times } of open) {
  const m = median(times);
  say(`${name.padEnd(28)} ${m.toFixed(2)} ${(m - base).toFixed(2)}`);
}
Deno.exit(0);
export type { Kernel };
