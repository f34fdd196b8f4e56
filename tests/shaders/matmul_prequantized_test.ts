// Rows of quantized checkpoints, brought into lane order, give to the bit what the same lanes give
// over the numbers they stand for.

import assert from "node:assert/strict";
import { matmul } from "../../shaders/matmul/matmul.ts";
import { type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadPrequantized } from "./prequantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false);
const TUNINGS: readonly Tuning[] = [tuning(true), { ...HARDWARE, lanes: 2 }, HARDWARE];

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
        const { matrix, float } = uploadPrequantized(device, format, {
          rows: 14,
          cols,
          most: tuning.lanes,
        });
        for (const rows of counts) {
          const x = numbers(rows * cols, 4);
          const actual = await run(matrix, x, rows, tuning);
          assert.deepEqual(actual, await run(float, x, rows, tuning), `${cols} wide, ${rows} rows`);
          assert.ok(actual.every((word) => word << 1 !== 0), "an output is 0");
        }
      }
    });
  }
}
