/**
 * Attention that gates its output: the bits of a dispatch that does so after it, and its scales, for few rows, many
 * rows and rows block by block.
 */
import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import { outputGateRows } from "../../kernels/elementwise/elementwise.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { blockTable, packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HEADS = { heads: 4, kvHeads: 2, headDim: 32, kvDtype: "f32" } as const;
const COLS = HEADS.heads * HEADS.headDim;
/** Columns of a row of gates, and the first of them. */
const [GATE_COLS, FIRST] = [2 * COLS + 8, COLS + 4];

const SIGMOID = { gating: "sigmoid", width: 1 } as const;
const SOFTPLUS = { gating: "softplus", width: 1 } as const;
const OF_HEADS = { gating: "softplus", width: HEADS.headDim } as const;

/** Each row of `perSlot` in a slot of its own tokens behind `cells`; `room` rows' partial sums fit at a time. */
const CASES = [
  { name: "one row", kernel: "attention_combine_32", perSlot: 1, slots: 1, cells: 130, room: 1 },
  { name: "few rows", kernel: "attention_combine_32", perSlot: 3, slots: 2, cells: 70, room: 6 },
  {
    name: "few rows, softplus",
    kernel: "attention_combine_32",
    perSlot: 3,
    slots: 2,
    cells: 70,
    room: 6,
    of: SOFTPLUS,
  },
  {
    name: "few rows, a gate a head",
    kernel: "attention_combine_32",
    perSlot: 3,
    slots: 2,
    cells: 70,
    room: 6,
    of: OF_HEADS,
  },
  {
    name: "many rows",
    kernel: "attention_combine_rows_32",
    perSlot: 16,
    slots: 2,
    cells: 9,
    room: 32,
  },
  {
    name: "many rows, a gate a head",
    kernel: "attention_combine_rows_32",
    perSlot: 16,
    slots: 2,
    cells: 9,
    room: 32,
    of: OF_HEADS,
  },
  { name: "blocks", kernel: "attention_combine_32", perSlot: 24, slots: 1, cells: 100, room: 8 },
];

for (const { name, kernel, perSlot, slots, cells, room, of: gatesOf = SIGMOID } of CASES) {
  Deno.test(`attention gates its output, ${name}`, async () => {
    const tablePages = Math.ceil((cells + perSlot) / PAGE) + 1;
    const count = slots * perSlot;
    const rows = Array.from({ length: count }, (_, i) => ({
      slot: Math.floor(i / perSlot),
      position: cells + i % perSlot,
      live: i === count - 1 && count > 1 ? 0 : 1,
    }));
    const tokens = slots * tablePages * PAGE * HEADS.kvHeads * HEADS.headDim;
    const shape = { ...HEADS, tablePages, scale: 0.2, count, perSlot, paths: false, label: "test" };
    const words = partialWords(shape, room, { software: false });
    const gate = numbers(count * GATE_COLS, 7);
    const read = {
      q: device.floats(numbers(count * COLS, 1)),
      keys: device.floats(numbers(tokens, 2)),
      values: device.floats(numbers(tokens, 3)),
      rows: device.words(packRows(rows)),
      pages: device.words(blockTable(slots, tablePages)),
    };
    const partial = () => ({
      sums: device.filled(words.sums, 0),
      stats: device.filled(words.stats, 0),
    });
    const out = () => device.filled(count * COLS, 5);
    const [own, plain, apart] = [out(), out(), out()];
    const values = device.floats(gate);
    const of = { ...shape, tuning: tuning(false) };
    const gates = { values, cols: GATE_COLS, first: FIRST, ...gatesOf };
    const [scales, expected] = [device.filled(count, 2 ** 74), device.filled(count, 0)];
    const gating = attention({ ...read, partial: partial(), out: own, gate: gates, scales }, of);
    const names = gating.map(({ kernel }) => kernel.name);
    assert.ok(names.includes(`${kernel}_scale_${gatesOf.gating}`), names.join());
    assert.equal(names.filter((each) => each.includes("combine")).length, Math.ceil(count / room));
    await device.run([
      ...gating,
      ...attention({ ...read, partial: partial(), out: plain }, of),
      outputGateRows({ x: plain, gate: values, out: apart }, {
        rows: count,
        cols: COLS,
        gate: { cols: GATE_COLS, first: FIRST, ...gatesOf },
        label: "gate",
      }),
      rowScales({ x: apart, scales: expected }, { rows: count, cols: COLS }),
    ]);
    assert.deepEqual(await device.readWords(scales), await device.readWords(expected));
    const found = await device.readFloats(own);
    assert.deepEqual(found, await device.readFloats(apart));
    const before = await device.readFloats(plain);
    const wanted = before.map((x, i) => {
      const at = Math.floor(i / COLS) * GATE_COLS + FIRST + Math.floor(i % COLS / gatesOf.width);
      const own = Math.exp(gate[at]!);
      return x * (gatesOf.gating === "sigmoid" ? own / (1 + own) : Math.log1p(own));
    });
    assertClose(found, [...wanted], 1e-5, "gated");
  });
}
