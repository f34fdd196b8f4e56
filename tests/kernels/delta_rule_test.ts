/**
 * Gated DeltaNet's recurrence: its formula in float64, and the same bits for any forwards, at the sizes of published
 * models too.
 */
import assert from "node:assert/strict";
import {
  type DeltaHeads,
  type DeltaMemory,
  deltaRule,
  headerWords,
  stepWords,
} from "../../kernels/recurrent/delta_rule.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { packRows, treeRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

/**
 * Sizes of published models; columns that are no multiple of 32 with keys that are a multiple of 8; several parts of a
 * head; many heads.
 */
const SHAPES: readonly DeltaHeads[] = [
  { keyHeads: 2, valueHeads: 6, keyDim: 128, valueDim: 128 },
  { keyHeads: 1, valueHeads: 2, keyDim: 24, valueDim: 40 },
  { keyHeads: 2, valueHeads: 2, keyDim: 32, valueDim: 48 },
  { keyHeads: 1, valueHeads: 33, keyDim: 128, valueDim: 128 },
];
const SLOTS = 2;
/** Most rows of the tests' rounds. */
const STEP_ROWS = 4;

const mixedCols = ({ keyHeads, valueHeads, keyDim, valueDim }: DeltaHeads) =>
  2 * keyHeads * keyDim + valueHeads * valueDim;
const weightsOf = ({ valueHeads }: DeltaHeads) => numbers(2 * valueHeads, 9);

/** The inputs of a row: they depend on the text and the position, and for rejected rows on `draft`. */
function rowOf(
  heads: DeltaHeads,
  { text, position, draft = 0 }: { text: number; position: number; draft?: number },
) {
  const seed = 1000 * text + position + 500 * draft;
  return {
    mixed: numbers(mixedCols(heads), seed),
    rates: numbers(2 * heads.valueHeads, seed + 11),
  };
}

interface RowSpec {
  readonly slot: number;
  readonly text: number;
  readonly position: number;
  readonly draft?: number;
  readonly live?: number;
  /** Of nodes of trees, see `treeRows`. */
  readonly cell?: number;
  readonly base?: number;
  readonly path?: readonly number[];
}

interface Slots extends DeltaMemory {
  readonly heads: DeltaHeads;
}

function slots(heads: DeltaHeads, checkpoints = false, stepRows = STEP_ROWS): Slots {
  const { valueHeads, keyDim, valueDim } = heads;
  return {
    heads,
    states: device.filled((checkpoints ? 2 : 1) * SLOTS * valueHeads * keyDim * valueDim, 3),
    checkpoints,
    steps: device.filled(SLOTS * stepWords(heads, stepRows), 5),
    stepRows,
  };
}

/** The outputs of a forward's rows. Runs begin at multiples of `perSlot`; default: the forward is one run. */
async function forward(
  memory: Slots,
  rows: readonly RowSpec[],
  perSlot = rows.length,
  paths = false,
) {
  const { heads } = memory;
  const width = heads.valueHeads * heads.valueDim;
  const inputs = rows.map((row) => rowOf(heads, row));
  const floats = (name: "mixed" | "rates") =>
    device.floats(inputs.flatMap((row) => [...row[name]]));
  const out = device.filled(rows.length * width, 0);
  const buffers = {
    rows: device.words(packRows(rows)),
    mixed: floats("mixed"),
    rates: floats("rates"),
    decayWeights: device.floats(weightsOf(heads)),
    out,
  };
  await device.run([
    deltaRule({ memory, ...buffers }, {
      heads,
      count: rows.length,
      perSlot,
      paths,
      label: "delta",
    }),
  ]);
  const all = await device.readFloats(out);
  return rows.map((_, i) => all.slice(i * width, (i + 1) * width));
}

