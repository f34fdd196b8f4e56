// A matmul that stores partial argmaxes leads to the token that its logits lead to.

import assert from "node:assert/strict";
import { canStorePartials, matmulPartialCount } from "../../kernels/matmul/matmul_partials.ts";
import { shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Launch, type Tuning, tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers, shuffled } from "../gpu/numbers.ts";
import { type Case, fromLogits, fromPartials, HARDWARE, matrixOf, quantized } from "./heads.ts";
import { weights } from "./matrices.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

/** The tokens of both ways, which are the lowest of the largest logits. */
async function assertSame(of: Case, what: string): Promise<number[]> {
  const { tokens, logits } = await fromLogits(device, of);
  const found = (await fromPartials(device, of)).tokens;
  assert.deepEqual(found, tokens, what);
  const largest = logits.map((row) => row.indexOf(row.reduce((a, b) => Math.max(a, b))));
  assert.deepEqual(found, largest, what);
  return found;
}

const MANY = EXHAUSTIVE ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 24] : [1, 13];

function even(vocab: number): number {
  return Math.ceil(vocab / 2) * 2;
}

function tuned(matrix: Matrix, launch: Launch): Tuning {
  const launches = new Map([[shapeKey(matrix), new Map([[1, launch]])]]);
  return { ...HARDWARE, launches };
}

Deno.test("matmul partials: only hardware's kernels that add lanes store them", () => {
  const matrix = matrixOf(device, new Float32Array(2 * 64), 64, [2]);
  assert.equal(canStorePartials(matrix, HARDWARE), true);
  assert.equal(canStorePartials({ ...matrix, lanes: 1 }, HARDWARE), false);
  assert.equal(canStorePartials({ ...matrix, lanes: 1 }, tuning(true)), false);
});

for (const [cols, kind] of [[256, "staged"], [264, "cached"]] as const) {
  Deno.test(`matmul partials: the token of the logits, 1 to 9 rows and tiles of many, ${kind}`, async () => {
    const tokens = new Set<number>();
    for (const vocab of [31, 50, 2049]) {
      const matrix = matrixOf(device, weights("bf16", even(vocab), cols), cols, [even(vocab)]);
      for (const rows of vocab === 50 ? MANY : [1, 9]) {
        const of = { matrix, x: numbers(rows * cols, 31 * rows + vocab), vocab };
        const found = await assertSame(of, `${rows} rows, ${vocab} columns`);
        for (const token of found) tokens.add(token);
      }
    }
    assert.ok(tokens.size > 20, `${tokens.size} different tokens`);
  });
}

Deno.test("matmul partials: padding never counts, not even workgroups of it", async () => {
  const cols = 256;
  for (const [rows, vocab] of [[32, 31], [2050, 2049], [200, 70]] as const) {
    const values = weights("bf16", rows, cols);
    values.fill(100, vocab * cols);
    for (const shards of [[rows], [rows - 20, 20]]) {
      const matrix = matrixOf(device, values, cols, shards);
      const x = numbers(3 * cols, rows).map(Math.abs);
      const label = `${vocab} of ${rows}, ${shards.length} shards`;
      await assertSame({ matrix, x, vocab }, label);
      // It would win.
      const padded = (await fromPartials(device, { matrix, x })).tokens;
      assert.deepEqual(padded, Array(3).fill(vocab), label);
    }
  }
});

Deno.test("matmul partials: shards count on, whatever their rows", async () => {
  const cols = 256;
  const cuts = [[2, 48], [34, 2, 14], [32, 32, 36]];
  for (const shards of cuts) {
    const rows = shards.reduce((a, b) => a + b);
    const matrix = matrixOf(device, weights("bf16", rows, cols), cols, shards);
    for (const count of [1, 9]) {
      const of = { matrix, x: numbers(count * cols, rows + count), vocab: rows - 1 };
      await assertSame(of, `${shards}, ${count} rows`);
    }
  }
});

