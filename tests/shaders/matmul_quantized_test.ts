// A quantized matrix gives, to the bit, what the same lanes give over its weights as f32.

import assert from "node:assert/strict";
import { type Finish, matmul } from "../../shaders/matmul.ts";
import { type Matrix, type Quantization, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix } from "./matrices.ts";
import { pack, uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false);
const TUNINGS: readonly Tuning[] = [tuning(true), { ...HARDWARE, lanes: 2 }, HARDWARE];

interface Case {
  readonly finish: Finish;
  readonly rows: number;
  readonly tuning: Tuning;
}

async function run(matrix: Matrix, x: Float32Array, { finish, rows, tuning }: Case) {
  const outputs = finish === "swiglu" ? matrix.rows / 2 : matrix.rows;
  const input = x.subarray(0, rows * matrix.cols);
  const out = device.filled(rows * outputs, 0.25);
  await device.run(
    matmul({ matrix, x: device.floats(input), out }, { rows, finish, tuning, label: "test" }),
  );
  return await device.readWords(out);
}

/** The quantized matrix and one of f32 with the weights it stands for. */
function both(format: Quantization, { n, cols, most }: { n: number; cols: number; most: number }) {
  const values = numbers(n * cols, n + cols);
  const quantized = uploadQuantized(device, values, { format, cols, most });
  const { lanes } = quantized;
  const exact = pack(values, { format, cols, lanes }).values;
  return {
    quantized,
    float: uploadMatrix(device, exact, { format: "f32", cols, lanes, shards: [n] }),
  };
}

for (const format of ["q8", "q4"] as const) {
  for (const tuning of TUNINGS) {
    const name = `matmul ${format}, ${tuning.lanes} lanes`;
    Deno.test(`${name}: rows 1 to 17`, async () => {
      const cols = 1024;
      const { quantized, float } = both(format, { n: 14, cols, most: tuning.lanes });
      assert.equal(quantized.lanes, tuning.lanes);
      const x = numbers(17 * cols, 4);
      for (let rows = 1; rows <= 17; rows++) {
        const of = { finish: "store", rows, tuning } as const;
        const actual = await run(quantized, x, of);
        assert.deepEqual(actual, await run(float, x, of), `${rows} rows`);
        assert.ok(actual.every((word) => word << 1 !== 0), "an output is 0");
      }
    });
    for (const finish of ["add", "swiglu"] as const) {
      Deno.test(`${name}: ${finish}, widths that leave fewer lanes`, async () => {
        for (const cols of [64, 192, 704]) {
          const { quantized, float } = both(format, { n: 70, cols, most: tuning.lanes });
          const x = numbers(3 * cols, cols);
          const of = { finish, rows: 3, tuning } as const;
          assert.deepEqual(await run(quantized, x, of), await run(float, x, of), `${cols} wide`);
        }
      });
    }
  }
}
