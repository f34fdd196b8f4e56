// Throw-away: what a dependent dispatch costs.
import { rowScales } from "../../shaders/tensor/matmul_tensor.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler } from "../../src/gpu/program.ts";
const gpu = await openGpu();
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const of = (bytes: number) => ({ buffer: storage(gpu.device, "b", bytes) });
const x = of(4 * 4096 * 4096), a = of(4 * 4096), b = of(4 * 4096);
for (const [rows, cols] of [[1, 64], [256, 64], [1024, 64], [1, 4096]] as const) {
  const one = rowScales({ x, scales: a }, { rows, cols });
  const two = rowScales({ x: a, scales: b }, { rows: 1, cols: 64 });
  for (const [name, plan] of [["same", [one]], ["pair", [one, two]]] as const) {
    const program = await make.compile([...plan]);
    const n = 400;
    const steps = Array.from({ length: n }, () => program.steps).flat();
    const found: number[] = [];
    const from = performance.now();
    while (performance.now() - from < 300) {
      const t = (await profiler.time([{ steps }]))[0]!;
      found.push(1000 * (t.end - t.begin) / steps.length);
    }
    found.sort((p, q) => p - q);
    console.log(gpu.info.webgpu, rows, cols, name, found[found.length >> 1]!.toFixed(2), "us a dispatch, best", found[0]!.toFixed(2));
  }
}
Deno.exit(0);