/** Outputs of a text's positions 0 to count - 1, in float64. */
function reference(heads: DeltaHeads, text: number, count: number): number[][] {
  const { keyHeads, valueHeads, keyDim, valueDim } = heads;
  const weights = weightsOf(heads);
  const states = Array.from({ length: valueHeads }, () => new Float64Array(keyDim * valueDim));
  const unit = (x: readonly number[]) => {
    const length = Math.sqrt(x.reduce((sum, y) => sum + y * y, 1e-6));
    return x.map((y) => y / length);
  };
  return Array.from({ length: count }, (_, position) => {
    const { mixed, rates } = rowOf(heads, { text, position });
    const part = (from: number, size: number) => [...mixed.slice(from, from + size)];
    return states.flatMap((state, head) => {
      const at = Math.floor(head / (valueHeads / keyHeads)) * keyDim;
      const q = unit(part(at, keyDim)).map((x) => x / Math.sqrt(keyDim));
      const k = unit(part(keyHeads * keyDim + at, keyDim));
      const v = part(2 * keyHeads * keyDim + head * valueDim, valueDim);
      const rate = rates[valueHeads + head]! + weights[valueHeads + head]!;
      const decay = Math.exp(-Math.exp(weights[head]!) * Math.log1p(Math.exp(rate)));
      const beta = 1 / (1 + Math.exp(-rates[head]!));
      return v.map((value, j) => {
        const cell = (i: number) => i * valueDim + j;
        for (let i = 0; i < keyDim; i++) state[cell(i)]! *= decay;
        const found = k.reduce((sum, x, i) => sum + x * state[cell(i)]!, 0);
        const delta = beta * (value - found);
        for (const [i, x] of k.entries()) state[cell(i)]! += x * delta;
        return q.reduce((sum, x, i) => sum + x * state[cell(i)]!, 0);
      });
    });
  });
}

const run = (slot: number, text: number, from: number, to: number, draft = 0): RowSpec[] =>
  Array.from({ length: to - from }, (_, i) => ({ slot, text, position: from + i, draft }));

/** Outputs of positions 0 to count - 1 of a text, each in a forward of its own. */
async function oneByOne(heads: DeltaHeads, text: number, count: number): Promise<Float32Array[]> {
  const alone = slots(heads);
  const found: Float32Array[] = [];
  for (const row of run(0, text, 0, count)) found.push(...await forward(alone, [row]));
  return found;
}

const PADDING = { slot: 0, text: 0, position: 0, live: 0 };

for (const heads of SHAPES) {
  const { valueHeads, keyDim, valueDim } = heads;
  const name = `${valueHeads} heads of ${keyDim} keys, ${valueDim} values`;
  Deno.test(`${name}: long and short runs, rejected rows and another text in a slot: the formula, and the bits of row by row`, async () => {
    const bits = await oneByOne(heads, 1, 16);
    const expected = reference(heads, 1, 16);
    for (const [i, found] of bits.entries()) {
      assertClose(found, expected[i]!, 2e-4, `position ${i}`);
    }

    const together = slots(heads);
    // Prompts of 10 and 3 rows, more than are stored as steps and fewer; both end in padding or another's rows.
    const first = await forward(together, [
      ...run(1, 1, 0, 10),
      PADDING,
      PADDING,
      ...run(0, 2, 0, 3),
      PADDING,
    ], 4);
    const found = first.slice(0, 10);
    // Of 4 rows 2 are right, of the next 3 one; then two.
    const second = await forward(together, [...run(1, 1, 10, 12), ...run(1, 1, 12, 14, 1)]);
    found.push(...second.slice(0, 2));
    const third = await forward(together, [...run(1, 1, 12, 13), ...run(1, 1, 13, 15, 1), PADDING]);
    found.push(...third.slice(0, 1));
    // Measurements run the same forward again: the second run must give the same.
    for (let again = 0; again < 2; again++) {
      const last = await forward(together, [...run(0, 2, 3, 4), ...run(1, 1, 13, 16)], 1);
      if (again > 0) found.push(...last.slice(1));
    }
    for (const [i, row] of found.entries()) assert.deepEqual(row, bits[i], `position ${i}`);
    // Another text begins in the slot that the first one had.
    const other = await forward(together, run(1, 3, 0, 2));
    for (const [i, row] of other.entries()) {
      assertClose(row, reference(heads, 3, 2)[i]!, 2e-4, `another text, position ${i}`);
    }
  });
}

const HEADS = SHAPES[1]!;

Deno.test("forwards of any lengths around the edges of blocks: the bits of row by row", async () => {
  const bits = await oneByOne(HEADS, 1, 60);
  for (const lengths of [[7, 1, 8, 9], [8, 16, 17], [3, 4, 5, 6, 1], [12, 13, 20], [33, 2, 1]]) {
    const memory = slots(HEADS);
    let from = 0;
    for (const length of lengths) {
      const rows = await forward(memory, run(1, 1, from, from + length));
      for (const [i, row] of rows.entries()) {
        assert.deepEqual(row, bits[from + i], `${lengths}: position ${from + i}`);
      }
      from += length;
    }
  }
});

