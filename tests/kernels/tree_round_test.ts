// Rounds of trees against acceptTree: rows of verification, acceptance, moves of what is kept.
import assert from "node:assert/strict";
import { moveCells } from "../../kernels/round/move_cells.ts";
import { accept, acceptTree, verifyRows, verifyTree } from "../../kernels/round/round.ts";
import { packProposal } from "../../src/engine/device/proposals.ts";
import {
  NO_SLOT,
  PAGE,
  RESULT_CHOICES,
  resultDrafts,
  resultWords,
  ROW_WORDS,
} from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { depthsOf, NO_PROPOSAL, pathTo, type Proposal } from "../../src/speculate/trees.ts";
import { openDevice } from "../gpu/device.ts";
import { buildTree } from "../reference/eagle_tree.ts";
import { TREE_CASES } from "../reference/eagle_tree_cases.ts";
import { acceptTree as expectedOf, chainOf } from "../reference/trees.ts";
import { blockTable, packRows, packSlots, type RowFields } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = 4242;
const NO_ROW = 0xffffffff;
const MAX_ROWS = 16;
const KEPT = 64;
const SHAPE = { depth: 6, width: 2, rows: 12, maxRows: MAX_ROWS };
const PADDING: RowFields = {
  token: 0,
  position: 0,
  slot: 0,
  cell: 0,
  base: 0,
  live: 0,
  path: [],
};

const untouched = (count: number) => device.words(Array(count).fill(LEFT_ALONE));

interface Lane {
  readonly slot: number;
  readonly length: number;
  readonly pending: number;
  readonly proposal: Proposal;
}

/** A tree of `count` tokens with few different ones, so that siblings may be equal. */
function randomTree(seed: number, count: number): Proposal {
  const parents: number[] = [];
  for (let i = 0; i < count; i++) {
    const depths = depthsOf({ tokens: [], parents });
    const open = [...depths.keys()].filter((row) => (depths[row] as number) < SHAPE.depth);
    // More often than not from one of the last rows, so that some are deep.
    const at = hash32(seed, i, 3) % Math.min(open.length, 3);
    parents.push(open[open.length - 1 - at] as number);
  }
  return { tokens: parents.map((_, i) => hash32(seed, i, 4) % 3), parents };
}

/** The rows of one lane's verification. */
function laneRows({ slot, length, pending, proposal }: Lane, rows: number): RowFields[] {
  const depths = depthsOf(proposal);
  return Array.from({ length: rows }, (_, row) => {
    if (row > proposal.tokens.length) return PADDING;
    const path = pathTo(proposal, row);
    const line = path.findIndex((at, level) => at !== level);
    const first = line < 0 ? path.length : line;
    return {
      slot,
      live: 1,
      cell: length + row,
      token: row === 0 ? pending : proposal.tokens[row - 1] as number,
      position: length + (depths[row] as number),
      base: length + first,
      path: path.slice(first).map((at) => at - first),
    };
  });
}

function buffersOf(lanes: readonly (Lane | undefined)[], shape: typeof SHAPE) {
  const slots = Array.from({ length: 6 }, (_, slot) => {
    const { length = 3, pending = 0 } = lanes.find((lane) => lane?.slot === slot) ?? {};
    return { length, pending };
  });
  const drafts = slots.flatMap((_, slot) => {
    const { proposal = NO_PROPOSAL } = lanes.find((lane) => lane?.slot === slot) ?? {};
    return [...packProposal(proposal, shape.maxRows)];
  });
  const batch = lanes.length;
  return {
    slotFields: slots,
    buffers: {
      batchSlots: device.words(lanes.map((lane) => lane?.slot ?? NO_SLOT)),
      slots: device.words(packSlots(slots)),
      drafts: device.words(drafts),
      rows: untouched(batch * shape.rows * ROW_WORDS),
    },
  };
}

function randomLanes(seed: number): (Lane | undefined)[] {
  const counts = [0, SHAPE.rows - 1, 1 + hash32(seed, 0, 5) % 10];
  const lanes = counts.map((count, i): Lane => ({
    slot: [4, 0, 5][i] as number,
    length: 7 + 16 * i + seed,
    pending: 2,
    proposal: randomTree(seed * 7 + i, count),
  }));
  // A row, a tree, no slot, a tree, a chain.
  const straight = { slot: 2, length: 90, pending: 1, proposal: chainOf([0, 1, 0, 2, 1]) };
  return [lanes[0], lanes[1], undefined, lanes[2], straight];
}

/** What verify_tree leaves for the lanes. */
async function verified(lanes: readonly (Lane | undefined)[], shape = SHAPE) {
  const { buffers, slotFields } = buffersOf(lanes, shape);
  await device.run([verifyTree(buffers, { ...shape, batch: lanes.length })]);
  const rows = lanes.flatMap((lane) =>
    lane ? laneRows(lane, shape.rows) : Array<RowFields>(shape.rows).fill(PADDING)
  );
  return { buffers, slotFields, rows, words: await device.readWords(buffers.rows) };
}

