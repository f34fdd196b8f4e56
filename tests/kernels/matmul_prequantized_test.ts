// Rows of quantized checkpoints, brought into lane order, give to the bit what the same lanes give
// over the numbers they stand for; of 4 bits, or packed for fewer lanes than share an output, that within f32.

import assert from "node:assert/strict";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { lanesOf } from "../../kernels/matmul/matmul_lanes.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import { isFp4 } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertWithin, boundedDot } from "./bounds.ts";
import { uploadPrequantized } from "./prequantized.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false);
const TUNINGS: readonly Tuning[] = [tuning(true), { ...HARDWARE, lanes: 2 }, HARDWARE];

/** Widths, and row counts of each; software adapters multiply through the cache. */
function casesOf({ lanes, software }: Tuning) {
  return CASES[lanes === 2 ? "few" : software ? "cached" : "all"] ?? [];
}

async function run(matrix: Matrix, x: Float32Array, rows: number, tuning: Tuning) {
  const out = device.filled(rows * matrix.rows, 0.25);
  const of = { rows, epilogue: "store", tuning, label: "test" } as const;
  await device.run(matmul({ matrix, x: device.floats(x), out }, of));
  return await device.readWords(out);
}

/** Widths and row counts; software compiles the kernels of hardware slowly. */
const CASES: Readonly<Record<string, readonly (readonly [number, readonly number[]])[]>> =
  EXHAUSTIVE
    ? {
      all: [[1024, [1, 3, 9]], [96, [2]], [704, [2]]],
      cached: [[1024, [1, 3, 9]], [96, [2]]],
      few: [[704, [2]]],
    }
    : { all: [[1024, [9]]], cached: [[96, [2]]], few: [[64, [1]]] };

for (const format of ["u4", "i8", "f8", "mxfp4", "nvfp4"] as const) {
  for (const tuning of TUNINGS) {
    // These are slow to compile; experts_test.ts has one on software.
    const slow = isFp4(format) && tuning.software;
    const { test } = slow ? drawn : Deno;
    test(`matmul ${format}, ${tuning.lanes} lanes: the bits of float weights`, async () => {
      for (const [cols, counts] of casesOf(tuning)) {
        const n = 14;
        const { matrix, values, float } = uploadPrequantized(device, format, {
          rows: n,
          cols,
          most: tuning.lanes,
        });
        // Sums of 4-bit floats are multiplied with their scale.
        const sameSums = lanesOf(matrix, tuning) === matrix.lanes && !isFp4(format);
        for (const rows of counts) {
          const x = numbers(rows * cols, 4);
          const actual = await run(matrix, x, rows, tuning);
          if (sameSums) {
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
