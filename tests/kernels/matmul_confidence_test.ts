// A matmul that stores partial softmaxes leads to the token of its logits, and to the token's probability.

import assert from "node:assert/strict";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { type Case, fromLogits, fromPartials, matrixOf, quantized } from "./heads.ts";
import { weights } from "./matrices.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

/** The tokens of the logits, and their highest probabilities. */
async function assertConfident(of: Case, what: string): Promise<void> {
  const { tokens, logits } = await fromLogits(device, of);
  const choice = await fromPartials(device, of, "softmax");
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

for (
  const [cols, kind, counts] of [
    [256, "staged", EXHAUSTIVE ? [1, 2, 5, 8, 33] : [1, 5, 33]],
    [264, "cached", [2, 33]],
  ] as const
) {
  Deno.test(`matmul confidence: that of the logits, shards, padding, 1 to 33 rows, ${kind}`, async () => {
    const n = 240;
    for (const [i, rows] of counts.entries()) {
      const values = weights("bf16", n, cols).map((value) => value * (i % 2 ? 0.5 : 4));
      values.fill(100, (n - 7) * cols); // padding that would win
      const shards = i === 2 ? [n] : [34, n - 34];
      const x = numbers(rows * cols, rows).map(Math.abs);
      const of = { matrix: matrixOf(device, values, cols, shards), x, vocab: n - 7 };
      await assertConfident(of, `${shards}, ${rows} rows`);
    }
  });
}

drawn.test("matmul confidence: that of the logits of a q4 matrix, 2 lanes", async () => {
  const [format, cols] = ["q4", 64] as const;
  const matrix = quantized(device, numbers(150 * cols, 1), { format, cols, shards: [150] });
  assert.equal(matrix.lanes, 2);
  for (const rows of [1, 9]) {
    await assertConfident({ matrix, x: numbers(rows * cols, rows), vocab: 149 }, `${rows} rows`);
  }
});

Deno.test("matmul confidence: that in one of equal logits", async () => {
  const [cols, n] = [256, 140];
  const x = numbers(2 * cols, 9).map((value) => Math.abs(value) + 0.25);
  for (const equal of [[3, 139], [20, 21, 90], [59, 60, 61, 130], [...Array(n).keys()]]) {
    const values = weights("bf16", n, cols);
    for (const token of equal) values.fill(4, token * cols, (token + 1) * cols);
    await assertConfident({ matrix: matrixOf(device, values, cols, [60, 50, 30]), x }, `${equal}`);
  }
});

Deno.test("matmul confidence: none where logits are no numbers, and minus infinity adds nothing", async () => {
  const [cols, n] = [256, 100];
  const x = numbers(3 * cols, 2).map((value) => Math.abs(value) + 0.25);
  const all = (value: number) => Object.fromEntries(Array<number>(n).fill(value).entries());
  const special: Readonly<Record<number, number>>[] = [
    { 40: NaN },
    { 40: Infinity, 77: Infinity },
    { 61: NaN, 12: Infinity },
    { 99: NaN, 3: -Infinity },
    { 3: -Infinity, 40: -Infinity, 99: -Infinity },
    { ...all(-Infinity), 0: 0.5, 99: 0.25 },
    all(-Infinity),
    all(NaN),
  ];
  for (const [i, columns] of special.entries()) {
    const values = weights("bf16", n, cols);
    for (const [token, value] of Object.entries(columns)) values[Number(token) * cols + 5] = value;
    await assertConfident({ matrix: matrixOf(device, values, cols, [n]), x }, `case ${i}`);
  }
  x[cols + 7] = NaN; // of the second row alone
  const matrix = matrixOf(device, weights("bf16", n, cols), cols, [n]);
  await assertConfident({ matrix, x }, "a row that is no number");
});
