import assert from "node:assert/strict";
import { combineExperts } from "../../kernels/experts/experts.ts";
import { normSum } from "../../kernels/norm/norm_sum.ts";
import { rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

for (
  const [cols, lanes, splitK, count] of [[136, 16, 1, 3], [704, 8, 2, 8], [
    4104,
    512,
    3,
    8,
  ]] as const
) {
  Deno.test(`norm_sum: the bits of two norms and a combination, ${cols} columns, ${lanes} lanes, ${splitK} ranges of k`, async () => {
    const rows = 3;
    const shape = { rows, cols, eps: 1e-6, lanes, label: "test" };
    const sums = device.floats(numbers(splitK * rows * cols, 1));
    const outputs = device.floats(numbers(rows * count * cols, 2));
    const shares = device.floats(numbers(rows * count, 3));
    const [first, second] = [device.floats(numbers(cols, 4)), device.floats(numbers(cols, 5))];
    const [found, expected] = [device.filled(rows * cols), device.filled(rows * cols)];
    const sum = device.filled(rows * cols);
    await device.run([
      normSum({
        x: { sums, splitK, weight: first },
        experts: { outputs, shares, count, weight: second },
        out: found,
      }, shape),
      combineExperts(
        { y: outputs, weights: shares, out: sum, bias: undefined },
        { rows, topK: count, cols, add: false, label: "test" },
      ),
      ...rmsNorm({ from: { sums, splitK }, weight: first, out: expected }, shape),
      ...rmsNorm({ from: { x: sum }, weight: second, out: expected }, { ...shape, put: "add" }),
    ]);
    const words = await device.readWords(found);
    assert.ok(words.some((word) => word !== 0));
    assert.deepEqual(words, await device.readWords(expected));
  });
}
