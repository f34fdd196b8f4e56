import { openGpu } from "../src/gpu/device.ts";
import { dispatch, kernel } from "../src/gpu/kernel.ts";
import { storage } from "../src/gpu/arena.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler } from "../src/gpu/program.ts";
const small = Deno.args.includes("--small");
const gpu = await openGpu({ webgpu: Deno.args.includes("--builtin") ? "builtin" : "dawn" });
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const N = small ? 2 : 400;
const seq = (n: number) => [...Array(n).keys()];
function body(kind: string, tall: number, wide: number): [string, number] {
  const acc = seq(tall * wide).map((i) => `var s${i} = f32(thread + ${i}u) * 0.001;`).join("\n");
  const out = seq(tall * wide).map((i) => `s${i}`).join(" + ");
  const head = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> sh: array<vec4<f32>, 1024>;
@compute @workgroup_size(128) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
${acc}
${seq(tall).map((r) => `var a${r} = x[thread + ${r}u];`).join("\n")}
${seq(wide).map((r) => `var b${r} = x[thread + ${r + 20}u];`).join("\n")}
${seq(8).map((r) => `sh[thread + ${128 * r}u] = vec4<f32>(x[thread + ${r}u]);`).join("\n")}
workgroupBarrier();
let wide = thread % 8u; let tall = thread / 8u;
for (var i = 0u; i < ${N}u; i++) {`;
  const fmas = seq(tall).flatMap((r) =>
    seq(wide).map((c) => `s${r * wide + c} = fma(a${r}, b${c}, s${r * wide + c});`)
  ).join("\n");
  const four = ["x", "y", "z", "w"].map((k) =>
    seq(tall).flatMap((r) =>
      seq(wide).map((c) => `s${r * wide + c} = fma(p${r}.${k}, q${c}.${k}, s${r * wide + c});`)
    ).join("\n")
  ).join("\n");
  const inner: Record<string, string> = {
    outer: fmas.repeat(4) + seq(tall).map((r) => `a${r} = a${r} + 0.5;`).join("\n"),
    shared:
      seq(tall).map((r) => `let p${r} = sh[(tall + ${16 * r}u) * 9u % 512u + (i & 7u)];`).join(
        "\n",
      ) +
      seq(wide).map((r) => `let q${r} = sh[(wide + ${8 * r}u) * 9u + (i & 7u)];`).join("\n") + four,
    mad: fmas.replaceAll(/fma\((\w+), (\w+), (\w+)\)/g, "$1 * $2 + $3").repeat(4) +
      seq(tall).map((r) => `a${r} = a${r} + 0.5;`).join("\n"),
  };
  return [`${head}\n${inner[kind]}\n}\ny[id.x] = ${out};\n}`, 4 * tall * wide * N];
}
const x = { buffer: storage(gpu.device, "x", 65536) };
const y = { buffer: storage(gpu.device, "y", 4 * 128 * 132 * 32) };
for (
  const [kind, tall, wide] of [["outer", 8, 8], ["outer", 8, 4], ["mad", 8, 4], ["shared", 8, 8], [
    "shared",
    8,
    4,
  ], ["shared", 4, 4]] as const
) {
  const [code, fmas] = body(kind, tall, wide);
  const k = kernel(`peak_${kind}_${tall}_${wide}`, code, { bindings: ["x", "y"], constants: [] });
  const line: string[] = [];
  for (const per of [1, 2, 4, 8]) {
    const program = await make.compile([
      dispatch(k, { buffers: { x, y }, constants: {}, workgroups: [132 * per] }),
    ]);
    const runs = (n: number) => ({ steps: seq(n).flatMap(() => program.steps) });
    const start = performance.now();
    while (
      performance.now() - start <
        (small ? 1 : kind === "outer" && tall === wide && per === 1 ? 500 : 15)
    ) await profiler.time([runs(5)]);
    const ms = ((await profiler.time([runs(10)]))[0]?.end ?? NaN) / 10;
    line.push(`${(2 * fmas * 128 * 132 * per / ms / 1e9).toFixed(1)}`);
  }
  console.log(
    `${kind} ${tall}x${wide}: TFLOP/s with 1 2 4 8 workgroups of 128 a core: ${line.join(" ")}`,
  );
}
Deno.exit(0);
