// Through the cache a quantized matrix gives, to the bit, what the same lanes give over its weights as
// f32. Staged, it does so within float32 over activations rounded by vec8s, and any number of rows
// gives the bits that one row gives.

import assert from "node:assert/strict";
import { matmul, type PlainEpilogue } from "../../kernels/matmul/matmul.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import type { Quantization } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertWithin, boundedDot } from "./bounds.ts";
import { uploadMatrix } from "./matrices.ts";
import { pack, roundedVec8s, uploadQuantized } from "./quantized.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false);
const SOFTWARE = tuning(true);
/** Has no instruction for packed integers. */
const WITHOUT = tuning(false, undefined, "metal");
// Two stages of floats and one of packed integers; the others end in a part of a stage, packed for 8, 4 or 2 lanes.
const WIDTHS = [1024, 1152, 1088, 64] as const;

/** Each vec8 of another size, from what becomes 0 to large ones, and some of zeros only. */
function sizes(x: Float32Array): Float32Array {
  return x.map((value, i) => {
    const vec8 = i >> 3;
    return vec8 % 19 === 0 ? 0 : value * 2 ** (vec8 % 24 === 0 ? -90 : vec8 % 24 - 12);
  });
}

interface Case {
  readonly epilogue: PlainEpilogue;
  readonly rows: number;
  readonly tuning: Tuning;
}

async function run(matrix: Matrix, x: Float32Array, { epilogue, rows, tuning }: Case) {
  const outputs = epilogue === "swiglu" ? matrix.rows / 2 : matrix.rows;
  const input = x.subarray(0, rows * matrix.cols);
  const out = device.filled(rows * outputs, 0.25);
  await device.run(
    matmul({ matrix, x: device.floats(input), out }, { rows, epilogue, tuning, label: "test" }),
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
  Deno.test(`matmul ${format}, cached: rows 1 to 17`, async () => {
    const cols = 1088;
    const { quantized, float } = both(format, { n: 14, cols, most: SOFTWARE.lanes });
    const x = numbers(17 * cols, 4);
    for (const rows of EXHAUSTIVE ? Array.from({ length: 17 }, (_, i) => i + 1) : [17]) {
      const of = { epilogue: "store", rows, tuning: SOFTWARE } as const;
      const actual = await run(quantized, x, of);
      assert.deepEqual(actual, await run(float, x, of), `${rows} rows`);
      assert.ok(actual.every((word) => word << 1 !== 0), "an output is 0");
    }
  });
  for (const epilogue of ["add", "swiglu"] as const) {
    Deno.test(`matmul ${format}, cached: ${epilogue}`, async () => {
      for (const cols of EXHAUSTIVE ? [64, 192, 704] : [192]) {
        const { quantized, float } = both(format, { n: 70, cols, most: SOFTWARE.lanes });
        const x = numbers(3 * cols, cols);
        const of = { epilogue, rows: 3, tuning: SOFTWARE } as const;
        assert.deepEqual(await run(quantized, x, of), await run(float, x, of), `${cols} wide`);
      }
    });
  }

  // In q8 none of the others is packed for 2 lanes, whose scales lie in another order than those of 4 or more.
  // Of nine stages one or two rows take longer ones, the last a part of one.
  const manyStages = format === "q8" ? 2304 : 4608;
  for (const cols of [...WIDTHS, ...format === "q8" ? [1056] : [], manyStages]) {
    const n = 14;
    const most = HARDWARE.lanes;
    const name = `matmul ${format}, staged, ${cols} wide`;
    const counts = !EXHAUSTIVE
      ? [13]
      : cols === 1024
      ? Array.from({ length: 16 }, (_, i) => i + 2)
      : [2, 3, 7, 8, 13];
    // Both formats packed for 4 lanes, in two stages or a part of one.
    const { test } = cols === 1152 || cols === manyStages ? Deno : drawn;
    test(`${name}: rows 1 to 17 have the bits of one row`, async () => {
      const quantized = uploadQuantized(device, numbers(n * cols, 3), { format, cols, most });
      const x = sizes(numbers(17 * cols, 4));
      const alone: number[][] = [];
      for (let row = 0; row < 17; row++) {
        const of = { epilogue: "store", rows: 1, tuning: HARDWARE } as const;
        alone.push([...await run(quantized, x.subarray(row * cols), of)]);
      }
      for (const rows of counts) {
        const of = { epilogue: "store", rows, tuning: HARDWARE } as const;
        const together = await run(quantized, x, of);
        assert.deepEqual([...together], alone.slice(0, rows).flat(), `${rows} rows`);
      }
      for (const rows of EXHAUSTIVE ? [1, 5, 13] : [13]) {
        const whole = await run(quantized, x, { epilogue: "store", rows, tuning: WITHOUT });
        assert.deepEqual([...whole], alone.slice(0, rows).flat(), `${rows} rows of whole numbers`);
      }
    });

    const few = cols === (format === "q8" ? 1056 : 1088);
    (few || cols === 1152 ? Deno : drawn).test(
      `${name}: sums over activations of 8 bits a vec8`,
      async () => {
        const values = numbers(n * cols, 5);
        const quantized = uploadQuantized(device, values, { format, cols, most });
        const exact = pack(values, { format, cols, lanes: quantized.lanes }).values;
        const x = sizes(numbers(8 * cols, 6));
        const near = roundedVec8s(x);
        assert.ok(near.some((value, i) => value !== x[i]));
        for (const rows of few && !EXHAUSTIVE ? [1] : [1, 8]) {
          const words = await run(quantized, x, { epilogue: "store", rows, tuning: HARDWARE });
          const expected = Array.from({ length: rows * n }, (_, i) => {
            const [row, output] = [Math.floor(i / n), i % n];
            const [own, w] = [near, exact].map((of, j) =>
              of.subarray((j ? output : row) * cols, (j ? output + 1 : row + 1) * cols)
            ) as [Float32Array, Float32Array];
            return boundedDot(own, w, quantized.lanes);
          });
          assertWithin(new Float32Array(words.buffer), expected);
        }
      },
    );

    (cols === 1152 ? Deno : drawn).test(`${name}: what is no number stays none`, async () => {
      const quantized = uploadQuantized(device, numbers(n * cols, 7), { format, cols, most });
      // The last is below 2^103, and 128 steps above it are not.
      for (const broken of [NaN, Infinity, -Infinity, 1.0103e31]) {
        for (const rows of [1, 6]) {
          const x = numbers(rows * cols, 8);
          x[(rows - 1) * cols + 37] = broken;
          const words = await run(quantized, x, { epilogue: "store", rows, tuning: HARDWARE });
          const sums = [...new Float32Array(words.buffer)];
          assert.ok(sums.slice(0, -n).every(Number.isFinite));
          assert.ok(sums.slice(-n).every(Number.isNaN), `${broken}, ${rows} rows: ${sums}`);
        }
      }
    });
  }
}
