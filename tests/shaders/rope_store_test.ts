import assert from "node:assert/strict";
import { ropeStore } from "../../shaders/rope_store.ts";
import { ropeTable } from "../../src/model/rope.ts";
import { PAGE } from "../../src/model/rows_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { blockTable, packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = -7;
const [SLOTS, TABLE_PAGES, POSITIONS] = [3, 4, 64];
// Positions are not cells: a tree gives siblings one position and each its own cell.
const ROWS = [
  { slot: 0, cell: 0, position: 0 },
  { slot: 2, cell: 15, position: 15 },
  { slot: 2, cell: 16, position: 15 },
  { slot: 1, cell: 63, position: 40 },
  { slot: 1, cell: 17, position: 63 },
  { slot: 0, cell: 5, position: 5, live: 0 },
];

/** One head turned: (a, b) -> (a cos - b sin, b cos + a sin). */
function rotated(x: Float32Array, table: Float32Array, position: number): number[] {
  const half = x.length / 2;
  return Array.from(x, (value, i) => {
    const at = (position * half + i % half) * 2;
    const [cos = NaN, sin = NaN] = table.subarray(at, at + 2);
    const other = x[(i + half) % x.length] ?? NaN;
    return value * cos + (i < half ? -other : other) * sin;
  });
}

async function run(heads: number, kvHeads: number, headDim: number) {
  const theta = 10000;
  const table = ropeTable({ theta, width: headDim, scaling: { kind: "default" } }, headDim, {
    positions: POSITIONS,
    context: POSITIONS,
  });
  const pages = blockTable(SLOTS, TABLE_PAGES);
  const qkv = numbers(ROWS.length * (heads + 2 * kvHeads) * headDim, headDim);
  const kv = () => device.filled(SLOTS * TABLE_PAGES * PAGE * kvHeads * headDim, LEFT_ALONE);
  const buffers = {
    qkv: device.floats(qkv),
    rope: device.floats(table),
    rows: device.words(packRows(ROWS)),
    pages: device.words(pages),
    q: device.filled(ROWS.length * heads * headDim),
    keys: kv(),
    values: kv(),
  };
  const shape = { heads, kvHeads, headDim, tablePages: TABLE_PAGES, count: ROWS.length };
  await device.run([ropeStore(buffers, { ...shape, label: "test" })]);
  const [q, keys, values] = [
    await device.readFloats(buffers.q),
    await device.readFloats(buffers.keys),
    await device.readFloats(buffers.values),
  ];
  return { table, pages, qkv, q, keys, values };
}

for (const [heads, kvHeads, headDim] of [[4, 2, 16], [2, 1, 128], [3, 3, 64]] as const) {
  Deno.test(`rope_store: ${heads} heads over ${kvHeads} of ${headDim}`, async () => {
    const { table, pages, qkv, q, keys, values } = await run(heads, kvHeads, headDim);
    const stored = new Set<number>();
    ROWS.forEach(({ slot, cell, position, live = 1 }, r) => {
      const head = (h: number) => {
        const at = (r * (heads + 2 * kvHeads) + h) * headDim;
        return qkv.subarray(at, at + headDim);
      };
      for (let h = 0; h < heads; h++) {
        const at = (r * heads + h) * headDim;
        const expected = rotated(head(h), table, position);
        assertClose(q.subarray(at, at + headDim), expected, 2e-7, `q of row ${r}`);
      }
      const page = pages[slot * TABLE_PAGES + Math.floor(cell / PAGE)] ?? NaN;
      for (let h = 0; h < kvHeads && live; h++) {
        const at = ((page * kvHeads + h) * PAGE + cell % PAGE) * headDim;
        stored.add(at);
        const expected = rotated(head(heads + h), table, position);
        assertClose(keys.subarray(at, at + headDim), expected, 2e-7, `key of row ${r}`);
        assert.deepEqual(values.subarray(at, at + headDim), head(heads + kvHeads + h));
      }
    });
    for (let at = 0; at < keys.length; at += headDim) {
      if (stored.has(at)) continue;
      const untouched = new Float32Array(headDim).fill(LEFT_ALONE);
      assert.deepEqual(keys.subarray(at, at + headDim), untouched);
      assert.deepEqual(values.subarray(at, at + headDim), untouched);
    }
  });
}
