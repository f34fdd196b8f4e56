/** A chain of layers: what each dispatch costs in it, and what touching weights ahead gains. */
import { median } from "../../src/bench/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { bytesOf, type Dispatch, dispatch, kernel, type Plan } from "../../src/gpu/kernel.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, within } from "../../src/gpu/program.ts";
import { openAllocations } from "../allocations.ts";
import { CONTEXT } from "../cases/layer.ts";
import { mixtureLayers, mixtureSizes } from "../cases/mixture_layer.ts";

const [format = "bf16", ...what] = Deno.args;
using opened = await openGpu();
const small = opened.info.software;
const software = small;
const gpu: typeof opened = { ...opened, info: { ...opened.info, software: false } };
using of = openAllocations(gpu);
const sizes = small
  ? {
    name: "small",
    hidden: 512,
    intermediate: 256,
    numExperts: 128,
    topK: 8,
    heads: 32,
    kvHeads: 4,
    headDim: 128,
  }
  : mixtureSizes(false);
// The same buffers for all variants, in the order that they are asked for.
const kept: Record<string, unknown[]> = { random: [], words: [], matrix: [] };
let next: Record<string, number> = {};
const thrifty = new Proxy(of, {
  get(target, key) {
    const made = kept[key as string];
    if (!made) return Reflect.get(target, key);
    return (...args: unknown[]) => {
      const i = next[key as string] = (next[key as string] ?? -1) + 1;
      return made[i] ??= (Reflect.get(target, key) as (...a: unknown[]) => unknown)(...args);
    };
  },
});
const plans = mixtureLayers(thrifty, sizes, {
  rows: Number(Deno.env.get("ROWS") ?? 1),
  format: format as "bf16",
});
await of.filled();
const { compile } = compiler(gpu);
using profiler = await openProfiler(gpu, { queries: 2 });
const code = kernel("touch", await Deno.readTextFile(new URL("touch.wgsl", import.meta.url)), {
  bindings: ["weights", "out"],
  constants: ["SECTORS", "THREADS"],
});
function touch(of1: Dispatch, share = 1): Dispatch {
  const weights = of1.buffers["weights"]!;
  const sectors = Math.floor(bytesOf(weights) / 32 * share);
  const groups = Math.min(1024, Math.ceil(sectors / 8 / 256));
  return dispatch(code, {
    buffers: { weights, out: of.random(4) },
    constants: { SECTORS: sectors, THREADS: groups * 256 },
    workgroups: [groups, 1, 1],
    label: "touch",
  });
}
const find = (plan: Plan, end: string) =>
  plan.find(({ label, forCells }) =>
    label.endsWith(end) && (forCells === undefined || forCells.from === 0)
  )!;
const after = (plan: Plan, end: string, more: Dispatch[]) =>
  plan.flatMap((each) => each.label.endsWith(end) ? [each, ...more] : [each]);
const variants = new Map<string, Plan[]>();
variants.set("base", plans);
if (what.includes("touch")) {
  const o = (share: number) =>
    plans.map((p) => after(p, ".attention", [touch(find(p, ".o"), share)]));
  const qkv = (from: Plan[], share: number) =>
    from.map((p, i) =>
      after(p, ".experts.down", [touch(find(plans[(i + 1) % plans.length]!, ".qkv"), share)])
    );
  variants.set("touch nothing at attention", o(0.001));
  variants.set("touch o at attention", o(1));
  variants.set("touch half o at attention", o(0.5));
  variants.set("touch qkv at down", qkv(plans, 1));
  variants.set("touch half qkv at down", qkv(plans, 0.5));
  variants.set("touch both", qkv(o(1), 1));
}
const X: Record<string, number> = (globalThis as unknown as { X: Record<string, number> }).X = {};
function variant(
  name: string,
  set: Record<string, number>,
  change: (d: Dispatch) => Dispatch = (d) => d,
) {
  for (const k of Object.keys(X)) delete X[k];
  Object.assign(X, set);
  next = {};
  const made = mixtureLayers(thrifty, sizes, {
    rows: Number(Deno.env.get("ROWS") ?? 1),
    format: format as "bf16",
  });
  for (const k of Object.keys(X)) delete X[k];
  variants.set(name, made.map((p) => p.map(change)));
}
const alone = new Set<string>();
if (what.includes("bare")) {
  const bare = (d: Dispatch): Dispatch => {
    const cut = (name: string) =>
      d.buffers[name] ? { [name]: { ...d.buffers[name]!, size: 4096 } } : {};
    return { ...d, buffers: { ...d.buffers, ...cut("weights"), ...cut("scales") } };
  };
  variants.set("no weights", plans.map((p) => p.map(bare)));
  plans[0]!.forEach((d, j) => {
    if (d.buffers["weights"]) {
      if (!d.forCells || d.forCells.from === 0) {
        variants.set(
          `no weights of ${d.label}`,
          plans.map((p) => p.map((d, k) => k === j ? bare(d) : d)),
        );
      }
    }
  });
}
if (what.includes("drop")) {
  plans[0]!.forEach((d, j) => {
    if (d.forCells && (d.forCells.from > 512 || d.forCells.upTo < 512)) return;
    const name = `alone: ${d.label}`;
    alone.add(name);
    variants.set(name, plans.map((p) => p.filter((_, k) => k === j)));
  });
}
if (what.includes("drop")) {
  const cells = 512;
  plans[0]!.forEach((d, j) => {
    if (d.forCells && (d.forCells.from > cells || d.forCells.upTo < cells)) return;
    variants.set(
      `without ${d.label} ${d.kernel.name}`,
      plans.map((p) => p.filter((_, k) => k !== j)),
    );
  });
}
const programs = new Map<string, Program>();
for (const [name, made] of variants) {
  programs.set(name, {
    steps: (await Promise.all(made.map(async (p) => within(await compile(p), CONTEXT)))).flatMap((
      { steps },
    ) => steps),
  });
}
async function once(program: Program, repeat: number): Promise<number> {
  const steps = Array.from({ length: repeat }, () => program.steps).flat();
  return (await profiler.time([{ steps }]))[0]!.end * 1000 / repeat / plans.length;
}
const repeat = software ? 1 : 12;
const until = performance.now() + (software ? 0 : 700);
for (const program of programs.values()) await once(program, 1);
while (performance.now() < until) await once(programs.get("base")!, repeat);
const samples = new Map<string, number[]>([...programs.keys()].map((k) => [k, []]));
for (let turn = 0; turn < (software ? 1 : 9); turn++) {
  for (const [name, program] of programs) {
    await once(program, software ? 1 : 2);
    samples.get(name)!.push(await once(program, repeat));
  }
}
const base = median(samples.get("base")!);
console.log(
  `${format}: ${base.toFixed(2)} us a layer, ${
    programs.get("base")!.steps.length / plans.length
  } dispatches`,
);
for (const [name, all] of samples) {
  if (name !== "base") {
    console.log(`  ${(alone.has(name) ? median(all) : median(all) - base).toFixed(2)} ${name}`);
  }
}
