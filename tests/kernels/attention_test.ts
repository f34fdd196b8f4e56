import assert from "node:assert/strict";
import {
  attention,
  partialWords,
  splitsReduceScales,
  splitWords,
} from "../../kernels/attention/attention.ts";
import type { Heads } from "../../kernels/lib/heads.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { UsageError } from "../../src/errors.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers, shuffled } from "../gpu/numbers.ts";
import { attended, visible } from "../reference/attention.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [SLOTS, TABLE_PAGES] = [3, 14];
const PAGES = blockTable(SLOTS, TABLE_PAGES);

type Row = Pick<RowFields, "slot" | "position" | "base" | "live" | "path">;
/** A row that sees `cells` cells. */
const causal = (slot: number, cells: number): Row => {
  return { slot, position: cells - 1, base: cells, live: 1, path: [] };
};
const ROWS: readonly Row[] = [
  // Around pages of 16 and tiles of 64.
  ...[1, 15, 16, 17, 63, 64, 65, 200].map((cells, i) => causal(i % 2, cells)),
  { ...causal(0, 100), live: 0 },
];

interface Shape {
  /** Whose kernel: a software adapter takes small groups in registers. */
  readonly software: boolean;
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Default f32. */
  readonly kvDtype?: KvDtype;
  readonly scale?: number;
  readonly cap?: number;
  readonly window?: number;
  /** Whether heads have a logit without a value: `SINKS`. */
  readonly sinks?: boolean;
}

function headsOf({ group, kvHeads, headDim, kvDtype = "f32" }: Shape): Heads {
  return { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES, kvDtype };
}

/** Of heads: below all scores, among them, and above all. */
const SINKS = [-4, 0.5, 90, 3];

interface Tensors {
  readonly q: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

function tensors({ group, kvHeads, headDim, kvDtype = "f32" }: Shape): Tensors {
  const cells = SLOTS * TABLE_PAGES * PAGE;
  return {
    // Wide enough that a few cells take nearly all of the weight.
    q: numbers(ROWS.length * kvHeads * group * headDim, 1).map((value) => value * 12),
    keys: kept(kvDtype, numbers(cells * kvHeads * headDim, 2)),
    values: kept(kvDtype, numbers(cells * kvHeads * headDim, 3)),
  };
}

/**
 * Runs the rows that `order` names (each has its q); returns each row's output words.
 *
 * @param tiled.perSlot rows of one slot that lie next to each other.
 * @param tiled.room rows whose partial sums are kept at a time.
 * @param tiled.scales where the scales of the rows are stored.
 */
async function run(
  shape: Shape,
  of: Tensors,
  order: readonly number[],
  rows: readonly Row[] = order.map((r) => ROWS[r] as Row),
  { perSlot = 1, room = order.length, scales }: {
    perSlot?: number;
    room?: number;
    scales?: Operand;
  } = {},
): Promise<Uint32Array[]> {
  const { group, kvHeads, headDim, software, kvDtype = "f32" } = shape;
  const heads = headsOf(shape);
  const words = partialWords(heads, room, tuning(software));
  const width = group * kvHeads * headDim;
  const q = order.flatMap((r) => [...of.q.subarray(r * width, (r + 1) * width)]);
  const out = device.filled(order.length * width, -7);
  const buffers = {
    q: device.floats(q),
    keys: device.words(packedKv(kvDtype, of.keys, headDim)),
    values: device.words(packedKv(kvDtype, of.values, headDim)),
    rows: device.words(packRows(rows)),
    pages: device.words(PAGES),
    out,
    partial: { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) },
    scales,
    sinks: shape.sinks ? device.floats(SINKS.slice(0, heads.heads)) : undefined,
  };
  const { scale = 1 / Math.sqrt(headDim), cap, window } = shape;
  const scoring = { scale, cap, window };
  const launch = {
    count: order.length,
    perSlot,
    paths: false,
    tuning: tuning(software),
    label: "test",
  };
  await device.run(attention(buffers, { ...heads, ...scoring, ...launch }));
  const found = await device.readWords(out);
  return order.map((_, i) => found.slice(i * width, (i + 1) * width));
}

