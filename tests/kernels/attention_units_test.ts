// Attention on matrix units: near the float64 softmax, and each row with the same bits in whatever tile, split or
// segment it is summed. Adapters have units with EYRIE_WEBGPU=dawn, if any.

import assert from "node:assert/strict";
import { attentionWords } from "../../kernels/attention/attention_on_device.ts";
import {
  attentionOnUnits,
  RULES,
  type UnitsRules,
} from "../../kernels/attention/units/attention_on_units.ts";
import { whyNotUnits } from "../../kernels/attention/units/units_kernels.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { AttentionUnits, Precision } from "../../src/gpu/matrices_on_units.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { attended } from "../reference/attention.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { gpu } = device;
const unit = gpu.matrixUnit;
const ignore = unit === undefined;

/** More than two segments of 1,024 cells. */
const [SLOTS, TABLE_PAGES] = [2, 136];
const PAGES = blockTable(SLOTS, TABLE_PAGES);

type Row = Pick<RowFields, "slot" | "position" | "base" | "live" | "path">;

interface Shape {
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly kvDtype?: KvDtype;
  readonly cap?: number;
  readonly window?: number;
  /** Cells that the first row of each slot sees. */
  readonly cells: readonly number[];
  readonly perSlot: number;
  /** Rows from the third on are a tree's: each sees cells of a path. */
  readonly tree?: boolean;
  /** Rows whose partial sums there is room for; default all. */
  readonly room?: number;
  /** What numbers of queries are multiplied by; by default so much that a few cells take nearly all of the weight. */
  readonly sharpness?: number;
  /** What numbers of values are multiplied by, cell by cell. */
  readonly magnitude?: (cell: number) => number;
}

const LARGE: readonly Shape[] = [
  { group: 4, kvHeads: 2, headDim: 128, cells: [1, 1003], perSlot: 41 },
  { group: 1, kvHeads: 2, headDim: 64, cells: [2050, 60], perSlot: 75 },
  { group: 7, kvHeads: 1, headDim: 128, kvDtype: "bf16", cells: [1180, 60], perSlot: 18, room: 24 },
  { group: 20, kvHeads: 1, headDim: 64, kvDtype: "f16", cells: [1020], perSlot: 9, room: 8 },
  { group: 3, kvHeads: 1, headDim: 80, cap: 5, window: 1030, cells: [1010, 120], perSlot: 33 },
  { group: 2, kvHeads: 2, headDim: 64, cells: [123, 60], perSlot: 12, tree: true },
  { group: 2, kvHeads: 1, headDim: 96, window: 30, cells: [200, 33], perSlot: 20 },
  { group: 8, kvHeads: 1, headDim: 96, window: 100, cells: [1, 1150], perSlot: 10 },
  { group: 1, kvHeads: 1, headDim: 32, kvDtype: "bf16", window: 30, cells: [200, 33], perSlot: 70 },
  { group: 8, kvHeads: 1, headDim: 128, kvDtype: "f16", cells: [64, 190], perSlot: 11, tree: true },
];

const SHAPES: readonly Shape[] = [
  { group: 2, kvHeads: 1, headDim: 32, cells: [1022, 5], perSlot: 7 },
  {
    group: 3,
    kvHeads: 1,
    headDim: 48,
    kvDtype: "bf16",
    cap: 5,
    window: 100,
    cells: [127, 20],
    perSlot: 6,
    room: 8,
  },
  { group: 20, kvHeads: 1, headDim: 32, kvDtype: "f16", cells: [70], perSlot: 3, room: 8 },
  { group: 2, kvHeads: 2, headDim: 32, cells: [123, 60], perSlot: 12, tree: true },
  {
    group: 2,
    kvHeads: 1,
    headDim: 32,
    cells: [130, 1],
    perSlot: 5,
    sharpness: 1,
    magnitude: (cell) => 2 ** -(cell % 41),
  },
  // Mesa takes minutes to compile wide heads.
  ...gpu.info.software ? [] : LARGE,
];

const unitsOf = (precision: Precision): AttentionUnits => ({
  unit: unit as NonNullable<typeof unit>,
  limits: gpu.limits,
  precision,
});
/** Each workgroup has one split, a whole segment, or several splits. */
const [APART, WHOLE, SEVERAL] = [
  { ...RULES, enough: Infinity },
  { ...RULES, enough: 0 },
  { ...RULES, enough: Infinity, enoughUnmerged: 0 },
];

