// Throw-away: structures of matmul_tensor at many rows. deno run -A bench/units/explore.ts SET [--small]
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { dispatch, kernel } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";

export interface V {
  g: [number, number];
  o: [number, number];
  stage: number;
  bufs: 1 | 2;
  x: "f32" | "split";
  /** branches as in the kernel of today */
  guard?: boolean;
  loop?: boolean;
  /** multiply before storing the next stage (two buffers) */
  mulFirst?: boolean;
  pad?: number;
  /** w tiles straight from memory */
  wd?: boolean;
  /** x tiles straight from memory (split) */
  xd?: boolean;
  /** the number of stages is a constant */
  fixed?: boolean;
  /** only loads, only products in branches */
  gl?: boolean;
  gm?: boolean;
  /** stages ahead, one buffer */
  ahead?: number;
  /** leaves something out: x, w: not loaded and stored; m: not multiplied; c: x not converted */
  no?: string;
}
export const nameOf = (v: V) =>
  `${v.g.join("x")} of ${v.o.join("x")} k${v.stage} b${v.bufs} ${v.x}${v.guard ? " guard" : ""}${
    v.loop ? " loop" : ""
  }${v.mulFirst ? " mulFirst" : ""}${v.pad !== undefined ? ` pad${v.pad}` : ""}${
    v.fixed ? " fixed" : ""
  }${v.gl ? " gl" : ""}${v.gm ? " gm" : ""}${v.ahead ? ` ahead${v.ahead}` : ""}${
    v.no ? ` no:${v.no}` : ""
  }${v.wd ? " wd" : ""}${v.xd ? " xd" : ""}`;

const seq = (n: number) => Array.from({ length: n }, (_, i) => i);
const rep = (n: number, f: (i: number) => string) => seq(n).map(f).join("\n");