const SHAPES: readonly Shape[] = [
  { software: false, group: 1, kvHeads: 3, headDim: 16 },
  { software: false, group: 1, kvHeads: 1, headDim: 128 },
  { software: false, group: 2, kvHeads: 2, headDim: 32 },
  { software: false, group: 3, kvHeads: 1, headDim: 80, kvDtype: "bf16" },
  { software: false, group: 4, kvHeads: 2, headDim: 64, kvDtype: "bf16" },
  { software: false, group: 1, kvHeads: 1, headDim: 96, kvDtype: "f16" },
  { software: false, group: 8, kvHeads: 1, headDim: 128 },
  { software: false, group: 2, kvHeads: 1, headDim: 256, kvDtype: "f16" },
  // Latents of DeepSeek, of whose 16 heads four share a workgroup: one takes a fourth of the time to compile.
  { software: false, group: EXHAUSTIVE ? 16 : 1, kvHeads: 1, headDim: 576, kvDtype: "bf16" },
  { software: false, group: 20, kvHeads: 1, headDim: 8 }, // two workgroups share a head
  ...EXHAUSTIVE
    ? [
      { software: false, group: 4, kvHeads: 2, headDim: 64 },
      { software: false, group: 4, kvHeads: 1, headDim: 128, kvDtype: "bf16" },
      { software: false, group: 4, kvHeads: 1, headDim: 96, kvDtype: "f16" },
      // Full layers of Gemma 4, of whose 16 heads four share a workgroup.
      { software: false, group: 16, kvHeads: 1, headDim: 512, kvDtype: "bf16" },
      { software: true, group: 2, kvHeads: 2, headDim: 512 },
    ] as const
    : [],
  { software: true, group: 1, kvHeads: 1, headDim: 128 },
  { software: true, group: 2, kvHeads: 2, headDim: 32 },
  { software: true, group: 4, kvHeads: 1, headDim: 32, kvDtype: "f16" },
  { software: true, group: 8, kvHeads: 1, headDim: 16, kvDtype: "bf16" },
  { software: true, group: 2, kvHeads: 1, headDim: 128 }, // too wide for the registers
];

/** What sequences left in cells that the row does not see may be no number. */
function withoutUnseen({ kvHeads, headDim, window }: Shape, of: Tensors, row: Row): Tensors {
  const seen = new Set(
    visible(row, window).map((cell) => {
      const page = PAGES[row.slot * TABLE_PAGES + Math.floor(cell / PAGE)] ?? NaN;
      return page * PAGE + cell % PAGE;
    }),
  );
  const cellOf = (at: number) => {
    const place = Math.floor(at / headDim);
    return Math.floor(place / (kvHeads * PAGE)) * PAGE + place % PAGE;
  };
  const orNaN = (x: number, at: number) => seen.has(cellOf(at)) ? x : NaN;
  return { q: of.q, keys: of.keys.map(orNaN), values: of.values.map(orNaN) };
}

const nameOf = ({ software, group, kvHeads, headDim, kvDtype = "f32" }: Shape) =>
  `${group} x ${kvHeads} heads of ${headDim}, ${kvDtype}, ${software ? "software" : "hardware"}`;

/** Asserts the output of rows whose q are the first ones. */
function assertReference(
  shape: Shape,
  of: Tensors,
  rows: readonly Row[],
  outputs: readonly Uint32Array[],
  tolerance: number,
): void {
  const { group, kvHeads, headDim } = shape;
  const stored = { ...of, pages: PAGES, tablePages: TABLE_PAGES, kvHeads };
  rows.forEach((row, r) => {
    const actual = new Float32Array((outputs[r] as Uint32Array).buffer);
    const expected = Array.from({ length: group * kvHeads }, (_, h) => {
      const from = r * actual.length + h * headDim;
      const q = of.q.subarray(from, from + headDim);
      const sink = shape.sinks ? SINKS[h] : undefined;
      return attended(row, q, Math.floor(h / group), stored, { ...shape, sink });
    });
    assertClose(actual, expected.flat(), tolerance, `row ${r} ${JSON.stringify(row)}`);
    if (!row.live) assert.deepEqual(outputs[r], new Uint32Array(actual.length));
  });
}