function rowsOf({ cells, perSlot, tree = false }: Shape): Row[] {
  return cells.flatMap((first, slot) =>
    Array.from({ length: perSlot }, (_, r): Row => {
      const live = r === 2 || r >= perSlot - 3 && slot === 1 ? 0 : 1;
      if (!tree || r < 2) return { slot, position: first - 1 + r, base: first + r, path: [], live };
      // The path of node r: its ancestors lie apart.
      const path = Array.from({ length: 1 + r % 4 }, (_, i) => i === r % 4 ? r : 2 * i + r % 2);
      return { slot, position: first + path.length - 1, base: first, path, live };
    })
  );
}

interface Tensors {
  readonly q: Float32Array;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

function tensors(shape: Shape): Tensors {
  const { group, kvHeads, headDim, kvDtype = "f32", magnitude = () => 1, sharpness = 9 } = shape;
  const count = SLOTS * TABLE_PAGES * PAGE * kvHeads * headDim;
  const sized = (values: Float32Array) =>
    values.map((value, i) => value * magnitude(Math.floor(i / headDim)));
  return {
    q: numbers(rowsOf(shape).length * kvHeads * group * headDim, 1).map((x) => x * sharpness),
    keys: kept(kvDtype, numbers(count, 2)),
    values: kept(kvDtype, sized(numbers(count, 3))),
  };
}

async function run(
  shape: Shape,
  of: Tensors,
  { perSlot, rules = APART, precision = "f32", room, scaled = false }: {
    readonly perSlot: number;
    readonly rules?: UnitsRules;
    readonly precision?: Precision;
    readonly room: number;
    readonly scaled?: boolean;
  },
): Promise<{
  readonly kernels: string[];
  readonly out: Uint32Array;
  readonly scales: Float32Array[];
}> {
  const { group, kvHeads, headDim, kvDtype = "f32", cap, window, tree: paths = false } = shape;
  const rows = rowsOf(shape);
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES, kvDtype };
  const units = unitsOf(precision);
  const tuned = { ...tuning(false, gpu.limits, gpu.info.backend), attentionUnits: units };
  const words = attentionWords(heads, room, tuned);
  const cols = heads.heads * headDim;
  const out = device.filled(rows.length * cols, -7);
  const [scales, found] = [device.filled(rows.length, 2 ** 74), device.filled(rows.length)];
  const plan = attentionOnUnits(
    {
      q: device.floats(of.q),
      keys: device.words(packedKv(kvDtype, of.keys, headDim)),
      values: device.words(packedKv(kvDtype, of.values, headDim)),
      rows: device.words(packRows(rows)),
      pages: device.words(PAGES),
      out,
      partial: { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) },
      ...scaled && { scales },
    },
    {
      ...heads,
      count: rows.length,
      perSlot,
      paths,
      label: "test",
      scale: 1 / Math.sqrt(headDim),
      cap,
      window,
      tuning: tuned,
    },
    units,
    rules,
  );
  // As where slots have at most this many cells.
  const cells = Math.max(...rows.map(({ position }) => position + 1));
  const replayed = plan.filter(({ forCells: { from, upTo } = { from: 0, upTo: Infinity } }) =>
    cells >= from && cells <= upTo
  );
  await device.run([
    ...replayed,
    rowScales({ x: out, scales: found }, { rows: rows.length, cols }),
  ]);
  return {
    kernels: replayed.map(({ kernel }) => kernel.name),
    out: await device.readWords(out),
    scales: [await device.readFloats(scales), await device.readFloats(found)],
  };
}

