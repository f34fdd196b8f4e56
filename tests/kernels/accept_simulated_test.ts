import assert from "node:assert/strict";
import { accept, type AcceptBuffers, acceptSimulated } from "../../kernels/round/round.ts";
import type { Dispatch } from "../../src/gpu/kernel.ts";
import {
  DRAFT_TOKENS,
  draftWords,
  NO_SLOT,
  resultWords,
  ROW_WORDS,
} from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { drawAccepted } from "../reference/simulated.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const SLOTS = Array.from({ length: 40 }, (_, i) => ({
  length: i * 37,
  pending: 10 + i,
  seed: i * 0x9e3779b9 >>> 0,
}));
const LANES = [NO_SLOT, ...SLOTS.keys()];
const MAX_ROWS = 13;
const DRAFT_WORDS = draftWords(MAX_ROWS);
/** All drafts of a slot are to be verified: its count is large. */
const DRAFTS = Array.from({ length: SLOTS.length * DRAFT_WORDS }, (_, i) => 1000 + i);

/** The state before acceptance; the target agrees with the first `agreed` drafts of each lane. */
function state(numSteps: number, agreed: readonly number[]): AcceptBuffers {
  const rows = LANES.flatMap((slot) =>
    Array.from({ length: numSteps + 1 }, (_, j) => {
      if (slot === NO_SLOT) return { live: 0 };
      const cell = (SLOTS[slot]?.length ?? NaN) + j;
      return { token: 1, position: cell, slot, cell, base: cell + 1 };
    })
  );
  const chosen = LANES.flatMap((slot, b) =>
    Array.from({ length: numSteps + 1 }, (_, j) => {
      return j < (agreed[b] ?? 0) ? DRAFTS[slot * DRAFT_WORDS + DRAFT_TOKENS + j] ?? NaN : 500 + j;
    })
  );
  return {
    batchSlots: device.words(LANES),
    rows: device.words(packRows(rows)),
    chosen: device.words(chosen),
    drafts: device.words(DRAFTS),
    slots: device.words(packSlots(SLOTS)),
    extend: device.words(Array(rows.length * ROW_WORDS).fill(4242)),
    last: device.words(Array(LANES.length).fill(4242)),
    results: device.words(Array(LANES.length * resultWords(numSteps + 1)).fill(4242)),
  };
}

/** All that acceptance writes. */
async function after(launch: Dispatch, { slots, extend, last, results }: AcceptBuffers) {
  await device.run([launch]);
  const read = [slots, extend, last, results].map((operand) => device.readWords(operand));
  return await Promise.all(read);
}

const shapeOf = (depth: number) => ({
  batch: LANES.length,
  rows: depth + 1,
  depth,
  maxRows: MAX_ROWS,
});

function drawn(acceptance: readonly number[], numSteps: number): number[] {
  return LANES.map((slot) => {
    const { seed = 0, length = 0 } = SLOTS[slot] ?? {};
    return slot === NO_SLOT ? 0 : drawAccepted(acceptance, { seed, length, numSteps });
  });
}

for (const numSteps of [0, 1, 3, 7]) {
  Deno.test(`accept_simulated: ${numSteps} drafts, else the same as accept of such a chain`, async () => {
    for (const acceptance of [[0.75], [0.9, 0.5, 0.2], [0.1, 1]]) {
      const counts = drawn(acceptance, numSteps);
      const matched = state(numSteps, counts);
      const expected = await after(accept(matched, shapeOf(numSteps)), matched);
      const simulated = state(numSteps, counts);
      const launch = acceptSimulated(simulated, { ...shapeOf(numSteps), acceptance });
      assert.deepEqual(await after(launch, simulated), expected);
    }
  });
}

Deno.test("accept_simulated: of 12 drafts each has a probability of its own", async () => {
  const acceptance = [...Array<number>(10).fill(0.97), 0.1, 0.9];
  const counts = drawn(acceptance, 12);
  assert.ok(counts.includes(10) && counts.some((count) => count > 10), counts.join());
  const buffers = state(12, LANES.map(() => 0));
  const launch = acceptSimulated(buffers, { ...shapeOf(12), acceptance });
  const [, , , results] = await after(launch, buffers);
  const found = LANES.map((_, b) => results?.[b * resultWords(13)]);
  assert.deepEqual(found, LANES.map((slot, b) => slot === NO_SLOT ? 0 : (counts[b] ?? NaN) + 1));
});

Deno.test("accept_simulated: what the target chose has no say", async () => {
  for (const [probability, agreed] of [[1, 0], [0, 3]] as const) {
    const buffers = state(3, LANES.map(() => agreed));
    const shape = { ...shapeOf(3), acceptance: [probability] };
    const [, , , results] = await after(acceptSimulated(buffers, shape), buffers);
    const counts = LANES.map((_, b) => results?.[b * resultWords(4)]);
    assert.deepEqual(counts, LANES.map((slot) => slot === NO_SLOT ? 0 : 3 * probability + 1));
  }
});
