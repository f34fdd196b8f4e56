// A packed round does what a round with rows for all drafts does, at other rows.
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { verifyPacked } from "../../../kernels/round/verify_packed.ts";
import { accept, acceptSimulated, verifyRows } from "../../../kernels/round/round.ts";
import {
  ALL_DRAFTS,
  DRAFT_TOKENS,
  draftWords,
  NO_SLOT,
  RESULT_CHOICES,
  resultVerified,
  resultWords,
  ROW_WORDS,
} from "../../../src/model/device_layout.ts";
import { hash32 } from "../../../src/speculate/noise.ts";
import { openDevice } from "../../gpu/device.ts";
import { shuffled } from "../../gpu/numbers.ts";
import { packRows, packSlots } from "../rows.ts";
import { EXHAUSTIVE } from "../../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = 4242;
const FIRST_ROWS = 128;
const PADDING = packRows([{ live: 0 }]);

interface Lane {
  readonly length: number;
  /** Drafts to be verified. */
  readonly count: number;
  /** Cells that its slot owns beyond those it has. */
  readonly room: number;
  /** Drafts that the target agrees with, before one that it does not. */
  readonly right: number;
  /** Its last choice ends it. */
  readonly stops: boolean;
}

interface Round {
  readonly depth: number;
  readonly lanes: readonly Lane[];
  /** Places without a slot behind them. */
  readonly empty: number;
  /** Rows behind those of all sequences. */
  readonly more: number;
}

const untouched = (count: number) => device.words(Array(count).fill(LEFT_ALONE));
const draftOf = (slot: number, i: number) => 1000 + 20 * slot + i;
const choiceOf = (slot: number, j: number, { right }: Lane) => j === right ? 7 : draftOf(slot, j);

/** Whether results have confidences, and whether accepted counts are drawn instead of verified. */
interface How {
  readonly confidences: boolean;
  readonly simulated?: boolean;
}

async function runs({ depth, lanes, empty, more }: Round, { confidences, simulated }: How) {
  const rows = depth + 1;
  const maxRows = rows + 2;
  const batch = lanes.length + empty;
  const order = shuffled(lanes.length + 1, 3).slice(0, lanes.length);
  const drafts = order.flatMap(() => Array<number>(draftWords(maxRows)).fill(LEFT_ALONE));
  drafts.push(...Array(draftWords(maxRows)).fill(LEFT_ALONE));
  const slots: object[] = Array.from({ length: order.length + 1 }, () => ({}));
  lanes.forEach(({ length, count, room, right, stops }, b) => {
    const slot = order[b] as number;
    slots[slot] = {
      length,
      limit: length + room,
      pending: 500 + slot,
      stops: stops ? [7] : [],
      seed: right,
    };
    const at = slot * draftWords(maxRows);
    drafts[at] = count;
    for (let i = 0; i < depth; i++) {
      drafts[at + DRAFT_TOKENS + i] = draftOf(slot, i);
      drafts[at + DRAFT_TOKENS + maxRows - 1 + i] = hash32(slot, i, 5);
    }
  });
  const own = lanes.map(({ count }) => 1 + Math.min(depth, count));
  const total = own.reduce((a, b) => a + b, 0);
  const firsts = own.map((_, b) => own.slice(0, b).reduce((a, c) => a + c, 0));
  const uniform = lanes.map((_, b) => b * rows);
  const go = async (packed: boolean) => {
    const count = packed ? total + more : batch * rows;
    const at = packed ? firsts : uniform;
    const buffers = {
      batchSlots: device.words([...order, ...Array(empty).fill(NO_SLOT)]),
      slots: device.words(packSlots(slots)),
      drafts: device.words(drafts),
      rows: untouched(count * ROW_WORDS),
      extend: untouched(count * ROW_WORDS),
      last: untouched(FIRST_ROWS + batch),
    };
    const firstRows = packed ? FIRST_ROWS : undefined;
    const shape = { batch, rows, maxRows };
    await device.run([
      packed
        ? verifyPacked(buffers, { ...shape, count, firstRows: FIRST_ROWS })
        : verifyRows(buffers, shape),
    ]);
    const chosen = Array<number>(count).fill(LEFT_ALONE);
    lanes.forEach((lane, b) => {
      for (let j = 0; j < (own[b] as number); j++) {
        chosen[(at[b] as number) + j] = choiceOf(order[b] as number, j, lane);
      }
    });
    const verify = await device.readWords(buffers.rows);
    const results = untouched(batch * resultWords(rows, confidences));
    const accepted = { ...buffers, chosen: device.words(chosen), results };
    const of = { ...shape, depth, firstRows, confidences };
    await device.run([
      simulated ? acceptSimulated(accepted, { ...of, acceptance: [0.7] }) : accept(accepted, of),
    ]);
    return {
      verify,
      extend: await device.readWords(buffers.extend),
      last: await device.readWords(buffers.last),
      slots: await device.readWords(buffers.slots),
      results: await device.readWords(results),
    };
  };
  return { packed: await go(true), whole: await go(false), firsts, uniform, own, total, order };
}

