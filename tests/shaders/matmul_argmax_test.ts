// A matmul that stores partial argmaxes leads to the token that its logits lead to.

import assert from "node:assert/strict";
import { draftChoose } from "../../shaders/choose/draft_choose.ts";
import { matmul } from "../../shaders/matmul/matmul.ts";
import {
  canStoreArgmax,
  matmulArgmax,
  matmulArgmaxCount,
  matmulArgmaxWords,
} from "../../shaders/matmul/matmul_argmax.ts";
import { shapeKey } from "../../shaders/matmul/matmul_shape.ts";
import {
  partialArgmax,
  partialArgmaxCount,
  partialArgmaxWords,
} from "../../shaders/choose/partial_argmax.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { type Launch, type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { DRAFT_TOKENS, draftWords } from "../../src/model/plan/rows_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers, shuffled } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LARGE = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 32768 };
const HARDWARE = tuning(false, LARGE);

interface Case {
  readonly matrix: Matrix;
  /** [rows, matrix.cols] */
  readonly x: Float32Array;
  /** Columns that count; default: all. */
  readonly vocab?: number;
  readonly tuning?: Tuning;
}

/** The draft token of each row, from the partial argmaxes that `plan` stores. */
async function chosen(plan: Dispatch[], partials: Operand, rows: number, count: number) {
  const drafts = device.filled(rows * draftWords(2));
  const choice = draftChoose({
    partials,
    offsets: device.words(Array(1 << 13).fill(0)),
    batchSlots: device.words([...Array(rows).keys()]),
    drafts,
  }, { batch: rows, count, step: 0, mostRows: 2, lanes: 16, label: "choose" });
  await device.run([...plan, choice]);
  const words = await device.readWords(drafts);
  return Array.from({ length: rows }, (_, row) => words[row * draftWords(2) + DRAFT_TOKENS] ?? NaN);
}

/** From logits, as where these are written, and the logits of the columns that count. */
async function fromLogits({ matrix, x, tuning = HARDWARE, vocab = matrix.rows }: Case) {
  const rows = x.length / matrix.cols;
  const logits = device.filled(rows * matrix.rows);
  const partials = device.filled(rows * partialArgmaxWords(vocab));
  const shape = { rows, tuning, label: "head" };
  const slices = { rows, vocab, stride: matrix.rows, lanes: 16, label: "partials" };
  const plan = [
    ...matmul({ matrix, x: device.floats(x), out: logits }, { ...shape, epilogue: "store" }),
    partialArgmax({ logits, partials }, slices),
  ];
  const tokens = await chosen(plan, partials, rows, partialArgmaxCount(vocab));
  const values = await device.readFloats(logits);
  const row = (r: number) => values.subarray(r * matrix.rows, r * matrix.rows + vocab);
  return { tokens, logits: tokens.map((_, r) => row(r)) };
}

/** From partial argmaxes of the matmul; all of them are made, and nothing else. */
async function fromPartials({ matrix, x, tuning = HARDWARE, vocab = matrix.rows }: Case) {
  const rows = x.length / matrix.cols;
  const count = matmulArgmaxCount(matrix, { rows, tuning });
  const room = matmulArgmaxWords(matrix, { rows, tuning });
  assert.ok(room >= 2 * rows * count);
  const UNTOUCHED = 0xffffffff; // better than any argmax
  const partials = device.words(Array(room + 8).fill(UNTOUCHED));
  const shape = { rows, tuning, vocab, label: "head" };
  const plan = matmulArgmax({ matrix, x: device.floats(x), partials }, shape);
  const tokens = await chosen(plan, partials, rows, count);
  const rest = (await device.readWords(partials)).subarray(2 * rows * count);
  assert.ok(rest.every((word) => word === UNTOUCHED));
  return tokens;
}

/** The tokens of both ways, which are the lowest of the largest logits. */
async function assertSame(of: Case, what: string): Promise<number[]> {
  const { tokens, logits } = await fromLogits(of);
  const found = await fromPartials(of);
  assert.deepEqual(found, tokens, what);
  const largest = logits.map((row) => row.indexOf(row.reduce((a, b) => Math.max(a, b))));
  assert.deepEqual(found, largest, what);
  return found;
}

function even(vocab: number): number {
  return Math.ceil(vocab / 2) * 2;
}

function matrixOf(values: Float32Array, cols: number, shards: readonly number[]): Matrix {
  return uploadMatrix(device, values, { format: "bf16", cols, lanes: HARDWARE.lanes, shards });
}

/** Quantized, in shards of these rows. */
function quantized(
  values: Float32Array,
  { format, cols, shards }: {
    readonly format: "q8" | "q4";
    readonly cols: number;
    readonly shards: readonly number[];
  },
): Matrix {
  let first = 0;
  const parts = shards.map((rows) => {
    const part = values.subarray(first * cols, (first + rows) * cols);
    const matrix = uploadQuantized(device, part, { format, cols, most: HARDWARE.lanes });
    const at = first;
    first += rows;
    return { ...matrix, shards: matrix.shards.map((shard) => ({ ...shard, first: at })) };
  });
  const [whole] = parts;
  assert.ok(whole);
  return { ...whole, rows: first, shards: parts.flatMap((part) => part.shards) };
}

function tuned(matrix: Matrix, launch: Launch): Tuning {
  const launches = new Map([[shapeKey(matrix), new Map([[1, launch]])]]);
  return { ...HARDWARE, launches };
}

Deno.test("matmul argmax: only hardware's kernels that add lanes store them", () => {
  const matrix = matrixOf(new Float32Array(2 * 64), 64, [2]);
  assert.equal(canStoreArgmax(matrix, HARDWARE), true);
  assert.equal(canStoreArgmax({ ...matrix, lanes: 1 }, HARDWARE), false);
  assert.equal(canStoreArgmax({ ...matrix, lanes: 1 }, tuning(true)), false);
});

