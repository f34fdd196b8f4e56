import { gateExperts } from "../../kernels/experts/expert_gate.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

Deno.test("the gate of gpt-oss's experts: biases, limits, and numbers far beyond them", async () => {
  const [experts, cols, limit] = [[2, 0, 2, 1], 70, 7];
  const x = numbers(experts.length * 2 * cols, 1).map((value) => 12 * value);
  x.set([-1e30, 1e30, 1e30, -1e30, -50, 3]);
  const bias = numbers(3 * 2 * cols, 2);
  const out = device.filled(experts.length * cols, -7);
  const buffers = {
    x: device.floats(x),
    bias: device.floats(bias),
    experts: device.words(experts),
    out,
  };
  await device.run([
    gateExperts(buffers, { rows: experts.length, cols, limit, label: "test" }),
  ]);
  const expected = Array.from({ length: experts.length * cols }, (_, at) => {
    const [job, c] = [Math.floor(at / cols), at % cols];
    const [gate, up] = [0, 1].map((i) =>
      (x[2 * at + i] ?? NaN) + (bias[((experts[job] ?? NaN) * cols + c) * 2 + i] ?? NaN)
    ) as [number, number];
    const g = Math.min(gate, limit);
    const u = Math.min(Math.max(up, -limit), limit);
    return g / (1 + Math.exp(-1.702 * g)) * (u + 1);
  });
  assertClose(await device.readFloats(out), expected, 1e-5, "gated");
});
