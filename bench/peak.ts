import { openGpu } from "../src/gpu/device.ts";
import { dispatch, kernel } from "../src/gpu/kernel.ts";
import { storage } from "../src/gpu/arena.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler } from "../src/gpu/program.ts";
const small = Deno.args.includes("--small");
const gpu = await openGpu({ webgpu: Deno.args.includes("--builtin") ? "builtin" : "dawn" });
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const seq = (n: number) => [...Array(n).keys()];
const x = { buffer: storage(gpu.device, "x", 65536) };
const y = { buffer: storage(gpu.device, "y", 4 * 128 * 132 * 32) };
for (const kb of [2, 8, 12, 16, 20, 24, 32, 40, 47]) {
  if (1024 * kb > gpu.limits.maxComputeWorkgroupStorageSize) continue;
  const code = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> sh: array<f32, ${256 * kb}>;
@compute @workgroup_size(128) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
sh[thread * ${2 * kb}u] = x[thread];
workgroupBarrier();
var s = sh[(thread * ${2 * kb}u + 17u) % ${256 * kb}u];
let a = x[thread + 3u];
for (var i = 0u; i < ${small ? 2 : 200}u; i++) {
${"s = fma(s, a, 0.25);\n".repeat(32)}
}
y[id.x] = s;
}`;
  const k = kernel(`occupancy_${kb}`, code, { bindings: ["x", "y"], constants: [] });
  const line: string[] = [];
  for (const per of [1, 2, 4, 8, 16, 32]) {
    const program = await make.compile([
      dispatch(k, { buffers: { x, y }, constants: {}, workgroups: [132 * per] }),
    ]);
    const runs = (n: number) => ({ steps: seq(n).flatMap(() => program.steps) });
    const start = performance.now();
    while (performance.now() - start < (small ? 1 : kb === 2 && per === 1 ? 500 : 5)) {
      await profiler.time([runs(5)]);
    }
    line.push((1000 * ((await profiler.time([runs(10)]))[0]?.end ?? NaN) / 10).toFixed(1));
  }
  console.log(
    `${kb} KiB of workgroup memory: us with 1 2 4 8 16 32 workgroups of 128 a core: ${
      line.join(" ")
    }`,
  );
}
Deno.exit(0);
