import assert from "node:assert/strict";
import { attention } from "../../shaders/attention.ts";
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

/** Runs the rows that `order` names; returns each row's output words. */
async function run(shape: Shape, of: Tensors, order: readonly number[]): Promise<Uint32Array[]> {
  const { group, kvHeads, headDim } = shape;
  const width = group * kvHeads * headDim;
  const q = order.flatMap((r) => [...of.q.subarray(r * width, (r + 1) * width)]);
  const out = device.filled(order.length * width, -7);
  const buffers = {
    q: device.floats(q),
    keys: device.floats(of.keys),
    values: device.floats(of.values),
    rows: device.words(packRows(order.map((r) => ROWS[r] as Row))),
    pages: device.words(PAGES),
    out,
  };
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES };
  await device.run([attention(buffers, { ...heads, count: order.length, label: "test" })]);
  const words = await device.readWords(out);
  return order.map((_, i) => words.slice(i * width, (i + 1) * width));
}

const SHAPES: readonly Shape[] = [
  { group: 1, kvHeads: 3, headDim: 16 }, // fewer outputs than invocations
  { group: 1, kvHeads: 1, headDim: 128 },
  { group: 2, kvHeads: 2, headDim: 32 },
  { group: 4, kvHeads: 2, headDim: 64 },
  { group: 8, kvHeads: 1, headDim: 16 },
  { group: 8, kvHeads: 1, headDim: 128 },
];

for (const shape of SHAPES) {
  const { group, kvHeads, headDim } = shape;
  const name = `${group} x ${kvHeads} heads of ${headDim}`;
  Deno.test(`attention: causal rows, tree masks and padding, ${name}`, async () => {
    const of = tensors(shape);
    const order = ROWS.map((_, r) => r);
    const outputs = await run(shape, of, order);
    ROWS.forEach((row, r) => {
      const actual = new Float32Array((outputs[r] as Uint32Array).buffer);
      const expected = Array.from({ length: group * kvHeads }, (_, h) => {
        const from = r * actual.length + h * headDim;
        const q = of.q.subarray(from, from + headDim);
        return reference(row, q, Math.floor(h / group), shape, of);
      });
      assertClose(actual, expected.flat(), 1e-5, `row ${r} ${JSON.stringify(row)}`);
      if (!row.live) assert.deepEqual(outputs[r], new Uint32Array(actual.length));
    });
  });
}

for (const shape of SHAPES.slice(2, 4)) {
  const { group, kvHeads, headDim } = shape;
  Deno.test(`attention: a row's bits are its own, ${group} x ${kvHeads} of ${headDim}`, async () => {
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

Deno.test("attention: a context in the mask has the bits of one below the base", async () => {
  // Verify rows (all below the base) and tree rows must agree where they see the same cells.
  const shape = { group: 2, kvHeads: 2, headDim: 32 };
  const of = tensors(shape);
  const seen = ROWS.findIndex(({ base }) => base === 200);
  const rows = [
    causal(0, 100),
    { ...causal(0, 70), maskLo: 0x3fffffff },
    { ...causal(0, 36), maskLo: 0xffffffff, maskHi: 0xffffffff },
  ];
  const width = shape.group * shape.kvHeads * shape.headDim;
  const q = device.floats(
    rows.flatMap(() => [...of.q.subarray(seen * width, (seen + 1) * width)]),
  );
  const out = device.filled(rows.length * width);
  const buffers = {
    q,
    keys: device.floats(of.keys),
    values: device.floats(of.values),
    rows: device.words(packRows(rows)),
    pages: device.words(PAGES),
    out,
  };
  const heads = { heads: 4, kvHeads: 2, headDim: 32, tablePages: TABLE_PAGES };
  await device.run([attention(buffers, { ...heads, count: rows.length, label: "test" })]);
  const words = await device.readWords(out);
  const line = (r: number) => words.slice(r * width, (r + 1) * width);
  assert.deepEqual(line(1), line(0));
  assert.deepEqual(line(2), line(0));
});
