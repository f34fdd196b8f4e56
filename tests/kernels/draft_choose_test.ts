import assert from "node:assert/strict";
import { draftChoose } from "../../kernels/sample/draft_choose.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../kernels/sample/slice_partials.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { DRAFT_TOKENS, draftWords, NO_SLOT } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = 77;
const MAX_ROWS = 8;
const DRAFT_WORDS = draftWords(MAX_ROWS);
const [SLOTS, VOCAB, STRIDE] = [4, 150, 152];

interface Lane {
  readonly slot: number;
  readonly logits: ArrayLike<number>;
}

/** Chooses from the partial argmaxes of slices of the logits. */
async function choose(
  { logits, ...buffers }: Omit<Parameters<typeof draftChoose>[0], "partials"> & {
    readonly logits: Operand;
  },
  shape: { readonly batch: number; readonly step: number; readonly lanes: number },
): Promise<void> {
  const { batch: rows, lanes } = shape;
  const partials = device.filled(rows * slicePartialWords(VOCAB));
  await device.run([
    slicePartials({ logits, partials }, {
      kind: "argmax",
      rows,
      vocab: VOCAB,
      stride: STRIDE,
      lanes,
      label: "choose",
    }),
    draftChoose({ ...buffers, partials }, {
      ...shape,
      kind: "argmax",
      maxRows: MAX_ROWS,
      label: "choose",
      count: slicePartialCount(VOCAB),
    }),
  ]);
}

/** What is drafted for every slot, [SLOTS, DRAFT_WORDS], after the batch chose into `step`. */
async function drafted(
  chosen: readonly Lane[],
  { lanes, step, offsets }: {
    readonly lanes: number;
    readonly step: number;
    readonly offsets: readonly number[];
  },
): Promise<number[]> {
  const logits = new Float32Array(chosen.length * STRIDE).fill(1e30); // the padding must not win
  chosen.forEach((lane, b) => logits.set(Array.from(lane.logits), b * STRIDE));
  const drafts = device.words(Array(SLOTS * DRAFT_WORDS).fill(LEFT_ALONE));
  const buffers = {
    logits: device.floats(logits),
    offsets: device.words(offsets),
    batchSlots: device.words(chosen.map(({ slot }) => slot)),
    drafts,
  };
  await choose(buffers, { batch: chosen.length, step, lanes });
  return [...await device.readWords(drafts)];
}

function expectedDrafts(step: number, ids: Readonly<Record<number, number>>): number[] {
  return Array.from({ length: SLOTS * DRAFT_WORDS }, (_, at) => {
    const there = at % DRAFT_WORDS === DRAFT_TOKENS + step;
    return there ? ids[Math.floor(at / DRAFT_WORDS)] ?? LEFT_ALONE : LEFT_ALONE;
  });
}

const peaked = (values: Readonly<Record<number, number>>) =>
  Array.from({ length: VOCAB }, (_, i) => values[i] ?? 0);

for (const lanes of [16, 256]) {
  Deno.test(`draft_choose: the lowest largest, by slot; places without one, ${lanes} lanes`, async () => {
    const random = numbers(VOCAB, 3);
    const chosen = [
      { slot: 2, logits: peaked({ 17: 4, 33: 4, 149: 4 }) },
      { slot: NO_SLOT, logits: peaked({ 5: 9 }) },
      { slot: 0, logits: peaked({ 130: 2, 15: 2 }) },
      { slot: 3, logits: random },
    ];
    const largest = random.indexOf(Math.max(...random));
    const offsets = Array<number>(VOCAB).fill(0);
    const actual = await drafted(chosen, { lanes, step: 5, offsets });
    assert.deepEqual(actual, expectedDrafts(5, { 2: 17, 0: 15, 3: largest }));
  });
}

Deno.test("draft_choose: offsets lead to the target's id, down as well as up", async () => {
  const offsets = Array.from({ length: VOCAB }, (_, i) => i < 100 ? 3 * i : -50);
  const chosen = [
    { slot: 1, logits: peaked({ 60: 1 }) },
    { slot: 2, logits: peaked({ 149: 1 }) },
    { slot: 3, logits: peaked({}) },
  ];
  const actual = await drafted(chosen, { lanes: 16, step: 0, offsets });
  assert.deepEqual(actual, expectedDrafts(0, { 1: 240, 2: 99, 3: 0 }));
});

Deno.test("draft_choose: NaN logits give some token, never one outside of the vocabulary", async () => {
  const offsets = Array<number>(VOCAB).fill(0);
  const chosen = [
    { slot: 0, logits: Array(VOCAB).fill(NaN) },
    { slot: 1, logits: Array(VOCAB).fill(-Infinity) },
    { slot: 2, logits: peaked({ 4: NaN, 5: Infinity }) },
  ];
  const drafts = await drafted(chosen, { lanes: 16, step: 0, offsets });
  for (const slot of [0, 1, 2]) {
    const draft = drafts[slot * DRAFT_WORDS + DRAFT_TOKENS] ?? NaN;
    assert.ok(draft < VOCAB, `${draft}`);
  }
});

Deno.test("draft_choose: leaves the rows of a further level, padding where cells end", async () => {
  const padding = { live: 0 };
  const live = { token: 5, position: 9, cell: 9, base: 10 };
  const rows = device.words(packRows([padding, padding, padding, live]));
  const full = { length: 8, limit: 10 };
  const slots = device.words(packSlots([{ length: 40 }, { length: 7, limit: 10 }, full, {}]));
  const logits = new Float32Array(4 * STRIDE);
  logits[11] = logits[STRIDE + 12] = logits[2 * STRIDE + 13] = 1;
  const buffers = {
    logits: device.floats(logits),
    offsets: device.words(Array(VOCAB).fill(100)),
    batchSlots: device.words([1, NO_SLOT, 0, 2]),
    drafts: device.filled(SLOTS * DRAFT_WORDS),
    next: { slots, rows },
  };
  await choose(buffers, { batch: 4, step: 2, lanes: 16 });
  const expected = packRows([
    { token: 111, slot: 1, position: 9, cell: 9, base: 10 },
    padding,
    { token: 113, slot: 0, position: 42, cell: 42, base: 43 },
    padding,
  ]);
  assert.deepEqual(await device.readWords(rows), expected);
});
