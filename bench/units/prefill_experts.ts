// Throw-away: matmuls of the experts of 512 rows on matrix units, tiles by turns.
import process from "node:process";
import {
  expertTensor,
  type ExpertTile,
  expertTileBytes,
  expertTileThreads,
  tileColumns,
} from "../../shaders/experts/expert_tensor.ts";
import { unitLaunch, unitTile } from "../../shaders/experts/expert_unit_tiles.ts";
import { rowScales } from "../../shaders/tensor/matmul_tensor.ts";
import { fillParams, fillRandom } from "../../shaders/weights/fill_random.ts";
import { median } from "../../src/bench/statistics.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { hash32 } from "../../src/speculate/noise.ts";

const small = Deno.args.includes("--small");
const limitS = Number(Deno.args.find((a) => a.startsWith("--seconds="))?.slice(10) ?? 18);
const started = performance.now();
const elapsed = () => (performance.now() - started) / 1000;
const say = (text: string) => process.stdout.write(`${text}\n`);
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit!;
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);
say(`${gpu.info.adapter} ${elapsed().toFixed(1)} s`);

const ROWS = small ? 40 : Number(Deno.args.find((a) => a.startsWith("--rows="))?.slice(7) ?? 512);
type S = {
  name: string;
  E: number;
  topK: number;
  shared: number;
  n: number;
  k: number;
  end: "store" | "swiglu";
};
const SHAPES: S[] = [
  { name: "v2.gu", E: 64, topK: 6, shared: 2, n: 2816, k: 2048, end: "swiglu" },
  { name: "30b.gu", E: 128, topK: 8, shared: 0, n: 1536, k: 2048, end: "swiglu" },
  { name: "30b.down", E: 128, topK: 8, shared: 0, n: 2048, k: 768, end: "store" },
  { name: "v2.down", E: 64, topK: 6, shared: 2, n: 2048, k: 1408, end: "store" },
];
const names = Deno.args.find((a) => a.startsWith("--shapes="))?.slice(9).split(",");
const tilesArg = Deno.args.find((a) => a.startsWith("--tiles="))?.slice(8).split(",") ?? [];

function tileOf(text: string): ExpertTile {
  const [g0 = 1, g1 = 1, o0 = 1, o1 = 1, stage = 32, ahead = 1] = text.split(/[a-zA-Z]/)[0]!.split(
    ".",
  )
    .map(Number);
  return {
    jobs: g0 * o0 * unit.m,
    grid: [g0, g1],
    own: [o0, o1],
    stage,
    ahead,
    ...text.includes("e") ? { early: true } : {},
  };
}

/** Leaves parts of the loop out, to see what they take. */
function without(code: string, flags: string): string {
  const from = code.indexOf("  for (var k = 0u;");
  const to = code.indexOf("// Tile by tile: the sums");
  let loop = code.slice(from, to);
  let before = "";
  if (flags.includes("L")) loop = loop.replaceAll(/^\s+(w\d_\d|x[ab]\d_\d) = .*$/gm, "");
  if (flags.includes("X")) {
    loop = loop.replaceAll(/^ +let [ab] = x[ab]\d_\d \* x_scale\d;$/gm, "");
    const stores = [...loop.matchAll(/^ +(staged\[x_to(\d)\]) = .*\n +(staged\[x_to.*\]) = .*$/gm)];
    for (const [text, hi, u, lo] of stores) {
      const stage = 0;
      loop = loop.replace(
        text,
        `${hi} = bitcast<vec4<u32>>(xa${stage}_${u});\n${lo} = bitcast<vec4<u32>>(xb${stage}_${u});`,
      );
    }
  }
  if (flags.includes("S")) loop = loop.replaceAll(/^\s+staged\[.*\] = .*$/gm, "");
  if (flags.includes("B")) loop = loop.replaceAll("workgroupBarrier();", "");
  if (flags.includes("F")) {
    loop = loop.replaceAll(/^ +let (at\d|xh\d|xl\d|w_tile\d|x_tile\d_\d) = [^;]*;$/gm, (line) => {
      before += line.replaceAll("s * ", "0u * ") + "\n";
      return "";
    });
  }
  if (flags.includes("P")) {
    code = code.replace(/const PITCH = (\d+)u \+ 1u/, "const PITCH = $1u + 2u").replace(
      /(staged: array<vec4<u32>, )(\d+)/,
      (_, a, n) => a + 2 * Number(n),
    );
    return code;
  }
  return code.slice(0, from) + before + loop + code.slice(to);
}

async function prepare(d: Dispatch, flags: string): Promise<(d: Dispatch) => Program> {
  const module = gpu.device.createShaderModule({ code: without(d.kernel.code, flags) });
  const pipeline = await gpu.device.createComputePipelineAsync({
    layout: "auto",
    compute: { module, entryPoint: "main", constants: d.constants },
  });
  return (e) => {
    const group = gpu.device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: e.kernel.bindings.map((name, i) => ({
        binding: e.kernel.numbers[i] as number,
        resource: e.buffers[name] as Operand,
      })),
    });
    return {
      steps: [
        {
          pipeline,
          bound: { group },
          workgroups: e.workgroups,
          label: e.label,
          kernel: e.kernel.name,
        } as never,
      ],
    };
  };
}

async function sample(programs: readonly Program[], runs: number): Promise<number> {
  const steps = Array.from(
    { length: runs },
    (_, i) => (programs[i % programs.length] as Program).steps,
  );
  return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
}

