import assert from "node:assert/strict";
import { draftChoose } from "../../../kernels/sample/draft_choose.ts";
import type { PartialKind } from "../../../kernels/lib/partial.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../../kernels/sample/slice_partials.ts";
import { DRAFT_TOKENS, draftWords, NO_SLOT, ROW_WORDS } from "../../../src/model/device_layout.ts";
import { openDevice } from "../../gpu/device.ts";
import { numbers } from "../../gpu/numbers.ts";
import { packSlots } from "../rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const MAX_ROWS = 8;
const SIZE = draftWords(MAX_ROWS);
const UNTOUCHED = 77;

interface Case {
  readonly vocab: number;
  readonly step: number;
  readonly lanes: number;
  readonly next: boolean;
}

/** Both kinds of choice on the same rows: what each left for the slots, and the rows of the further level. */
async function both(rows: readonly ArrayLike<number>[], { vocab, step, lanes, next }: Case) {
  const stride = vocab + 2;
  const batch = rows.length;
  const logits = new Float32Array(batch * stride).fill(1e30); // the padding must not win
  rows.forEach((row, b) => logits.set(Array.from(row), b * stride));
  const slots = Array.from({ length: batch + 1 }, (_, i) => ({ length: 10 * i, limit: 500 }));
  // Slots in reverse, the last place empty.
  const batchSlots = device.words(
    Array.from({ length: batch }, (_, b) => b === batch - 1 && b > 0 ? NO_SLOT : batch - b),
  );
  const offsets = device.words(Array.from({ length: vocab }, (_, i) => 3 * i));
  const from = device.floats(logits);
  const count = slicePartialCount(vocab);
  const run = async (kind: PartialKind) => {
    const drafts = device.words(Array(slots.length * SIZE).fill(UNTOUCHED));
    const level = { slots: device.words(packSlots(slots)), rows: device.filled(batch * ROW_WORDS) };
    const partials = device.filled(batch * slicePartialWords(vocab, kind));
    const to = { partials, offsets, batchSlots, drafts, next: next ? level : undefined };
    const of = { kind, lanes, label: "choose" };
    await device.run([
      slicePartials({ logits: from, partials }, { ...of, rows: batch, vocab, stride }),
      draftChoose(to, { ...of, batch, count, step, maxRows: MAX_ROWS }),
    ]);
    return {
      drafts: await device.readWords(drafts),
      rows: await device.readWords(level.rows),
    };
  };
  return { plain: await run("argmax"), confident: await run("softmax"), batch };
}

const confidenceAt = (slot: number, step: number) =>
  slot * SIZE + DRAFT_TOKENS + MAX_ROWS - 1 + step;

/** Highest probability, in float64. */
function highest(row: ArrayLike<number>): number {
  const values = Array.from(row);
  const largest = values.reduce((a, b) => Math.max(a, b));
  return 1 / values.reduce((sum, x) => sum + Math.exp(x - largest), 0);
}

const CASES: readonly Case[] = [
  { vocab: 150, step: 0, lanes: 8, next: false },
  { vocab: 2048, step: 3, lanes: 64, next: true },
  { vocab: 9001, step: 6, lanes: 256, next: false },
  { vocab: 32000, step: 1, lanes: 1024, next: true },
];

for (const of of CASES) {
  const { vocab, step, lanes } = of;
  Deno.test(`confident_choose: ${vocab} logits, ${lanes} lanes: the token of draft_choose and its probability`, async () => {
    const rows = [0.01, 1, 4, 12].map((scale, i) =>
      numbers(vocab, i).map((x) => Math.fround(x * scale))
    );
    rows[1]!.fill(-Infinity, 1, vocab - 1); // whole slices that are ruled out
    rows[2]!.fill(3); // a tie
    const { plain, confident, batch } = await both(rows, of);
    const expected = plain.drafts.slice();
    const floats = new Float32Array(confident.drafts.buffer);
    for (let b = 0; b + 1 < batch; b++) {
      const at = confidenceAt(batch - b, step);
      const wanted = highest(rows[b] as Float32Array);
      const found = floats[at] ?? NaN;
      assert.ok(Math.abs(found / wanted - 1) < 1e-4, `row ${b}: ${found}, expected ${wanted}`);
      expected[at] = confident.drafts[at] as number;
    }
    assert.deepEqual(confident.drafts, expected);
    assert.deepEqual(confident.rows, plain.rows);
  });
}

Deno.test("confident_choose: logits that are no numbers give the same token and no confidence", async () => {
  const broken = [NaN, Infinity].map((x) => numbers(5000, 4).with(4097, x));
  const ruledOut = new Float32Array(5000).fill(-Infinity);
  const rows = [...broken, ruledOut, numbers(5000, 5)];
  const { plain, confident, batch } = await both(rows, {
    vocab: 5000,
    step: 2,
    lanes: 32,
    next: false,
  });
  const expected = plain.drafts.slice();
  for (const b of [0, 1, 2]) expected[confidenceAt(batch - b, 2)] = 0;
  assert.deepEqual(confident.drafts, expected);
});
