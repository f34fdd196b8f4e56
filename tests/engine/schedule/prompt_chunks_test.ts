import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { promptRows } from "../../../src/engine/device/prompt_rows.ts";
import { promptChunks } from "../../../src/engine/schedule/prompt_chunks.ts";

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
