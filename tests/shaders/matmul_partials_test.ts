// A matmul that stores partial results leads to the token, and to the confidence, that its logits lead to.

import assert from "node:assert/strict";
import { draftChoose } from "../../shaders/choose/draft_choose.ts";
import { matmul } from "../../shaders/matmul/matmul.ts";
import {
  canStorePartials,
  matmulPartialCount,
  matmulPartials,
  matmulPartialWords,
} from "../../shaders/matmul/matmul_partials.ts";
import { shapeKey } from "../../shaders/matmul/matmul_shape.ts";
import { PARTIAL_WORDS, type PartialKind } from "../../shaders/partial/partial.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../shaders/partial/slice_partials.ts";
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

/** What the draft chooses for each row, and the bits of its confidence where it tells it. */
interface Choice {
  readonly tokens: number[];
  readonly confidences: number[];
}

/** The choice of each row, from the partial results that `plan` stores. */
async function chosen(
  plan: Dispatch[],
  partials: Operand,
  { kind, rows, count }: {
    readonly kind: PartialKind;
    readonly rows: number;
    readonly count: number;
  },
): Promise<Choice> {
  const drafts = device.filled(rows * draftWords(2));
  const choice = draftChoose({
    partials,
    offsets: device.words(Array(1 << 13).fill(0)),
    batchSlots: device.words([...Array(rows).keys()]),
    drafts,
  }, { kind, batch: rows, count, step: 0, mostRows: 2, lanes: 16, label: "choose" });
  await device.run([...plan, choice]);
  const words = await device.readWords(drafts);
  const all = (word: number) =>
    Array.from({ length: rows }, (_, row) => words[row * draftWords(2) + word] ?? NaN);
  return { tokens: all(DRAFT_TOKENS), confidences: all(DRAFT_TOKENS + 1) };
}

/** From logits, as where these are written, and the logits of the columns that count. */
async function fromLogits({ matrix, x, tuning = HARDWARE, vocab = matrix.rows }: Case) {
  const rows = x.length / matrix.cols;
  const logits = device.filled(rows * matrix.rows);
  const partials = device.filled(rows * slicePartialWords(vocab));
  const shape = { rows, tuning, label: "head" };
  const kind = "argmax";
  const slices = { kind, rows, vocab, stride: matrix.rows, lanes: 16, label: "partials" } as const;
  const plan = [
    ...matmul({ matrix, x: device.floats(x), out: logits }, { ...shape, epilogue: "store" }),
    slicePartials({ logits, partials }, slices),
  ];
  const { tokens } = await chosen(plan, partials, { kind, rows, count: slicePartialCount(vocab) });
  const values = await device.readFloats(logits);
  const row = (r: number) => values.subarray(r * matrix.rows, r * matrix.rows + vocab);
  return { tokens, logits: tokens.map((_, r) => row(r)) };
}

/** From partial results of the matmul; all of them are made, and nothing else. */
async function fromPartials(
  { matrix, x, tuning = HARDWARE, vocab = matrix.rows }: Case,
  kind: PartialKind = "argmax",
): Promise<Choice> {
  const rows = x.length / matrix.cols;
  const count = matmulPartialCount(matrix, { rows, tuning });
  const room = matmulPartialWords(matrix, kind, { rows, tuning });
  const words = PARTIAL_WORDS[kind] * rows * count;
  assert.ok(room >= words);
  const UNTOUCHED = 0xffffffff; // better than any argmax
  const partials = device.words(Array(room + 8).fill(UNTOUCHED));
  const shape = { kind, rows, tuning, vocab, label: "head" };
  const plan = matmulPartials({ matrix, x: device.floats(x), partials }, shape);
  const choice = await chosen(plan, partials, { kind, rows, count });
  const rest = (await device.readWords(partials)).subarray(words);
  assert.ok(rest.every((word) => word === UNTOUCHED));
  return choice;
}

/** The tokens of both ways, which are the lowest of the largest logits. */
async function assertSame(of: Case, what: string): Promise<number[]> {
  const { tokens, logits } = await fromLogits(of);
  const found = (await fromPartials(of)).tokens;
  assert.deepEqual(found, tokens, what);
  const largest = logits.map((row) => row.indexOf(row.reduce((a, b) => Math.max(a, b))));
  assert.deepEqual(found, largest, what);
  return found;
}

/** The same of partial softmaxes, and their confidences: the highest probabilities of the logits. */
async function assertConfident(of: Case, what: string): Promise<void> {
  const { tokens, logits } = await fromLogits(of);
  const choice = await fromPartials(of, "softmax");
  assert.deepEqual(choice.tokens, tokens, what);
  const confidences = new Float32Array(Uint32Array.from(choice.confidences).buffer);
  for (const [r, row] of logits.entries()) {
    const [found = NaN, wanted] = [confidences[r], highest(row)];
    assert.ok(Math.abs(found - wanted) <= 1e-5 * wanted, `${what}, row ${r}: ${found}, ${wanted}`);
  }
}

