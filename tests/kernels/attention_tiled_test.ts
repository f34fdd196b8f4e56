// Attention over rows that share reads of their slot's cells: near the float64 softmax, and each row with the bits that
// it has alone.

import assert from "node:assert/strict";
import { attention, partialWords, splitsStoreHalf } from "../../kernels/attention/attention.ts";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import type { CellRange } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { attended } from "../reference/attention.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows } from "./rows.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const SLOTS = 2;
/** More splits of 64 cells than a query keeps partial sums. */
const MANY_PAGES = 76;
const pagesOf = ({ tablePages = MANY_PAGES }: Shape) => blockTable(SLOTS, tablePages);
const TUNING = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupStorageSize: 32768,
});

interface Shape {
  /** Default attention_tiled. */
  readonly kernel?: "attention_shared";
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly kvDtype?: KvDtype;
  readonly cap?: number;
  readonly window?: number;
  /** Cells that the first row of each slot sees. */
  readonly cells: readonly number[];
  readonly perSlot: number;
  /** Of a slot; default MANY_PAGES. */
  readonly tablePages?: number;
  /** Rows whose partial sums there is room for; default all. */
  readonly room?: number;
}

const SHAPES: readonly Shape[] = [
  { group: 4, kvHeads: 2, headDim: 128, cells: [1, 1003], perSlot: 35 },
  { group: 3, kvHeads: 2, headDim: 64, kvDtype: "f16", cells: [1, 1003], perSlot: 35 },
  { group: 4, kvHeads: 1, headDim: 128, kvDtype: "bf16", cells: [1180, 60], perSlot: 24, room: 30 },
  { group: 20, kvHeads: 1, headDim: 64, kvDtype: "f16", cells: [1020], perSlot: 20, room: 8 },
  {
    group: 3,
    kvHeads: 1,
    headDim: 64,
    kvDtype: "f16",
    cap: 5,
    window: 1030,
    cells: [1010, 120],
    perSlot: 33,
  },
  { group: 1, kvHeads: 48, headDim: 64, cells: [70, 1], perSlot: 37, tablePages: 9 },
  { group: 8, kvHeads: 1, headDim: 256, window: 100, cells: [1, 1150], perSlot: 18 },
  { group: 1, kvHeads: 1, headDim: 64, window: 30, cells: [200, 33], perSlot: 70 },
  {
    kernel: "attention_shared",
    group: 4,
    kvHeads: 8,
    headDim: 128,
    cells: [1, 123],
    perSlot: 16,
  },
  {
    kernel: "attention_shared",
    group: 7,
    kvHeads: 16,
    headDim: 64,
    kvDtype: "bf16",
    cap: 5,
    window: 70,
    cells: [62, 195],
    perSlot: 4,
    tablePages: 13,
  },
  {
    kernel: "attention_shared",
    group: 2,
    kvHeads: 16,
    headDim: 64,
    kvDtype: "f16",
    cells: [58, 190],
    perSlot: 7,
    tablePages: 13,
  },
  {
    kernel: "attention_shared",
    group: 16,
    kvHeads: 4,
    headDim: 128,
    kvDtype: "bf16",
    cells: [70, 130],
    perSlot: 4,
    tablePages: 9,
  },
];

interface Row {
  readonly slot: number;
  readonly position: number;
  readonly base: number;
  readonly live: 0 | 1;
  readonly path: readonly number[];
}

function rowsOf({ cells, perSlot }: Shape): Row[] {
  return cells.flatMap((first, slot) =>
    Array.from({ length: perSlot }, (_, r): Row => ({
      slot,
      position: first - 1 + r,
      base: first + r,
      path: [],
      live: r === 2 || r >= perSlot - 3 && slot === 1 ? 0 : 1,
    }))
  );
}

interface Tensors {
  readonly q: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

function tensors(shape: Shape): Tensors {
  const { group, kvHeads, headDim, kvDtype = "f32" } = shape;
  const cells = pagesOf(shape).length * PAGE;
  return {
    // Wide enough that a few cells take nearly all of the weight.
    q: numbers(rowsOf(shape).length * kvHeads * group * headDim, 1).map((value) => value * 9),
    keys: kept(kvDtype, numbers(cells * kvHeads * headDim, 2)),
    values: kept(kvDtype, numbers(cells * kvHeads * headDim, 3)),
  };
}

/** As `attention` takes it. */
function shapeOf(shape: Shape, perSlot: number) {
  const { group, kvHeads, headDim, kvDtype = "f32", tablePages = MANY_PAGES, cap, window } = shape;
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages, kvDtype };
  const scoring = { scale: 1 / Math.sqrt(headDim), cap, window };
  const count = rowsOf(shape).length;
  return { ...heads, ...scoring, count, perSlot, paths: false, tuning: { ...TUNING, tiles: true } };
}

