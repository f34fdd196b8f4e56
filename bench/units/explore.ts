// Throw-away: structures of matmul_tensor at many rows. deno run -A bench/units/explore.ts SET [--small]
import { createRequire } from "node:module";
import { addonPath, denoFolder } from "../../src/gpu/dawn.ts";

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
}
export const nameOf = (v: V) =>
  `${v.g.join("x")} of ${v.o.join("x")} k${v.stage} b${v.bufs} ${v.x}${v.guard ? " guard" : ""}${
    v.loop ? " loop" : ""
  }${v.mulFirst ? " mulFirst" : ""}${v.pad !== undefined ? ` pad${v.pad}` : ""}${v.fixed ? " fixed" : ""}${v.wd ? " wd" : ""}${
    v.xd ? " xd" : ""
  }`;

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
  const load = (next: string) =>
    rep(WL, (u) => `w${u} = weights[wf${u} + ${next}];`) +
    rep(XL, (u) =>
      v.x === "f32"
        ? `xa${u} = x[xf${u} + (${next}) * 2u]; xb${u} = x[xf${u} + (${next}) * 2u + 1u];`
        : `xa${u} = x[xf${u} + ${next}]; xb${u} = x[xf${u} + LO + ${next}];`);
  const store = (b: number) =>
    rep(WL, (u) => cond(wPart, `wc${u}`, `ws${b}[wt${u}] = w${u};`)) +
    rep(XL, (u) =>
      cond(
        xPart,
        `xc${u}`,
        v.x === "split"
          ? `xs${b}[xt${u}] = xa${u}; xs${b}[xt${u} + ${TR * P}u] = xb${u};`
          : `let a = xa${u} * xsc${u}; let b = xb${u} * xsc${u};
           xs${b}[xt${u}] = packed(cut(a), cut(b)); xs${b}[xt${u} + ${
            TR * P
          }u] = packed(a - cut(a), b - cut(b));`,
      ).replace(/^/, v.x === "f32" ? "{" : "").replace(/$/, v.x === "f32" ? "}" : ""));
  const L = `subgroup_matrix_left<f16, ${k}, ${m}>`, R = `subgroup_matrix_right<f16, ${n}, ${k}>`;
  const step = (b: number, s: string, at: string) =>
    `{` +
    rep(or, (r) =>
      v.xd
        ? `let xr${r} = min(row + own_row + ${r * m}u, rows - ${m}u) * (COLS / 8u) + ${at} + ${s} * ${
          k / 8
        }u;
   let xh${r} = subgroupMatrixLoad<${L}, row_major>(&x, xr${r}, COLS / 8u);
   let xl${r} = subgroupMatrixLoad<${L}, row_major>(&x, xr${r} + LO, COLS / 8u);`
        : `let xh${r} = subgroupMatrixLoad<${L}, row_major>(&xs${b}, (own_row + ${
          r * m
        }u) * ${P}u + ${s} * ${k / 8}u, ${P}u);
   let xl${r} = subgroupMatrixLoad<${L}, row_major>(&xs${b}, (own_row + ${r * m}u + ${TR}u) * ${P}u + ${s} * ${
          k / 8
        }u, ${P}u);`) +
    rep(oc, (c) =>
      (v.wd
        ? `let wt${c} = subgroupMatrixLoad<${R}, col_major>(&weights, (min(tile.y * ${TC}u + own_col + ${
          c * n
        }u, MATRIX_ROWS - ${n}u)) * (COLS / 8u) + ${at} + ${s} * ${k / 8}u, COLS / 8u);`
        : `let wt${c} = subgroupMatrixLoad<${R}, col_major>(&ws${b}, (own_col + ${c * n}u) * ${P}u + ${s} * ${
          k / 8
        }u, ${P}u);`) +
      rep(or, (r) =>
        `hi${r}_${c} = subgroupMatrixMultiplyAccumulate(xh${r}, wt${c}, hi${r}_${c});
   lo${r}_${c} = subgroupMatrixMultiplyAccumulate(xl${r}, wt${c}, lo${r}_${c});`)) +
    `}`;
  const mul = (b: number, at: string) => {
    const body = v.loop
      ? `for (var s = 0u; s < ${STEPS}u; s++) ${step(b, "s", at)}`
      : rep(STEPS, (s) => step(b, `${s}u`, at));
    return v.guard ? `if (subgroup < ${gr * gc}u) { ${body} }` : body;
  };
  const B = "workgroupBarrier();";
  const clamped = (e: string) => `min(${e}, range - ${CH}u)`;
  const main = v.bufs === 1
    ? `${load("0u")}
  for (var k = 0u; k < range; k += ${CH}u) {
    ${store(0)} ${B}
    ${
      v.guard
        ? `let next = k + ${CH}u; if (next < range) { ${load("next")} }`
        : `let next = ${clamped(`k + ${CH}u`)}; ${load("next")}`
    }
    ${mul(0, "begin + k")} ${B}
  }`
    : `${load("0u")} ${store(0)} { let next = ${clamped(`${CH}u`)}; ${load("next")} } ${B}
  for (var k = 0u; k < range; k += ${2 * CH}u) {
    ${
      [0, 1].map((b) => {
        const put = `${store(1 - b)} { let next = ${clamped(`k + ${(2 + b) * CH}u`)}; ${
          load("next")
        } }`;
        const times = mul(b, `begin + k + ${b * CH}u`);
        return `${v.mulFirst ? times + put : put + times} ${B}`;
      }).join("\n")
    }
  }`;
  const half = n / 2, hw = n / 8;
  const code = `enable f16; enable subgroups; enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
override COLS: u32; override MATRIX_ROWS: u32; override ROWS: u32; override SPLIT_K: u32;
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
  let range = COLS / 8u / SPLIT_K${v.fixed || v.guard ? "" : " + u32(arrayLength(&x) == 0u)"};
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
  let wt${u} = wcol${u} * ${P}u + wc${u} % ${CH}u; var w${u}: vec4<u32>;`)
  }
  ${
    rep(XL, (u) =>
      `let xc${u} = thread + ${u * T}u; let xr${u} = min(row + xc${u} / ${CH}u, rows - 1u);
  let xf${u} = (xr${u} * (COLS / 8u) + begin + xc${u} % ${CH}u)${v.x === "f32" ? " * 2u" : ""};
  let xt${u} = xc${u} / ${CH}u * ${P}u + xc${u} % ${CH}u; let xsc${u} = x_scales[xr${u}];
  var xa${u}: vec4<${v.x === "f32" ? "f32" : "u32"}>; var xb${u}: vec4<${
        v.x === "f32" ? "f32" : "u32"
      }>;`)
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

export async function explore(jobs: Job[], { seconds = 25, ms = 8 }: { seconds?: number; ms?: number }) {
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const path = addonPath(denoFolder((n) => Deno.env.get(n), Deno.build.os), Deno.build) as string;
  const { create, globals } = createRequire(import.meta.url)(path);
  const on = Deno.env.get("DAWN_ON") ?? "", off = Deno.env.get("DAWN_OFF") ?? "";
  const gpu = create([
    "backend=vulkan",
    `enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia${on ? "," + on : ""}`,
    `disable-dawn-features=timestamp_quantization${off ? "," + off : ""}`,
  ]);
  const { GPUBufferUsage, GPUMapMode } = globals;
  const adapter = await gpu.requestAdapter();
  const l = adapter.limits;
  const device = await adapter.requestDevice({
    requiredFeatures: [
      "shader-f16",
      "subgroups",
      "timestamp-query",
      "chromium-experimental-subgroup-matrix",
    ],
    requiredLimits: {
      maxBufferSize: l.maxBufferSize,
      maxStorageBufferBindingSize: l.maxStorageBufferBindingSize,
      maxComputeWorkgroupStorageSize: l.maxComputeWorkgroupStorageSize,
      maxComputeInvocationsPerWorkgroup: l.maxComputeInvocationsPerWorkgroup,
      maxComputeWorkgroupSizeX: l.maxComputeWorkgroupSizeX,
    },
  });
  const config = [...adapter.info.subgroupMatrixConfigs].find((c: any) =>
    c.componentType === "f16" && c.resultComponentType === "f32"
  );
  const best = [...adapter.info.subgroupMatrixConfigs].filter((c: any) =>
    c.componentType === "f16" && c.resultComponentType === "f32"
  ).sort((a: any, b: any) => b.M * b.N * b.K - a.M * a.N * a.K)[0] ?? config;
  const unit = {
    m: best.M,
    n: best.N,
    k: best.K,
    lanes: adapter.info.subgroupMaxSize,
  };
  console.log(
    `${adapter.info.description} unit ${JSON.stringify(unit)} on=${on} off=${off} wgmem ${l.maxComputeWorkgroupStorageSize}`,
  );
  const storage = (size: number) =>
    device.createBuffer({
      size,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
  // Not async: Dawn's threads broke each other's modules.
  const pipe = async (code: string, constants = {}) => {
    device.pushErrorScope("validation");
    const made = device.createComputePipeline({
      layout: "auto",
      compute: { module: device.createShaderModule({ code }), entryPoint: "main", constants },
    });
    const error = await device.popErrorScope();
    if (error) throw new Error(error.message);
    return made;
  };
  const bind = (p: any, buffers: any[]) =>
    device.createBindGroup({
      layout: p.getBindGroupLayout(0),
      entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
  const fill = (expr: string) =>
    pipe(`enable f16;
@group(0) @binding(0) var<storage, read_write> o: array<u32>;
fn h(i: u32) -> u32 { var v = i * 747796405u + 2891336453u; v = ((v >> ((v >> 28u) + 4u)) ^ v) * 277803737u; return (v >> 22u) ^ v; }
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  for (var i = g.x; i < arrayLength(&o); i += w.x * 256u) { let r = h(i); ${expr} } }`);
  const fillW = await fill(
    `o[i] = pack2x16float(vec2(f32(r & 0xffffu) / 65536.0 - 0.5, f32(r >> 16u) / 65536.0 - 0.5) * 0.05);`,
  );
  const fillX = await fill(`o[i] = bitcast<u32>(f32(r) / 4294967296.0 - 0.5);`);
  const fill1 = await fill(`o[i] = bitcast<u32>(1.0);`);
  const splitX = await pipe(`
@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) w: vec3<u32>) {
  for (var i = g.x; i < arrayLength(&x); i += w.x * 256u) {
    let hi = bitcast<vec2<f32>>(bitcast<vec2<u32>>(x[i]) & vec2(0xffffe000u));
    o[i] = pack2x16float(hi); o[i + arrayLength(&x)] = pack2x16float(x[i] - hi); } }`);
  const runs = (list: [any, any, number[]][]) => {
    const e = device.createCommandEncoder();
    const p = e.beginComputePass();
    for (const [pl, b, w] of list) {
      p.setPipeline(pl);
      p.setBindGroup(0, b);
      p.dispatchWorkgroups(...w);
    }
    p.end();
    device.queue.submit([e.finish()]);
  };
  const qs = device.createQuerySet({ type: "timestamp", count: 2 });
  const qb = device.createBuffer({
    size: 16,
    usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
  });
  const qr = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const time = async (pl: any, groups: any[], w: number[], count: number) => {
    const e = device.createCommandEncoder();
    const p = e.beginComputePass({
      timestampWrites: { querySet: qs, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 },
    });
    p.setPipeline(pl);
    for (let i = 0; i < count; i++) {
      p.setBindGroup(0, groups[i % groups.length]);
      p.dispatchWorkgroups(...w);
    }
    p.end();
    e.resolveQuerySet(qs, 0, 2, qb, 0);
    e.copyBufferToBuffer(qb, 0, qr, 0, 16);
    device.queue.submit([e.finish()]);
    await qr.mapAsync(GPUMapMode.READ);
    const [a, b] = new BigUint64Array(qr.getMappedRange().slice(0));
    qr.unmap();
    return Number((b as bigint) - (a as bigint)) / 1e3 / count;
  };
  // Compile all at once; time them as they are ready.
  interface Made {
    job: number;
    v: V;
    tile: [number, number];
    words: number;
    pl?: any;
    error?: string;
    at: number;
  }
  const ready: Made[] = [];
  let pending = 0;
  const queue = jobs.flatMap(({ shape, rows, variants }, job) =>
    variants.map((v) => () => {
      const s = SHAPES[shape] as Shape;
      const from = elapsed();
      const made: Made = { job, v, tile: [0, 0], words: 0, at: from };
      try {
        Object.assign(made, wgsl(v, unit, s.swiglu));
        if (made.words * 16 > l.maxComputeWorkgroupStorageSize) throw `${made.words * 16} bytes`;
        if ((s.k / s.split) % (v.stage * v.bufs)) throw "stages";
      } catch (e) {
        ready.push({ ...made, error: String(e) });
        return;
      }
      pending++;
      pipe((made as any).code, { COLS: s.k, MATRIX_ROWS: s.n, ROWS: rows, SPLIT_K: s.split }).then(
        (pl: any) => ready.push({ ...made, pl, at: elapsed() - from }),
        (e: any) => ready.push({ ...made, error: String(e) }),
      ).finally(() => pending--);
    })
  );
  const contexts = jobs.map(({ shape, rows }) => {
    let made: any;
    return () => {
      if (made) return made;
      const s = SHAPES[shape] as Shape;
      const bytes = 2 * s.n * s.k;
      const copies = Math.max(1, Math.ceil((130 << 20) / bytes));
      const ws = seq(copies).map(() => storage(bytes));
      const pad = 64;
      const x = storage(4 * rows * s.k), xp = storage(4 * rows * s.k);
      const out = storage(4 * s.split * (rows + pad) * s.n);
      const wScales = storage(4 * s.n), xScales = storage(4 * (rows + pad));
      runs([
        ...ws.map((w) => [fillW, bind(fillW, [w]), [2048]] as [any, any, number[]]),
        [fillX, bind(fillX, [x]), [512]],
        [fill1, bind(fill1, [wScales]), [16]],
        [fill1, bind(fill1, [xScales]), [16]],
      ]);
      runs([[splitX, bind(splitX, [x, xp]), [512]]]);
      return made = { ws, x, xp, out, wScales, xScales, copies, lines: [], reference: undefined };
    };
  });
  const WIDE = 1;
  let next = 0;
  const report = () => {
    console.log(`${elapsed().toFixed(1)} s, ${queue.length - next} not begun, ${pending} not compiled`);
    Deno.exit(0);
    for (const [j, { shape, rows }] of jobs.entries()) {
      const s = SHAPES[shape] as Shape;
      const { lines } = contexts[j]!();
      console.log(
        `\n${shape} [${s.n}, ${s.k}] / ${s.split}, ${rows} rows: ${
          (2 * s.n * s.k / 4.26e6).toFixed(1)
        } us of memory`,
      );
      for (const [, line] of lines.sort((a: any, b: any) => a[0] - b[0])) console.log(line);
    }
    console.log(`${elapsed().toFixed(1)} s, ${queue.length - next} not begun, ${pending} not compiled`);
    Deno.exit(0);
  };
  while (true) {
    while (pending < WIDE && next < queue.length) queue[next++]!();
    if (elapsed() > seconds) report();
    const made = ready.shift();
    if (!made) {
      if (!pending && next >= queue.length) report();
      await new Promise((r) => setTimeout(r, 5));
      continue;
    }
    const { job, v, tile: [tr, tc], words, pl, error, at } = made;
    const { shape, rows } = jobs[job] as Job;
    const s = SHAPES[shape] as Shape;
    const context = contexts[job]!();
    const { ws, x, xp, out, wScales, xScales, copies, lines } = context;
    if (error) {
      console.log(`FAILED ${nameOf(v)}: ${error.slice(0, 200)}`);
      lines.push([1e9, `FAILED ${nameOf(v)}: ${error.slice(0, 200)}`]);
      continue;
    }
    const flops = 4 * rows * s.n * s.k;
    const w = [Math.ceil(rows / tr), Math.ceil(s.n / tc), s.split];
    const groups = ws.map((weights: any) =>
      bind(pl, [weights, v.x === "f32" ? x : xp, out, wScales, xScales])
    );
    const once = await time(pl, groups, w, copies);
    const count = Math.max(copies, Math.min(200, Math.ceil(ms * 1000 / once / 3)));
    const all: number[] = [];
    for (let t = 0; t < 4; t++) all.push(await time(pl, groups, w, count));
    const us = all.slice(1).sort((a, b) => a - b)[0] as number;
    // Bits, of the first rows.
    const size = Math.min(4 * s.n * (s.swiglu ? 0.5 : 1) * rows * s.split, 8 << 20);
    const rb = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
    await time(pl, [groups[0]], w, 1);
    const e = device.createCommandEncoder();
    e.copyBufferToBuffer(out, 0, rb, 0, size);
    device.queue.submit([e.finish()]);
    await rb.mapAsync(GPUMapMode.READ);
    const bits = new Uint32Array(rb.getMappedRange().slice(0));
    rb.destroy();
    context.reference ??= bits;
    let other = 0;
    for (let q = 0; q < bits.length; q++) if (bits[q] !== context.reference[q]) other++;
    const f = new Float32Array(bits.buffer);
    const line: [number, string] = [
      us,
      `${us.toFixed(1).padStart(8)} us ${(flops / us / 1e6).toFixed(0).padStart(4)} T  ${nameOf(v)} [${
        w.join(",")
      }] ${words >> 6} KB, compiled in ${at.toFixed(1)} s${other ? ` OTHER BITS ${other}` : ""}${
        f[5] === 0 ? " ZERO" : ""
      }`,
    ];
    lines.push(line);
    console.log(`${shape} ${rows} ${line[1]}`);
  }
}
