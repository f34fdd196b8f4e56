// Throw-away: what each dispatch of a mixture's layer costs in a forward.
import { openGpu } from "../src/gpu/device.ts";
import type { Plan } from "../src/gpu/kernel.ts";
import { compiler, within } from "../src/gpu/program.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { openAllocations } from "./allocations.ts";
import { mixtureLayers, mixtureSizes } from "./cases/mixture_layer.ts";
import { CONTEXT } from "./cases/layer.ts";

const gpu = await openGpu();
if (Deno.env.get("X_HW")) (gpu.info as any).software = false;
const soft = gpu.info.adapter.includes("llvmpipe");
const sizes = mixtureSizes(soft);
using profiler = await openProfiler(gpu, { queries: 64 });
const runs = soft ? 1 : 12;
const samples = soft ? 2 : 24;
async function layerUs(plans: readonly Plan[]): Promise<number> {
  const { compile } = compiler(gpu);
  const program = within(await compile(plans.flat()), CONTEXT);
  const steps = Array.from({ length: runs }, () => program.steps).flat();
  const times: number[] = [];
  for (let i = 0; i < samples; i++) times.push((await profiler.time([{ steps }]))[0]?.end ?? NaN);
  // Clocks go down at times: a fast quarter counts.
  return times.toSorted((a, b) => a - b)[Math.floor(samples / 4)]! * 1000 / runs / plans.length;
}
/** [format, rows] of the command line: bf16/1 q8/1; `-` drops dispatches one by one. */
for (const arg of Deno.args) {
  const [format = "bf16", rows = "1", drop = ""] = arg.split("/");
  using of = openAllocations(gpu);
  const plans = mixtureLayers(of, sizes, { rows: Number(rows), format: format as "bf16" });
  await of.filled();
  await layerUs(plans);
  if (!soft) await layerUs(plans);
  const all = await layerUs(plans);
  const labels = (plans[1] ?? []).map(({ label }) => label.replace(/layers\.\d+\./, ""));
  console.log(`${arg}: ${all.toFixed(2)} us a layer: ${plans[1]?.length} dispatches`);
  if (drop !== "drop") continue;
  for (const label of labels) {
    const without = plans.map((plan) => plan.filter((d) => !d.label.endsWith(`.${label}`)));
    const us = await layerUs(without);
    const name = plans[1]?.find((d) => d.label.endsWith(`.${label}`))?.kernel.name;
    console.log(`  ${label} ${(all - us).toFixed(2)} ${name}`);
  }
}