const of = (bytes: number): Operand => ({ buffer: storage(gpu.device, "b", bytes) });
function words(values: ArrayLike<number>): Operand {
  const w = Uint32Array.from(values);
  const o = of(w.byteLength);
  gpu.device.queue.writeBuffer(o.buffer, 0, w);
  return o;
}
function lists(experts: number[], E: number, size: number): { words: number[]; tiles: number } {
  const by = Array.from({ length: E }, () => [] as number[]);
  experts.forEach((e, job) => by[e]!.push(job));
  const out: number[] = [];
  for (const [e, jobs] of by.entries()) {
    for (let at = 0; at < jobs.length; at += size) {
      const some = jobs.slice(at, at + size);
      out.push(e, ...some, ...Array<number>(size - some.length).fill(0xffffffff));
    }
  }
  return { words: out, tiles: out.length / (1 + size) };
}
interface V {
  what: string;
  programs: Program[];
  us: number[];
}

for (const shape of SHAPES.filter(({ name }) => !names || names.includes(name))) {
  if (elapsed() > limitS - 1) break;
  const { name, E, topK, shared, n, k, end } = small
    ? { ...shape, E: 6, topK: 2, n: 96, k: 256 }
    : shape;
  const all = E + shared;
  const each = topK + shared;
  const experts = Array.from({ length: ROWS }, (_, r) => [
    ...Array.from({ length: E }, (_, e) => ({ e, at: hash32(7, r, e) })).toSorted((a, b) =>
      a.at - b.at
    ).slice(0, topK).map(({ e }) => e),
    ...Array.from({ length: shared }, (_, i) => E + i),
  ]).flat();
  const xRows = end === "swiglu" ? ROWS : ROWS * each;
  const [weights, wScales, x, xScales, out] = [
    of(2 * all * n * k),
    of(4 * all * n),
    of(4 * xRows * k),
    of(4 * xRows),
    of(4 * ROWS * each * n),
  ];
  const params = of(16);
  gpu.device.queue.writeBuffer(params.buffer, 0, fillParams({ seed: 1, stream: 3, std: 0.02 }));
  gpu.device.queue.writeBuffer(wScales.buffer, 0, new Float32Array(all * n).fill(1));
  gpu.device.queue.writeBuffer(
    x.buffer,
    0,
    Float32Array.from({ length: xRows * k }, (_, i) => ((i * 7919) % 2003 - 1001) / 997),
  );
  submit(
    gpu,
    await make.compile([
      fillRandom({ params, out: weights }, "fill"),
      rowScales({ x, scales: xScales }, { rows: xRows, cols: k }),
    ]),
  );
  const jobs = { rows: ROWS, topK: each, numExperts: all };
  const rule = unitLaunch(unit, gpu.limits, { tile: unitTile(jobs, unit), cols: k })!;
  const tiles = [["rule", rule] as const, ...tilesArg.map((t) => [t, tileOf(t)] as const)];
  const variants: V[] = [];
  await Promise.all(tiles.map(async ([what, tile]) => {
    const blocks = tileColumns(unit, tile) * tile.stage / 8;
    if (
      k % tile.stage !== 0 || tile.stage % unit.k || blocks % expertTileThreads(unit, tile) ||
      expertTileBytes(unit, tile) > gpu.limits.maxComputeWorkgroupStorageSize
    ) return say(`${what} does not fit`);
    const list = lists(experts, all, tile.jobs);
    const d = expertTensor({
      x,
      out,
      noted: what.includes("n") ? of(4 * ROWS * each) : undefined,
      lists: words(list.words),
      wScales,
      xScales,
    }, {
      unit,
      tile,
      matrix: { cols: k },
      expertRows: n,
      epilogue: end,
      shard: { operand: weights, first: 0, rows: all * n },
      tiles: list.tiles,
      rowJobs: end === "swiglu" ? each : 1,
      label: name,
    });
    try {
      variants.push({
        what: `${what} ${list.tiles} tiles`,
        programs: [(await prepare(d, what === "rule" ? "" : what.replaceAll(/[^A-Z]/g, "")))(d)],
        us: [],
      });
    } catch (error) {
      say(`FAILED ${what} ${String(error).slice(0, 300)}`);
    }
  }));
  variants.sort((a, b) =>
    tiles.findIndex(([w]) => a.what.startsWith(`${w} `)) -
    tiles.findIndex(([w]) => b.what.startsWith(`${w} `))
  );
  const compiled = elapsed();
  const warm = performance.now();
  while (!small && performance.now() - warm < 400) await sample(variants[0]!.programs, 30);
  for (let round = 0; round < (small ? 1 : 5); round++) {
    for (const { programs, us } of variants) us.push(1000 * await sample(programs, 6));
  }
  const size = Math.min(32 << 20, 4 * ROWS * each * (end === "store" ? n : n / 2));
  let first: Uint32Array | undefined;
  say(
    `${name} ${all} x [${n}, ${k}], compiled at ${compiled.toFixed(1)} s, now ${
      elapsed().toFixed(1)
    }`,
  );
  for (const { what, programs, us } of variants) {
    await sample(programs, 1);
    const bits = new Uint32Array(await readBuffer(gpu, { buffer: out.buffer, size }));
    first ??= bits;
    let differ = 0;
    for (let i = 0; i < bits.length; i += small ? 1 : 97) differ += Number(bits[i] !== first[i]);
    const t = median(us);
    say(
      `  ${t.toFixed(1).padStart(6)} us min ${Math.min(...us).toFixed(1)} ${
        (2 * ROWS * each * n * k / t / 1e6).toFixed(0)
      } TF ${(2 * all * n * k / t / 1e6).toFixed(2)} TB/s ${what}${
        differ ? ` OTHER BITS ${differ}` : ""
      }`,
    );
  }
  for (const { buffer } of [weights, wScales, x, xScales, out]) buffer.destroy();
}
say(`${elapsed().toFixed(1)} s`);
Deno.exit(0);
