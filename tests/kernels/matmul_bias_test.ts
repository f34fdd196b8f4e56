// A bias of columns: what the matmul without it stores, with the bias added to its first range of k.

import assert from "node:assert/strict";
import { biasEpilogue } from "../../kernels/lib/epilogue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const N = 36;

interface Case {
  readonly software: boolean;
  readonly rows: number;
  readonly splitK: number;
  /** Of the launch; absent: what the rules choose. A range of k has 64 vec8s or 32. */
  readonly stage?: number;
  /** Default 1024. */
  readonly cols?: number;
}

/** Each kernel with this epilogue: through the cache, resident, staged and with stages that are prefetched. */
const CASES: readonly (Case & { readonly kernel: string })[] = [
  { kernel: "matmul_cached", software: true, rows: 3, splitK: 1 },
  { kernel: "matmul_cached", software: true, rows: 3, splitK: 2 },
  // Not a multiple of what the lanes take at once.
  { kernel: "matmul_cached", software: false, rows: 2, splitK: 1, stage: 0, cols: 264 },
  { kernel: "matmul_resident", software: false, rows: 1, splitK: 4 },
  { kernel: "matmul_resident", software: false, rows: 3, splitK: 2 },
  { kernel: "matmul_resident", software: false, rows: 9, splitK: 4 },
  { kernel: "matmul_staged", software: false, rows: 3, splitK: 2, stage: 32 },
  { kernel: "matmul_prefetch", software: false, rows: 24, splitK: 2, stage: 32 },
];

for (const { kernel, software, rows, splitK, stage, cols = 1024 } of CASES) {
  Deno.test(`${kernel} with a bias: ${rows} x ${cols}, ${splitK} ranges of k, ${software ? "software" : "hardware"}`, async () => {
    const tuned = tuning(software);
    const matrix = uploadMatrix(device, weights("bf16", N, cols), {
      format: "bf16",
      cols,
      lanes: tuned.lanes,
      shards: [16, 20],
    });
    const bias = numbers(N, 3);
    const x = device.floats(numbers(rows * cols, 1));
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
      // By the kernel of the rules: all have the same bits.
      ...matmul({ matrix, x, out: plain }, { ...of, tuning: tuned, epilogue: "store" }),
      ...dispatches,
    ]);
    const expected = (await device.readFloats(plain)).map((y, i) =>
      i < rows * N ? y + (bias[i % N] ?? NaN) : y
    );
    assert.deepEqual(await device.readFloats(biased), expected);
  });
}