Deno.test("verify_tree: rows of a tree, a chain and one row in one batch", async () => {
  for (let seed = 0; seed < 12; seed++) {
    const { rows, words } = await verified(randomLanes(seed));
    assert.deepEqual(words, packRows(rows), `seed ${seed}`);
  }
});

Deno.test("verify_tree: SGLang's golden trees, their positions and ancestors", async () => {
  const lanes = TREE_CASES.map(({ levels, length, root: pending }, slot): Lane => (
    { slot, length, pending, proposal: buildTree(levels, 8) }
  ));
  const shape = { depth: 4, width: 4, rows: 8, maxRows: 8 };
  const { words } = await verified(lanes, shape);
  for (const [i, { expected, length }] of TREE_CASES.entries()) {
    for (const [row, mask] of expected.mask.entries()) {
      const own = words.subarray((8 * i + row) * ROW_WORDS, (8 * i + row + 1) * ROW_WORDS);
      const [, position = 0, slot, cell, base = 0] = own;
      assert.deepEqual([position, slot, cell], [expected.positions[row], i, length + row]);
      const bytes = new Uint8Array(own.slice(8).buffer);
      const seen = Array.from({ length: position + 1 - length }, (_, level) => {
        const at = length + level;
        return at < base ? at : base + (bytes[at - base] as number);
      });
      assert.equal(seen.reduce((bits, at) => bits | 1 << at - length, 0), mask);
    }
  }
});

Deno.test("verify_tree: 16 levels beside the first chain, and a chain of 63 rows", async () => {
  const levels = Array.from({ length: 16 }, (_, i) => i);
  const beside: Proposal = {
    tokens: [1, ...levels],
    parents: [0, ...levels.map((i) => i && i + 1)],
  };
  const lanes = [beside, chainOf(Array(63).fill(2))].map((proposal, slot): Lane => (
    { slot, length: 30, pending: 4, proposal }
  ));
  const { rows, words } = await verified(lanes, { depth: 63, width: 2, rows: 64, maxRows: 64 });
  assert.equal(rows[17]?.path.length, 16);
  assert.deepEqual(words, packRows(rows));
});

Deno.test("verify_tree: of chains it makes the rows of verify_rows", async () => {
  const lanes = randomLanes(1).map((lane) => lane && { ...lane, proposal: chainOf([5, 6, 7]) });
  const shape = { ...chain(5), maxRows: MAX_ROWS };
  const { buffers } = buffersOf(lanes, shape);
  await device.run([verifyRows(buffers, { ...shape, batch: lanes.length })]);
  assert.deepEqual(await device.readWords(buffers.rows), (await verified(lanes, shape)).words);
});

/** Choices that often agree with a draft. */
function choicesOf(seed: number, lanes: readonly (Lane | undefined)[], rows: number): number[] {
  return lanes.flatMap((lane, b) =>
    Array.from({ length: rows }, (_, row) => {
      const { tokens, parents } = lane?.proposal ?? NO_PROPOSAL;
      const children = tokens.filter((_, i) => parents[i] === row);
      const pick = hash32(seed, b * rows + row, 8) % (children.length + 1);
      return children[pick] ?? hash32(seed, row, 9) % 3;
    })
  );
}

async function accepted(seed: number, lanes: readonly (Lane | undefined)[]) {
  const { buffers, slotFields, rows } = await verified(lanes);
  const batch = lanes.length;
  const chosen = choicesOf(seed, lanes, SHAPE.rows);
  const count = batch * (SHAPE.depth + 1);
  const all = {
    ...buffers,
    chosen: device.words(chosen),
    extend: untouched(count * ROW_WORDS),
    last: untouched(KEPT + count),
    results: untouched(batch * resultWords(SHAPE.rows)),
  };
  await device.run([acceptTree(all, { ...SHAPE, batch, kept: KEPT })]);
  return { buffers: all, slotFields, rows, chosen };
}

