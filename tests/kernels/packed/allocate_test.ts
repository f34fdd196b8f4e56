import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { allocate } from "../../../kernels/round/allocate.ts";
import { packBudget } from "../../../src/engine/device/packed/budget.ts";
import { DRAFT_TOKENS, draftWords, NO_SLOT } from "../../../src/model/device_layout.ts";
import type { VerifyBudget } from "../../../src/speculate/policy.ts";
import { openDevice } from "../../gpu/device.ts";
import { shuffled } from "../../gpu/numbers.ts";
import { allocated, type Drafted, survivals } from "../../reference/allocation.ts";
import { packSlots } from "../rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = 4242;
/** A round reserves cells for one row more than it has drafts. */
const LENGTH = 40;

interface Place extends Drafted {
  /** Cells that its slot owns beyond those it has. */
  readonly room: number;
}

/** Drafts that the device has verified of each, in slots that lie in disorder; the last places are empty. */
async function chosen(
  places: readonly Place[],
  budget: VerifyBudget,
  empty = 0,
): Promise<number[]> {
  const depth = budget.intercepts.length;
  const maxRows = depth + 3;
  const size = draftWords(maxRows);
  const order = shuffled(places.length + 1, places.length);
  const drafts = new Uint32Array(order.length * size).fill(LEFT_ALONE);
  const slots: { length: number; limit: number }[] = order.map(() => ({ length: 0, limit: 0 }));
  for (const [i, { confidences, room }] of places.entries()) {
    const slot = order[i] as number;
    slots[slot] = { length: LENGTH, limit: LENGTH + room };
    const floats = new Float32Array(drafts.buffer);
    floats.set(confidences, slot * size + DRAFT_TOKENS + maxRows - 1);
  }
  const before = drafts.slice();
  const buffers = {
    batchSlots: device.words([
      ...places.map((_, i) => order[i] as number),
      ...Array(empty).fill(NO_SLOT),
    ]),
    slots: device.words(packSlots(slots)),
    budget: device.words(packBudget(budget, places.map(({ most }) => most))),
    drafts: device.words(drafts),
  };
  const shape = { batch: places.length + empty, rows: depth + 1, maxRows };
  await device.run([allocate(buffers, shape)]);
  const after = await device.readWords(buffers.drafts);
  const counts = places.map((_, i) => after[(order[i] as number) * size] ?? NaN);
  for (const [i] of places.entries()) before[(order[i] as number) * size] = counts[i] ?? NaN;
  assert.deepEqual(after, before, "nothing but the counts is written");
  return counts;
}

/** What the reference has of them: nothing of sequences whose rows would be padding. */
function expected(places: readonly Place[], budget: VerifyBudget): number[] {
  const depth = budget.intercepts.length;
  return allocated(
    places.map((place) => ({ ...place, most: place.room > depth ? place.most : 0 })),
    budget,
  );
}

/** Whether some chances are so near each other that rounding may decide. */
function near(places: readonly Place[], budget: VerifyBudget): boolean {
  const all = places.flatMap((place) => survivals(place, budget)).filter((s) => s > 0)
    .toSorted((a, b) => a - b);
  // Equal ones come of the same numbers and are equal on the device too.
  return all.some((s, i) => i > 0 && s !== all[i - 1] && s / (all[i - 1] ?? 1) < 1 + 1e-4);
}

const confidence = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 64 }).map((n) => n / 64) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 0.5) },
);

function drawn(depth: number, batch: number) {
  return fc.record({
    places: fc.array(
      fc.record({
        confidences: fc.array(confidence, { minLength: depth, maxLength: depth }),
        most: fc.oneof({ weight: 4, arbitrary: fc.constant(depth) }, fc.nat(depth)),
        room: fc.constantFrom(100, 100, 100, depth + 1, depth, 0),
      }),
      { minLength: 1, maxLength: batch },
    ),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    slope: fc.constantFrom(0.5, 1, 0.8),
    intercepts: fc.array(fc.integer({ min: -8, max: 8 }).map((n) => n / 8), {
      minLength: depth,
      maxLength: depth,
    }),
    minConfidence: fc.constantFrom(0, 0, 0.25, 0.6),
    empty: fc.nat(3),
  });
}

for (const [depth, batch, numRuns] of [[1, 6, 20], [5, 8, 60], [7, 40, 20], [16, 5, 20]] as const) {
  Deno.test(`allocate: the likeliest of up to ${batch} chains of ${depth}, as the reference has them`, async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(drawn(depth, batch), async ({ places, share, empty, ...of }) => {
        const budget = { ...of, drafts: Math.round(share * places.length * depth) };
        const counts = await chosen(places, budget, empty);
        assert.ok(counts.reduce((a, b) => a + b) <= budget.drafts);
        if (near(places, budget)) return;
        compared++;
        assert.deepEqual(counts, expected(places, budget));
      }),
      { seed: 20260714, numRuns },
    );
    assert.ok(compared > numRuns / 4, `${compared} compared`);
  });
}

const even = (depth: number, of: Partial<VerifyBudget> = {}): VerifyBudget => ({
  drafts: depth,
  slope: 1,
  intercepts: Array(depth).fill(0),
  minConfidence: 0,
  ...of,
});
const place = (...confidences: number[]): Place => ({
  confidences,
  most: confidences.length,
  room: 100,
});

Deno.test("allocate: a tie goes to the first sequence, and within it to the first draft", async () => {
  const places = Array.from({ length: 4 }, () => place(1, 1, 1));
  // Chances of 1 - 1e-6, its square and its cube: by position, then by sequence.
  assert.deepEqual(await chosen(places, even(3, { drafts: 6 })), [2, 2, 1, 1]);
  const certain = even(3, { drafts: 5, slope: 0, intercepts: [40, 40, 40] });
  assert.deepEqual(await chosen(places, certain), [3, 2, 0, 0]);
});

Deno.test("allocate: all of the largest batch, and none", async () => {
  const places = Array.from({ length: 128 }, (_, i) => place(...Array(16).fill((i + 1) / 129)));
  assert.deepEqual(await chosen(places, even(16, { drafts: 2048 })), Array(128).fill(16));
  assert.deepEqual(await chosen(places, even(16, { drafts: 0 })), Array(128).fill(0));
  const best = await chosen(places, even(16, { drafts: 16 }));
  assert.deepEqual(best, expected(places, even(16, { drafts: 16 })));
});

Deno.test("allocate: no number of a draft or of a policy breaks it", async () => {
  const absurd = [NaN, Infinity, -Infinity, -1, 2, 1e-45, -0, 0.5];
  for (const slope of [1e38, -1e38, 0, 1e-38]) {
    for (const intercept of [3e38, -3e38, 0]) {
      const budget = even(2, { drafts: 5, slope, intercepts: [intercept, intercept] });
      const counts = await chosen(absurd.map((c) => place(c, c)), budget);
      assert.equal(counts.reduce((a, b) => a + b), 5, `${slope} ${intercept} gave ${counts}`);
      assert.ok(counts.every((count) => count <= 2));
    }
  }
  const least = await chosen(absurd.map((c) => place(0.9, c)), {
    ...even(2, { drafts: 16, minConfidence: 0.25 }),
  });
  assert.deepEqual(least, [1, 1, 1, 1, 1, 1, 1, 2]);
});
