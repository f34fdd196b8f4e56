import assert from "node:assert/strict";
import { accept, acceptPrompt, draftRows, verifyRows } from "../../kernels/round/round.ts";
import {
  ALL_DRAFTS,
  NO_SLOT,
  RESULT_CHOICES,
  resultDrafts,
  resultWords,
  ROW_WORDS,
  SLOT_LIMIT,
  SLOT_WORDS,
} from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";
import { acceptChain } from "../reference/acceptance.ts";
import { packRows, packSlots, type RowFields, type SlotFields } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = 4242;
const SLOTS: readonly Partial<SlotFields>[] = [
  { length: 0, pending: 11, seed: 1, topK: 4, temperature: 0.5, topP: 0.9, minP: 0.1 },
  { length: 15, pending: 12, seed: 2 },
  { length: 700, pending: 13, seed: 3, temperature: 1 },
  { length: 33, pending: 14, seed: 4 },
];
const MAX_ROWS = 9;
/** Draft i of a slot. */
const draftOf = (slot: number, i: number) => 1000 + slot * (MAX_ROWS - 1) + i;
const draftsOf = (slot: number, count: number) =>
  Array.from({ length: count }, (_, i) => draftOf(slot, i));
/** What is drafted for each slot, [slots, draftWords(MAX_ROWS)]: chains, `counts` to be verified. */
const draftedWords = (counts: readonly number[] = []) =>
  SLOTS.flatMap((_, slot) => [
    counts[slot] ?? ALL_DRAFTS,
    ...draftsOf(slot, MAX_ROWS - 1),
    ...Array(MAX_ROWS - 1).fill(LEFT_ALONE),
  ]);
/** Rounds of chains of `depth` drafts. */
const shapeOf = (depth: number, batch = LANES.length) => (
  { batch, rows: depth + 1, depth, maxRows: MAX_ROWS }
);

const untouched = (count: number) => device.words(Array(count).fill(LEFT_ALONE));
const lengthOf = (slot: number) => SLOTS[slot]?.length ?? NaN;
const PADDING: RowFields = {
  token: 0,
  position: 0,
  slot: 0,
  cell: 0,
  base: 0,
  path: [],
  live: 0,
};
/** A row that sees all cells up to its own. */
const chainRow = (slot: number, cell: number, token: number): RowFields => {
  return { ...PADDING, token, position: cell, slot, cell, base: cell + 1, live: 1 };
};

const LANES = [2, NO_SLOT, 0, 3];

function sources(rows: number, counts?: readonly number[]) {
  return {
    batchSlots: device.words(LANES),
    slots: device.words(packSlots(SLOTS)),
    drafts: device.words(draftedWords(counts)),
    rows: untouched(rows * ROW_WORDS),
  };
}

for (const step of [0, 3, 6]) {
  Deno.test(`draft_rows: level ${step}, one row a lane, padding without a slot`, async () => {
    const buffers = sources(LANES.length);
    await device.run([draftRows(buffers, { batch: LANES.length, step, maxRows: MAX_ROWS })]);
    const expected = LANES.map((slot) => {
      const token = draftOf(slot, step);
      return slot === NO_SLOT ? PADDING : chainRow(slot, lengthOf(slot) + step, token);
    });
    assert.deepEqual(await device.readWords(buffers.rows), packRows(expected));
  });
}

/** The verify rows of LANES: the pending token, then drafts, of each. */
function chains(numSteps: number): RowFields[] {
  return LANES.flatMap((slot) => {
    if (slot === NO_SLOT) return Array<RowFields>(numSteps + 1).fill(PADDING);
    const tokens = [SLOTS[slot]?.pending ?? NaN, ...draftsOf(slot, numSteps)];
    return tokens.map((token, depth) => chainRow(slot, lengthOf(slot) + depth, token));
  });
}

for (const numSteps of [0, 1, 3, 8]) {
  Deno.test(`verify_rows: the pending token and ${numSteps} drafts a lane`, async () => {
    const buffers = sources(LANES.length * (numSteps + 1));
    await device.run([verifyRows(buffers, shapeOf(numSteps))]);
    assert.deepEqual(await device.readWords(buffers.rows), packRows(chains(numSteps)));
  });
}

/** The target's choices when it agrees with the first `right` drafts of the lane's slot. */
function choicesOf(slot: number, numSteps: number, right: number): number[] {
  const drafts = slot === NO_SLOT ? [] : draftsOf(slot, numSteps);
  return Array.from({ length: numSteps + 1 }, (_, j) => {
    // Past the first difference the choices may agree again; that must not count.
    return j === right ? 9 : drafts[j] ?? 500 + j;
  });
}

async function runAccept(numSteps: number, right: readonly number[]) {
  const count = LANES.length * (numSteps + 1);
  const choices = LANES.map((slot, b) => choicesOf(slot, numSteps, right[b] ?? 0));
  const buffers = {
    ...sources(1),
    rows: device.words(packRows(chains(numSteps))),
    chosen: device.words(choices.flat()),
    extend: untouched(count * ROW_WORDS),
    last: untouched(LANES.length),
    results: untouched(LANES.length * resultWords(numSteps + 1)),
  };
  await device.run([accept(buffers, shapeOf(numSteps))]);
  return {
    choices,
    slots: await device.readWords(buffers.slots),
    extend: await device.readWords(buffers.extend),
    last: [...await device.readWords(buffers.last)],
    results: await device.readWords(buffers.results),
  };
}

