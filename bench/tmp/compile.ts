/** Compiles the kernels of layers, in order. */
import { openGpu } from "../../src/gpu/device.ts";
import { compiler } from "../../src/gpu/program.ts";
import { openAllocations } from "../allocations.ts";
import { mixtureLayers, mixtureSizes } from "../cases/mixture_layer.ts";
using gpu = await openGpu();
using of = openAllocations(gpu);
const { compile } = compiler(gpu);
const seen = new Set<string>();
for (const format of ["bf16", "q8"] as const) {
  const plan = mixtureLayers(of, mixtureSizes(gpu.info.software), { rows: 1, format })[0]!;
  for (const one of plan) {
    const key = JSON.stringify([one.kernel.name, one.constants]);
    if (seen.has(key)) continue;
    seen.add(key);
    await compile([one]);
    console.log(
      `${seen.size} ${one.label} ${one.kernel.name}, ${one.kernel.code.length} characters`,
    );
  }
}
