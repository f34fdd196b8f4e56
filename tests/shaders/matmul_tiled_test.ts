// The matmul of many rows: the bits of the others, and near float64.

import assert from "node:assert/strict";
import { matmul } from "../../shaders/matmul/matmul.ts";
import { matmulShape } from "../../shaders/matmul/matmul_shape.ts";
import { type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertWithin, boundedDot } from "./bounds.ts";
import { uploadMatrix, uploadPair, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false, {
  ...{ maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 49152 },
  maxStorageBuffersPerShaderStage: 16,
});
const TILED: Tuning = { ...HARDWARE, tiled: { rows: 1, workgroups: 1 } };
const STAGED: Tuning = { ...HARDWARE, tiled: undefined };

const N = 138; // leaves a workgroup of pairs unfilled

type Format = "bf16" | "f16" | "f32" | "q8" | "q4";

function matrixOf(format: Format, cols: number): Matrix {
  const { lanes } = HARDWARE;
  if (format === "q8" || format === "q4") {
    return uploadQuantized(device, numbers(N * cols, 3), { format, cols, most: lanes });
  }
  return uploadMatrix(device, weights(format, N, cols), { format, cols, lanes, shards: [98, 40] });
}

async function run(
  matrix: Matrix,
  x: Float32Array,
  tuning: Tuning,
  { splitK = 1, epilogue = "store" }: {
    readonly splitK?: number;
    readonly epilogue?: "store" | "add" | "swiglu";
  } = {},
): Promise<Float32Array> {
  const rows = x.length / matrix.cols;
  const outputs = epilogue === "swiglu" ? matrix.rows / 2 : matrix.rows;
  const out = device.filled(splitK * rows * outputs, 0.25);
  const shape = { rows, splitK, epilogue, tuning, label: "test" } as const;
  const tiled = matmulShape(matrix, { rows, splitK, tuning }).kind === "tiled";
  assert.equal(tiled, tuning === TILED);
  await device.run(matmul({ matrix, x: device.floats(x), out }, shape));
  return await device.readFloats(out);
}

const CASES = [
  ["bf16", 1024, 1],
  ["bf16", 1536, 2], // three vec8s a lane of a range
  ["bf16", 768, 2], // shorter stages
  ["f16", 256, 1],
  ["f32", 512, 1],
  ["q8", 1024, 1],
  ["q8", 2048, 2],
  ["q4", 1024, 1],
  ["q4", 2048, 2],
] as const;

for (const [format, cols, splitK] of CASES) {
  Deno.test(`matmul tiled: ${format}, ${cols} in ${splitK}, has the bits of stages`, async () => {
    const matrix = matrixOf(format, cols);
    for (const rows of [1, 64, 71]) {
      const x = numbers(rows * cols, rows);
      const expected = await run(matrix, x, STAGED, { splitK });
      assert.deepEqual(await run(matrix, x, TILED, { splitK }), expected, `${rows} rows`);
      assert.ok(expected.some((value) => value !== 0));
    }
  });
}

Deno.test("matmul tiled: the other epilogues", async () => {
  const [cols, rows, format] = [256, 70, "bf16"] as const;
  const x = numbers(rows * cols, 5);
  const whole = matrixOf(format, cols);
  const add = { epilogue: "add" } as const;
  assert.deepEqual(await run(whole, x, TILED, add), await run(whole, x, STAGED, add));
  const pair = uploadPair(device, weights(format, N, cols), {
    ...{ format, cols, lanes: HARDWARE.lanes, shards: [47, 22] },
  });
  const gated = { epilogue: "swiglu" } as const;
  assert.deepEqual(await run(pair, x, TILED, gated), await run(pair, x, STAGED, gated));
});

Deno.test("matmul tiled: the sums of float64", async () => {
  const [cols, rows] = [1024, 67];
  const values = weights("bf16", N, cols);
  const { lanes } = HARDWARE;
  const matrix = uploadMatrix(device, values, { format: "bf16", cols, lanes, shards: [N] });
  const x = numbers(rows * cols, 9);
  const found = await run(matrix, x, TILED);
  const wanted = Array.from({ length: rows * N }, (_, i) => {
    const [r, n] = [Math.floor(i / N), i % N];
    return boundedDot(
      x.subarray(r * cols, (r + 1) * cols),
      values.subarray(n * cols, (n + 1) * cols),
      lanes,
    );
  });
  assertWithin(found, wanted);
});