/** Each type, two workgroups of one head, and software adapters' two ways; the widths that engines have beside. */
const isShort = ({ software, group, headDim }: Shape) =>
  software ? group > 1 : [8, 32, 64, 96].includes(headDim);

for (const shape of SHAPES) {
  const { test } = isShort(shape) ? Deno : drawn;
  test(`attention: causal rows and padding, ${nameOf(shape)}`, async () => {
    const of = tensors(shape);
    const outputs = await run(shape, of, ROWS.map((_, r) => r));
    assertReference(shape, of, ROWS, outputs, 1e-5);
  });
}

/** Each merges its partial sums another way: in registers, by lanes, and from 32 rows on by an invocation. */
const SINKING: readonly (Shape & { readonly times: number })[] = [
  { software: true, group: 2, kvHeads: 2, headDim: 32, times: 1 },
  { software: true, group: 2, kvHeads: 1, headDim: 128, window: 16, times: 1 },
  { software: false, group: 2, kvHeads: 2, headDim: 32, window: 70, times: 1 },
  { software: false, group: 2, kvHeads: 2, headDim: 32, times: 4 },
];

for (const { times, ...shape } of SINKING) {
  const rows = times * ROWS.length;
  Deno.test(`attention: a logit without a value joins each head's, ${rows} rows, ${nameOf(shape)}`, async () => {
    const sinking = { ...shape, sinks: true };
    const of = tensors(shape);
    const order = Array.from({ length: rows }, (_, r) => r % ROWS.length);
    const outputs = await run(sinking, of, order);
    for (let first = 0; first < rows; first += ROWS.length) {
      const some = outputs.slice(first, first + ROWS.length);
      assertReference(sinking, of, ROWS, some, 1e-5);
    }
  });
}

for (const shape of SHAPES.filter((shape) => splitsReduceScales(headsOf(shape), shape))) {
  // The least and the most invocations a head, and some of which a part idles.
  const { test } = shape.software || shape.headDim === 8 ? Deno : drawn;
  test(`attention: notes the scales of its rows, ${nameOf(shape)}`, async () => {
    const of = tensors(shape);
    const order = ROWS.map((_, r) => r);
    // All rows at once, and in blocks of 8.
    for (const room of [ROWS.length, 8]) {
      const [scales, expected] = [device.filled(10, 2 ** 74), device.filled(9)];
      const outputs = await run(shape, of, order, ROWS, { room, scales });
      const x = device.words(outputs.flatMap((row) => [...row]));
      await device.run([
        rowScales({ x, scales: expected }, { rows: ROWS.length, cols: outputs[0]!.length }),
      ]);
      const found = await device.readFloats(scales);
      assert.deepEqual([...found], [...await device.readFloats(expected), 2 ** 74]);
      assert.ok(found[0]! < 2 ** 20);
    }
  });
}

