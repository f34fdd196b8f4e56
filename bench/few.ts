// throw-away: variants of few-row kernels
import { PLAIN } from "../shaders/fragments/epilogue.ts";
import { splitKOf } from "../shaders/matmul/matmul_shape.ts";
import { matmul } from "../shaders/matmul/matmul.ts";
import { TEXTS } from "../shaders/texts.ts";
import { link } from "../src/gpu/link.ts";
const STAGED_TEXT = await Deno.readTextFile(new URL("./few_staged.wgsl", import.meta.url));
import { matmulTensor, rowScales, type TensorTile } from "../shaders/tensor/matmul_tensor.ts";
import { openGpu } from "../src/gpu/device.ts";
import { dispatch, kernel, type Plan } from "../src/gpu/kernel.ts";
import { lanesFor, tuning } from "../src/gpu/matrix.ts";
import type { MatrixUnit } from "../src/gpu/matrix_unit.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program } from "../src/gpu/program.ts";
import { median } from "../src/bench/statistics.ts";
import { type Bench, type Buffers, buffersOf, free, run } from "./tensor_buffers.ts";
import { readBuffer } from "../src/gpu/readback.ts";

const small = Deno.args.includes("--small");
const t0 = performance.now();
const LIMIT = Number(Deno.args.find((a) => /^\d+$/.test(a)) ?? 44) * 1000;
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = console.log;
say(
  gpu.info.adapter,
  JSON.stringify(unit),
  [...(gpu.device as any).adapterInfo?.subgroupMatrixConfigs ?? []].map((c: any) =>
    `${c.M}x${c.N}x${c.K} ${c.componentType}>${c.resultComponentType}`
  ).join(", "),
);
const profiler = await openProfiler(gpu, { queries: 2 });
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: 9 };
const SHAPES = small ? [{ name: "odd", n: 96, k: 1024, split: 2 }] : [
  { name: "gateUp", n: 28672, k: 4096, split: 1 },
  { name: "o", n: 4096, k: 4096, split: 4 },
  { name: "qkv", n: 6144, k: 4096, split: 1 },
  { name: "down", n: 4096, k: 14336, split: 4 },
];
interface V {
  nox?: boolean;
  steps?: number;
  x?: number;
  tiled?: boolean;
  big?: boolean;
  g: number;
  c: number;
  stage: number;
  ahead: number;
  xr?: number;
  raw?: boolean;
  direct?: boolean;
  split?: number;
}
let id = 0;
function few(
  b: Buffers,
  { n, k, split }: { n: number; k: number; split: number },
  rows: number,
  v: V,
): Plan {
  const { m, lanes } = unit, un = unit.n, uk = unit.k;
  const xr = v.xr ?? Math.min(rows, m);
  const apart = xr > m / 2;
  const chunks = v.stage / 8, threads = v.g * lanes, cols = v.g * v.c * un, sw = m * un / 4;
  const splitK = v.split ?? split;
  if (k / splitK % v.stage) throw new Error("stage");
  const d = v.direct ? 1 : 0;
  const counts = {
    GROUPS: v.g,
    OWN_C: v.c,
    STAGE: v.stage,
    AHEAD: v.ahead,
    TILE_COLS: cols,
    THREADS: threads,
    CHUNKS: chunks,
    SUM_WORDS: sw,
    LANES: lanes,
    UNIT_M: m,
    UNIT_N: un,
    UNIT_K: uk,
    UNIT_HALF: un / 2,
    HALF_WORDS: un / 8,
    STEPS: v.stage / uk,
    W_LOADS: Math.ceil(cols * chunks / threads),
    X_LOADS: Math.ceil(xr * chunks / threads),
    X_ROWS: xr,
    APART: apart ? 1 : 0,
    LO_ROW: apart ? m : m / 2,
    LO_WORDS: apart ? sw : sw / 2,
    WEIGHT_WORDS: Math.max(d ? 0 : cols * (chunks + 1), v.g * (apart ? 2 : 1) * sw),
    X_WORDS: (apart ? 2 : 1) * m * (chunks + 1),
    DIRECT: d,
    STAGED: 1 - d,
    RAW: v.raw ? 1 : 0,
    DO_X: v.nox ? 0 : 1,
    DO_STEPS: v.steps ?? v.stage / uk,
    CONVERT: v.raw ? 0 : 1,
  };
  const code = expand(
    link("few", { ...TEXTS, few: STAGED_TEXT }, { out: "matmul/out", ...PLAIN.store.slots }),
    counts,
  );
  const kern = kernel(`few${id++}`, code, {
    bindings: ["weights", "x", "out", "w_scales", "x_scales"],
    constants: ["COLS", "MATRIX_ROWS", "OUT_COLS", "FIRST", "SPLIT_K"],
  });
  return [dispatch(kern, {
    buffers: {
      weights: b.weights,
      x: { ...b.x, size: 4 * rows * k },
      out: b.out,
      w_scales: b.wScales,
      x_scales: b.xScales,
    },
    constants: { COLS: k, MATRIX_ROWS: n, OUT_COLS: n, FIRST: 0, SPLIT_K: splitK },
    workgroups: [Math.ceil(rows / xr), Math.ceil(n / cols), splitK],
    label: "few",
  })];
}
const DIRECT_TEXT = await Deno.readTextFile(new URL("./few_direct.wgsl", import.meta.url));
import { expand } from "../src/gpu/expand.ts";
/** c tiles, g subgroups, ahead tiles, x: k numbers of x staged, tiled or not. */
function direct(
  b: Buffers,
  { n, k, split }: { n: number; k: number; split: number },
  rows: number,
  v: V,
): Plan {
  const one = rows === 1 && !v.big, xstage = (v.x ?? k / split) / 8, threads = v.g * unit.lanes;
  const counts = {
    THREADS: threads,
    LANES: unit.lanes,
    GROUPS: v.g,
    OWN_C: v.c,
    AHEAD: v.ahead,
    TILED: v.tiled ? 1 : 0,
    ROWMAJOR: v.tiled ? 0 : 1,
    ONE: one ? 1 : 0,
    MORE: one ? 0 : 1,
    XSTAGE: xstage,
    X_WORDS: one ? 2 * xstage + 16 : 16 * xstage,
    OUT_WORDS: v.g * v.c * 64,
    X_ROWS: rows,
  };
  const kern = kernel(`direct${id++}`, expand(DIRECT_TEXT, counts), {
    bindings: ["weights", "x", "out", "x_scales"],
    constants: ["COLS", "MATRIX_ROWS", "SPLIT_K", "x_stride"],
  });
  return [dispatch(kern, {
    buffers: {
      weights: b.weights,
      x: { ...b.x, size: 4 * rows * k },
      out: b.out,
      x_scales: b.xScales,
    },
    constants: { COLS: k, MATRIX_ROWS: n, SPLIT_K: split, x_stride: 2 },
    workgroups: [1, Math.ceil(n / (16 * v.g * v.c)), split],
    label: "direct",
  })];
}
async function timed(programs: Program[], warm: number): Promise<number> {
  const sample = async (runs: number) => {
    const steps = Array.from(
      { length: runs },
      (_, i) => (programs[i % programs.length] as Program).steps,
    );
    return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
  };
  await sample(programs.length);
  const once = await sample(programs.length);
  const runs = Math.min(200, Math.max(programs.length, Math.ceil(2 / once)));
  const samples: number[] = [];
  const from = performance.now();
  while (performance.now() - from < warm + 10 || samples.length < 3) {
    const ms = await sample(runs);
    if (performance.now() - from >= warm || samples.length < 3) samples.push(ms);
  }
  return 1000 * median(samples);
}
const tuned = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
const NOW: TensorTile[] = [
  { subgroups: 8, grid: [1, 8], own: [1, 1], stage: 64, ahead: 1 },
  { subgroups: 4, grid: [1, 4], own: [1, 1], stage: 128, ahead: 2 },
];
const S = (g: number, c: number, stage: number, ahead: number, more: Partial<V> = {}): V => ({
  g,
  c,
  stage,
  ahead,
  ...more,
});
const D = (g: number, c: number, ahead: number, tiled: boolean, more: Partial<V> = {}): V => ({
  g,
  c,
  stage: 0,
  ahead,
  tiled,
  ...more,
});
const GATE: V[] = [
  S(1, 2, 64, 2),
  S(1, 2, 64, 2, { raw: true }),
  S(1, 2, 64, 2, { nox: true }),
  S(1, 2, 64, 2, { steps: 1 }),
  S(1, 2, 64, 2, { steps: 1, nox: true, raw: true }),
  D(2, 1, 8, true),
  D(2, 1, 16, true),
  D(4, 1, 8, true),
  D(2, 2, 8, true),
  D(1, 1, 8, true),
  D(2, 1, 8, false),
  S(1, 1, 128, 2),
  S(1, 2, 64, 3),
  S(1, 2, 64, 4),
  S(1, 4, 64, 1),
  S(1, 4, 64, 2),
  S(4, 2, 64, 2),
];
const LESS: V[] = [
  S(1, 1, 64, 2),
  S(1, 1, 128, 2),
  S(1, 1, 64, 4),
  S(2, 1, 64, 4),
  D(1, 1, 8, true),
  D(2, 1, 8, true),
  D(2, 1, 16, true),
];
const EIGHT: V[] = [
  S(1, 2, 64, 2),
  S(2, 2, 64, 2),
  S(4, 2, 64, 2),
  D(4, 1, 8, true, { x: 512 }),
  D(4, 1, 16, true, { x: 512 }),
];
const lists: [number, (name: string) => V[]][] = small
  ? [[1, () => [...GATE.slice(0, 14), ...LESS.slice(0, 6)]]]
  : [[1, (name) => name === "gateUp" ? GATE : LESS], [8, () => EIGHT]];