export function wgsl(
  v: V,
  { m, n, k, lanes }: { m: number; n: number; k: number; lanes: number },
  swiglu: boolean,
): { code: string; tile: [number, number]; words: number } {
  const [gr, gc] = v.g, [or, oc] = v.o;
  const TR = gr * or * m, TC = gc * oc * n;
  const T = gr * gc * lanes;
  const CH = v.stage / 8;
  const P = CH + (v.pad ?? 1);
  const WL = v.wd ? 0 : Math.ceil(TC * CH / T), XL = v.xd ? 0 : Math.ceil(TR * CH / T);
  const SUM = m * n / 4;
  const STEPS = v.stage / k;
  const W = Math.max(v.wd ? 0 : TC * P, gr * gc * 2 * SUM);
  const X = v.xd ? 1 : 2 * TR * P;
  const words = v.bufs * (X + W) - (v.bufs - 1) * (W - (v.wd ? 1 : TC * P));
  const wPart = TC * CH % T === 0 ? null : TC * CH;
  const xPart = TR * CH % T === 0 ? null : TR * CH;
  const cond = (part: number | null, chunk: string, body: string) =>
    part === null && !v.guard ? body : `if (${chunk} < ${part ?? 1 << 30}u) { ${body} }`;
  const none = (c: string) => v.no?.includes(c) ?? false;
  const load = (next: string, a = 0, first = false) =>
    rep(none("w") && !first ? 0 : WL, (u) => `w${a}_${u} = weights[wf${u} + ${next}];`) +
    rep(
      none("x") && !first ? 0 : XL,
      (u) =>
        v.x === "f32"
          ? `xa${a}_${u} = x[xf${u} + (${next}) * 2u]; xb${a}_${u} = x[xf${u} + (${next}) * 2u + 1u];`
          : `xa${a}_${u} = x[xf${u} + ${next}]; xb${a}_${u} = x[xf${u} + LO + ${next}];`,
    );
  const store = (b: number, s = 0) =>
    rep(none("w") ? 0 : WL, (u) => cond(wPart, `wc${u}`, `ws${b}[wt${u}] = w${s}_${u};`)) +
    rep(none("x") ? 0 : XL, (u) =>
      cond(
        xPart,
        `xc${u}`,
        v.x === "split"
          ? `xs${b}[xt${u}] = xa${s}_${u}; xs${b}[xt${u} + ${TR * P}u] = xb${s}_${u};`
          : none("c")
          ? `xs${b}[xt${u}] = bitcast<vec4<u32>>(xa${s}_${u}); xs${b}[xt${u} + ${
            TR * P
          }u] = bitcast<vec4<u32>>(xb${s}_${u});`
          : `let a = xa${s}_${u} * xsc${u}; let b = xb${s}_${u} * xsc${u};
           xs${b}[xt${u}] = packed(cut(a), cut(b)); xs${b}[xt${u} + ${
            TR * P
          }u] = packed(a - cut(a), b - cut(b));`,
      ).replace(/^/, v.x === "f32" ? "{" : "").replace(/$/, v.x === "f32" ? "}" : ""));
  const L = `subgroup_matrix_left<f16, ${k}, ${m}>`, R = `subgroup_matrix_right<f16, ${n}, ${k}>`;
  const step = (b: number, s: string, at: string) =>
    `{` +
    rep(or, (r) =>
      v.xd
        ? `let xr${r} = min(row + own_row + ${
          r * m
        }u, rows - ${m}u) * (COLS / 8u) + ${at} + ${s} * ${k / 8}u;
   let xh${r} = subgroupMatrixLoad<${L}, row_major>(&x, xr${r}, COLS / 8u);
   let xl${r} = subgroupMatrixLoad<${L}, row_major>(&x, xr${r} + LO, COLS / 8u);`
        : `let xh${r} = subgroupMatrixLoad<${L}, row_major>(&xs${b}, (own_row + ${
          r * m
        }u) * ${P}u + ${s} * ${k / 8}u, ${P}u);
   let xl${r} = subgroupMatrixLoad<${L}, row_major>(&xs${b}, (own_row + ${
          r * m
        }u + ${TR}u) * ${P}u + ${s} * ${k / 8}u, ${P}u);`) +
    rep(oc, (c) =>
      (v.wd
        ? `let wt${c} = subgroupMatrixLoad<${R}, col_major>(&weights, (min(tile.y * ${TC}u + own_col + ${
          c * n
        }u, MATRIX_ROWS - ${n}u)) * (COLS / 8u) + ${at} + ${s} * ${k / 8}u, COLS / 8u);`
        : `let wt${c} = subgroupMatrixLoad<${R}, col_major>(&ws${b}, (own_col + ${
          c * n
        }u) * ${P}u + ${s} * ${k / 8}u, ${P}u);`) +
      rep(or, (r) =>
        `hi${r}_${c} = subgroupMatrixMultiplyAccumulate(xh${r}, wt${c}, hi${r}_${c});
   lo${r}_${c} = subgroupMatrixMultiplyAccumulate(xl${r}, wt${c}, lo${r}_${c});`)) +
    `}`;
  const mul = (b: number, at: string) => {
    const body = v.loop
      ? `for (var s = 0u; s < ${STEPS}u; s++) ${step(b, "s", at)}`
      : rep(STEPS, (s) => step(b, `${s}u`, at));
    if (none("m")) return "";
    return v.guard || v.gm ? `if (subgroup < ${gr * gc}u) { ${body} }` : body;
  };
  const B = "workgroupBarrier();";
  const clamped = (e: string) => `min(${e}, range - ${CH}u)`;
  const ahead = v.ahead ?? 1;
  const branch = v.guard || v.gl;
  const fetch = (to: string, a: number) =>
    branch
      ? `let next = ${to}; if (next < range) { ${load("next", a)} }`
      : `let next = ${clamped(to)}; ${load("next", a)}`;
  const main = v.bufs === 1
    ? `${seq(ahead).map((a) => load(clamped(`${a * CH}u`), a, true)).join("\n")}
  for (var k = 0u; k < range; k += ${ahead * CH}u) {
    ${
      seq(ahead).map((a) =>
        `{ ${store(0, a)} ${B}
    ${fetch(`k + ${(a + ahead) * CH}u`, a)}
    ${mul(0, `begin + k + ${a * CH}u`)} ${B} }`
      ).join("\n")
    }
  }`
    : `${load("0u", 0, true)}
  for (var k = 0u; k < range; k += ${2 * CH}u) {
    ${
      [0, 1].map((b) =>
        `{ ${store(b)} ${B} ${fetch(`k + ${(1 + b) * CH}u`, 0)}
        ${mul(b, `begin + k + ${b * CH}u`)} }`
      ).join("\n")
    }
  }
  ${B}`;
  const half = n / 2, hw = n / 8;
  const code = `enable f16; enable subgroups; enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
override COLS: u32;
override MATRIX_ROWS: u32;
override ROWS: u32;
override SPLIT_K: u32;
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<${v.x === "f32" ? "f32" : "u32"}>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<storage, read> w_scales: array<f32>;
@group(0) @binding(4) var<storage, read> x_scales: array<f32>;
var<workgroup> ws0: array<vec4<u32>, ${W}>;
var<workgroup> xs0: array<vec4<u32>, ${X}>;
${
    v.bufs === 2
      ? `var<workgroup> ws1: array<vec4<u32>, ${v.wd ? 1 : TC * P}>;
var<workgroup> xs1: array<vec4<u32>, ${X}>;`
      : ""
  }
fn cut(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u)); }
fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
@compute @workgroup_size(${T})
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = ROWS;
  let row = tile.x * ${TR}u;
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ${TC / 2}u;
  let range = COLS / 8u / SPLIT_K${v.fixed !== false ? "" : " + u32(arrayLength(&x) == 0u)"};
  let begin = tile.z * range;
  let LO = ROWS * (COLS / 8u);
  let subgroup = thread / ${lanes}u; let lane = thread % ${lanes}u;
  let own_row = subgroup % ${gr}u * ${or * m}u;
  let own_col = subgroup / ${gr}u * ${oc * n}u;
  ${
    rep(WL, (u) =>
      `let wc${u} = thread + ${u * T}u; let wcol${u} = wc${u} / ${CH}u;
  let wp${u} = min(pair + wcol${u} / ${n}u * ${half}u + wcol${u} % ${half}u, half - 1u);
  let wf${u} = (wp${u} + wcol${u} % ${n}u / ${half}u * half) * (COLS / 8u) + begin + wc${u} % ${CH}u;
  let wt${u} = wcol${u} * ${P}u + wc${u} % ${CH}u;
  ${rep(ahead, (a) => `var w${a}_${u}: vec4<u32>;`)}`)
  }
  ${
    rep(XL, (u) =>
      `let xc${u} = thread + ${u * T}u; let xr${u} = min(row + xc${u} / ${CH}u, rows - 1u);
  let xf${u} = (xr${u} * (COLS / 8u) + begin + xc${u} % ${CH}u)${v.x === "f32" ? " * 2u" : ""};
  let xt${u} = xc${u} / ${CH}u * ${P}u + xc${u} % ${CH}u; let xsc${u} = x_scales[xr${u}];
  ${
        rep(ahead, (a) =>
          `var xa${a}_${u}: vec4<${v.x === "f32" ? "f32" : "u32"}>; var xb${a}_${u}: vec4<${
            v.x === "f32" ? "f32" : "u32"
          }>;`)
      }`)
  }
  ${
    rep(or, (r) =>
      rep(oc, (c) =>
        `var hi${r}_${c} = subgroup_matrix_result<f32, ${n}, ${m}>(); var lo${r}_${c} = subgroup_matrix_result<f32, ${n}, ${m}>();`))
  }
  ${main}
  let sums = subgroup * ${2 * SUM}u;
  ${
    rep(or, (r) =>
      rep(oc, (c) =>
        `subgroupMatrixStore<row_major>(&ws0, sums, hi${r}_${c}, ${n / 4}u);
  subgroupMatrixStore<row_major>(&ws0, sums + ${SUM}u, lo${r}_${c}, ${n / 4}u);
  workgroupBarrier();
  for (var i = lane; i < ${SUM / 2}u; i += ${lanes}u) {
    let r = row + own_row + ${r * m}u + i / ${hw}u;
    let c = pair + own_col / 2u + ${c * half}u + i % ${hw}u * 4u;
    let at = sums + i / ${hw}u * ${2 * hw}u + i % ${hw}u;
    let first = bitcast<vec4<f32>>(ws0[at]) + bitcast<vec4<f32>>(ws0[at + ${SUM}u]);
    let second = bitcast<vec4<f32>>(ws0[at + ${hw}u]) + bitcast<vec4<f32>>(ws0[at + ${SUM + hw}u]);
    for (var e = 0u; e < 4u; e++) {
      if (r < rows && c + e < half) {
        let w = vec2(w_scales[c + e], w_scales[c + e + half]);
        let y = vec2(first[e], second[e]) * x_scales[r] * w;
        let o = tile.z * rows + r;
        ${
          swiglu
            ? `out[o * half + c + e] = y.x / (1.0 + exp(-y.x)) * y.y;`
            : `out[o * MATRIX_ROWS + c + e] = y.x; out[o * MATRIX_ROWS + c + e + half] = y.y;`
        }
      }
    }
  }
  workgroupBarrier();`))
  }
}`;
  return { code, tile: [TR, TC], words };
}

