import assert from "node:assert/strict";
import { headNorm } from "../../shaders/head_norm.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-6;

for (const [heads, kvHeads, headDim] of [[4, 2, 16], [3, 1, 128]] as const) {
  Deno.test(`head_norm: ${heads} + ${kvHeads} heads of ${headDim}; v is left alone`, async () => {
    const rows = 3;
    const cols = (heads + 2 * kvHeads) * headDim;
    const before = numbers(rows * cols, cols);
    const [qWeight, kWeight] = [numbers(headDim, 1), numbers(headDim, 2)];
    const qkv = device.floats(before);
    const buffers = { qkv, qWeight: device.floats(qWeight), kWeight: device.floats(kWeight) };
    await device.run([
      headNorm(buffers, { rows, heads, kvHeads, headDim, eps: EPS, label: "test" }),
    ]);
    const after = await device.readFloats(qkv);
    for (let at = 0; at < before.length; at += headDim) {
      const head = at % cols / headDim;
      const x = before.subarray(at, at + headDim);
      const square = x.reduce((sum, value) => sum + value * value, 0) / headDim;
      const weight = head < heads ? qWeight : kWeight;
      const expected = x.map((value, i) => value / Math.sqrt(square + EPS) * (weight[i] ?? NaN));
      const actual = after.subarray(at, at + headDim);
      if (head < heads + kvHeads) assertClose(actual, expected, 1e-6, `at ${at}`);
      else assert.deepEqual(actual, x);
    }
  });
}