for (const shape of SHAPES.filter(({ kvHeads }) => kvHeads === 2)) {
  Deno.test(`attention: a row's bits are its own, whatever is in cells that it does not see, ${nameOf(shape)}`, async () => {
    const of = tensors(shape);
    const together = await run(shape, of, ROWS.map((_, r) => r));
    const order = shuffled(ROWS.length, 4);
    const disordered = await run(shape, of, order);
    order.forEach((r, i) => assert.deepEqual(disordered[i], together[r], `row ${r} as ${i}`));
    for (const [r, row] of ROWS.entries()) {
      const [alone] = await run(shape, withoutUnseen(shape, of, row), [r]);
      assert.deepEqual(alone, together[r], `row ${r} alone`);
    }
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

// Rows of one slot as a verify forward or a prompt has them, some of them padding.
const MAX_ROWS = 17;
const SLOT_ROWS: readonly Row[] = Array.from({ length: MAX_ROWS }, (_, r) => ({
  ...causal(1, 58 + r),
  live: r === 3 ? 0 : 1,
}));
// Each is a kernel of its own, and a software adapter takes seconds to compile one.
const COUNTS = EXHAUSTIVE ? [1, 2, 3, 5, 8, 16, 17] : [5, 17];
const TILED: readonly Shape[] = [
  { software: false, group: 1, kvHeads: 1, headDim: 32 }, // sixteen rows a tile
  { software: false, group: 3, kvHeads: 2, headDim: 16, kvDtype: "f16" }, // five
  { software: false, group: 4, kvHeads: 1, headDim: 64, kvDtype: "bf16" }, // four
  { software: false, group: 8, kvHeads: 1, headDim: 32 }, // two
  { software: true, group: 2, kvHeads: 2, headDim: 32 }, // four
  { software: true, group: 4, kvHeads: 1, headDim: 32, kvDtype: "f16" }, // two
];

/** q of `rows` rows, not only of ROWS. */
function withQueries(shape: Shape, rows: number): Tensors {
  const width = shape.group * shape.kvHeads * shape.headDim;
  return { ...tensors(shape), q: numbers(rows * width, 9).map((value) => value * 12) };
}

for (const shape of TILED) {
  const { test } = shape.kvDtype === "bf16" || shape.headDim === 32 && shape.group === 2
    ? Deno
    : drawn;
  test(`attention: a row's bits are those it has alone, beside others of its slot, ${nameOf(shape)}`, async () => {
    const of = withQueries(shape, MAX_ROWS);
    const order = SLOT_ROWS.map((_, r) => r);
    const alone = await run(shape, of, order, SLOT_ROWS);
    assertReference(shape, of, SLOT_ROWS, alone, 1e-5);
    for (const count of COUNTS) {
      const some = order.slice(0, count);
      const found = await run(shape, of, some, SLOT_ROWS.slice(0, count), { perSlot: count });
      found.forEach((words, r) => assert.deepEqual(words, alone[r], `row ${r} of ${count}`));
    }
  });
}

// Software adapters keep no partial sums.
const ROOMS = [[5, 15], [3, 24], [3, 8], [24, 16], [5, 3], [5, 7], [24, 5], [24, 1]];
const SLOTS_OF = [
  ...ROOMS.map((sizes) => [false, ...sizes]),
  ...[5, 3, 24].map((perSlot) => [true, perSlot, 24]),
] as [software: boolean, perSlot: number, room: number][];
for (const [software, perSlot, room] of SLOTS_OF) {
  const kind = software ? "software" : `room for ${room}`;
  Deno.test(`attention: slots of ${perSlot} rows, ${kind}`, async () => {
    const shape: Shape = { software, group: 2, kvHeads: 2, headDim: 32 };
    const rows = Array.from({ length: perSlot === 24 ? 24 : 5 * perSlot }, (_, r) => {
      const slot = Math.floor(r / perSlot);
      // The slot of padding is nobody's.
      const live = slot === 2 || r % perSlot === 2 ? 0 : 1;
      return { ...causal(live ? slot % SLOTS : 0, 40 + 17 * slot + r), live };
    });
    const of = withQueries(shape, rows.length);
    const order = rows.map((_, r) => r);
    const found = await run(shape, of, order, rows, { perSlot, room });
    assertReference(shape, of, rows, found, 1e-5);
    assert.deepEqual(found, await run(shape, of, order, rows));
  });
}

// Windows that end inside a chunk of 64 cells, at its edge, and that skip whole chunks.
const WINDOWED: readonly Row[] = [
  ...[1, 7, 8, 9, 63, 64, 65, 71, 72, 73, 200].map((cells, i) => causal(i % 2, cells)),
  { ...causal(0, 100), live: 0 },
];

for (const software of [true, false]) {
  for (
    const [window, cap, scale] of [
      [1, undefined, 0.1],
      [8, undefined, 0.1],
      [70, 4, 0.2],
      [300, 20, 0.1],
    ] as const
  ) {
    const shape: Shape = {
      software,
      group: 2,
      kvHeads: 2,
      headDim: 32,
      window,
      scale,
      ...cap ? { cap } : {},
    };
    const which = `window ${window}, cap ${cap}`;
    Deno.test(`attention: ${which}, ${nameOf(shape)}`, async () => {
      const of = withQueries(shape, WINDOWED.length);
      const order = WINDOWED.map((_, r) => r);
      const outputs = await run(shape, of, order, WINDOWED);
      assertReference(shape, of, WINDOWED, outputs, 1e-5);
    });
  }
}

for (const software of [true, false]) {
  const shape: Shape = { software, group: 2, kvHeads: 1, headDim: 32, window: 9 };
  Deno.test(`attention: with a window, a row's bits are those it has alone, ${nameOf(shape)}`, async () => {
    const rows = Array.from({ length: 8 }, (_, r) => causal(1, 66 + r));
    const of = withQueries(shape, rows.length);
    const order = rows.map((_, r) => r);
    const alone = await run(shape, of, order, rows);
    assertReference(shape, of, rows, alone, 1e-5);
    assert.deepEqual(await run(shape, of, order, rows, { perSlot: 8 }), alone);
  });
}

Deno.test("attention: splits outside the window are neither launched nor read", async () => {
  const window = 70;
  const shape: Shape = { software: false, group: 2, kvHeads: 1, headDim: 32, window };
  // The last rows of a context of three splits: their windows touch the second and the third.
  const rows = Array.from({ length: 8 }, (_, r) => causal(1, 190 + r));
  const of = withQueries(shape, rows.length);
  const order = rows.map((_, r) => r);
  const expected = await run(shape, of, order, rows, { perSlot: 8 });
  // Where the first split of the slot is stored there are no numbers.
  const first = 64 * shape.kvHeads * shape.headDim;
  const { keys, values } = of;
  const broken = { ...of, keys: keys.slice(), values: values.slice() };
  for (let page = 0; page < 4; page++) {
    const from = (PAGES[TABLE_PAGES + page] ?? NaN) * first / 4;
    for (const each of [broken.keys, broken.values]) each.fill(NaN, from, from + first / 4);
  }
  assertReference(shape, of, rows, expected, 1e-5);
  for (const perSlot of [1, 8]) {
    assert.deepEqual(await run(shape, broken, order, rows, { perSlot }), expected);
  }
});

Deno.test("attention: workgroups along z are those of the window, whatever the context", () => {
  const operand = { buffer: { size: 2 ** 34 } as GPUBuffer };
  const launched = (tablePages: number, perSlot: number, more: object = {}) => {
    const [chunks] = attention(
      {
        q: operand,
        keys: operand,
        values: operand,
        rows: operand,
        pages: operand,
        out: operand,
        partial: { sums: operand, stats: operand },
      },
      {
        heads: 8,
        kvHeads: 2,
        headDim: 64,
        tablePages,
        kvDtype: "f32",
        count: perSlot,
        perSlot,
        paths: false,
        scale: 1,
        tuning: tuning(false),
        label: "test",
        ...more,
      },
    );
    return chunks?.workgroups[2];
  };
  assert.deepEqual([launched(128, 1), launched(2048, 1)], [32, 512]);
  for (const tablePages of [128, 2048]) {
    // 512 cells touch at most nine splits of 64, with one more on either side too.
    assert.equal(launched(tablePages, 1, { window: 512 }), 9);
    assert.equal(launched(tablePages, 64, { window: 512 }), 9);
    assert.equal(launched(tablePages, 1, { window: 1 }), 1);
    assert.equal(launched(tablePages, 2, { window: 64, paths: true }), 3);
  }
  assert.equal(launched(16, 1, { window: 512 }), 4);
});

Deno.test("partial sums take no more than a kernel binds of a buffer", () => {
  // Qwen3-0.6B with 8,192 tokens, on an adapter with the least limit that WebGPU allows.
  const heads = { heads: 16, kvHeads: 8, headDim: 128, kvDtype: "f32", tablePages: 513 } as const;
  const limits = {
    maxComputeInvocationsPerWorkgroup: 256,
    maxComputeWorkgroupStorageSize: 16384,
    maxStorageBufferBindingSize: 128 << 20,
  };
  for (const software of [true, false]) {
    const { sums } = partialWords(heads, 256, tuning(software, limits));
    assert.ok(4 * sums <= 128 << 20 && 4 * sums > 120 << 20, `${4 * sums} bytes`);
    const free = partialWords(heads, 256, tuning(software));
    assert.ok(4 * free.sums > 128 << 20, "without the limit they are more");
  }
});

Deno.test("partial sums of long contexts are those of fewer rows than a block otherwise has", () => {
  const bindingBytes = 128 << 20;
  const long = {
    heads: 32,
    kvHeads: 8,
    headDim: 64,
    kvDtype: "f32",
    tablePages: 131_072 / PAGE + 1,
  } as const;
  const row = 4 * 32 * Math.ceil(long.tablePages / 4) * 64;
  assert.ok(8 * row > bindingBytes);
  const words = splitWords(long, 256, { bindingBytes });
  assert.deepEqual(words, { sums: 7 * row / 4, stats: 7 * row / 4 / 32 });
  // Adapters that bind more have blocks of eight rows, however much these take.
  assert.equal(splitWords(long, 256, { bindingBytes: 2 ** 31 }).sums, 8 * row / 4);
  assert.equal(splitWords(long, 256, {}).sums, 8 * row / 4);
  assert.equal(splitWords(long, 3, { bindingBytes }).sums, 3 * row / 4);

  // Offsets of blocks are multiples of 256 bytes, and blocks have all rows.
  const buffer = { size: 2 ** 34 } as GPUBuffer;
  const partial = {
    sums: { buffer, size: 4 * words.sums },
    stats: { buffer, size: 4 * words.stats },
  };
  const of = { q: { buffer }, keys: { buffer }, values: { buffer }, rows: { buffer } };
  const plan = attention({ ...of, pages: { buffer }, out: { buffer }, partial }, {
    ...long,
    count: 64,
    perSlot: 64,
    paths: false,
    scale: 1,
    tuning: tuning(false),
    label: "test",
  });
  for (const { buffers } of plan) {
    for (const [name, { offset = 0 }] of Object.entries(buffers)) {
      assert.equal(offset % 256, 0, name);
    }
  }
  const combined = plan.filter(({ label }) => label === "test.combine");
  assert.deepEqual(new Set(combined.map(({ buffers }) => buffers["out"]?.offset)).size, 10);
});

Deno.test("rows of an odd number of eights go in blocks of sixteen where contexts are long", () => {
  // A row of out takes 400 bytes as f16: sixteen of them are the fewest whose offset is a multiple of 256 bytes.
  const odd = {
    heads: 5,
    kvHeads: 5,
    headDim: 40,
    kvDtype: "f32",
    tablePages: 1_048_576 / PAGE,
  } as const;
  const { sums, stats } = splitWords(odd, 64, {});
  assert.deepEqual([sums, stats], [16 * 5 * 16384 * 40, 16 * 5 * 16384 * 2]);
  const buffer = { size: 2 ** 34 } as GPUBuffer;
  const partial = { sums: { buffer, size: 4 * sums }, stats: { buffer, size: 4 * stats } };
  const of = { q: { buffer }, keys: { buffer }, values: { buffer }, rows: { buffer } };
  const plan = attention({ ...of, pages: { buffer }, out: { buffer }, partial }, {
    ...odd,
    count: 64,
    perSlot: 1,
    paths: false,
    scale: 1,
    tuning: tuning(false),
    label: "test",
  });
  const combined = plan.filter(({ label }) => label === "test.combine");
  assert.deepEqual(combined.map(({ buffers }) => buffers["out"]?.offset ?? 0), [
    0,
    16 * 800,
    32 * 800,
    48 * 800,
  ]);
});

Deno.test("partial sums that no kernel can bind are an error of one line", () => {
  // Offsets of fewer than eight of these rows are no multiples of 256 bytes.
  const narrow = { heads: 3, kvHeads: 1, headDim: 16, kvDtype: "f32", tablePages: 4096 } as const;
  const bytes = 4 * 3 * 1024 * 16;
  assert.equal(splitWords(narrow, 64, { bindingBytes: 9 * bytes }).sums, 8 * bytes / 4);
  assert.equal(splitWords(narrow, 7, { bindingBytes: 7 * bytes }).sums, 7 * bytes / 4);
  assert.throws(() => splitWords(narrow, 64, { bindingBytes: 7 * bytes }), (error) => {
    assert.ok(error instanceof UsageError);
    assert.equal(
      error.message,
      `Cannot run attention over 65536 tokens: its partial sums take ${8 * bytes} bytes, ` +
        `and the adapter binds at most ${7 * bytes}`,
    );
    return true;
  });
});
