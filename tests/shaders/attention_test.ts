import assert from "node:assert/strict";
import { attention } from "../../shaders/attention.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { PAGE } from "../../src/model/rows_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers, shuffled } from "../gpu/numbers.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [SLOTS, TABLE_PAGES] = [3, 14];
const PAGES = blockTable(SLOTS, TABLE_PAGES);

type Row = Pick<RowFields, "slot" | "base" | "maskLo" | "maskHi" | "live">;
const causal = (slot: number, base: number): Row => ({ slot, base, maskLo: 0, maskHi: 0, live: 1 });
const tree = (base: number, maskLo: number, maskHi: number): Row => {
  return { slot: 2, base, maskLo, maskHi, live: 1 };
};
const ROWS: readonly Row[] = [
  // Around pages of 16 and tiles of 64.
  ...[1, 15, 16, 17, 63, 64, 65, 200].map((base, i) => causal(i % 2, base)),
  tree(0, 1, 0), // a first token
  tree(13, 0b1011, 0), // not its sibling
  tree(60, 0x80000001, 0),
  tree(40, 0, 1), // bit 32 is the first of mask_hi
  tree(0, 0, 0x80000000), // one cell, the last of the window
  tree(128, 0x0f0f1234, 0x80000001),
  tree(150, 0xffffffff, 0xffffffff),
  { ...causal(0, 100), live: 0 },
];

interface Shape {
  /** Whose kernel: a software adapter takes small groups in registers. */
  readonly software: boolean;
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

interface Tensors {
  readonly q: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

function tensors({ group, kvHeads, headDim }: Shape): Tensors {
  const cells = SLOTS * TABLE_PAGES * PAGE;
  return {
    // Wide enough that a few cells take nearly all of the weight.
    q: numbers(ROWS.length * kvHeads * group * headDim, 1).map((value) => value * 12),
    keys: numbers(cells * kvHeads * headDim, 2),
    values: numbers(cells * kvHeads * headDim, 3),
  };
}

function visible({ base, maskLo, maskHi, live }: Row): number[] {
  const window = Array.from({ length: 64 }, (_, j) => j)
    .filter((j) => ((j < 32 ? maskLo : maskHi) >>> (j % 32)) & 1);
  const below = Array.from({ length: base }, (_, cell) => cell);
  return live ? [...below, ...window.map((j) => base + j)] : [];
}

/** Output of one head of one row, [headDim]. */
function reference(row: Row, q: Float32Array, kvHead: number, shape: Shape, of: Tensors): number[] {
  const { kvHeads, headDim } = shape;
  const at = visible(row).map((cell) => {
    const page = PAGES[row.slot * TABLE_PAGES + Math.floor(cell / PAGE)] ?? NaN;
    return ((page * kvHeads + kvHead) * PAGE + cell % PAGE) * headDim;
  });
  const scores = at.map((first) =>
    q.reduce((sum, value, d) => sum + value * (of.keys[first + d] ?? NaN), 0) / Math.sqrt(headDim)
  );
  const peak = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - peak));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return Array.from(q, (_, d) =>
    weights.reduce((sum, weight, j) => {
      return sum + weight / total * (of.values[(at[j] ?? NaN) + d] ?? NaN);
    }, 0));
}

/** Runs the rows that `order` names (each has its q); returns each row's output words. */
async function run(
  shape: Shape,
  of: Tensors,
  order: readonly number[],
  rows: readonly Row[] = order.map((r) => ROWS[r] as Row),
): Promise<Uint32Array[]> {
  const { group, kvHeads, headDim, software } = shape;
  const width = group * kvHeads * headDim;
  const q = order.flatMap((r) => [...of.q.subarray(r * width, (r + 1) * width)]);
  const out = device.filled(order.length * width, -7);
  const buffers = {
    q: device.floats(q),
    keys: device.floats(of.keys),
    values: device.floats(of.values),
    rows: device.words(packRows(rows)),
    pages: device.words(PAGES),
    out,
  };
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES };
  const launch = { count: order.length, tuning: tuning(software), label: "test" };
  await device.run([attention(buffers, { ...heads, ...launch })]);
  const words = await device.readWords(out);
  return order.map((_, i) => words.slice(i * width, (i + 1) * width));
}