export interface Shape {
  name: string;
  n: number;
  k: number;
  swiglu: boolean;
  split: number;
}
export const SHAPES: Record<string, Shape> = {
  gateUp: { name: "gateUp", n: 28672, k: 4096, swiglu: true, split: 1 },
  down: { name: "down", n: 4096, k: 14336, swiglu: false, split: 4 },
  down1: { name: "down1", n: 4096, k: 14336, swiglu: false, split: 1 },
  qkv: { name: "qkv", n: 6144, k: 4096, swiglu: false, split: 1 },
  o: { name: "o", n: 4096, k: 4096, swiglu: false, split: 4 },
  o1: { name: "o1", n: 4096, k: 4096, swiglu: false, split: 1 },
  qGateUp: { name: "qGateUp", n: 6144, k: 1024, swiglu: true, split: 1 },
  qDown: { name: "qDown", n: 1024, k: 3072, swiglu: false, split: 4 },
  qQkv: { name: "qQkv", n: 4096, k: 1024, swiglu: false, split: 1 },
  qO: { name: "qO", n: 1024, k: 2048, swiglu: false, split: 4 },
  odd: { name: "odd", n: 256, k: 256, swiglu: true, split: 1 },
  odd2: { name: "odd2", n: 200, k: 512, swiglu: false, split: 2 },
};

