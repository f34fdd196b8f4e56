/** What a boundary between dispatches costs beside waiting workgroups of one dispatch. */
import { median } from "../../src/bench/statistics.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler } from "../../src/gpu/program.ts";

using gpu = await openGpu();
const buffer = (words: number): Operand => ({
  buffer: gpu.device.createBuffer({
    size: words * 4,
    usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC,
  }),
});
const MAKE = `
fn make(part: u32, thread: u32) -> u32 {
  var v = part + thread;
  for (var i = 0u; i < 4u; i++) { v = input[(v + i * 977u) % 4096u] + v; }
  return v | 1u;
}`;
const P = kernel(
  "p",
  `
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;
${MAKE}
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let v = make(tile.x, thread);
  if (thread < 8u) { keys[tile.x * 8u + thread] = v; }
}`,
  { bindings: ["input", "keys"], constants: [] },
);
const C = kernel(
  "c",
  `
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  out[(tile.y * 9u + tile.x) * 128u + thread] = keys[thread];
}`,
  { bindings: ["keys", "out"], constants: [] },
);
const F = (wait: string) =>
  kernel(
    `f${wait.length}`,
    `
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> keys: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
var<workgroup> ready: u32;
${MAKE}
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let part = tile.y * 9u + tile.x;
  if (part < 18u) {
    if (part >= 16u) { return; }
    let v = make(part, thread);
    if (thread < 8u) { atomicStore(&keys[64u + part * 8u + thread], v); }
    workgroupBarrier();
    if (thread == 0u) { atomicAdd(&keys[0], 1u); }
    return;
  }
  ${wait}
  var key = 0u;
  for (var i = 0u; i < 100000u; i++) {
    key = atomicLoad(&keys[64u + thread]);
    if (key != 0u) { break; }
  }
  out[(part - 18u) * 128u + thread] = key;
}`,
    { bindings: ["input", "keys", "out"], constants: [] },
  );
const Z = kernel(
  "z",
  `
@group(0) @binding(0) var<storage, read_write> keys: array<u32>;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) { keys[thread] = 0u; }`,
  { bindings: ["keys"], constants: [] },
);
const counter = `
  if (thread == 0u) {
    var n = 0u;
    for (var i = 0u; i < 100000u; i++) {
      n = atomicLoad(&keys[0]);
      if (n == 16u) { break; }
    }
    ready = n;
  }
  if (workgroupUniformLoad(&ready) == 12345u) { return; }`;
const input = buffer(4096), keys = buffer(256), out = buffer(9 * 48 * 128 + 128);
const z = dispatch(Z, { buffers: { keys }, constants: {}, workgroups: [1], label: "z" });
const p = dispatch(P, { buffers: { input, keys }, constants: {}, workgroups: [16], label: "p" });
const c = dispatch(C, { buffers: { keys, out }, constants: {}, workgroups: [9, 48], label: "c" });
const f = (wait: string) =>
  dispatch(F(wait), {
    buffers: { input, keys, out },
    constants: {},
    workgroups: [9, 50],
    label: "f",
  });
const plans = {
  "clear, make, take": [z, p, c],
  "clear, take": [z, c],
  "clear, make": [z, p],
  "clear": [z],
  "clear, both, all poll": [z, f("")],
  "clear, both, one polls": [z, f(counter)],
};
const { compile } = compiler(gpu);
using profiler = await openProfiler(gpu, { queries: 2 });
const programs = await Promise.all(
  Object.entries(plans).map(async ([name, plan]) => ({
    name,
    steps: (await compile(plan)).steps,
    all: [] as number[],
  })),
);
const many = gpu.info.software ? 2 : 200;
for (let turn = 0; turn < (gpu.info.software ? 1 : 12); turn++) {
  for (const { steps, all } of programs) {
    const us = (await profiler.time([{
      steps: Array.from({ length: many }, () => steps).flat(),
    }]))[0]!.end * 1000 / many;
    if (turn > 3) all.push(us);
    else if (gpu.info.software) all.push(us);
  }
}
for (const { name, all } of programs) console.log(`${name}: ${median(all).toFixed(2)} us`);
