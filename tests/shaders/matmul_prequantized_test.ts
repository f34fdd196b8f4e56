// Rows of quantized checkpoints, brought into lane order, give to the bit what the same lanes give
// over the numbers they stand for; where they are packed for fewer lanes than share an output, that within f32.

import assert from "node:assert/strict";
import { matmul } from "../../shaders/matmul/matmul.ts";
import { lanesOf } from "../../shaders/matmul/matmul_lanes.ts";
import {
  lanesFor,
  type Matrix,
  type Prequantized,
  type Tuning,
  tuning,
} from "../../src/gpu/matrix.ts";
import { toLanes } from "../../src/model/checkpoint/quantized/lane_order.ts";
import { rowWords } from "../../src/model/checkpoint/quantized/modules.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertWithin, boundedDot } from "./bounds.ts";
import { uploadMatrix } from "./matrices.ts";
import { e4m3 } from "../model/quantized/e4m3.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false);
const TUNINGS: readonly Tuning[] = [tuning(true), { ...HARDWARE, lanes: 2 }, HARDWARE];

/** What the stored integer `u` stands for, before its scale. */
const VALUE: Readonly<Record<Prequantized, (u: number, zero: number) => number>> = {
  u4: (u, zero) => u - zero,
  i8: (u) => u - 128,
  f8: (u) => e4m3(u),
};

/** Random rows as ReadRows fills them, and their numbers. */
function randomRows(format: Prequantized, n: number, cols: number) {
  const { weights, all } = rowWords({ format, cols });
  const rows = new Uint32Array(n * all);
  const values = new Float32Array(n * cols);
  const bits = format === "u4" ? 4 : 8;
  const scale = new Float32Array(1);
  const scaleBits = new Uint32Array(scale.buffer);
  for (let row = 0; row < n; row++) {
    for (let k = 0; k < cols; k++) {
      const group = row * all + weights + Math.floor(k / 32);
      const zero = format === "u4" ? (row + Math.floor(k / 32)) % 17 : 0;
      // All 23 bits of i8's and f8's scales are used, 19 of u4's.
      scale[0] = 0.01 + hash32(5, row, Math.floor(k / 32)) / 2 ** 36;
      if (format === "u4") scaleBits[0] = (scaleBits[0] ?? 0) & ~31;
      rows[group] = ((scaleBits[0] ?? 0) | zero) >>> 0;
      let u = hash32(6, row, k) >>> 32 - bits;
      if (format === "f8" && (u & 127) === 127) u = 3; // that is no number
      const word = row * all + Math.floor(k * bits / 32);
      rows[word] = ((rows[word] ?? 0) | u << k * bits % 32) >>> 0;
      values[row * cols + k] = VALUE[format](u, zero) * (scale[0] ?? 0);
    }
  }
  return { rows, values };
}

function both(format: Prequantized, n: number, cols: number, tuning: Tuning) {
  const { rows, values } = randomRows(format, n, cols);
  const lanes = lanesFor(format, cols, tuning.lanes);
  const packed = toLanes({ cols, lanes, format })(rows);
  const [operand, scales] = [device.words(packed.words), device.words(packed.scales)];
  const matrix: Matrix = {
    format,
    rows: n,
    cols,
    lanes,
    shards: [{ operand, scales, first: 0, rows: n }],
  };
  const float = lanesOf(matrix, tuning) === lanes
    ? uploadMatrix(device, values, { format: "f32", cols, lanes, shards: [n] })
    : undefined;
  return { matrix, values, float };
}

async function run(matrix: Matrix, x: Float32Array, rows: number, tuning: Tuning) {
  const out = device.filled(rows * matrix.rows, 0.25);
  const of = { rows, epilogue: "store", tuning, label: "test" } as const;
  await device.run(matmul({ matrix, x: device.floats(x), out }, of));
  return await device.readWords(out);
}

/** Widths and row counts; software compiles the kernels of hardware slowly. */
const CASES: Readonly<Record<string, readonly (readonly [number, readonly number[]])[]>> = {
  all: [[1024, [1, 3, 9]], [96, [2]], [704, [2]]],
  few: [[704, [2]]],
};

for (const format of ["u4", "i8", "f8"] as const) {
  for (const tuning of TUNINGS) {
    Deno.test(`matmul ${format}, ${tuning.lanes} lanes: the bits of float weights`, async () => {
      for (const [cols, counts] of CASES[tuning.lanes === 2 ? "few" : "all"] ?? []) {
        const n = 14;
        const { matrix, values, float } = both(format, n, cols, tuning);
        for (const rows of counts) {
          const x = numbers(rows * cols, 4);
          const actual = await run(matrix, x, rows, tuning);
          if (float) {
            const expected = await run(float, x, rows, tuning);
            assert.deepEqual(actual, expected, `${cols} wide, ${rows} rows`);
          } else {
            const row = (of: Float32Array, i: number) => of.subarray(i * cols, (i + 1) * cols);
            const expected = Array.from(
              { length: rows * n },
              (_, i) => boundedDot(row(x, Math.floor(i / n)), row(values, i % n), tuning.lanes),
            );
            assertWithin(new Float32Array(actual.buffer), expected);
          }
          assert.ok(actual.every((word) => word << 1 !== 0), "an output is 0");
        }
      }
    });
  }
}