export interface Job {
  shape: string;
  rows: number;
  variants: V[];
}

export async function explore(
  jobs: Job[],
  { seconds = 25, ms = 8 }: { seconds?: number; ms?: number },
) {
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const gpu = await openGpu({ webgpu: "dawn" });
  const unit = gpu.matrixUnit as MatrixUnit;
  const profiler = await openProfiler(gpu, { queries: 2 });
  const make = compiler(gpu);
  const of = (label: string, bytes: number) => ({ buffer: storage(gpu.device, label, bytes) });
  console.log(`${gpu.info.adapter}, unit ${JSON.stringify(unit)}`);
  const fill = (name: string, expr: string) =>
    kernel(
      name,
      `enable f16;
@group(0) @binding(0) var<storage, read_write> o: array<u32>;
fn h(i: u32) -> u32 { var v = i * 747796405u + 2891336453u; v = ((v >> ((v >> 28u) + 4u)) ^ v) * 277803737u; return (v >> 22u) ^ v; }
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  for (var i = g.x; i < arrayLength(&o); i += w.x * 256u) { let r = h(i); ${expr} } }`,
      { bindings: ["o"], constants: [] },
    );
  const fillW = fill(
    "fillW",
    `o[i] = pack2x16float(vec2(f32(r & 0xffffu) / 65536.0 - 0.5, f32(r >> 16u) / 65536.0 - 0.5) * 0.05);`,
  );
  const fillX = fill("fillX", `o[i] = bitcast<u32>(f32(r) / 4294967296.0 - 0.5);`);
  const fill1 = fill("fill1", `o[i] = bitcast<u32>(1.0);`);
  const splitX = kernel(
    "splitX",
    `
@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  for (var i = g.x; i < arrayLength(&x); i += w.x * 256u) {
    let hi = bitcast<vec2<f32>>(bitcast<vec2<u32>>(x[i]) & vec2(0xffffe000u));
    o[i] = pack2x16float(hi); o[i + arrayLength(&x)] = pack2x16float(x[i] - hi); } }`,
    { bindings: ["x", "o"], constants: [] },
  );
  const one = (kernel: any, buffers: any) =>
    dispatch(kernel, { buffers, constants: {}, workgroups: [1024, 1, 1], label: "fill" } as any);
  const sample = async (programs: Program[], runs: number) => {
    const steps = seq(runs).map((i) => (programs[i % programs.length] as Program).steps);
    return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs * 1000;
  };
  for (const { shape, rows, variants } of jobs) {
    const s = SHAPES[shape] as Shape;
    const bytes = 2 * s.n * s.k;
    const copies = Math.min(8, bytes < 1 << 20 ? 1 : Math.max(1, Math.ceil((130 << 20) / bytes)));
    const all = seq(copies).map(() => of("w", bytes));
    const x = of("x", 4 * rows * s.k), xp = of("xp", 4 * rows * s.k);
    const out = of("out", 4 * s.split * (rows + 64) * s.n);
    const w_scales = of("ws", 4 * s.n), x_scales = of("xs", 4 * (rows + 64));
    submit(
      gpu,
      await make.compile([
        ...all.map((o) => one(fillW, { o })),
        one(fillX, { o: x }),
        one(fill1, { o: w_scales }),
        one(fill1, { o: x_scales }),
        one(splitX, { x, o: xp }),
      ]),
    );
    const flops = 4 * rows * s.n * s.k;
    const ready: { v: V; programs: Program[]; w: number[] }[] = [];
    for (const v of variants) {
      if (elapsed() > seconds) break;
      try {
        const { code, tile: [tr, tc], words } = wgsl(v, unit, s.swiglu);
        if (words * 16 > gpu.limits.maxComputeWorkgroupStorageSize) throw `${words * 16} bytes`;
        if ((s.k / s.split) % (v.stage * v.bufs * (v.ahead ?? 1))) throw "stages";
        const w: [number, number, number] = [
          Math.ceil(rows / tr),
          Math.ceil(s.n / tc),
          s.split,
        ];
        const made = kernel(nameOf(v) + s.swiglu, code, {
          bindings: ["weights", "x", "out", "w_scales", "x_scales"],
          constants: ["COLS", "MATRIX_ROWS", "ROWS", "SPLIT_K"],
        });
        const programs: Program[] = [];
        for (const weights of all) {
          programs.push(
            await make.compile([
              dispatch(made, {
                buffers: { weights, x: v.x === "f32" ? x : xp, out, w_scales, x_scales },
                constants: { COLS: s.k, MATRIX_ROWS: s.n, ROWS: rows, SPLIT_K: s.split },
                workgroups: w,
                label: "matmul",
              }),
            ]),
          );
        }
        ready.push({ v, programs, w });
      } catch (e) {
        console.log(`FAILED ${nameOf(v)}: ${String(e).slice(0, 200)}`);
      }
    }
    const [first] = ready;
    if (!first) continue;
    const warm = Number(Deno.env.get("WARM") ?? 180);
    const from = performance.now();
    while (performance.now() - from < warm) {
      await sample(first.programs, Math.max(copies, Math.min(300, Math.ceil(3000 / (flops / 2e8)))));
    }
    for (const { v, programs, w } of [...ready, first]) {
      const once = await sample(programs, copies);
      const count = Math.max(copies, Math.min(200, Math.ceil(ms * 1000 / once / 3)));
      const times: number[] = [];
      for (let t = 0; t < 4; t++) times.push(await sample(programs, count));
      const us = Math.min(...times.slice(1));
      console.log(
        `${shape} ${rows} ${us.toFixed(1).padStart(7)} us ${
          (flops / us / 1e6).toFixed(0).padStart(4)
        } T  ${nameOf(v)} [${w.join(",")}]`,
      );
    }
    if (elapsed() > seconds) Deno.exit(0);
    [...all, x, xp, out, w_scales, x_scales].forEach(({ buffer }) => buffer.destroy());
  }
  console.log(`${elapsed().toFixed(1)} s`);
  Deno.exit(0);
}