Deno.test("accept_tree: the walk of acceptTree, from one row to a tree, lanes apart", async () => {
  const seen = new Set<number>();
  for (let seed = 0; seed < 30; seed++) {
    const lanes = randomLanes(seed);
    const { buffers, slotFields, chosen } = await accepted(seed, lanes);
    const [extend, last, results, slots] = await Promise.all(
      [buffers.extend, buffers.last, buffers.results, buffers.slots].map(device.readWords),
    ) as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
    const expectedRows: RowFields[] = [];
    const committed: Partial<Lane>[] = slotFields.map((slot) => ({ ...slot }));
    const wide = SHAPE.depth + 1;
    lanes.forEach((lane, b) => {
      const result = results.subarray(b * resultWords(SHAPE.rows));
      const kept = [...last.subarray(KEPT + b * wide, KEPT + (b + 1) * wide)];
      if (lane === undefined) {
        assert.equal(result[0], 0);
        assert.deepEqual(kept, Array(wide).fill(NO_ROW));
        expectedRows.push(...Array<RowFields>(wide).fill(PADDING));
        return;
      }
      const { slot, length, proposal } = lane;
      const of = expectedOf(proposal, chosen.slice(b * SHAPE.rows, (b + 1) * SHAPE.rows));
      seen.add(of.accepted);
      assert.equal(result[0], of.accepted + 1);
      assert.deepEqual(
        [...result.subarray(RESULT_CHOICES, RESULT_CHOICES + of.ids.length)],
        of.ids,
      );
      const drafts = result.subarray(resultDrafts(SHAPE.rows)).subarray(0, proposal.tokens.length);
      assert.deepEqual([...drafts], proposal.tokens);
      const lanes = of.rows.map((row) => b * SHAPE.rows + row);
      assert.deepEqual(kept, [...lanes, ...Array(wide - lanes.length).fill(NO_ROW)]);
      assert.equal(last[b], b * wide + of.accepted);
      committed[slot] = { length: length + of.accepted + 1, pending: of.ids.at(-1) as number };
      for (let j = 0; j < wide; j++) {
        expectedRows.push({
          slot,
          position: length + j,
          cell: length + j,
          base: length + j + 1,
          path: [],
          token: of.ids[j] ?? chosen[b * SHAPE.rows] as number,
          live: Number(j <= of.accepted),
        });
      }
    });
    assert.deepEqual(slots, packSlots(committed), `seed ${seed}`);
    assert.deepEqual(extend, packRows(expectedRows), `seed ${seed}`);
  }
  assert.ok(seen.size > 4, `${[...seen]}`);
});

Deno.test("accept: only as many drafts of a chain as are to be verified", async () => {
  const counts = [0, 2, 5, 3];
  const lanes = counts.map((count, slot): Lane => ({
    slot,
    length: 20 * slot,
    pending: 1,
    proposal: { ...chainOf([5, 6, 7, 8, 9]), tokens: [5, 6, 7, 8, 9].slice(0, count) },
  }));
  const shape = { ...chain(4), maxRows: MAX_ROWS, batch: lanes.length };
  const { buffers } = buffersOf(lanes, shape);
  const all = {
    ...buffers,
    // The target agrees with all drafts that there are or might be.
    chosen: device.words(lanes.flatMap(() => [5, 6, 7, 8, 9])),
    extend: untouched(lanes.length * 5 * ROW_WORDS),
    last: untouched(lanes.length),
    results: untouched(lanes.length * resultWords(5)),
  };
  await device.run([verifyRows(all, shape), accept(all, shape)]);
  const results = await device.readWords(all.results);
  const emitted = lanes.map((_, b) => results[b * resultWords(5)]);
  assert.deepEqual(emitted, [1, 3, 5, 4]);
  const rows = await device.readWords(all.rows);
  const live = lanes.map((_, b) =>
    [0, 1, 2, 3, 4].map((row) => rows[(b * 5 + row) * ROW_WORDS + 5])
  );
  assert.deepEqual(live, counts.map((count) => [0, 1, 2, 3, 4].map((row) => Number(row <= count))));
});

for (
  const { heads, words, buffers: count } of [
    { heads: 3, words: 5, buffers: 1 },
    { heads: 1, words: 70, buffers: 7 },
  ]
) {
  Deno.test(`move_cells: ${count} buffers of ${heads} heads, ${words} words a cell`, async () => {
    const [slots, tablePages] = [6, 9];
    const table = blockTable(slots, tablePages);
    const size = slots * tablePages * PAGE * heads * words;
    const place = (slot: number, cell: number, head: number) => {
      const page = table[slot * tablePages + Math.floor(cell / PAGE)] as number;
      return ((page * heads + head) * PAGE + cell % PAGE) * words;
    };
    let mixed = false;
    for (const seed of [4, 5, 6, 7]) {
      const lanes = randomLanes(seed);
      const { buffers: { extend, last }, chosen } = await accepted(seed, lanes);
      const before = Array.from(
        { length: count },
        (_, n) => Uint32Array.from({ length: size }, (_, i) => hash32(seed + n, i, 11)),
      );
      const cells = before.map((one) => device.words(one));
      const kept = { extend, last, pages: device.words(table) };
      const shape = { ...SHAPE, batch: lanes.length, kept: KEPT, tablePages };
      await device.run(moveCells(kept, { buffers: cells, heads, words }, shape));
      for (const [n, old] of before.entries()) {
        const expected = old.slice();
        lanes.forEach((lane, b) => {
          if (lane === undefined) return;
          const { rows } = expectedOf(lane.proposal, chosen.slice(b * SHAPE.rows));
          mixed ||= rows[1] === 1 && rows.some((row, j) => row !== j);
          for (const [j, row] of rows.entries()) {
            for (let head = 0; head < heads; head++) {
              const from = place(lane.slot, lane.length + row, head);
              const moved = old.subarray(from, from + words);
              expected.set(moved, place(lane.slot, lane.length + j, head));
            }
          }
        });
        assert.deepEqual(await device.readWords(cells[n]!), expected, `seed ${seed}, buffer ${n}`);
      }
    }
    assert.ok(mixed, "no cell is moved behind one that stays");
  });
}