function assertResult(
  words: Uint32Array,
  drafts: readonly number[],
  choices: readonly number[],
): void {
  const { accepted, ids } = acceptChain(drafts, choices);
  assert.equal(words[0], accepted + 1);
  const emitted = words.subarray(RESULT_CHOICES, RESULT_CHOICES + accepted + 1);
  assert.deepEqual([...emitted], ids);
  const reported = words.subarray(resultDrafts(choices.length));
  assert.deepEqual([...reported], drafts);
}

for (const numSteps of [0, 1, 3, 8]) {
  Deno.test(`accept: every count of ${numSteps} drafts, lanes apart`, async () => {
    for (let most = 0; most <= numSteps; most++) {
      const right = [most, 0, numSteps - most, hash32(1, numSteps, most) % (numSteps + 1)];
      const { choices, slots, extend, last, results } = await runAccept(numSteps, right);
      const rows = chains(numSteps);
      const committed = SLOTS.map((slot) => ({ ...slot }));
      LANES.forEach((slot, b) => {
        const first = b * (numSteps + 1);
        const size = resultWords(numSteps + 1);
        const result = results.subarray(b * size, (b + 1) * size);
        if (slot === NO_SLOT) {
          assert.equal(last[b], first);
          assert.deepEqual([...result], [0, ...Array(size - 1).fill(LEFT_ALONE)]);
          return;
        }
        const chosen = choices[b] ?? [];
        const accepted = right[b] ?? NaN;
        assertResult(result, draftsOf(slot, numSteps), chosen);
        assert.equal(last[b], first + accepted);
        committed[slot] = {
          ...SLOTS[slot],
          length: lengthOf(slot) + accepted + 1,
          pending: chosen[accepted] ?? NaN,
        };
        for (let j = 0; j <= numSteps; j++) {
          const row = rows[first + j] as RowFields;
          rows[first + j] = { ...row, token: chosen[j] ?? NaN, live: Number(j <= accepted) };
        }
      });
      assert.deepEqual(slots, packSlots(committed));
      assert.deepEqual(extend, packRows(rows));
    }
  });
}

Deno.test("accept: a choice that is no token is not accepted as a draft", async () => {
  const buffers = {
    ...sources(1),
    batchSlots: device.words([1]),
    rows: device.words(packRows([chainRow(1, 15, 12), chainRow(1, 16, 1008)])),
    chosen: device.words([0xffffffff, 1]),
    extend: untouched(2 * ROW_WORDS),
    last: untouched(1),
    results: untouched(resultWords(4)),
  };
  await device.run([accept(buffers, shapeOf(1, 1))]);
  const results = await device.readWords(buffers.results);
  assert.deepEqual([...results.subarray(0, 2)], [1, 0xffffffff]);
  const [, slot] = SLOTS.entries().map(([i, of]) => i === 1 ? { ...of, limit: 0 } : of).toArray();
  const words = (await device.readWords(buffers.slots)).subarray(SLOT_WORDS, 2 * SLOT_WORDS);
  const expected = { ...slot, length: lengthOf(1) + 1, pending: 0xffffffff };
  assert.deepEqual(words, packSlots([expected]), "broken logits stop the lane");
});

for (const numSteps of [0, 3]) {
  Deno.test(`rounds of ${numSteps} drafts: a slot that stopped or owns too few cells is padding`, async () => {
    const enough = lengthOf(2) + numSteps + 1;
    for (const [limit, live] of [[0, false], [enough - 1, false], [enough, true]] as const) {
      const slots = SLOTS.map((slot, i) => i === 2 ? { ...slot, limit } : slot);
      const buffers = {
        ...sources(LANES.length * (numSteps + 1)),
        slots: device.words(packSlots(slots)),
      };
      await device.run([verifyRows(buffers, shapeOf(numSteps))]);
      const rows = chains(numSteps);
      if (!live) rows.fill(PADDING, 0, numSteps + 1);
      assert.deepEqual(await device.readWords(buffers.rows), packRows(rows), `limit ${limit}`);
    }
  });
}

Deno.test("draft_rows: no row past the cells that a slot owns", async () => {
  for (const [limit, live] of [[0, false], [lengthOf(2) + 3, false], [lengthOf(2) + 4, true]]) {
    const slots = SLOTS.map((slot, i) => i === 2 ? { ...slot, limit: Number(limit) } : slot);
    const buffers = { ...sources(LANES.length), slots: device.words(packSlots(slots)) };
    await device.run([draftRows(buffers, { batch: LANES.length, step: 3, maxRows: MAX_ROWS })]);
    const row = (await device.readWords(buffers.rows)).subarray(0, ROW_WORDS);
    const token = draftOf(2, 3);
    const expected = live ? chainRow(2, lengthOf(2) + 3, token) : PADDING;
    assert.deepEqual(row, packRows([expected]), `limit ${limit}`);
  }
});

