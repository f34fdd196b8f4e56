// prototype: exact integer sums of groups of 32 on units, scaled a group at a time
import { openGpu } from "../../src/gpu/device.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { dispatch, kernel } from "../../src/gpu/kernel.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler } from "../../src/gpu/program.ts";
import { sampleMs } from "../sample.ts";
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const say = (t: string) => console.log(t);
say(`${gpu.info.adapter} ${JSON.stringify(unit)} ${JSON.stringify([...((gpu as any).adapterInfo?.subgroupMatrixConfigs ?? [])])}`);
const device = gpu.device;
const profiler = await openProfiler(gpu, { queries: 2 }); const make = compiler(gpu);

interface T { q: 4 | 8; gr: number; gc: number; or: number; oc: number; kg: number; sl: number; ahead: number; xd?: boolean; pp?: boolean; skip?: string }
function code(t: T) {
  const un = unit.n, um = unit.m, uk = unit.k;
  const subs = t.gr * t.gc, threads = 32 * subs;
  const TM = t.gr * t.or * um, TN = t.gc * t.oc * un;
  const line = (t.kg * 32) / 8 + 1;
  const R = t.or * um, C = t.oc * un, pitch = C / 4 + 1;
  const quads = C / 4, at = 32 / quads, per = R / at, SR = t.sl * um, perSlice = SR / at;
  const XS = TN * line, BUF = XS + (t.xd ? 0 : TM * line), SUMS = BUF * (t.pp ? 2 : 1), sumWords = subs * SR * pitch;
  const bpg = t.q == 8 ? 2 : 1;
  const wBlocks = TN * t.kg * bpg, xBlocks = TM * t.kg * 4;
  const wl = Math.ceil(wBlocks / threads), xl = t.xd ? 0 : Math.ceil(xBlocks / threads);
  const sl = Math.ceil(Math.max(TN, TM) * t.kg / threads);
  const F = (n: number, f: (i: number) => string) => Array.from({ length: n }, (_, i) => f(i)).join("\n");
  const wLoad = (u: number, s: string) => `weights[wfrom${u} + group_of(${s} + wg${u}, passes) * ${bpg}u]`;
  const xLoad = (u: number, s: string) => `xq[xfrom${u} + group_of(${s} + xg${u}, passes) * 4u]`;
  return { TM, TN, threads, bytes: (SUMS + sumWords) * 16 + (TM + TN) * 4 * t.kg * (t.pp ? 2 : 1), text: `
enable f16; enable subgroups; enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);
override N: u32; override K: u32; override M: u32;
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> xq: array<vec4<u32>>; // [M, K/8]
@group(0) @binding(2) var<storage, read> wscale: array<f32>; // [G, N]
@group(0) @binding(3) var<storage, read> xstep: array<f32>; // [G, M]
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
var<workgroup> staged: array<vec4<u32>, ${SUMS + sumWords}>;
var<workgroup> ws: array<vec4<f32>, ${TN / 4 * t.kg * (t.pp ? 2 : 1)}>;
var<workgroup> xs: array<f32, ${TM * t.kg * (t.pp ? 2 : 1)}>;
fn f16s(u: u32) -> u32 { return bitcast<u32>(bitcast<vec2<f16>>(u) - vec2<f16>(1152.0h)); }
fn four8(w: u32) -> vec2<u32> {
  let u = w ^ 0x80808080u;
  return vec2<u32>(f16s((u & 0xff00ffu) | 0x64006400u), f16s(((u >> 8u) & 0xff00ffu) | 0x64006400u));
}
fn eight4(w: u32) -> vec4<u32> {
  let u = w ^ 0x88888888u; let v = u >> 8u;
  let a = bitcast<vec2<f16>>((u & 0xf000fu) | 0x64006400u) - vec2<f16>(1032.0h);
  let b = bitcast<vec2<f16>>((v & 0xf000fu) | 0x64006400u) - vec2<f16>(1032.0h);
  let c = fma(bitcast<vec2<f16>>((u & 0xf000f0u) | 0x64006400u), vec2<f16>(0.0625h), vec2<f16>(-72.0h));
  let d = fma(bitcast<vec2<f16>>((v & 0xf000f0u) | 0x64006400u), vec2<f16>(0.0625h), vec2<f16>(-72.0h));
  return vec4<u32>(bitcast<u32>(a), bitcast<u32>(b), bitcast<u32>(c), bitcast<u32>(d));
}
fn group_of(s: u32, passes: u32) -> u32 { return (s % passes) * 16u + s / passes; }
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let G = K / 32u; let passes = G / 16u;
  let row = tile.x * ${TM}u; let col = tile.y * ${TN}u;
  let subgroup = thread / 32u; let lane = thread % 32u;
  let own_r = subgroup % ${t.gr}u * ${R}u; let own_c = subgroup / ${t.gr}u * ${C}u;
  let sums = ${SUMS}u + subgroup * ${SR * pitch}u;
  let quad = lane % ${quads}u; let sub = lane / ${quads}u;
  ${F(wl, (u) => `let wb${u} = min(thread + ${u * threads}u, ${wBlocks - 1}u);
  let wc${u} = wb${u} / ${bpg}u % ${TN}u; let wg${u} = wb${u} / ${bpg * TN}u; let wh${u} = wb${u} % ${bpg}u;
  let wfrom${u} = (col + wc${u}) * (G * ${bpg}u) + wh${u};
  let wto${u} = wc${u} * ${line}u + wg${u} * 4u + wh${u} * 2u;
  ${F(t.ahead, (a) => `var w${a}_${u} = ${wLoad(u, `${a * t.kg}u`)};`)}`)}
  ${F(xl, (u) => `let xb${u} = min(thread + ${u * threads}u, ${xBlocks - 1}u);
  let xr${u} = xb${u} / 4u % ${TM}u; let xg${u} = xb${u} / ${4 * TM}u;
  let xfrom${u} = (row + xr${u}) * (K / 8u) + xb${u} % 4u;
  let xto${u} = ${XS}u + xr${u} * ${line}u + xg${u} * 4u + xb${u} % 4u;
  ${F(t.ahead, (a) => `var x${a}_${u} = ${xLoad(u, `${a * t.kg}u`)};`)}`)}
  ${F(per, (i) => `var acc${i} = vec4<f32>(0.0); var all${i} = vec4<f32>(0.0);`)}
  ${F(sl, (u) => `let sn${u} = min(thread + ${u * threads}u, ${TN * t.kg - 1}u); let sm${u} = min(thread + ${u * threads}u, ${TM * t.kg - 1}u);
  ${F(t.ahead, (a) => `var own_ws${a}_${u} = wscale[group_of(${a * t.kg}u + sn${u} / ${TN}u, passes) * N + col + sn${u} % ${TN}u];
  var own_xs${a}_${u} = xstep[group_of(${a * t.kg}u + sm${u} / ${TM}u, passes) * M + row + sm${u} % ${TM}u];`)}`)}
  var flip = 0u;
  for (var first = 0u; first < G; first += ${t.kg * t.ahead}u) {
  ${F(t.ahead, (a) => `{
    let s = first + ${a * t.kg}u;
    let buf = flip * ${BUF}u; let wsb = flip * ${TN / 4 * t.kg}u; let xsb = flip * ${TM * t.kg}u;
    ${F(wl, (u) => `if (thread + ${u * threads}u < ${wBlocks}u) {
      ${t.q == 8 ? `staged[buf + wto${u}] = vec4<u32>(four8(w${a}_${u}.x), four8(w${a}_${u}.y)); staged[buf + wto${u} + 1u] = vec4<u32>(four8(w${a}_${u}.z), four8(w${a}_${u}.w));` : `
      staged[buf + wto${u}] = eight4(w${a}_${u}.x); staged[buf + wto${u} + 1u] = eight4(w${a}_${u}.y); staged[buf + wto${u} + 2u] = eight4(w${a}_${u}.z); staged[buf + wto${u} + 3u] = eight4(w${a}_${u}.w);`}
    }`)}
    ${F(xl, (u) => `if (thread + ${u * threads}u < ${xBlocks}u) { staged[buf + xto${u}] = x${a}_${u}; }`)}
    ${F(sl, (u) => `if (thread + ${u * threads}u < ${TN * t.kg}u) { ws[wsb + sn${u} / 4u][sn${u} % 4u] = own_ws${a}_${u}; }
    if (thread + ${u * threads}u < ${TM * t.kg}u) { xs[xsb + sm${u}] = own_xs${a}_${u}; }`)}
    let next = s + ${t.kg * t.ahead}u;
    if (next < G) {
      ${F(wl, (u) => `w${a}_${u} = ${wLoad(u, "next")};`)}
      ${F(xl, (u) => `x${a}_${u} = ${xLoad(u, "next")};`)}
      ${F(sl, (u) => `own_ws${a}_${u} = wscale[group_of(next + sn${u} / ${TN}u, passes) * N + col + sn${u} % ${TN}u];
      own_xs${a}_${u} = xstep[group_of(next + sm${u} / ${TM}u, passes) * M + row + sm${u} % ${TM}u];`)}
    }
    workgroupBarrier();
    ${F(t.kg, (g) => `{
    ${F(t.or, (r) => F(t.oc, (c) => `var r${r}_${c} = subgroup_matrix_result<f32, ${un}, ${um}>();`))}
    ${F(32 / uk, (k) => `
      ${F(t.or, (r) => t.xd ? `let xm${r}_${k} = subgroupMatrixLoad<subgroup_matrix_left<f16, ${uk}, ${um}>, row_major>(&xq, (row + own_r + ${r * um}u) * (K / 8u) + group_of(s + ${g}u, passes) * 4u + ${k * uk / 8}u, K / 8u);` : `let xm${r}_${k} = subgroupMatrixLoad<subgroup_matrix_left<f16, ${uk}, ${um}>, row_major>(&staged, buf + ${XS}u + (own_r + ${r * um}u) * ${line}u + ${g * 4 + k * uk / 8}u, ${line}u);`)}
      ${F(t.oc, (c) => `let wm${c}_${k} = subgroupMatrixLoad<subgroup_matrix_right<f16, ${un}, ${uk}>, col_major>(&staged, buf + (own_c + ${c * un}u) * ${line}u + ${g * 4 + k * uk / 8}u, ${line}u);
      ${F(t.or, (r) => `r${r}_${c} = subgroupMatrixMultiplyAccumulate(xm${r}_${k}, wm${c}_${k}, r${r}_${c});`)}`)}`)}
    let w4 = ws[wsb + (own_c + ${g * TN}u) / 4u + quad];
    ${F(t.or / t.sl, (z) => `
    ${F(t.sl, (r) => F(t.oc, (c) => `subgroupMatrixStore<row_major>(&staged, sums + ${r * um * pitch + c * un / 4}u, r${z * t.sl + r}_${c}, ${pitch}u);`))}
    workgroupBarrier();
    ${F(perSlice, (i) => `{ let s4 = bitcast<vec4<f32>>(staged[sums + (${i * at}u + sub) * ${pitch}u + quad]); acc${z * perSlice + i} = fma(s4 * xs[xsb + own_r + ${g * TM + z * SR + i * at}u + sub], w4, acc${z * perSlice + i}); }`)}
    ${z + 1 < t.or / t.sl || g + 1 < t.kg ? "workgroupBarrier();" : ""}`)}
    }`)}
    if ((s + ${t.kg}u) % passes == 0u) {
      ${F(per, (i) => `all${i} += acc${i}; acc${i} = vec4<f32>(0.0);`)}
    }
    ${t.pp ? "flip = 1u - flip;" : ""}
  }`)}
  }
  ${F(per, (i) => `out[(row + own_r + ${i * at}u + sub) * (N / 4u) + (col + own_c) / 4u + quad] = all${i};`)}
}` };
}
const shapes = { gateUp: [28672, 4096], expert: [0, 0] } as const;
const N = 28672, K = 4096;
for (const M of [512, 16]) {
  const buf = (bytes: number, f?: (i: number) => number, A: any = Float32Array) => {
    const b = device.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC });
    if (f) { const a = new A(bytes / A.BYTES_PER_ELEMENT); for (let i = 0; i < a.length; i++) a[i] = f(i); device.queue.writeBuffer(b, 0, a.buffer); }
    return b;
  };
  const weights = buf(N * K, (i) => Math.imul(i, 2654435761) >>> 0, Uint32Array);
  const ints = new Uint16Array(4096);
  // f16 of integer i-2047
  const half = (v: number) => { const f = new Float32Array([v]); const u = new Uint32Array(f.buffer)[0]!; if (v === 0) return 0; return ((u >> 16) & 0x8000) | (((u & 0x7fffffff) - 0x38000000) >> 13); };
  const xv = (i: number) => (Math.imul(i + 7, 40503) >>> 3) % 4095 - 2047;
  const xq = buf(M * K * 2, (i) => half(xv(i)), Uint16Array);
  const wscale = buf(N * K / 32 * 4, (i) => 1 + (i % 7) / 8);
  const xstep = buf(M * K / 32 * 4, (i) => 2 ** (i % 3));
  const out = buf(M * N * 4);
  const tiles: T[] = [];
  for (const q of (M > 64 ? [4] : [8, 4]) as (4 | 8)[]) {
    const all = M >= 64
      ? [[2,2,2,2,1,1,1],[2,2,2,2,1,1,2],[2,2,2,2,2,1,1],[2,2,2,2,2,1,2],[2,2,2,2,1,2,1],[2,2,2,2,1,2,2],
         [4,2,2,2,1,1,1],[4,2,2,2,1,1,2],[4,2,2,2,2,1,1],[2,4,2,2,1,1,1],[2,4,2,2,2,1,1],[2,4,2,2,1,1,2],
         [2,2,2,4,2,1,1],[2,2,2,4,1,1,1],[2,2,4,2,2,2,1],[2,2,4,2,2,1,1],[2,2,4,2,1,1,1],[4,2,1,2,1,1,1],[4,2,1,2,1,1,2],[4,2,1,2,2,1,1],[4,4,2,2,1,1,1],[4,1,2,2,1,1,1],[2,1,2,2,1,1,1],[2,1,2,2,2,1,1],[1,2,2,2,1,1,1],[2,1,2,2,1,2,1]]
      : [[1, 4, 1, 2,1,1,1], [1, 2, 1, 2,1,1,1], [1, 1, 1, 2,1,1,1],[1,1,1,2,2,1,1],[1,1,1,2,4,1,1],[1,2,1,2,2,1,1],[1,2,1,2,4,1,1], [1,1,1,2,1,1,2],[1,1,1,2,2,1,2],[1,1,1,2,1,1,4],[1,2,1,1,1,1,1],[1,2,1,1,2,1,1]];
    for (const [gr, gc, or, oc, kg, sl, ahead] of all as [number, number, number, number, number, number, number][]) tiles.push({ q, gr, gc, or, oc, kg, ahead, sl });
  }
  const programs = [];
  for (const t of tiles) {
    const { text, TM, TN, threads, bytes } = code(t);
    if (Deno.args[0] === "local" ? tiles.indexOf(t) % 7 : false) continue;
    if (bytes > 49152 || M % TM || N % TN) continue;
    try {
      const k = kernel(`exact_${JSON.stringify(t)}`, text);
      const program = await make.compile([dispatch(k, { buffers: { weights: { buffer: weights }, xq: { buffer: xq }, wscale: { buffer: wscale }, xstep: { buffer: xstep }, out: { buffer: out } }, constants: { N, K, M }, workgroups: [M / TM, N / TN], label: "exact" })]);
      programs.push([t, program] as const);
      continue;
    } catch (error) { say("FAILED " + JSON.stringify(t) + String(error).slice(0, 400)); }
  }
  const n = M > 64 ? 8 : 60;
  { const t0 = performance.now(); while (performance.now() - t0 < 1500) await sampleMs(profiler, [programs[0]![1]], n); }
  for (const [t, program] of programs) {
    const { TM, TN, threads, bytes } = code(t);
    {
      const t0 = performance.now(); while (performance.now() - t0 < 120) await sampleMs(profiler, [program], n);
      const times = []; for (let i = 0; i < 5; i++) times.push(await sampleMs(profiler, [program], n));
      const us = 1000 * times.sort((a, b) => a - b)[2]!;
      // check one output
      const rb = device.createBuffer({ size: 4096, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
      const e = device.createCommandEncoder(); e.copyBufferToBuffer(out, 0, rb, 0, 4096); device.queue.submit([e.finish()]);
      await rb.mapAsync(GPUMapMode.READ); const got = new Float32Array(rb.getMappedRange().slice(0)); rb.unmap();
      let bad = 0;
      for (let n = 0; n < 8; n++) {
        let all = 0;
        for (let l = 0; l < 16; l++) { let acc = 0; for (let p = 0; p < K / 512; p++) { const g = p * 16 + l; let sum = 0;
          const perm8 = [0, 2, 1, 3], perm4 = [0, 2, 1, 3, 4, 6, 5, 7];
          for (let j = 0; j < 32; j++) {
            let w: number;
            if (t.q === 8) { const byte = n * K + g * 32 + (j & ~3) + perm8[j & 3]!; const word = Math.imul(byte >> 2, 2654435761) >>> 0; w = (word >> (8 * (byte & 3))) << 24 >> 24; }
            else { const wi = n * K / 8 + g * 4 + (j >> 3); const word = Math.imul(wi, 2654435761) >>> 0; const k = perm4[j & 7]!; const nib = k < 4 ? (word >> (8 * k)) & 15 : (word >> (8 * (k - 4) + 4)) & 15; w = nib << 28 >> 28; }
            sum += w * xv(g * 32 + j);
          }
          const ws = Math.fround(1 + ((g * N + n) % 7) / 8), st = 2 ** ((g * M) % 3);
          acc = Math.fround(Math.fround(sum * st) * ws + acc); }
          all = Math.fround(all + acc); }
        if (!t.skip && Math.abs(all - got[n]!) > 0) { bad++; if (bad == 1) say(`  ${all} ${got[n]}`); }
      }
      say(`q${t.q} M=${M} ${us.toFixed(1).padStart(8)} us ${(2 * M * N * K / us / 1e6).toFixed(0)} TF  grid ${t.gr}x${t.gc} own ${t.or}x${t.oc} kg ${t.kg} sl ${t.sl} ahead ${t.ahead} ${t.xd ? "xd" : "  "} tile ${TM}x${TN} threads ${threads} bytes ${bytes} ${t.skip ?? ""} ${bad ? "WRONG " + bad : ""}`);
    }
  }
}
Deno.exit(0);