for (const [cols, kind] of [[256, "staged"], [264, "cached"]] as const) {
  Deno.test(`matmul argmax: the token of the logits, 1 to 9 rows and tiles of many, ${kind}`, async () => {
    const tokens = new Set<number>();
    for (const vocab of [31, 50, 2049]) {
      const matrix = matrixOf(weights("bf16", even(vocab), cols), cols, [even(vocab)]);
      for (const rows of vocab === 50 ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 24] : [1, 9]) {
        const of = { matrix, x: numbers(rows * cols, 31 * rows + vocab), vocab };
        const found = await assertSame(of, `${rows} rows, ${vocab} columns`);
        for (const token of found) tokens.add(token);
      }
    }
    assert.ok(tokens.size > 40, `${tokens.size} different tokens`);
  });
}

Deno.test("matmul argmax: padding never counts, not even workgroups of it", async () => {
  const cols = 256;
  for (const [rows, vocab] of [[32, 31], [2050, 2049], [200, 70]] as const) {
    const values = weights("bf16", rows, cols);
    values.fill(100, vocab * cols);
    for (const shards of [[rows], [rows - 20, 20]]) {
      const matrix = matrixOf(values, cols, shards);
      const x = numbers(3 * cols, rows).map(Math.abs);
      const label = `${vocab} of ${rows}, ${shards.length} shards`;
      await assertSame({ matrix, x, vocab }, label);
      // It would win.
      const padded = await fromPartials({ matrix, x });
      assert.deepEqual(padded, Array(3).fill(vocab), label);
    }
  }
});

Deno.test("matmul argmax: shards count on, whatever their rows", async () => {
  const cols = 256;
  const cuts = [[2, 48], [34, 2, 14], [32, 32, 36]];
  for (const shards of cuts) {
    const rows = shards.reduce((a, b) => a + b);
    const matrix = matrixOf(weights("bf16", rows, cols), cols, shards);
    for (const count of [1, 9]) {
      const of = { matrix, x: numbers(count * cols, rows + count), vocab: rows - 1 };
      await assertSame(of, `${shards}, ${count} rows`);
    }
  }
});

Deno.test("matmul argmax: of equal logits the lowest token, in any half, workgroup and shard", async () => {
  const [cols, n] = [256, 140];
  const x = numbers(2 * cols, 9).map((value) => Math.abs(value) + 0.25);
  for (let seed = 0; seed < 24; seed++) {
    const equal = shuffled(n, seed).slice(0, 2 + seed % 3);
    const values = weights("bf16", n, cols);
    for (const token of equal) values.fill(4, token * cols, (token + 1) * cols);
    const shards = seed % 2 ? [n] : [60, 50, 30];
    const of = { matrix: matrixOf(values, cols, shards), x, vocab: n };
    const found = await assertSame(of, `${equal}`);
    assert.deepEqual(found, Array(2).fill(Math.min(...equal)));
  }
});

Deno.test("matmul argmax: logits all below zero, zeros of both signs", async () => {
  const cols = 64;
  const values = weights("bf16", 50, cols).map((value) => -Math.abs(value) - 1);
  const x = numbers(cols, 4).map(Math.abs);
  await assertSame({ matrix: matrixOf(values, cols, [50]), x, vocab: 49 }, "below zero");
  values.fill(0, 20 * cols, 21 * cols);
  values.fill(-0, 7 * cols, 8 * cols);
  const found = await assertSame({ matrix: matrixOf(values, cols, [50]), x }, "zeros");
  assert.deepEqual(found, [7]);
});

Deno.test("matmul argmax: NaN and infinities lead where they lead as logits", async () => {
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
    const of = { matrix: matrixOf(values, cols, [n]), x };
    assert.deepEqual(await fromPartials(of), (await fromLogits(of)).tokens, `case ${i}`);
  }
  const matrix = matrixOf(weights("bf16", n, cols), cols, [n]);
  x[cols + 7] = NaN; // of the second row alone
  const of = { matrix, x };
  const found = await fromPartials(of);
  assert.deepEqual(found, (await fromLogits(of)).tokens);
  assert.equal(found[1], 0);
});

for (const format of ["q8", "q4"] as const) {
  Deno.test(`matmul argmax: ${format}, widths that leave fewer lanes, shards`, async () => {
    for (const cols of [64, 192, 1024]) {
      for (const shards of [[150], [100, 48, 2]]) {
        const matrix = quantized(numbers(150 * cols, cols), { format, cols, shards });
        for (const rows of [1, 3, 9]) {
          const of = { matrix, x: numbers(rows * cols, rows), vocab: 149 };
          await assertSame(of, `${cols} wide, ${shards}, ${rows} rows`);
        }
      }
    }
  });
}

Deno.test("matmul argmax: as many as a measured launch has workgroups", async () => {
  const [cols, n] = [512, 301];
  const matrix = matrixOf(weights("bf16", even(n), cols), cols, [200, 102]);
  const counts = [];
  for (const groups of [4, 8, 16]) {
    for (const stage of [0, 64]) {
      const tuning = tuned(matrix, { groups, stage });
      counts.push(matmulArgmaxCount(matrix, { rows: 1, tuning }));
      for (const rows of [1, 13]) {
        const of = { matrix, x: numbers(rows * cols, 8), vocab: n, tuning };
        await assertSame(of, `${groups} groups, stages of ${stage}, ${rows} rows`);
      }
    }
  }
  assert.deepEqual(counts, [13 + 7, 13 + 7, 7 + 4, 7 + 4, 4 + 2, 4 + 2]);
});
