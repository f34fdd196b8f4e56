import type { Plan } from "../src/gpu/kernel.ts";
import { compiler, encode } from "../src/gpu/program.ts";
import { openReadback } from "../src/gpu/readback.ts";
import type { Device } from "../tests/gpu/device.ts";

/**
 * Registers a bench of a plan run many times in one submission: the runs share the cost of
 * submitting and of reading back, so the time over their number (`x N`) is near the kernels'.
 */
export async function benchPlan(
  device: Device,
  plan: Plan,
  shape: { readonly group: string; readonly name: string },
): Promise<void> {
  const { gpu } = device;
  const { group, name } = shape;
  const times = gpu.info.software ? 8 : 64;
  const program = await compiler(gpu).compile(plan);
  // Reading is how to wait without the 10 ms that awaiting the queue costs in Deno.
  const readback = await openReadback(gpu, 1);
  Deno.bench(`${name} x ${times}`, { group }, async () => {
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let i = 0; i < times; i++) encode(pass, program);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
    await readback.read();
  });
}