Deno.test("accept: padding emits nothing and leaves its slot alone", async () => {
  const rows = [chainRow(0, 0, 11), chainRow(0, 1, 1000), PADDING, PADDING];
  const buffers = {
    ...sources(1),
    batchSlots: device.words([0, 2]),
    rows: device.words(packRows(rows)),
    chosen: device.words([7, 8, 1016, 9]),
    extend: untouched(rows.length * ROW_WORDS),
    last: untouched(2),
    results: untouched(2 * resultWords(2)),
  };
  await device.run([accept(buffers, shapeOf(1, 2))]);
  const results = await device.readWords(buffers.results);
  assert.deepEqual([results[0], results[resultWords(2)]], [1, 0]);
  const extend = await device.readWords(buffers.extend);
  assert.deepEqual(extend.subarray(2 * ROW_WORDS), packRows([PADDING, PADDING]));
  assert.deepEqual([...await device.readWords(buffers.last)], [0, 2]);
  const slots = SLOTS.map((slot, i) => i === 0 ? { ...slot, length: 1, pending: 7 } : slot);
  assert.deepEqual(await device.readWords(buffers.slots), packSlots(slots));
});

Deno.test("accept: each of eight stop ids ends a lane, emitted and not drafted ones alone", async () => {
  const stops = [0, 5, 1001, 77, 1 << 20, 9, 3, 500];
  // Two drafts are right, then the choice is 42; the draft that was refused does not count.
  const cases = [[1000, 1001], [42], [1002, 1003]].map((ids) => ({
    ids,
    stopped: ids[0] !== 1002,
  }));
  for (const end of stops.keys()) {
    for (const { ids, stopped } of cases) {
      const own = stops.with(end, ids.at(-1) ?? NaN).map((id, i) => i === end ? id : id + 5000);
      const buffers = {
        ...sources(1),
        slots: device.words(packSlots([{ ...SLOTS[0], stops: own }])),
        batchSlots: device.words([0]),
        rows: device.words(packRows([11, 1000, 1001, 1002].map((t, j) => chainRow(0, j, t)))),
        chosen: device.words([1000, 1001, 42, 1003]),
        extend: untouched(4 * ROW_WORDS),
        last: untouched(1),
        results: untouched(resultWords(4)),
      };
      await device.run([accept(buffers, shapeOf(3, 1))]);
      const limit = (await device.readWords(buffers.slots))[SLOT_LIMIT];
      assert.equal(limit === 0, stopped, `id ${ids.at(-1)} as stop ${end}`);
      assert.equal((await device.readWords(buffers.results))[0], 3);
    }
  }
});

Deno.test("accept: the last token that a text may have ends a lane", async () => {
  // Two drafts are right: three tokens are emitted, of which the last is pending at position 13.
  for (const most of [11, 13, 14, 15]) {
    const buffers = {
      ...sources(1),
      slots: device.words(packSlots([{ ...SLOTS[0], length: 10, most }])),
      batchSlots: device.words([0]),
      rows: device.words(packRows([11, 1000, 1001, 1002].map((t, j) => chainRow(0, 10 + j, t)))),
      chosen: device.words([1000, 1001, 42, 1003]),
      extend: untouched(4 * ROW_WORDS),
      last: untouched(1),
      results: untouched(resultWords(4)),
    };
    await device.run([accept(buffers, shapeOf(3, 1))]);
    const slots = await device.readWords(buffers.slots);
    assert.deepEqual([slots[0], slots[SLOT_LIMIT] === 0], [13, most <= 14], `${most}`);
    assert.equal((await device.readWords(buffers.results))[0], 3);
  }
});

Deno.test("accept_prompt: the choice after each prompt's last row is the pending and the last token", async () => {
  const rows = [5, 6, 7, 8].map((cell) => chainRow(1, cell, 300 + cell));
  const buffers = {
    batchSlots: device.words([1, NO_SLOT, 0]),
    last: device.words([2, 0, 3]),
    chosen: device.words([77, 78, 79]),
    slots: device.words(packSlots(SLOTS)),
    extend: device.words(packRows(rows)),
    results: untouched(3 * resultWords(1)),
  };
  await device.run([acceptPrompt(buffers, 3)]);
  const ends = [{ length: 9, pending: 79 }, { length: 8, pending: 77 }];
  const slots = SLOTS.map((slot, i) => ({ ...slot, ...ends[i] }));
  assert.deepEqual(await device.readWords(buffers.slots), packSlots(slots));
  const tokens: Record<number, number> = { 2: 77, 3: 79 };
  const extend = rows.map((row, i) => ({ ...row, token: tokens[i] ?? row.token }));
  assert.deepEqual(await device.readWords(buffers.extend), packRows(extend));
  const results = await device.readWords(buffers.results);
  assert.deepEqual([...results.subarray(0, 6)], [1, 77, 0, 0, 1, 79]);
});
