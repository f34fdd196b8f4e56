/** The gated norm of heads: its formula, and its rows as matmuls on matrix units want them. */
import assert from "node:assert/strict";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import { gatedNorm } from "../../kernels/norm/gated_norm.ts";
import type { RowScales } from "../../kernels/norm/rms_norm.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-6;
const ROWS = 3;
const FIRST = 12;

function inputs(cols: number, headDim: number) {
  const gateCols = FIRST + cols + 4;
  return {
    gateCols,
    x: numbers(ROWS * cols, 3),
    gate: numbers(ROWS * gateCols, 5),
    weight: numbers(headDim, 7),
  };
}

async function normed(
  cols: number,
  headDim: number,
  { lanes = 64, put = "store", scales }: {
    readonly lanes?: number;
    readonly put?: "store" | "pair" | "half";
    readonly scales?: RowScales;
  } = {},
) {
  const { x, gate, gateCols, weight } = inputs(cols, headDim);
  const out = device.filled(ROWS * cols, 9);
  const buffers = { x: device.floats(x), gate: device.floats(gate), weight: device.floats(weight) };
  await device.run([
    gatedNorm({ ...buffers, out, scales }, {
      rows: ROWS,
      cols,
      headDim,
      eps: EPS,
      lanes,
      put,
      label: "test",
      gate: { cols: gateCols, first: FIRST },
    }),
  ]);
  return out;
}

const scalesOf = (): RowScales => ({
  normed: device.filled(ROWS),
  reduced: device.filled(2 * ROWS),
  stride: ROWS,
  jobs: 1,
});

for (const [cols, headDim] of [[4096, 128], [80, 40], [64, 8]] as const) {
  Deno.test(`gated_norm: ${cols / headDim} heads of ${headDim}`, async () => {
    const { x, gate, gateCols, weight } = inputs(cols, headDim);
    const expected = Array.from(x, (value, i) => {
      const [row, col] = [Math.floor(i / cols), i % cols];
      const head = x.subarray(i - col % headDim, i - col % headDim + headDim);
      const rms = Math.sqrt(head.reduce((sum, v) => sum + v * v, 0) / headDim + EPS);
      const z = gate[row * gateCols + FIRST + col]!;
      return weight[col % headDim]! * value / rms * z / (1 + Math.exp(-z));
    });
    const found = await device.readFloats(await normed(cols, headDim));
    assertClose(found, expected, 1e-6, "rows");
    const ofOneLane = await device.readFloats(await normed(cols, headDim, { lanes: 1 }));
    assert.deepEqual(ofOneLane, found);
  });
}

Deno.test("gated_norm stores the f16 rows and the scales that half_rows makes of its f32 rows", async () => {
  const [cols, headDim] = [80, 40];
  const [expected, half] = [device.filled(ROWS), device.filled(ROWS * cols / 2, 9)];
  await device.run([
    halfRows(
      { x: await normed(cols, headDim), scales: expected, out: half },
      { rows: ROWS, cols, label: "test" },
    ),
  ]);
  const scales = scalesOf();
  const found = await normed(cols, headDim, { put: "half", scales });
  const words = (await device.readWords(found)).subarray(0, ROWS * cols / 2);
  assert.deepEqual(words, await device.readWords(half));
  assert.deepEqual(await device.readFloats(scales.normed), await device.readFloats(expected));
  const reduced = await device.readFloats(scales.reduced);
  assert.deepEqual([...new Set(reduced)], [2 ** 74]);
});

Deno.test("gated_norm stores two f16 numbers for each", async () => {
  const [cols, headDim] = [80, 40];
  const scales = scalesOf();
  const paired = await normed(cols, headDim, { put: "pair", scales });
  const halves = new Float16Array((await device.readWords(paired)).buffer);
  const factors = await device.readFloats(scales.normed);
  const plain = await device.readFloats(await normed(cols, headDim));
  const sums = plain.map((_, i) => {
    const [row, col] = [Math.floor(i / cols), i % cols];
    const at = row * 2 * cols + col;
    return (halves[at]! + halves[at + cols]!) / factors[row]!;
  });
  assertClose(sums, [...plain], 1e-6, "rows");
});