Deno.test("matmul partials: of equal logits the lowest token, in any half, workgroup and shard", async () => {
  const [cols, n] = [256, 140];
  const x = numbers(2 * cols, 9).map((value) => Math.abs(value) + 0.25);
  for (let seed = 0; seed < 24; seed++) {
    const equal = shuffled(n, seed).slice(0, 2 + seed % 3);
    const values = weights("bf16", n, cols);
    for (const token of equal) values.fill(4, token * cols, (token + 1) * cols);
    const shards = seed % 2 ? [n] : [60, 50, 30];
    const of = { matrix: matrixOf(device, values, cols, shards), x, vocab: n };
    const found = await assertSame(of, `${equal}`);
    assert.deepEqual(found, Array(2).fill(Math.min(...equal)));
  }
});

Deno.test("matmul partials: logits all below zero, zeros of both signs", async () => {
  const cols = 64;
  const values = weights("bf16", 50, cols).map((value) => -Math.abs(value) - 1);
  const x = numbers(cols, 4).map(Math.abs);
  await assertSame({ matrix: matrixOf(device, values, cols, [50]), x, vocab: 49 }, "below zero");
  values.fill(0, 20 * cols, 21 * cols);
  values.fill(-0, 7 * cols, 8 * cols);
  const found = await assertSame({ matrix: matrixOf(device, values, cols, [50]), x }, "zeros");
  assert.deepEqual(found, [7]);
});

Deno.test("matmul partials: NaN and infinities lead where they lead as logits", async () => {
  const [cols, n] = [256, 100];
  const x = numbers(3 * cols, 2).map((value) => Math.abs(value) + 0.25);
  const broken: Readonly<Record<number, number>>[] = [
    { 40: NaN },
    { 40: Infinity, 77: Infinity },
    { 61: NaN, 12: Infinity },
    { 99: NaN, 3: -Infinity },
    Object.fromEntries(Array.from({ length: n }, (_, token) => [token, -Infinity])),
    Object.fromEntries(Array.from({ length: n }, (_, token) => [token, NaN])),
  ];
  for (const [i, columns] of broken.entries()) {
    const values = weights("bf16", n, cols);
    for (const [token, value] of Object.entries(columns)) values[Number(token) * cols + 5] = value;
    const of = { matrix: matrixOf(device, values, cols, [n]), x };
    assert.deepEqual(
      (await fromPartials(device, of)).tokens,
      (await fromLogits(device, of)).tokens,
      `case ${i}`,
    );
  }
  const matrix = matrixOf(device, weights("bf16", n, cols), cols, [n]);
  x[cols + 7] = NaN; // of the second row alone
  const of = { matrix, x };
  const found = (await fromPartials(device, of)).tokens;
  assert.deepEqual(found, (await fromLogits(device, of)).tokens);
  assert.equal(found[1], 0);
});

for (const format of ["q8", "q4"] as const) {
  const { test } = format === "q8" ? Deno : drawn;
  test(`matmul partials: ${format}, widths that leave fewer lanes, shards`, async () => {
    for (const cols of EXHAUSTIVE ? [64, 192, 1024] : [192]) {
      for (const shards of EXHAUSTIVE ? [[150], [100, 48, 2]] : [[100, 48, 2]]) {
        const matrix = quantized(device, numbers(150 * cols, cols), { format, cols, shards });
        for (const rows of EXHAUSTIVE ? [1, 3, 9] : [1, 9]) {
          const of = { matrix, x: numbers(rows * cols, rows), vocab: 149 };
          await assertSame(of, `${cols} wide, ${shards}, ${rows} rows`);
        }
      }
    }
  });
}

Deno.test("matmul partials: as many as a measured launch has workgroups", async () => {
  const [cols, n] = [512, 301];
  const matrix = matrixOf(device, weights("bf16", even(n), cols), cols, [200, 102]);
  const counts = [];
  for (const groups of [4, 8, 16]) {
    for (const stage of [0, 64]) {
      const tuning = tuned(matrix, { groups, stage });
      counts.push(matmulPartialCount(matrix, { rows: 1, tuning }));
      if (!EXHAUSTIVE && (groups !== 8 || stage === 0)) continue;
      for (const rows of [1, 13]) {
        const of = { matrix, x: numbers(rows * cols, 8), vocab: n, tuning };
        await assertSame(of, `${groups} groups, stages of ${stage}, ${rows} rows`);
      }
    }
  }
  assert.deepEqual(counts, [13 + 7, 13 + 7, 7 + 4, 7 + 4, 4 + 2, 4 + 2]);
});