const rowAt = (words: Uint32Array, row: number) =>
  words.subarray(row * ROW_WORDS, (row + 1) * ROW_WORDS);

async function assertAlike(round: Round, how: How): Promise<void> {
  const { packed, whole, firsts, uniform, own, total, order } = await runs(round, how);
  const { confidences, simulated = false } = how;
  const { depth, lanes, more, empty } = round;
  const size = resultWords(depth + 1, confidences);
  assert.deepEqual(packed.slots, whole.slots);
  for (const [b, lane] of lanes.entries()) {
    const [from, to] = [uniform[b] as number, firsts[b] as number];
    for (let j = 0; j < (own[b] as number); j++) {
      const at = `sequence ${b}, row ${j}`;
      assert.deepEqual(rowAt(packed.verify, to + j), rowAt(whole.verify, from + j), at);
      assert.deepEqual(rowAt(packed.extend, to + j), rowAt(whole.extend, from + j), at);
    }
    assert.equal((packed.last[b] ?? NaN) - to, (whole.last[b] ?? NaN) - from);
    const result = packed.results.subarray(b * size, (b + 1) * size);
    const other = whole.results.subarray(b * size, (b + 1) * size);
    const emitted = result[0] ?? NaN;
    assert.equal(emitted, other[0]);
    if (lane.room <= depth) assert.equal(emitted, 0);
    if (emitted === 0) continue;
    if (!simulated) assert.equal(emitted, 1 + Math.min(lane.right, lane.count, depth));
    const ends = [RESULT_CHOICES, RESULT_CHOICES + emitted] as const;
    assert.deepEqual(result.subarray(...ends), other.subarray(...ends));
    const tail = RESULT_CHOICES + depth + 1;
    assert.deepEqual(result.subarray(tail), other.subarray(tail));
    if (!confidences) continue;
    const verified = resultVerified(depth + 1);
    assert.equal(result[verified], Math.min(depth, lane.count));
    const slot = order[b] as number;
    const stored = Array.from({ length: depth }, (_, i) => hash32(slot, i, 5));
    assert.deepEqual([...result.subarray(verified + 1)], stored);
  }
  for (let row = total; row < total + more; row++) {
    assert.deepEqual(rowAt(packed.verify, row), PADDING);
    assert.deepEqual(rowAt(packed.extend, row), PADDING);
  }
  for (let b = lanes.length; b < lanes.length + empty; b++) {
    assert.equal(packed.results[b * size], 0);
    assert.equal(packed.last[b], 0, "a row that there is");
  }
}

function lane(depth: number): fc.Arbitrary<Lane> {
  return fc.record({
    length: fc.nat(300),
    count: fc.oneof(fc.nat(depth), fc.nat(depth), fc.constant(ALL_DRAFTS)),
    room: fc.constantFrom(50, 50, 50, depth + 1, depth, 0),
    right: fc.nat(depth + 1),
    stops: fc.boolean(),
  });
}

for (const [depth, most, numRuns] of [[1, 9, 25], [4, 6, 40], [7, 128, 12]] as const) {
  for (const confidences of [false, true]) {
    Deno.test(`packed rounds of up to ${most} chains of ${depth}${confidences ? ", with confidences" : ""}: each sequence's rows and results are those of whole rounds`, async () => {
      const round = fc.record({
        depth: fc.constant(depth),
        lanes: fc.array(lane(depth), { minLength: 1, maxLength: most, size: "max" }),
        empty: fc.nat(3),
        more: fc.nat(9),
      }).filter(({ lanes, empty }) => lanes.length + empty <= 128);
      await fc.assert(
        fc.asyncProperty(round, (each) => assertAlike(each, { confidences })),
        { seed: 20260714, numRuns: EXHAUSTIVE ? numRuns : Math.ceil(numRuns / 4) },
      );
    });
  }
}

Deno.test("packed rounds: the largest batch, all drafts and none, verified or simulated", async () => {
  for (const count of [0, 3, 7]) {
    const lanes = Array.from({ length: 128 }, (_, b) => (
      { length: b, count, room: 50, right: b % 9, stops: false }
    ));
    for (const simulated of [false, true]) {
      await assertAlike({ depth: 7, lanes, empty: 0, more: 0 }, { confidences: true, simulated });
    }
  }
});