for (const [rows, list] of lists) {
  for (const shape of SHAPES) {
    const { n, k, name } = shape;
    const bytes = 2 * n * k;
    const copies = small ? 1 : Math.max(1, Math.ceil((200 << 20) / bytes));
    const all: Buffers[] = [];
    for (let i = 0; i < copies; i++) {
      const b = await buffersOf(bench, shape, 17 * shape.split, 10 + i);
      await run(bench, [rowScales({ x: b.x, scales: b.xScales }, { rows: 16, cols: k })]);
      all.push(b);
    }
    let ref: Float32Array | undefined;
    const go = async (what: string, planOf: (b: Buffers) => Plan, warm = 0) => {
      if (performance.now() - t0 > LIMIT) return;
      try {
        const programs: Program[] = [];
        const c0 = performance.now();
        for (const b of all) programs.push(await bench.make.compile(planOf(b)));
        const ms = performance.now() - c0;
        if (ms > 1000) say(`compile ${ms | 0} ms`);
        const us = await timed(programs, warm);
        const got = new Float32Array(
          await readBuffer(gpu, { buffer: all[0]!.out.buffer, size: 4 * n * rows * shape.split }),
        );
        let note = "";
        if (!ref) ref = got;
        else {
          let diff = 0, big = 0;
          for (let i = 0; i < got.length; i++) {
            diff = Math.max(diff, Math.abs(got[i]! - ref[i]!));
            big = Math.max(big, Math.abs(ref[i]!));
          }
          note = diff === 0 ? "same bits" : `differs ${(diff / big).toExponential(1)}`;
          if (what.startsWith("now")) ref = got;
        }
        say(
          `${name} ${rows} rows ${us.toFixed(1).padStart(7)} us ${
            (bytes / us / 1e6).toFixed(2)
          } TB/s  ${what} ${note}`,
        );
      } catch (e) {
        say(`${name} ${rows} FAILED ${what}: ${String((e as Error).message).slice(0, 300)}`);
      }
    };
    const shard = { operand: undefined as never, first: 0, rows: n };
    await go("SIMT", (b) =>
      matmul({
        matrix: {
          format: "bf16",
          rows: n,
          cols: k,
          lanes: lanesFor("bf16", k, tuned.lanes),
          shards: [{ ...shard, operand: b.weights }],
        },
        x: b.x,
        out: b.out,
      }, { rows, epilogue: "store", splitK: shape.split, tuning: tuned, label: "simt" }), 150);
    for (const tile of NOW) {
      if (k / shape.split % tile.stage) continue;
      await go(
        `now ${JSON.stringify(tile)}`,
        (
          b,
        ) => [
          matmulTensor(b, {
            unit,
            tile,
            rows,
            matrix: { rows: n, cols: k },
            shard: { ...shard, operand: b.weights },
            splitK: shape.split,
            label: "t",
          }),
        ],
        small ? 0 : 40,
      );
    }
    for (const v of list(name)) {
      await go(
        JSON.stringify(v).replaceAll('"', ""),
        (b) => v.stage ? few(b, shape, rows, v) : direct(b, shape, rows, v),
        small ? 0 : 40,
      );
    }
    all.forEach(free);
  }
}
say(`${((performance.now() - t0) / 1000).toFixed(1)} s`);
Deno.exit(0);
