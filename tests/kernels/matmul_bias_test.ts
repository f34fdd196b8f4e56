// A bias of columns: what the matmul without it stores, with the bias added to its first range of k.

import assert from "node:assert/strict";
import { biasEpilogue } from "../../kernels/lib/epilogue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [N, COLS] = [36, 1024];

for (
  const [software, rows, splitK] of [[true, 3, 1], [false, 1, 4], [false, 3, 2], [
    false,
    9,
    4,
  ]] as const
) {
  const kernels = software ? "software" : "hardware";
  Deno.test(`matmul with a bias: ${rows} rows, ${splitK} ranges of k, ${kernels}`, async () => {
    const tuned = tuning(software);
    const matrix = uploadMatrix(device, weights("bf16", N, COLS), {
      format: "bf16",
      cols: COLS,
      lanes: tuned.lanes,
      shards: [16, 20],
    });
    const bias = numbers(N, 3);
    const x = device.floats(numbers(rows * COLS, 1));
    const [plain, biased] = [device.filled(splitK * rows * N), device.filled(splitK * rows * N)];
    const of = { rows, splitK, tuning: tuned, label: "test" };
    await device.run([
      ...matmul({ matrix, x, out: plain }, { ...of, epilogue: "store" }),
      ...matmul({ matrix, x, out: biased }, { ...of, epilogue: biasEpilogue(device.floats(bias)) }),
    ]);
    const expected = (await device.readFloats(plain)).map((y, i) =>
      i < rows * N ? y + (bias[i % N] ?? NaN) : y
    );
    assert.deepEqual(await device.readFloats(biased), expected);
  });
}