Deno.test("every number of drafts that may be right after every other: the bits of row by row", async () => {
  const bits = await oneByOne(HEADS, 1, 30);
  const memory = slots(HEADS);
  let from = 0;
  for (const right of [1, 4, 2, 1, 3, 4, 4, 1, 1, 2, 3]) {
    const rows = [
      ...run(1, 1, from, from + right),
      ...run(1, 1, from + right, from + STEP_ROWS, 1),
    ];
    const found = (await forward(memory, rows)).slice(0, right);
    for (const [i, row] of found.entries()) {
      assert.deepEqual(row, bits[from + i], `position ${from + i}`);
    }
    from += right;
  }
});

Deno.test("the checkpoint is the state after the last whole page that is surely a text's", async () => {
  const { valueHeads, keyDim, valueDim } = HEADS;
  const words = valueHeads * keyDim * valueDim;
  const read = async (memory: Slots) => {
    const header = (await device.readFloats(memory.steps)).slice(0, headerWords(HEADS));
    const states = await device.readFloats(memory.states);
    return {
      applied: header.filter((_, i) => i % 4 === 0),
      checkpoints: header.filter((_, i) => i % 4 === 1),
      current: states.slice(0, words),
      checkpoint: states.slice(SLOTS * words, (SLOTS + 1) * words),
    };
  };
  /** The state of slot 0 after so many tokens. */
  const stateAfter = async (count: number) => {
    const memory = slots(HEADS, true);
    for (const row of run(0, 1, 0, count)) await forward(memory, [row]);
    // The state is stored before its row is applied.
    await forward(memory, run(0, 1, count, count + 1));
    return (await read(memory)).current;
  };
  // The tokens of each forward, and the tokens in the checkpoint after them.
  for (
    const [lengths, expected] of [
      [[15], 0],
      [[16 + STEP_ROWS], 16],
      [[15 + STEP_ROWS], 0],
      [[31 + STEP_ROWS], 16],
      [[33 + STEP_ROWS], 32],
      [[14, 4, 1], 16],
      [[14, 4, 4, 4], 16],
    ] as const
  ) {
    const memory = slots(HEADS, true);
    let from = 0;
    for (const length of lengths) {
      await forward(memory, run(0, 1, from, from + length));
      from += length;
    }
    const { applied, checkpoints, checkpoint } = await read(memory);
    const stored = from - Math.min(lengths.at(-1)!, STEP_ROWS);
    assert.deepEqual([...new Set(applied)], [stored], `${lengths}`);
    assert.deepEqual([...new Set(checkpoints)], [expected], `${lengths}`);
    if (expected > 0) assert.deepEqual(checkpoint, await stateAfter(expected), `${lengths}`);
  }
});

for (const [heads, nodes] of [[SHAPES[0]!, 9], [HEADS, 64], [SHAPES[3]!, 9]] as const) {
  Deno.test(`a tree of ${nodes} nodes, ${heads.valueHeads} heads of ${heads.keyDim} keys: each has the bits of its path row by row`, async () => {
    const length = 21;
    // Most continue an early node, some the last one: at most 16 levels.
    const parents = Array.from(
      { length: nodes - 1 },
      (_, i) => i % 4 === 3 ? i : Math.floor(2 * i / 3),
    );
    const tree = treeRows(length, parents)
      .map((row, i): RowSpec => ({ slot: 1, text: 1, ...row, draft: i }));
    assert.ok(tree.every(({ position }) => position <= length + 16));
    const memory = slots(heads, true, nodes);
    await forward(memory, run(1, 1, 0, length));
    const found = await forward(memory, [...tree, PADDING], tree.length + 1, true);
    const leaves = tree.keys().filter((i) => i > 0 && !parents.includes(i));
    for (const leaf of leaves) {
      const path: number[] = [];
      for (let at = leaf; at > 0; at = parents[at - 1]!) path.unshift(at);
      const alone = slots(heads, false, nodes);
      await forward(alone, run(0, 1, 0, length));
      for (const node of [0, ...path]) {
        const { position } = tree[node]!;
        const [row] = await forward(alone, [{ slot: 0, text: 1, position, draft: node }]);
        assert.deepEqual(found[node], row, `node ${node} of the path to ${leaf}`);
      }
    }
  });
}
