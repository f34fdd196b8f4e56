// Through the cache a quantized matrix gives, to the bit, what the same lanes give over its weights as
// f32. Staged, it does so within float32 over activations rounded by vec8s, and any number of rows
// gives the bits that one row gives.

import assert from "node:assert/strict";
import { matmul, type PlainEpilogue } from "../../shaders/matmul/matmul.ts";
import { type Matrix, type Quantization, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertWithin, boundedDot } from "./bounds.ts";
import { uploadMatrix } from "./matrices.ts";
import { pack, roundedVec8s, uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false);
const CACHED: readonly Tuning[] = [tuning(true), { ...HARDWARE, lanes: 2 }];
const WIDE = 1024; // two stages of floats, one of packed integers

const STAGED = { cols: WIDE, most: HARDWARE.lanes } as const;

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
  for (const tuning of CACHED) {
    const name = `matmul ${format}, ${tuning.lanes} lanes`;
    Deno.test(`${name}: rows 1 to 17`, async () => {
      const cols = 1088; // no stages
      const { quantized, float } = both(format, { n: 14, cols, most: tuning.lanes });
      assert.equal(quantized.lanes, tuning.lanes);
      const x = numbers(17 * cols, 4);
      for (let rows = 1; rows <= 17; rows++) {
        const of = { epilogue: "store", rows, tuning } as const;
        const actual = await run(quantized, x, of);
        assert.deepEqual(actual, await run(float, x, of), `${rows} rows`);
        assert.ok(actual.every((word) => word << 1 !== 0), "an output is 0");
      }
    });
  }
  for (const tuning of [...CACHED, HARDWARE]) {
    for (const epilogue of ["add", "swiglu"] as const) {
      Deno.test(`matmul ${format}, ${tuning.lanes} lanes: ${epilogue}, widths that leave fewer lanes`, async () => {
        for (const cols of [64, 192, 704]) {
          const { quantized, float } = both(format, { n: 70, cols, most: tuning.lanes });
          const x = numbers(3 * cols, cols);
          const of = { epilogue, rows: 3, tuning } as const;
          assert.deepEqual(await run(quantized, x, of), await run(float, x, of), `${cols} wide`);
        }
      });
    }
  }

  Deno.test(`matmul ${format}, staged: rows 1 to 17 have the bits of one row`, async () => {
    const quantized = uploadQuantized(device, numbers(14 * WIDE, 3), { format, ...STAGED });
    const x = sizes(numbers(17 * WIDE, 4));
    const alone: number[][] = [];
    for (let row = 0; row < 17; row++) {
      const of = { epilogue: "store", rows: 1, tuning: HARDWARE } as const;
      alone.push([...await run(quantized, x.subarray(row * WIDE), of)]);
    }
    for (let rows = 2; rows <= 17; rows++) {
      const of = { epilogue: "store", rows, tuning: HARDWARE } as const;
      const together = await run(quantized, x, of);
      assert.deepEqual([...together], alone.slice(0, rows).flat(), `${rows} rows`);
    }
  });

  Deno.test(`matmul ${format}, staged: sums over activations of 15 bits a vec8`, async () => {
    const values = numbers(14 * WIDE, 5);
    const quantized = uploadQuantized(device, values, { format, ...STAGED });
    const exact = pack(values, { format, cols: WIDE, lanes: quantized.lanes }).values;
    const x = sizes(numbers(8 * WIDE, 6));
    const near = roundedVec8s(x);
    assert.ok(near.some((value, i) => value !== x[i]));
    for (const rows of [1, 8]) {
      const words = await run(quantized, x, { epilogue: "store", rows, tuning: HARDWARE });
      const expected = Array.from({ length: rows * 14 }, (_, i) => {
        const [row, n] = [Math.floor(i / 14), i % 14];
        const [own, w] = [near, exact].map((of, j) =>
          of.subarray((j ? n : row) * WIDE, (j ? n + 1 : row + 1) * WIDE)
        ) as [Float32Array, Float32Array];
        return boundedDot(own, w, quantized.lanes);
      });
      assertWithin(new Float32Array(words.buffer), expected);
    }
  });

  Deno.test(`matmul ${format}, staged: what is no number stays none`, async () => {
    const quantized = uploadQuantized(device, numbers(14 * WIDE, 7), { format, ...STAGED });
    for (const broken of [NaN, Infinity, -Infinity]) {
      for (const rows of [1, 6]) {
        const x = numbers(rows * WIDE, 8);
        x[(rows - 1) * WIDE + 77] = broken;
        const words = await run(quantized, x, { epilogue: "store", rows, tuning: HARDWARE });
        const sums = [...new Float32Array(words.buffer)];
        assert.ok(sums.slice(0, -14).every(Number.isFinite));
        assert.ok(sums.slice(-14).every(Number.isNaN), `${broken}, ${rows} rows: ${sums}`);
      }
    }
  });
}
