// A bias of columns: what the matmul without it stores, with the bias added to its first range of k.

import assert from "node:assert/strict";
import { biasEpilogue } from "../../kernels/lib/epilogue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [N, COLS] = [36, 1024];

interface Case {
  readonly software: boolean;
  readonly rows: number;
  readonly splitK: number;
  /** Of the launch; absent: what the rules choose. A range of k has 64 vec8s or 32. */
  readonly stage?: number;
}

/** Each kernel with this epilogue: through the cache, resident, staged and with stages that are prefetched. */
const CASES: readonly (Case & { readonly kernel: string })[] = [
  { kernel: "matmul_cached", software: true, rows: 3, splitK: 1 },
  { kernel: "matmul_cached", software: true, rows: 3, splitK: 2 },
  { kernel: "matmul_resident", software: false, rows: 1, splitK: 4 },
  { kernel: "matmul_resident", software: false, rows: 3, splitK: 2 },
  { kernel: "matmul_resident", software: false, rows: 9, splitK: 4 },
  { kernel: "matmul_staged", software: false, rows: 3, splitK: 2, stage: 32 },
  { kernel: "matmul_prefetch", software: false, rows: 24, splitK: 2, stage: 32 },
];

for (const { kernel, software, rows, splitK, stage } of CASES) {
  Deno.test(`${kernel} with a bias: ${rows} rows, ${splitK} ranges of k`, async () => {
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
    const launches = new Map([[
      shapeKey(matrix),
      new Map([[rows, { stage: stage ?? 0, groups: 4 }]]),
    ]]);
    const launched = stage === undefined ? tuned : { ...tuned, launches };
    const of = { rows, splitK, tuning: launched, label: "test" };
    const dispatches = matmul(
      { matrix, x, out: biased },
      { ...of, epilogue: biasEpilogue(device.floats(bias)) },
    );
    assert.ok(
      dispatches.every(({ kernel: { name } }) => name.startsWith(`${kernel}_bf16_`)),
      dispatches.map(({ kernel: { name } }) => name).join(),
    );
    await device.run([
      ...matmul({ matrix, x, out: plain }, { ...of, epilogue: "store" }),
      ...dispatches,
    ]);
    const expected = (await device.readFloats(plain)).map((y, i) =>
      i < rows * N ? y + (bias[i % N] ?? NaN) : y
    );
    assert.deepEqual(await device.readFloats(biased), expected);
  });
}