for (const shape of SHAPES) {
  const name = JSON.stringify({ ...shape, ...shape.magnitude && { magnitude: "many" } });
  Deno.test({
    name: `attention on matrix units, ${name}`,
    ignore,
    fn: async () => {
      const { group, kvHeads, headDim, perSlot, room = 2 * perSlot } = shape;
      const of = tensors(shape);
      const apart = await run(shape, of, { perSlot, room });
      assert.ok(apart.kernels.every((name) => /units/.test(name)), apart.kernels.join());
      const alone = await run(shape, of, { perSlot: 1, room: 99 });
      const whole = await run(shape, of, { perSlot, rules: WHOLE, room });
      const byFour = await run(shape, of, { perSlot, rules: SEVERAL, room });
      assert.equal(byFour.kernels.some((name) => /_unmerged/.test(name)), !shape.tree);
      const width = group * kvHeads * headDim;
      const stored = { ...of, pages: PAGES, tablePages: TABLE_PAGES, kvHeads };
      rowsOf(shape).forEach((row, r) => {
        const [from, to] = [r * width, (r + 1) * width];
        const found = apart.out.slice(from, to);
        const why = `row ${r} ${JSON.stringify(row)}`;
        assert.deepEqual(found, alone.out.slice(from, to), `${why} alone`);
        assert.deepEqual(found, whole.out.slice(from, to), `${why} by segments`);
        assert.deepEqual(found, byFour.out.slice(from, to), `${why} by several splits`);
        if (!row.live) return assert.deepEqual(found, new Uint32Array(width));
        if (r % 5 !== 0 && !shape.tree) return;
        const expected = Array.from({ length: group * kvHeads }, (_, h) => {
          const q = of.q.subarray(from + h * headDim, from + (h + 1) * headDim);
          return attended(row, q, Math.floor(h / group), stored, shape);
        });
        assertClose(new Float32Array(found.buffer), expected.flat(), 1e-5, why);
      });
    },
  });
}

Deno.test({
  name: "attention on matrix units reduces the scales of its rows",
  ignore,
  fn: async () => {
    const shape = { group: 2, kvHeads: 1, headDim: 32, cells: [40], perSlot: 4 };
    for (const rules of [WHOLE, APART]) {
      const of = { perSlot: 4, rules, room: 4, scaled: true };
      const { scales: [stored, found] } = await run(shape, tensors(shape), of);
      assert.deepEqual(stored, found);
    }
  },
});

Deno.test({
  name:
    "attention on matrix units of one f16 number each is near, and the same at any number of rows",
  ignore,
  fn: async () => {
    const shape = { group: 2, kvHeads: 1, headDim: 32, cells: [70], perSlot: 5 };
    const of = tensors(shape);
    const precision = "f16";
    const { out } = await run(shape, of, { perSlot: 5, precision, room: 5 });
    const alone = await run(shape, of, { perSlot: 1, precision, room: 5 });
    assert.deepEqual(out, alone.out);
    const exact = await run(shape, of, { perSlot: 5, room: 5 });
    assert.notDeepEqual(out, exact.out);
    assertClose(new Float32Array(out.buffer), new Float32Array(exact.out.buffer), 0.02, "f16");
  },
});

Deno.test({
  name: "attention on matrix units: values times a power of two give the output times it",
  ignore,
  fn: async () => {
    const shape = { group: 2, kvHeads: 1, headDim: 32, cells: [40], perSlot: 4 };
    const of = { perSlot: 4, room: 4 };
    const scaled = async (scale: number) => {
      const { out } = await run(shape, tensors({ ...shape, magnitude: () => scale }), of);
      return new Float32Array(out.buffer).map((value) => value / scale);
    };
    const plain = await scaled(1);
    assert.deepEqual(await scaled(2 ** -30), plain);
    assert.deepEqual(await scaled(2 ** 40), plain);
  },
});

Deno.test("attention stays with the other kernels where no unit takes its heads", () => {
  const limits = {
    maxComputeInvocationsPerWorkgroup: 1024,
    maxComputeWorkgroupStorageSize: 49152,
    maxStorageBuffersPerShaderStage: 16,
  };
  const units = { unit: { m: 16, n: 16, k: 16, lanes: 32 }, limits };
  const why = (headDim: number, kvDtype: KvDtype = "f32", more = {}) =>
    whyNotUnits({ headDim, kvDtype }, { ...units, ...more });
  for (const headDim of [32, 64, 80, 96, 128]) assert.equal(why(headDim), undefined);
  assert.equal(why(72), "attention: heads of 72");
  assert.equal(why(256), "attention: heads of 256");
  const small = { limits: { ...limits, maxComputeWorkgroupStorageSize: 16384 } };
  assert.match(why(128, "f32", small) ?? "", /^attention: \d+ bytes of workgroup memory$/);
  assert.equal(why(32, "bf16", small), undefined);
});