/** Highest probability of the softmax, in float64; 0 where no logit is finite or one is no number. */
function highest(row: Float32Array): number {
  const largest = row.reduce((a, b) => Math.max(a, b));
  if (!Number.isFinite(largest)) return 0;
  return 1 / row.reduce((sum, x) => sum + Math.exp(x - largest), 0);
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

Deno.test("matmul partials: only hardware's kernels that add lanes store them", () => {
  const matrix = matrixOf(new Float32Array(2 * 64), 64, [2]);
  assert.equal(canStorePartials(matrix, HARDWARE), true);
  assert.equal(canStorePartials({ ...matrix, lanes: 1 }, HARDWARE), false);
  assert.equal(canStorePartials({ ...matrix, lanes: 1 }, tuning(true)), false);
});

for (const [cols, kind] of [[256, "staged"], [264, "cached"]] as const) {
  Deno.test(`matmul partials: the token of the logits, 1 to 9 rows and tiles of many, ${kind}`, async () => {
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

Deno.test("matmul partials: padding never counts, not even workgroups of it", async () => {
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
      const padded = (await fromPartials({ matrix, x })).tokens;
      assert.deepEqual(padded, Array(3).fill(vocab), label);
    }
  }
});

Deno.test("matmul partials: shards count on, whatever their rows", async () => {
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

Deno.test("matmul partials: of equal logits the lowest token, in any half, workgroup and shard", async () => {
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

Deno.test("matmul partials: logits all below zero, zeros of both signs", async () => {
  const cols = 64;
  const values = weights("bf16", 50, cols).map((value) => -Math.abs(value) - 1);
  const x = numbers(cols, 4).map(Math.abs);
  await assertSame({ matrix: matrixOf(values, cols, [50]), x, vocab: 49 }, "below zero");
  values.fill(0, 20 * cols, 21 * cols);
  values.fill(-0, 7 * cols, 8 * cols);
  const found = await assertSame({ matrix: matrixOf(values, cols, [50]), x }, "zeros");
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
    { 3: -Infinity, 40: -Infinity, 99: -Infinity },
    Object.fromEntries(Array.from({ length: n - 2 }, (_, token) => [token + 1, -Infinity])),
    Object.fromEntries(Array.from({ length: n }, (_, token) => [token, -Infinity])),
    Object.fromEntries(Array.from({ length: n }, (_, token) => [token, NaN])),
  ];
  for (const [i, columns] of broken.entries()) {
    const values = weights("bf16", n, cols);
    for (const [token, value] of Object.entries(columns)) values[Number(token) * cols + 5] = value;
    const of = { matrix: matrixOf(values, cols, [n]), x };
    assert.deepEqual((await fromPartials(of)).tokens, (await fromLogits(of)).tokens, `case ${i}`);
    await assertConfident(of, `case ${i}`);
  }
  const matrix = matrixOf(weights("bf16", n, cols), cols, [n]);
  x[cols + 7] = NaN; // of the second row alone
  const of = { matrix, x };
  const found = (await fromPartials(of)).tokens;
  assert.deepEqual(found, (await fromLogits(of)).tokens);
  assert.equal(found[1], 0);
  await assertConfident(of, "a row that is no number");
});

for (const format of ["q8", "q4"] as const) {
  Deno.test(`matmul partials: ${format}, widths that leave fewer lanes, shards`, async () => {
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

Deno.test("matmul partials: as many as a measured launch has workgroups", async () => {
  const [cols, n] = [512, 301];
  const matrix = matrixOf(weights("bf16", even(n), cols), cols, [200, 102]);
  const counts = [];
  for (const groups of [4, 8, 16]) {
    for (const stage of [0, 64]) {
      const tuning = tuned(matrix, { groups, stage });
      counts.push(matmulPartialCount(matrix, { rows: 1, tuning }));
      for (const rows of [1, 13]) {
        const of = { matrix, x: numbers(rows * cols, 8), vocab: n, tuning };
        await assertSame(of, `${groups} groups, stages of ${stage}, ${rows} rows`);
      }
    }
  }
  assert.deepEqual(counts, [13 + 7, 13 + 7, 7 + 4, 7 + 4, 4 + 2, 4 + 2]);
});

for (
  const [cols, kind, counts] of [
    [256, "staged", [1, 2, 5, 8, 33]],
    [264, "cached", [2, 33]],
  ] as const
) {
  Deno.test(`matmul partials: the confidence of the logits, shards, padding, 1 to 33 rows, ${kind}`, async () => {
    const n = 240;
    for (const [i, rows] of counts.entries()) {
      const values = weights("bf16", n, cols).map((value) => value * (i % 2 ? 0.5 : 4));
      values.fill(100, (n - 7) * cols); // padding that would win
      const shards = i === 2 ? [n] : [34, n - 34];
      const x = numbers(rows * cols, rows).map(Math.abs);
      const of = { matrix: matrixOf(values, cols, shards), x, vocab: n - 7 };
      await assertConfident(of, `${shards}, ${rows} rows`);
    }
  });
}

Deno.test("matmul partials: the confidence of the logits of a q4 matrix, 2 lanes", async () => {
  const [format, cols] = ["q4", 64] as const;
  const matrix = quantized(numbers(150 * cols, 1), { format, cols, shards: [150] });
  assert.equal(matrix.lanes, 2);
  for (const rows of [1, 9]) {
    await assertConfident({ matrix, x: numbers(rows * cols, rows), vocab: 149 }, `${rows} rows`);
  }
});

Deno.test("matmul partials: the confidence in one of equal logits", async () => {
  const [cols, n] = [256, 140];
  const x = numbers(2 * cols, 9).map((value) => Math.abs(value) + 0.25);
  for (const equal of [[3, 139], [20, 21, 90], [59, 60, 61, 130], [...Array(n).keys()]]) {
    const values = weights("bf16", n, cols);
    for (const token of equal) values.fill(4, token * cols, (token + 1) * cols);
    await assertConfident({ matrix: matrixOf(values, cols, [60, 50, 30]), x }, `${equal}`);
  }
});