const SHAPES: readonly Shape[] = [
  { software: false, group: 1, kvHeads: 3, headDim: 16 }, // fewer outputs than invocations
  { software: false, group: 1, kvHeads: 1, headDim: 128 },
  { software: false, group: 2, kvHeads: 2, headDim: 32 },
  { software: false, group: 4, kvHeads: 2, headDim: 64 },
  { software: false, group: 8, kvHeads: 1, headDim: 128 },
  { software: true, group: 1, kvHeads: 1, headDim: 128 },
  { software: true, group: 2, kvHeads: 2, headDim: 32 },
  { software: true, group: 4, kvHeads: 1, headDim: 16 },
  { software: true, group: 8, kvHeads: 1, headDim: 16 },
  { software: true, group: 2, kvHeads: 1, headDim: 128 }, // too wide for the registers
];

const nameOf = ({ software, group, kvHeads, headDim }: Shape) =>
  `${group} x ${kvHeads} heads of ${headDim}, ${software ? "software" : "hardware"}`;

/** Asserts the output of rows whose q are the first ones. */
function assertReference(
  shape: Shape,
  of: Tensors,
  rows: readonly Row[],
  outputs: readonly Uint32Array[],
  tolerance: number,
): void {
  const { group, kvHeads, headDim } = shape;
  rows.forEach((row, r) => {
    const actual = new Float32Array((outputs[r] as Uint32Array).buffer);
    const expected = Array.from({ length: group * kvHeads }, (_, h) => {
      const from = r * actual.length + h * headDim;
      const q = of.q.subarray(from, from + headDim);
      return reference(row, q, Math.floor(h / group), shape, of);
    });
    assertClose(actual, expected.flat(), tolerance, `row ${r} ${JSON.stringify(row)}`);
    if (!row.live) assert.deepEqual(outputs[r], new Uint32Array(actual.length));
  });
}

for (const shape of SHAPES) {
  Deno.test(`attention: causal rows, tree masks and padding, ${nameOf(shape)}`, async () => {
    const of = tensors(shape);
    const outputs = await run(shape, of, ROWS.map((_, r) => r));
    assertReference(shape, of, ROWS, outputs, 1e-5);
  });
}

for (const shape of SHAPES.filter(({ kvHeads }) => kvHeads === 2)) {
  Deno.test(`attention: a row's bits are its own, ${nameOf(shape)}`, async () => {
    const of = tensors(shape);
    const together = await run(shape, of, ROWS.map((_, r) => r));
    const order = shuffled(ROWS.length, 4);
    const disordered = await run(shape, of, order);
    order.forEach((r, i) => assert.deepEqual(disordered[i], together[r], `row ${r} as ${i}`));
    for (let r = 0; r < ROWS.length; r++) {
      const [alone] = await run(shape, of, [r]);
      assert.deepEqual(alone, together[r], `row ${r} alone`);
    }
  });
}

for (const software of [true, false]) {
  const shape = { software, group: 2, kvHeads: 2, headDim: 32 };
  Deno.test(`attention: cells have the same bits in the mask or below the base, ${nameOf(shape)}`, async () => {
    // Rows of a chain (all below the base) and of a tree agree where they see the same cells.
    const rows = [
      causal(0, 100),
      { ...causal(0, 70), maskLo: 0x3fffffff },
      { ...causal(0, 36), maskLo: 0xffffffff, maskHi: 0xffffffff },
    ];
    const [chain, ...trees] = await run(shape, tensors(shape), rows.map(() => 0), rows);
    for (const words of trees) assert.deepEqual(words, chain);
  });
}

for (const software of [true, false]) {
  const shape = { software, group: 2, kvHeads: 2, headDim: 32 };
  Deno.test(`attention: scores hundreds apart, the largest first or last, ${nameOf(shape)}`, async () => {
    const rows = [causal(0, 200), causal(0, 200), causal(1, 200)];
    const of = tensors(shape);
    // Slot 0 has its largest scores in the first tile, slot 1 in the last.
    const cells = PAGE * shape.kvHeads * shape.headDim;
    for (const at of [0, TABLE_PAGES + 12]) {
      const page = PAGES[at] ?? NaN;
      for (let i = page * cells; i < (page + 1) * cells; i++) of.keys[i] = 30 * (of.keys[i] ?? NaN);
    }
    const order = rows.map((_, r) => r);
    assertReference(shape, of, rows, await run(shape, of, order, rows), 1e-3);
  });
}
