import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { rowBucket, rowBuckets } from "../../../src/engine/device/buckets.ts";
import { promptRows } from "../../../src/engine/device/prompt_rows.ts";
import { promptChunks, rowsWithin } from "../../../src/engine/schedule/prompt_chunks.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";

Deno.test("an only prompt takes the whole budget, without padding", () => {
  const budget = { rows: 100, run: 32 };
  assert.deepEqual(promptChunks([70], budget), [70]);
  assert.deepEqual(promptChunks([500], budget), [100]);
  assert.deepEqual(promptChunks([500, 9], budget), [100]);
});

Deno.test("prompts share a forward, oldest first, and the last may have a part of it", () => {
  const budget = { rows: 256, run: 32 };
  assert.deepEqual(promptChunks([5, 33, 32, 9], budget), [5, 33, 32, 9]);
  // 32 + 64 rows, and 160 are left.
  assert.deepEqual(promptChunks([5, 33, 1000, 9], budget), [5, 33, 160]);
  // What is left has no whole run.
  assert.deepEqual(promptChunks([70, 70], { rows: 100, run: 32 }), [70]);
});

Deno.test("a forward never has more rows than the budget, the oldest prompt always goes on, and no prompt starves", () => {
  const prompts = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 12 });
  const budget = fc.record({
    rows: fc.constantFrom(8, 64, 128, 256),
    run: fc.constantFrom(8, 16, 32),
  });
  fc.assert(
    fc.property(prompts, budget, (given, of) => {
      let left = given;
      const most = given.reduce((sum, tokens) => sum + Math.ceil(tokens / of.rows), 0);
      for (let forwards = 0; left.length > 0; forwards++) {
        assert.ok(forwards < most, "it takes longer than one prompt after the other");
        const chunks = promptChunks(left, of);
        assert.ok(chunks.every((tokens, i) => tokens > 0 && tokens <= (left[i] ?? 0)));
        assert.ok((chunks[0] ?? 0) === Math.min(left[0] ?? 0, of.rows));
        const { count, firsts, perSlot } = promptRows(chunks, of.run);
        assert.ok(count <= Math.max(8, of.rows), `${count} rows`);
        assert.ok(count % perSlot === 0 && firsts.every((first) => first % of.run === 0));
        left = left.map((tokens, i) => tokens - (chunks[i] ?? 0)).filter((tokens) => tokens > 0);
      }
    }),
    { seed: 32, numRuns: 300 },
  );
});

Deno.test("rowsWithin: the most rows that programs are made for and that take no longer, one run at least", () => {
  const prefill = [{ at: 8, ms: 2 }, { at: 1024, ms: 100 }, { at: 4096, ms: 500 }];
  const costs = { ...SIMPLE, prefill };
  const budget = { rows: 1024, run: 32 };
  const within = (ms: number, left: readonly number[], rows = 1024) =>
    rowsWithin(ms, left.map((left) => ({ stored: 0, left })), {
      budget: { ...budget, rows },
      costs,
    });
  assert.deepEqual([60, 30, 10].map((ms) => within(ms, [4000])), [512, 256, 64]);
  assert.equal(within(60, [4000], 300), 300);
  assert.equal(within(1e9, [9000], 2000), 2000);
  // A short prompt has the rows of its program: 128 for 100 tokens, 13.6 ms.
  assert.deepEqual([within(14, [100]), within(13, [100])], [1024, 64]);
  // Ten prompts of two tokens are padded to ten runs, whose program has 384 rows: 38.3 ms.
  assert.deepEqual([within(39, Array(10).fill(2)), within(38, Array(10).fill(2))], [1024, 256]);
  // Where a run takes longer, rows that cost at most a fifth more: 32 take 4.3 ms, 64 take 7.4.
  assert.deepEqual([within(1, [4000]), within(-3, [4000])], [32, 32]);
  const flat = {
    ...costs,
    prefill: [{ at: 8, ms: 6 }, { at: 128, ms: 6.5 }, { at: 1024, ms: 60 }],
  };
  assert.equal(rowsWithin(2, [{ stored: 0, left: 900 }], { budget, costs: flat }), 128);
  // Tokens far behind cost their attention too.
  const far = [{ stored: 3500, left: 500 }];
  assert.equal(rowsWithin(30, far, { budget, costs }), 128);
});

Deno.test("rowBuckets: the rows that programs are made for below a number, and that number", () => {
  for (const most of [1, 8, 9, 300, 512, 1024, 1025, 1500, 1536, 4000, 8192]) {
    const below = new Set(Array.from({ length: most - 1 }, (_, i) => rowBucket(i + 1)));
    assert.deepEqual(rowBuckets(most), [...[...below].filter((rows) => rows < most), most]);
  }
});
