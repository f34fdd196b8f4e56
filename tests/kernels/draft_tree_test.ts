// Trees drafted on the device: top tokens against a sort, levels and selection against SGLang's tables.
import assert from "node:assert/strict";
import { partialTopWords, topTokens } from "../../kernels/tree/top.ts";
import { treeLevel, treeSelect } from "../../kernels/tree/tree.ts";
import { poolSize } from "../../src/speculate/trees.ts";
import { DRAFT_TOKENS, draftWords, NO_SLOT, ROW_WORDS } from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { buildTree, type DraftLevels, levelParents } from "../reference/eagle_tree.ts";
import { TREE_CASES } from "../reference/eagle_tree_cases.ts";
import { packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const MAX_ROWS = 64;
const DRAFT_WORDS = draftWords(MAX_ROWS);
const UNTOUCHED = 4242;

const floatBits = (values: readonly number[]) => [
  ...new Uint32Array(Float32Array.from(values).buffer),
];

/** The most probable columns of a row, the lowest first on a tie, with their probabilities. */
function expectedTop(logits: readonly number[], top: number): [column: number, p: number][] {
  const most = Math.max(...logits);
  const sum = logits.reduce((all, logit) => all + Math.exp(logit - most), 0);
  return [...logits.keys()]
    .sort((a, b) => (logits[b] as number) - (logits[a] as number) || a - b)
    .slice(0, top)
    .map((column) => [column, Math.exp((logits[column] as number) - most) / sum]);
}

function near(actual: number, expected: number): boolean {
  return Math.abs(actual - expected) <= 2e-6 * expected + 1e-12;
}

for (const [vocab, lanes] of [[1100, 16], [1100, 256], [30, 64]] as const) {
  Deno.test(`top_tokens: ${vocab} columns, ${lanes} lanes: as a sort, by row and by slot`, async () => {
    const [rows, top, stride] = [3, 10, vocab + 6];
    const logits = [
      numbers(vocab, 1).map((x) => x * 8),
      // Few different ones: ties within a slice and across slices.
      Array.from({ length: vocab }, (_, i) => hash32(3, i, 0) % 5),
      numbers(vocab, 2).map((x) => x - 40),
    ].map((row) => Array.from(row, Math.fround));
    const padded = logits.flatMap((row) => [...row, ...Array<number>(stride - vocab).fill(1e30)]);
    const offsets = Array.from({ length: vocab }, (_, i) => 2 * i + 1);
    const slots = [2, NO_SLOT, 0];
    const shape = { rows, vocab, stride, top, lanes, label: "top" };
    const perRow = device.filled(2 * rows * top);
    const perSlot = device.words(Array(2 * 4 * top).fill(UNTOUCHED));
    const drafts = device.words(Array(4 * DRAFT_WORDS).fill(UNTOUCHED));
    const buffers = {
      logits: device.floats(padded),
      partials: device.filled(rows * partialTopWords(vocab, top)),
      offsets: device.words(offsets),
    };
    const bySlot = { batchSlots: device.words(slots), drafts, maxRows: MAX_ROWS };
    await device.run([
      ...topTokens({ ...buffers, out: perRow }, shape),
      ...topTokens({ ...buffers, out: perSlot, bySlot }, shape),
    ]);
    const found = await device.readWords(perRow);
    for (const [r, row] of logits.entries()) {
      for (const [i, [column, p]] of expectedTop(row, top).entries()) {
        const at = 2 * (r * top + i);
        assert.equal(found[at], 3 * column + 1, `row ${r}, ${i}`);
        const [probability = NaN] = new Float32Array(found.slice(at + 1, at + 2).buffer);
        assert.ok(near(probability, p), `row ${r}, ${i}: ${probability} for ${p}`);
      }
    }
    const kept = await device.readWords(perSlot);
    const tokens = await device.readWords(drafts);
    for (let slot = 0; slot < 4; slot++) {
      const row = slots.indexOf(slot);
      const expected = row < 0
        ? Array(2 * top).fill(UNTOUCHED)
        : [...found.slice(2 * row * top, 2 * (row + 1) * top)];
      assert.deepEqual([...kept.slice(2 * slot * top, 2 * (slot + 1) * top)], expected);
      const first = tokens[slot * DRAFT_WORDS + DRAFT_TOKENS];
      assert.equal(first, row < 0 ? UNTOUCHED : expected[0]);
    }
  });
}

/** Token and probability of the `top` most probable tokens of each row, u32 and f32 words in turn. */
async function topWords(rows: readonly (readonly number[])[], top: number) {
  const vocab = rows[0]?.length ?? 0;
  const out = device.filled(2 * rows.length * top);
  await device.run(topTokens({
    logits: device.floats(rows.flat()),
    partials: device.filled(rows.length * partialTopWords(vocab, top)),
    offsets: device.words(Array(vocab).fill(0)),
    out,
  }, { rows: rows.length, vocab, stride: vocab, top, lanes: 64, label: "top" }));
  return await device.readWords(out);
}

Deno.test("top_tokens: logits that are no numbers have probability 0 and tokens that exist", async () => {
  const [vocab, top] = [40, 4];
  const rows = [
    Array.from({ length: vocab }, (_, i) => i === 7 ? NaN : i),
    Array<number>(vocab).fill(-Infinity),
    Array.from({ length: vocab }, (_, i) => i === 9 ? Infinity : 0),
  ];
  const found = await topWords(rows, top);
  const probabilities = new Float32Array(found.buffer);
  for (let i = 0; i < rows.length * top; i++) {
    assert.ok((found[2 * i] as number) < vocab, `token ${found[2 * i]}`);
    const p = probabilities[2 * i + 1] as number;
    assert.ok(p >= 0 && p <= 1, `probability ${p}`);
  }
});

Deno.test("top_tokens: tokens that are ruled out, a whole slice of them too, have no part in probabilities", async () => {
  const [vocab, top] = [700, 5];
  const rows = [0, 1, 2].map((out) =>
    Array.from(
      { length: vocab },
      (_, i) => Math.floor(i / 256) === out ? -Infinity : hash32(9, i, out) % 7,
    )
  );
  const found = await topWords(rows, top);
  const probabilities = new Float32Array(found.buffer);
  for (const [r, row] of rows.entries()) {
    for (const [i, [column, p]] of expectedTop(row, top).entries()) {
      const at = 2 * (r * top + i);
      assert.equal(found[at], column);
      assert.ok(
        near(probabilities[at + 1] as number, p),
        `row ${r}, ${i}: ${probabilities[at + 1]} for ${p}`,
      );
    }
  }
});

interface Lane {
  readonly slot: number;
  readonly length: number;
  readonly limit?: number;
  readonly levels: DraftLevels;
}

/** What a level's forward found for each node of the frontier: score / the score of its parent. */
function topOf({ k, scores, tokens }: DraftLevels, level: number): number[] {
  const parents = level === 0 ? [] : levelParents({ k, scores, tokens })[level - 1] as number[];
  const all = scores.flat();
  // Level 0 has one place more than nodes: SGLang's list begins with the root.
  const nodes = level === 1 ? parents.slice(1) : parents;
  return (scores[level] as number[]).flatMap((score, c) => {
    const before = level === 0 ? 1 : all[nodes[Math.floor(c / k)] as number] as number;
    return [(tokens[level] as number[])[c] as number, ...floatBits([score / before])];
  });
}

/** Runs all levels and the selection; returns each slot's drafts and the rows after each level. */
async function drawn(lanes: readonly (Lane | undefined)[], rows: number) {
  const { k: width, scores } = (lanes.find(Boolean) as Lane).levels;
  const [batch, depth, kept] = [lanes.length, scores.length, width + 1];
  const slotCount = 4;
  const first = Array<number>(slotCount * kept * 2).fill(UNTOUCHED);
  for (const lane of lanes) {
    if (lane) first.splice(lane.slot * kept * 2, 2 * width, ...topOf(lane.levels, 0));
  }
  const slots = Array.from({ length: slotCount }, (_, slot) => {
    const { length = 0, limit = 100_000 } = lanes.find((lane) => lane?.slot === slot) ?? {};
    return { length, limit };
  });
  const drafts = device.words(Array(slotCount * DRAFT_WORDS).fill(UNTOUCHED));
  const pool = poolSize({ depth, width });
  const tree = {
    pool: device.filled(2 * batch * pool),
    frontier: device.filled(batch * depth * width),
  };
  const shape = { batch, depth, width, rows, pool, kept, maxRows: MAX_ROWS };
  const buffers = {
    batchSlots: device.words(lanes.map((lane) => lane?.slot ?? NO_SLOT)),
    slots: device.words(packSlots(slots)),
    tree,
  };
  const levels: { readonly rows: Uint32Array; readonly hidden: Uint32Array }[] = [];
  for (let level = 0; level < depth; level++) {
    const nextRows = device.filled(batch * width * ROW_WORDS);
    const hidden = device.filled(batch * width);
    const top = level === 0
      ? first
      : lanes.flatMap((lane) =>
        lane ? topOf(lane.levels, level) : Array(2 * width * width).fill(0)
      );
    await device.run([
      treeLevel({ ...buffers, top: device.words(top), rows: nextRows, hidden }, {
        ...shape,
        level,
      }),
    ]);
    levels.push({
      rows: await device.readWords(nextRows),
      hidden: await device.readWords(hidden),
    });
  }
  await device.run([treeSelect({ ...buffers, drafts }, shape)]);
  const words = await device.readWords(drafts);
  const proposal = (slot: number) => {
    const at = slot * DRAFT_WORDS + DRAFT_TOKENS;
    return {
      tokens: [...words.slice(at, at + rows - 1)],
      parents: [...words.slice(at + MAX_ROWS - 1, at + MAX_ROWS - 1 + rows - 1)],
    };
  };
  return { proposal, levels, words };
}

Deno.test("draft tree: SGLang's golden trees, and the rows that each level feeds", async () => {
  const [a, b] = TREE_CASES as [(typeof TREE_CASES)[0], (typeof TREE_CASES)[0]];
  const lanes = [
    { slot: 3, length: a.length, levels: a.levels },
    undefined,
    { slot: 1, length: b.length, levels: b.levels },
  ];
  const { proposal, levels } = await drawn(lanes, 8);
  assert.deepEqual(proposal(3), { tokens: a.expected.tokens, parents: a.expected.parent });
  assert.deepEqual(proposal(1), { tokens: b.expected.tokens, parents: b.expected.parent });
  const width = a.levels.k;
  for (const [place, lane] of lanes.entries()) {
    for (const [level, { rows, hidden }] of levels.slice(0, -1).entries()) {
      for (let r = 0; r < width; r++) {
        const at = (place * width + r) * ROW_WORDS;
        const [token, position, slot, cell, base, live] = rows.slice(at, at + 6);
        const from = hidden[place * width + r];
        if (lane === undefined) {
          assert.deepEqual([live, from], [0, NO_SLOT]);
          continue;
        }
        const path = new Uint8Array(rows.slice(at + 8, at + 12).buffer).slice(0, level + 1);
        const frontier = levelParents(lane.levels)
          .map((places, l) => l === 0 ? places.slice(1) : places);
        const at0 = frontier[level]?.[r] as number;
        assert.equal(token, lane.levels.tokens.flat()[at0]);
        assert.deepEqual([position, slot, live], [lane.length + level, lane.slot, 1]);
        assert.deepEqual([cell, base], [lane.length + level * width + r, lane.length]);
        assert.equal(path[level], level * width + r);
        // Its parent's path is the beginning of its own.
        const parent = level === 0 ? undefined : Math.floor(
          (at0 - width) % (width * width) / width,
        );
        if (parent === undefined) assert.equal(from, lane.slot);
        else {
          assert.equal(from, place * width + parent);
          const before = levels[level - 1]?.rows as Uint32Array;
          const its = (place * width + parent) * ROW_WORDS + 8;
          assert.deepEqual(
            path.slice(0, level),
            new Uint8Array(before.slice(its, its + 4).buffer).slice(0, level),
          );
        }
      }
    }
  }
});

/** Levels of a made-up draft, with probabilities that f32 multiplies without ties. */
function randomLevels(seed: number, k: number, depth: number): DraftLevels {
  const scores: number[][] = [];
  const tokens: number[][] = [];
  for (let level = 0; level < depth; level++) {
    const before = level === 0 ? [1] : levelParents({ k, scores, tokens })[level - 1]
      ?.slice(level === 1 ? 1 : 0)
      .map((at) => scores.flat()[at] as number) as number[];
    scores.push(before.flatMap((parent, j) => {
      let left = 1;
      return Array.from({ length: k }, (_, m) => {
        const share = left * (0.2 + 0.6 * hash32(seed, level * 1000 + j * 20 + m, 7) / 2 ** 32);
        left -= share;
        return Math.fround(Math.fround(parent) * Math.fround(share));
      }).sort((x, y) => y - x);
    }));
    tokens.push(Array.from({ length: k * before.length }, (_, c) => hash32(seed, level, c) % 5000));
  }
  return { k, scores, tokens };
}

for (
  const [k, depth, rows] of [[2, 1, 3], [1, 4, 5], [8, 3, 16], [10, 8, 60], [16, 16, 64]] as const
) {
  Deno.test(`draft tree: topk ${k}, ${depth} steps, ${rows} rows`, async () => {
    const lanes = [5, 6].map((seed, slot) => ({
      slot,
      length: 3 + seed,
      levels: randomLevels(seed, k, depth),
    }));
    const { proposal, levels: fed, words } = await drawn(lanes, rows);
    for (const { slot, levels } of lanes) {
      assert.deepEqual(proposal(slot), buildTree(levels, rows));
    }
    // The path of each row begins with its parent's and ends with its own cell, also at the most levels and nodes.
    const pathOf = (level: number, place: number) => {
      const at = place * ROW_WORDS + 8;
      return [...new Uint8Array(fed[level]!.rows.slice(at, at + 4).buffer)];
    };
    for (const [level, { hidden }] of fed.slice(0, -1).entries()) {
      for (const [place, from] of hidden.entries()) {
        const path = pathOf(level, place);
        assert.equal(path[level], level * k + place % k);
        if (level > 0) {
          assert.deepEqual(path.slice(0, level), pathOf(level - 1, from).slice(0, level));
        }
      }
    }
    // Nothing of other slots.
    assert.ok(words.slice(2 * DRAFT_WORDS).every((word) => word === UNTOUCHED));
  });
}

Deno.test("draft tree: of the same score a parent comes before its child, and the first before the next", async () => {
  // The child of each of two halves is certain: four nodes have the same score, and three are selected.
  const levels = {
    k: 2,
    scores: [[0.5, 0.5], [0.5, 0, 0.5, 0]],
    tokens: [[7, 8], [9, 10, 11, 12]],
  };
  const { proposal } = await drawn([{ slot: 0, length: 5, levels }], 4);
  assert.deepEqual(proposal(0), { tokens: [7, 8, 9], parents: [0, 0, 1] });
});

Deno.test("draft tree: rows for which the slot owns no cells are padding", async () => {
  const { length, levels } = TREE_CASES[0] as (typeof TREE_CASES)[0];
  const lanes = [{ slot: 0, length, levels, limit: length + 6 }];
  const found = await drawn(lanes, 8);
  const live = found.levels.slice(0, -1).flatMap(({ rows }) =>
    [0, 1, 2, 3].map((r) => rows[r * ROW_WORDS + 5])
  );
  assert.deepEqual(live, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
});