const EVERY: CellRange = { from: 0, upTo: Infinity };

/** Returns the kernels' names and the output words of every row; all slots run at once. */
async function run(
  shape: Shape,
  of: Tensors,
  { perSlot, tiles, room, noted = false, rounded = false, cells }: {
    readonly perSlot: number;
    readonly tiles: boolean;
    readonly room: number;
    readonly noted?: boolean;
    /** Whether the last dispatch rounds the output. */
    readonly rounded?: boolean;
    /** Cells that slots are taken to have, which decides what is launched; default: those that a row sees. */
    readonly cells?: number;
  },
): Promise<
  { readonly kernels: string[]; readonly out: Uint32Array; readonly scales: Uint32Array }
> {
  const { group, kvHeads, headDim, kvDtype = "f32" } = shape;
  const rows = rowsOf(shape);
  const most = cells ?? Math.max(...rows.map(({ position }) => position + 1));
  const launch = shapeOf(shape, perSlot);
  const words = partialWords(launch, room, TUNING);
  const width = group * kvHeads * headDim;
  const out = device.filled(rows.length * width / (rounded ? 2 : 1), -7);
  const scales = device.filled(rows.length, 2 ** 74);
  const plan = attention({
    q: device.floats(of.q),
    keys: device.words(packedKv(kvDtype, of.keys, headDim)),
    values: device.words(packedKv(kvDtype, of.values, headDim)),
    rows: device.words(packRows(rows)),
    pages: device.words(pagesOf(shape)),
    out,
    ...noted && { scales },
    ...rounded && { halfScales: scales },
    partial: { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) },
  }, { ...launch, label: "test", tuning: { ...TUNING, tiles } });
  const launched = plan.filter(({ forCells: { from, upTo } = EVERY }) =>
    from <= most && most <= upTo
  );
  await device.run(launched);
  if (!noted && !rounded) {
    await device.run([rowScales({ x: out, scales }, { rows: rows.length, cols: width })]);
  }
  return {
    kernels: launched.map(({ kernel }) => kernel.name),
    out: await device.readWords(out),
    scales: await device.readWords(scales),
  };
}

/** What `halfRows` makes of f32 rows. */
async function halved(x: Uint32Array, cols: number): Promise<Uint32Array> {
  const rows = x.length / cols;
  const [scales, out] = [device.filled(rows), device.filled(x.length / 2)];
  const buffers = { x: device.words(new Uint32Array(x)), scales, out };
  await device.run([halfRows(buffers, { rows, cols, label: "halves" })]);
  return await device.readWords(out);
}

/** Places in SHAPES: a long context with a window, and reads that are shared. */
const SHORT = [4, 9];

for (const [place, shape] of SHAPES.entries()) {
  const { test } = SHORT.includes(place) ? Deno : drawn;
  test(`attention over many rows, ${JSON.stringify(shape)}`, async () => {
    const { group, kvHeads, headDim, perSlot, room = 2 * perSlot } = shape;
    const of = tensors(shape);
    const { kernel = "attention_tiled" } = shape;
    const { kernels, out, scales } = await run(shape, of, { perSlot, tiles: true, room });
    assert.ok(kernels.some((name) => name.startsWith(kernel)), kernels.join());
    const noted = await run(shape, of, { perSlot, tiles: true, room, noted: true });
    assert.deepEqual(noted.out, out);
    assert.deepEqual(noted.scales, scales);
    // With the longest window a query keeps more partial sums than lanes add.
    const halves = splitsStoreHalf(shapeOf(shape, perSlot));
    assert.equal(halves, kernel === "attention_tiled" && shape.window !== 1030);
    if (halves) {
      const rounded = await run(shape, of, { perSlot, tiles: true, room, rounded: true });
      assert.deepEqual(rounded.scales, scales);
      assert.deepEqual(rounded.out, await halved(out, group * kvHeads * headDim));
    }
    // The bits are the same whatever part of the rows a workgroup takes.
    const others = kernel === "attention_tiled" ? [] : [300, 520, 650, Infinity];
    for (const cells of others) {
      const other = await run(shape, of, { perSlot, tiles: true, room, cells });
      assert.deepEqual(other.out, out, other.kernels.join());
    }
    // Each row has the bits that it has when it is alone in its forward.
    const alone = await run(shape, of, { perSlot: 1, tiles: true, room: 2 * perSlot });
    assert.ok(!alone.kernels.some((name) => name.startsWith(kernel)));
    const width = group * kvHeads * headDim;
    const { tablePages = MANY_PAGES } = shape;
    const stored = { ...of, pages: pagesOf(shape), tablePages, kvHeads };
    rowsOf(shape).forEach((row, r) => {
      const [from, to] = [r * width, (r + 1) * width];
      const found = out.slice(from, to);
      assert.deepEqual(found, alone.out.slice(from, to), `row ${r} ${JSON.stringify(row)}`);
      if (!row.live) return assert.deepEqual(found, new Uint32Array(width));
      if (r % 5 !== 0) return;
      const expected = Array.from({ length: group * kvHeads }, (_, h) => {
        const q = of.q.subarray(from + h * headDim, from + (h + 1) * headDim);
        return attended(row, q, Math.floor(h / group), stored, shape);
      });
      assertClose(new Float32Array(found.buffer), expected.flat(), 1e-5, `row ${r}`);
    });
  });
}

