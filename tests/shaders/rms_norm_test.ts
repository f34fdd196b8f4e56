import assert from "node:assert/strict";
import { rmsNorm } from "../../shaders/rms_norm.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-5;
const LEFT_ALONE = -7;

function reference(x: Float32Array, weight: Float32Array): number[] {
  const square = x.reduce((sum, value) => sum + value * value, 0) / x.length;
  return Array.from(x, (value, c) => value / Math.sqrt(square + EPS) * (weight[c] ?? NaN));
}

for (const lanes of [16, 256]) {
  for (const cols of [8, 200, 704]) {
    Deno.test(`rms_norm: ${cols} columns, ${lanes} lanes, into a window`, async () => {
      const rows = 3;
      const [outCols, outFirst] = [cols + 9, 4];
      const x = numbers(rows * cols, cols);
      const weight = numbers(cols, 1);
      const out = device.filled(rows * outCols, LEFT_ALONE);
      const buffers = { x: device.floats(x), weight: device.floats(weight), out };
      const shape = { rows, cols, eps: EPS, lanes, outCols, outFirst, label: "test" };
      await device.run([rmsNorm(buffers, shape)]);
      const actual = await device.readFloats(out);
      for (let r = 0; r < rows; r++) {
        const line = actual.subarray(r * outCols, (r + 1) * outCols);
        const expected = reference(x.subarray(r * cols, (r + 1) * cols), weight);
        assertClose(line.subarray(outFirst, outFirst + cols), expected, 1e-6, `row ${r}`);
        const around = [...line.subarray(0, outFirst), ...line.subarray(outFirst + cols)];
        assert.deepEqual(around, Array(9).fill(LEFT_ALONE));
      }
    });
  }
}

Deno.test("rms_norm: a row of zeros stays zero, and rows do not know each other", async () => {
  const cols = 72;
  const row = numbers(cols, 2);
  const x = device.floats([...new Float32Array(cols), ...row, ...numbers(cols, 3), ...row]);
  const out = device.filled(4 * cols);
  const shape = { rows: 4, cols, eps: EPS, lanes: 16, label: "test" };
  await device.run([rmsNorm({ x, weight: device.filled(cols, 1), out }, shape)]);
  const words = await device.readWords(out);
  const line = (r: number) => words.subarray(r * cols, (r + 1) * cols);
  assert.deepEqual(line(0), new Uint32Array(cols));
  assert.deepEqual(line(1), line(3));
});
