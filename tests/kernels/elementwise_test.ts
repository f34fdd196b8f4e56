// The smallest test of a kernel: a reference in float64 at odd shapes, and the bits of a row alone.
import assert from "node:assert/strict";
import {
  addRows,
  type ElementFunction,
  gateRows,
  mapRows,
  outputGateRows,
  queryScaleRows,
} from "../../kernels/elementwise/elementwise.ts";
import { openDevice } from "../gpu/device.ts";
import { packRows } from "./rows.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const UNTOUCHED = -7;
const SHAPES = [[1, 4], [5, 64], [3, 196]] as const;

const ACTIVATIONS = {
  silu: (gate: number) => gate / (1 + Math.exp(-gate)),
  gelu_tanh: (gate: number) => {
    const inner = Math.sqrt(2 / Math.PI) * (gate + 0.044715 * gate ** 3);
    return gate / 2 * (1 + Math.tanh(inner));
  },
} as const;

const FUNCTIONS: readonly [f: ElementFunction, of: (x: number) => number][] = [
  [{ of: "scale", by: 0.3 }, (x) => 0.3 * x],
  [{ of: "cap", most: 2 }, (x) => 2 * Math.tanh(x / 2)],
];

/** Numbers up to 60: what exp of them is does not fit all drivers' functions of it. */
const large = (count: number, seed: number) => numbers(count, seed).map((x) => 60 * x);

for (const [rows, cols] of SHAPES) {
  for (const [activation, of] of Object.entries(ACTIVATIONS)) {
    Deno.test(`gate ${activation}: ${rows} rows of ${cols}`, async () => {
      const x = large(rows * 2 * cols, cols);
      const gated = async (x: Float32Array, rows: number) => {
        const out = device.filled(rows * cols, UNTOUCHED);
        const shape = { rows, cols, activation: activation as keyof typeof ACTIVATIONS };
        await device.run([gateRows({ x: device.floats(x), out }, { ...shape, label: "test" })]);
        return await device.readFloats(out);
      };
      const found = await gated(x, rows);
      const expected = Array.from({ length: rows * cols }, (_, i) => {
        const at = Math.floor(i / cols) * 2 * cols + i % cols;
        return of(x[at]!) * x[at + cols]!;
      });
      assertClose(found, expected, 1e-5, activation);
      const last = await gated(x.subarray((rows - 1) * 2 * cols), 1);
      assert.deepEqual(last, found.subarray((rows - 1) * cols));
    });
  }

  for (const [f, of] of FUNCTIONS) {
    Deno.test(`map ${f.of}: ${rows} rows of ${cols}`, async () => {
      const x = large(rows * cols, cols);
      const out = device.filled(rows * cols, UNTOUCHED);
      await device.run([mapRows({ x: device.floats(x), out }, { rows, cols, f, label: "test" })]);
      assertClose(await device.readFloats(out), Array.from(x, of), 1e-5, f.of);
    });
  }

  Deno.test(`add: three parts into ${rows} rows of ${cols}, the parts first`, async () => {
    const [x, y] = [numbers(rows * cols, 1), numbers(3 * rows * cols, 2)];
    const stream = device.floats(x);
    const shape = { rows, cols, parts: 3, label: "test" };
    await device.run([addRows({ x: stream, y: device.floats(y) }, shape)]);
    const { fround } = Math;
    const part = (p: number, i: number) => y[p * rows * cols + i]!;
    const expected = Float32Array.from(
      x,
      (number, i) => fround(number + fround(fround(part(0, i) + part(1, i)) + part(2, i))),
    );
    assert.deepEqual(await device.readFloats(stream), expected);
  });
}

const GATINGS = {
  sigmoid: (gate: number) => 1 / (1 + Math.exp(-gate)),
  softplus: (gate: number) => Math.max(gate, 0) + Math.log1p(Math.exp(-Math.abs(gate))),
};

for (const gating of ["sigmoid", "softplus"] as const) {
  for (const width of [1, 28, 196]) {
    Deno.test(`output gate: ${gating}, 3 rows of 196, a gate for ${width}`, async () => {
      const [rows, cols, first] = [3, 196, 5];
      const gateCols = first + cols / width;
      const [x, gate] = [large(rows * cols, 1), large(rows * gateCols, 2)];
      const out = device.filled(rows * cols, UNTOUCHED);
      const buffers = { x: device.floats(x), gate: device.floats(gate), out };
      const of = { gating, cols: gateCols, first, width };
      await device.run([outputGateRows(buffers, { rows, cols, gate: of, label: "test" })]);
      const expected = Array.from(x, (number, i) => {
        const at = Math.floor(i / cols) * gateCols + first + Math.floor(i % cols / width);
        return number * GATINGS[gating](gate[at]!);
      });
      assertClose(await device.readFloats(out), expected, 1e-5, gating);
    });
  }
}

Deno.test("query scale: grows with each span of positions, and is 1 before the first ends", async () => {
  const cols = 68;
  const positions = [0, 15, 16, 31, 32, 1000];
  const rows = positions.map((position) => ({ token: 0, position, cell: 0, base: 1 }));
  const x = numbers(positions.length * cols, 3);
  const out = device.filled(x.length, UNTOUCHED);
  const buffers = { x: device.floats(x), rows: device.words(packRows(rows)), out };
  const shape = { rows: positions.length, cols, beta: 0.1, length: 16, label: "test" };
  await device.run([queryScaleRows(buffers, shape)]);
  const found = await device.readFloats(out);
  const scale = (row: number) => 1 + 0.1 * Math.log(1 + Math.floor(positions[row]! / 16));
  const expected = Array.from(x, (number, i) => number * scale(Math.floor(i / cols)));
  assertClose(found, expected, 1e-6, "query scale");
  assert.deepEqual(found.subarray(0, 2 * cols), x.subarray(0, 2 * cols));
});