Deno.test("attention over many rows: workgroups along z are those of the window, whatever the context", () => {
  const operand = { buffer: { size: 2 ** 34 } as GPUBuffer };
  const launched = (tablePages: number, window?: number) => {
    const [sums] = attention(
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
        scale: 1,
        window,
        count: 64,
        perSlot: 64,
        paths: false,
        label: "test",
        tuning: { ...TUNING, tiles: true },
      },
    );
    assert.match(sums?.kernel.name ?? "", /^attention_tiled/);
    return sums?.workgroups[2];
  };
  // 512 cells before the first of 16 rows touch at most ten splits of 64.
  assert.deepEqual([launched(256, 512), launched(2048, 512)], [10, 10]);
  assert.equal(launched(2048), 16);
});

Deno.test("attention of many rows: up to 1,024 cells an invocation adds all sums of four numbers", () => {
  const operand = { buffer: { size: 2 ** 34 } as GPUBuffer };
  const combined = (count: number, tablePages: number) => {
    const [, ...plan] = attention(
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
        scale: 1,
        count,
        perSlot: 4,
        paths: false,
        label: "test",
        tuning: TUNING,
      },
    );
    return plan.map(({ kernel, forCells }) => [kernel.name, forCells?.from, forCells?.upTo]);
  };
  const [one, rows] = ["attention_combine_64", "attention_combine_rows_64"];
  assert.deepEqual(combined(16, 64), [[one, undefined, undefined]]);
  assert.deepEqual(combined(16, 65), [[one, undefined, undefined]]);
  assert.deepEqual(combined(32, 64), [[rows, undefined, undefined]]);
  assert.deepEqual(combined(32, 65), [[rows, 0, 1024], [one, 1025, Infinity]]);
});

Deno.test("attention that shares reads: as few queries a workgroup as leave room for all workgroups at once", () => {
  const operand = { buffer: { size: 2 ** 34 } as GPUBuffer };
  const shared = (slots: number, perSlot: number, { tablePages = 512, window = Infinity } = {}) =>
    attention(
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
        heads: 32,
        kvHeads: 8,
        headDim: 128,
        tablePages,
        kvDtype: "f32",
        scale: 1,
        count: slots * perSlot,
        perSlot,
        paths: false,
        label: "test",
        tuning: TUNING,
        window: window === Infinity ? undefined : window,
      },
    ).filter(({ kernel }) => !kernel.name.includes("combine"))
      .map(({ kernel, workgroups: [x, y], forCells }) => [
        ...[kernel.name.replace("_f32_128", ""), x, y, forCells?.from, forCells?.upTo],
      ]);
  assert.deepEqual(shared(1, 8), [["attention_4x1", 8, 8, undefined, undefined]]);
  const [eights, twelves] = [["attention_shared_4x2", 8, 8], ["attention_shared_4x3", 6, 8]];
  assert.deepEqual(shared(2, 8), [
    [...eights, 0, 512],
    [...twelves, 513, 704],
    ["attention_shared_4x4", 4, 8, 705, 1024],
    [...eights, 1025, Infinity],
  ]);
  assert.deepEqual(shared(2, 8, { tablePages: 32 }), [[...eights, 0, Infinity]]);
  assert.deepEqual(shared(2, 8, { tablePages: 33 }), [
    [...eights, 0, 512],
    [...twelves, 513, Infinity],
  ]);
  assert.deepEqual(shared(2, 8, { window: 400 }), [[...eights, 0, Infinity]]);
  // A tile of 12 queries has three rows of four, so four rows take two tiles, as many as tiles of 8 queries.
  assert.deepEqual(shared(8, 4), [
    ["attention_shared_4x2", 16, 8, 0, 256],
    ["attention_shared_4x4", 8, 8, 257, Infinity],
  ]);
});
