import { median } from "../../src/bench/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { type Dispatch, kernel, type Plan } from "../../src/gpu/kernel.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, within } from "../../src/gpu/program.ts";
import { type Allocations, openAllocations } from "../allocations.ts";
import { latentLayers, latentSizes } from "../cases/latent_layer.ts";
import { variantsOf } from "./variants.ts";

const [format = "bf16", cells = "512", ...what] = Deno.args;
const CELLS = Number(cells);
using opened = await openGpu();
const small = opened.info.software;
const gpu: typeof opened = { ...opened, info: { ...opened.info, software: false } };
using of = openAllocations(gpu);
const sizes = small
  ? {
    name: "small",
    hidden: 512,
    intermediate: 1408,
    heads: 4,
    nope: 32,
    rope: 16,
    value: 32,
    rank: 128,
    numExperts: 16,
    topK: 6,
    shared: 2,
  }
  : latentSizes(false);
const made: unknown[] = [];
let at = 0;
const again = <T>(make: () => T): T => {
  if (at === made.length) made.push(make());
  return made[at++] as T;
};
const replay: Allocations = {
  ...of,
  words: (v) => again(() => of.words(v)),
  random: (n) => again(() => of.random(n)),
  matrix: (r, c, f) => again(() => of.matrix(r, c, f)),
};
const build = (): Plan[] => {
  at = 0;
  return latentLayers(replay, sizes, {
    rows: Number(Deno.env.get("ROWS") ?? 1),
    format: format as "bf16",
    cells: CELLS,
  });
};
const plans = build();
await of.filled();
const { compile } = compiler(gpu);
using profiler = await openProfiler(gpu, { queries: 2 });
const variants = new Map<string, Plan[]>();
variants.set("base", plans);
const X = globalThis as unknown as Record<string, unknown>;
const used = (d: Dispatch) => !(d.forCells && (d.forCells.from > CELLS || d.forCells.upTo < CELLS));
const short = (label: string) => label.replace(/^layers\.\d+\./, "");
const bare = (d: Dispatch): Dispatch => {
  const cut = (name: string) =>
    d.buffers[name] ? { [name]: { ...d.buffers[name]!, size: 4096 } } : {};
  return { ...d, buffers: { ...d.buffers, ...cut("weights"), ...cut("scales") } };
};
const names = [...new Set(plans[0]!.filter(used).map(({ label }) => short(label)))];
if (what.includes("bare")) {
  variants.set("no weights", plans.map((p) => p.map(bare)));
  for (const n of names) {
    variants.set(
      `no weights of ${n}`,
      plans.map((p) => p.map((d) => short(d.label) === n ? bare(d) : d)),
    );
  }
}
if (what.includes("alone")) {
  for (const n of names) {
    variants.set(
      `alone ${n}`,
      plans.map((p) => p.filter((d) => short(d.label) === n)),
    );
  }
}
if (what.includes("drop")) {
  for (const n of names) {
    variants.set(
      `without ${n}`,
      plans.map((p) => p.filter((d) => short(d.label) !== n)),
    );
  }
}
if (what.includes("twice")) {
  for (const n of names) {
    variants.set(
      `twice ${n}`,
      plans.map((p) => p.flatMap((d) => short(d.label) === n ? [d, d] : [d])),
    );
  }
}
const edit = (end: string, change: (code: string) => string) => (name: string, from = plans) =>
  from.map((p) =>
    p.map((d) => {
      if (!short(d.label).endsWith(end) || !used(d)) return d;
      const code = change(d.kernel.code);
      if (code === d.kernel.code) throw new Error(`nothing changed in ${d.kernel.name}`);
      return { ...d, kernel: { ...d.kernel, name: `${d.kernel.name}_${name}`, code } };
    })
  );
for (const [name, make] of variantsOf({ format, what, X, build, edit, short, plans })) {
  const made = make();
  variants.set(name, made);
  if (what.includes("changed")) {
    const known = new Set(plans[0]!.map(({ kernel }) => kernel.name));
    const own = made.map((p) => p.filter((d) => used(d) && !known.has(d.kernel.name)));
    const last = own.map((p) => p.slice(-1));
    if (own[0]!.length > 0) variants.set(`alone ${name} ${short(last[0]![0]!.label)}`, last);
  }
}
const programs = new Map<string, Program>();
const begun = performance.now();
let skipped = 0;
for (const [name, made] of variants) {
  if (performance.now() - begun > Number(Deno.env.get("COMPILE") ?? 100) * 1000) {
    skipped++;
    continue;
  }
  try {
    programs.set(name, {
      steps: (await Promise.all(made.map(async (p) => within(await compile(p), CELLS)))).flatMap((
        { steps },
      ) => steps),
    });
  } catch (error) {
    console.log(`${name}: ${String(error).slice(0, 300)}`);
  }
}
console.log(`compiled in ${((performance.now() - begun) / 1000).toFixed(1)} s, skipped ${skipped}`);
async function once(program: Program, repeat: number): Promise<number> {
  const steps = Array.from({ length: repeat }, () => program.steps).flat();
  return (await profiler.time([{ steps }]))[0]!.end * 1000 / repeat / plans.length;
}
const repeat = small ? 1 : 10;
for (const program of programs.values()) await once(program, 1);
const until = performance.now() + (small ? 0 : 700);
while (performance.now() < until) await once(programs.get("base")!, repeat);
const samples = new Map<string, number[]>([...programs.keys()].map((k) => [k, []]));
const end = performance.now() + Number(Deno.env.get("SECONDS") ?? 5) * 1000;
for (let turn = 0; turn < (small ? 1 : 9) && performance.now() < end; turn++) {
  for (const [name, program] of programs) {
    await once(program, small ? 1 : 2);
    samples.get(name)!.push(await once(program, repeat));
  }
}
const base = median(samples.get("base")!);
console.log(
  `${format} ${CELLS}: ${base.toFixed(2)} us a layer, ${
    programs.get("base")!.steps.length / plans.length
  } dispatches, ${samples.get("base")!.length} turns`,
);
for (const [name, all] of samples) {
  const m = median(all);
  if (name !== "base") {
    console.log(
      `  ${
        (name.startsWith("alone") || name === "no weights" ? m : m - base).toFixed(2)
      } ${name} (${Math.min(...all).toFixed(1)})`,
    );
  }
}
void kernel;
