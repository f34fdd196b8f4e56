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
/** bf16/1 q8/1/X_LOADS=12: format, rows, a toggle. */
const start = performance.now();
for (const arg of Deno.args) {
  const [format = "bf16", rows = "1", toggle = ""] = arg.split("/");
  const [name = "", value = ""] = toggle.split("=");
  if (name) Deno.env.set(name, value);
  using of = openAllocations(gpu);
  const plans = mixtureLayers(of, sizes, { rows: Number(rows), format: format as "bf16" });
  await of.filled();
  const warm = performance.now();
  do await layerUs(plans); while (!soft && performance.now() - warm < 300);
  const all = await layerUs(plans);
  console.log(
    `${arg}: ${all.toFixed(2)} us a layer: ${plans[1]?.length} dispatches, at ${
      ((performance.now() - start) / 1000).toFixed(1)
    } s; ${plans[1]?.filter((d) => d.label.includes("experts")).map((d) => d.kernel.name).join(" ")}`,
  );
  if (name) Deno.env.delete(name);
}
