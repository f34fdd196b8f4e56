// What greedy decoding rests on: a row's result has the same bits whatever else is in flight.

import assert from "node:assert/strict";
import { matmul, type PlainEpilogue } from "../../kernels/matmul/matmul.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers, shuffled } from "../gpu/numbers.ts";
import { uploadMatrix, uploadPair, weights } from "./matrices.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LARGE = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 32768 };
const HARDWARE = tuning(false, LARGE);
const TUNINGS: readonly Tuning[] = [tuning(true), HARDWARE];
const MAX = 17;

interface Case {
  readonly format: FloatFormat;
  readonly epilogue: PlainEpilogue;
  readonly tuning: Tuning;
  readonly splitK?: number;
}

/** Runs the rows of x that `order` names and returns the words of each row's output. */
async function run(matrix: Matrix, x: Float32Array, order: readonly number[], of: Case) {
  const rows = order.length;
  const { cols } = matrix;
  const outputs = of.epilogue === "swiglu" ? matrix.rows / 2 : matrix.rows;
  const input = new Float32Array(rows * cols);
  order.forEach((row, i) => input.set(x.subarray(row * cols, (row + 1) * cols), i * cols));
  const { splitK = 1 } = of;
  const out = device.filled(splitK * rows * outputs, 0.25);
  await device.run(
    matmul({ matrix, x: device.floats(input), out }, { ...of, rows, label: "test" }),
  );
  const words = await device.readWords(out);
  return order.map((_, i) =>
    Array.from({ length: splitK }, (_, split) => {
      const first = (split * rows + i) * outputs;
      return [...words.subarray(first, first + outputs)];
    }).flat()
  );
}

/** @param k 264 fills neither lanes nor stages, 1024 two stages. */
async function assertInvariant(of: Case, counts: readonly number[], k = 264): Promise<void> {
  const { format } = of;
  const n = 14;
  const MAX = Math.max(...counts);
  const matrix = uploadMatrix(device, weights(format, n, k), {
    format,
    cols: k,
    lanes: of.tuning.lanes,
    shards: [n],
  });
  const x = numbers(MAX * k, 5);
  const alone: (number[] | undefined)[] = [];
  for (let row = 0; row < MAX; row++) alone.push((await run(matrix, x, [row], of))[0]);
  for (const count of counts) {
    // Each count takes other rows, at other places.
    const order = shuffled(MAX, count).slice(0, count);
    const together = await run(matrix, x, order, of);
    order.forEach((row, i) =>
      assert.deepEqual(together[i], alone[row], `row ${row} as ${i} of ${count}`)
    );
  }
}

Deno.test("matmul bits: any tile of the staged kernel gives what one row gives", async () => {
  const counts = EXHAUSTIVE ? [2, 3, 5, 7, 8, 11, 12, 13, 33] : [3, 7];
  await assertInvariant({ format: "bf16", epilogue: "store", tuning: HARDWARE }, counts, 1024);
});
drawn.test("matmul bits: a large matrix of few workgroups, rows in tiles of two", async () => {
  const [n, cols, format] = [2048, 4096, "bf16"] as const;
  const { lanes } = HARDWARE;
  const matrix = uploadMatrix(device, weights(format, n, cols), {
    format,
    cols,
    lanes,
    shards: [n],
  });
  const x = numbers(4 * cols, 8);
  const of = { format, epilogue: "store", tuning: HARDWARE } as const;
  const alone = [await run(matrix, x, [0], of), await run(matrix, x, [3], of)].flat();
  const [first, , , last] = await run(matrix, x, [0, 1, 2, 3], of);
  assert.deepEqual([first, last], alone);
  assert.deepEqual((await run(matrix, x, [1, 3, 0], of)).slice(1), [last, first]);
});
Deno.test("matmul bits: ranges of k whose sums leave apart", async () => {
  const of = { format: "bf16", epilogue: "store", tuning: HARDWARE, splitK: 2 } as const;
  await assertInvariant(of, EXHAUSTIVE ? [2, 9] : [9], 1024);
  await assertInvariant(of, EXHAUSTIVE ? [2, 9] : [2], 1344); // 84 vec8s each: two stages and a part
});
Deno.test("matmul bits: a last stage that fills no lanes", async () => {
  for (const format of ["bf16", "f32"] as const) {
    const counts = EXHAUSTIVE || format === "bf16" ? [2, 17] : [13];
    for (const k of EXHAUSTIVE ? [72, 584, 1096] : [584]) {
      await assertInvariant({ format, epilogue: "store", tuning: HARDWARE }, counts, k);
    }
  }
});

for (const tuning of TUNINGS) {
  const name = `${tuning.lanes} lanes`;
  Deno.test(`matmul bits: bf16 store, any row of 1 to ${MAX}, ${name}`, async () => {
    const all = Array.from({ length: MAX }, (_, i) => i + 1);
    const counts = EXHAUSTIVE ? all : [5, MAX];
    await assertInvariant({ format: "bf16", epilogue: "store", tuning }, counts);
  });
  Deno.test(`matmul bits: f16 add, ${name}`, async () => {
    await assertInvariant({ format: "f16", epilogue: "add", tuning }, [17]);
  });
  Deno.test(`matmul bits: f32 swiglu, ${name}`, async () => {
    await assertInvariant({ format: "f32", epilogue: "swiglu", tuning }, [8]);
  });
  Deno.test(`matmul bits: three shards give what one gives, ${name}`, async () => {
    const [n, cols, format] = [26, 64, "bf16"] as const;
    const values = weights(format, n, cols);
    const x = numbers(3 * cols, 6);
    const of = { format, epilogue: "store", tuning } as const;
    const whole = uploadMatrix(device, values, { format, cols, lanes: tuning.lanes, shards: [n] });
    const cut = uploadMatrix(device, values, {
      format,
      cols,
      lanes: tuning.lanes,
      shards: [12, 12, 2],
    });
    assert.deepEqual(await run(cut, x, [0, 1, 2], of), await run(whole, x, [0, 1, 2], of));
  });
  Deno.test(`matmul bits: a pair in three shards gives what one gives, ${name}`, async () => {
    const [n, cols, format] = [26, 64, "f16"] as const;
    const values = weights(format, n, cols);
    const x = numbers(3 * cols, 7);
    const of = { format, epilogue: "swiglu", tuning } as const;
    const whole = uploadPair(device, values, { format, cols, lanes: tuning.lanes, shards: [13] });
    const cut = uploadPair(device, values, {
      format,
      cols,
      lanes: tuning.lanes,
      shards: [6, 6, 1],
    });
    assert.deepEqual(await run(cut, x, [0, 1, 2], of), await run(whole, x, [0, 1, 2], of));
  });
}
