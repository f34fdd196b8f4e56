// Attention that norms, turns and stores the heads of its rows itself: to the bit what norm_rope_store and
// attention over stored heads do, and near what float64 gives.

import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import { ownsHeads } from "../../kernels/attention/attention_row.ts";
import { normRopeStore } from "../../kernels/attention/norm_rope_store.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-6;
const [SLOTS, TABLE_PAGES] = [3, 12];
const CELLS = TABLE_PAGES * PAGE;
const PAGES = blockTable(SLOTS, TABLE_PAGES);
const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 16,
});

interface Shape {
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly kvDtype: KvDtype;
  readonly window?: number;
  readonly cap?: number;
  /** Whether values are normed too, or are keys that are normed so. */
  readonly values?: "normed" | "keys";
  /** Whether q and k are normed after rope. */
  readonly afterRope?: boolean;
}

/**
 * Cells of each slot before its row: around pages of 16 and splits of 64; with a window the last sees none of the first
 * two.
 */
const BEFORE = [[0, 63, 100], [60, 1, 128], [15, 64, 140]];

/** A row a slot, of which the last may be padding. */
function rowsOf(before: readonly number[], padded: boolean) {
  return before.map((cell, slot) => {
    return { slot, position: cell, cell, base: cell + 1, live: slot === 2 && padded ? 0 : 1 };
  });
}

/** What both ways read, and what they leave: the output, keys and values. */
async function run(shape: Shape, before: readonly number[], own: boolean) {
  const { group, kvHeads, headDim, kvDtype, window, cap, values: made, afterRope } = shape;
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES, kvDtype };
  const fields = rowsOf(before, before[0] === 60);
  const count = fields.length;
  const of = tensors(shape, count);
  const words = partialWords(heads, count, HARDWARE);
  const [keys, values] = [of.keys, of.values]
    .map((cells) => device.words(packedKv(kvDtype, cells, headDim))) as [GPUOperand, GPUOperand];
  const rows = device.words(packRows(fields));
  const pages = device.words(PAGES);
  const rope = device.floats(of.rope);
  const [qkv, weight] = [device.floats(of.qkv), device.floats(of.weight)];
  const q = device.filled(count * group * kvHeads * headDim, -7);
  const out = device.filled(count * group * kvHeads * headDim, -7);
  const partial = { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) };
  const scoring = { scale: 1 / Math.sqrt(headDim), window, cap };
  const launch = { ...heads, ...scoring, count, perSlot: 1, paths: false, tuning: HARDWARE };
  const place = { rope, rows, pages, keys, values };
  await device.run([
    ...own ? [] : [normRopeStore(
      { ...place, qkv, weight, q },
      {
        ...heads,
        count,
        eps: EPS,
        values: made ?? "plain",
        afterRope,
        tuning: HARDWARE,
        label: "norm",
      },
    )],
    ...attention({
      q,
      keys,
      values,
      rows,
      pages,
      out,
      partial,
      ...own ? { own: { qkv, norm: { weight, eps: EPS, values: made, afterRope }, rope } } : {},
    }, { ...launch, label: "test" }),
  ]);
  return {
    out: await device.readFloats(out),
    keys: await device.readWords(keys),
    values: await device.readWords(values),
    fields,
    of,
  };
}

Deno.test("attention norms heads itself for one row, with buffers enough for it", () => {
  const one = { headDim: 128, count: 1, paths: false, normed: true, tuning: HARDWARE };
  assert.ok(ownsHeads(one));
  assert.ok(!ownsHeads({ ...one, count: 2 }));
  assert.ok(!ownsHeads({ ...one, paths: true }));
  assert.ok(!ownsHeads({ ...one, tuning: tuning(true) }));
  assert.ok(!ownsHeads({ ...one, tuning: { ...HARDWARE, componentStores: false } }));
  const eight = { ...one, tuning: { ...HARDWARE, storageBuffers: 8 } };
  assert.ok(!ownsHeads(eight));
  assert.ok(ownsHeads({ ...eight, normed: false }));
  assert.ok(!ownsHeads({ ...one, headDim: 256, tuning: { ...HARDWARE, workgroupBytes: 16384 } }));
});

type GPUOperand = ReturnType<typeof device.words>;

/** Heads of a row of q, k and v. */
function rowHeads({ group, kvHeads, values }: Shape): number {
  return (group + (values === "keys" ? 1 : 2)) * kvHeads;
}

function tensors(shape: Shape, count: number) {
  const { kvHeads, headDim, kvDtype } = shape;
  const table = ropeTable(
    { theta: 1e4, width: headDim, scaling: { kind: "default" } },
    headDim,
    { positions: CELLS, context: CELLS },
  );
  const all = SLOTS * CELLS * kvHeads * headDim;
  return {
    qkv: numbers(count * rowHeads(shape) * headDim, 1),
    weight: numbers(2 * headDim, 2).map((value) => value + 2),
    rope: new Float32Array(table),
    keys: kept(kvDtype, numbers(all, 3)),
    values: kept(kvDtype, numbers(all, 4)),
  };
}

const SHAPES: readonly Shape[] = [
  { group: 2, kvHeads: 2, headDim: 128, kvDtype: "f32" },
  { group: 8, kvHeads: 1, headDim: 64, kvDtype: "f32", cap: 5 }, // two workgroups a group
  { group: 3, kvHeads: 2, headDim: 80, kvDtype: "f16" },
  { group: 1, kvHeads: 3, headDim: 16, kvDtype: "bf16" },
  { group: 2, kvHeads: 2, headDim: 32, kvDtype: "f32", window: 70, values: "normed" },
  { group: 3, kvHeads: 2, headDim: 32, kvDtype: "bf16", values: "keys" },
  { group: 2, kvHeads: 2, headDim: 32, kvDtype: "f32", afterRope: true },
  // With the kernels of shapes above.
  { group: 2, kvHeads: 1, headDim: 128, kvDtype: "f32", window: 70 },
  { group: 1, kvHeads: 2, headDim: 16, kvDtype: "bf16", window: 3 },
  ...EXHAUSTIVE
    ? [
      { group: 4, kvHeads: 1, headDim: 256, kvDtype: "f32", cap: 5 },
      { group: 4, kvHeads: 1, headDim: 512, kvDtype: "f32", values: "keys" }, // Gemma 4's full layers
      { group: 1, kvHeads: 1, headDim: 32, kvDtype: "f32", window: 70 },
      { group: 2, kvHeads: 1, headDim: 64, kvDtype: "bf16", window: 3 },
    ] as const
    : [],
];

for (const shape of SHAPES) {
  const { group, kvHeads, headDim, kvDtype, window } = shape;
  const title = `${group} x ${kvHeads} heads of ${headDim}, ${kvDtype}` +
    (window ? `, window ${window}` : "") + (shape.afterRope ? ", after rope" : "");
  const { test } = headDim <= 64 ? Deno : drawn;
  test(`attention norms and stores its heads: ${title}`, async () => {
    for (const before of BEFORE) {
      const wanted = await run(shape, before, false);
      const found = await run(shape, before, true);
      assert.deepEqual(found.out, wanted.out);
      assert.deepEqual(found.keys, wanted.keys);
      assert.deepEqual(found.values, wanted.values);
      found.fields.forEach((row, r) => {
        const width = group * kvHeads * headDim;
        const line = found.out.subarray(r * width, (r + 1) * width);
        const near = row.live ? reference(shape, found, r) : line.map(() => 0);
        // Keys of 16 bits may be rounded to another neighbour than in float64.
        assertClose(line, near, kvDtype === "f32" ? 1e-5 : 2e-2, `row ${r}`);
      });
    }
  });
}

/** Output of row `r`, [group kvHeads headDim], in float64. */
function reference(
  shape: Shape,
  { fields, of }: Pick<Awaited<ReturnType<typeof run>>, "fields" | "of">,
  r: number,
): number[] {
  const { group, kvHeads, headDim, kvDtype, window = Infinity, cap, values, afterRope } = shape;
  const row = fields[r] as typeof fields[number];
  const line = rowHeads(shape);
  const head = (at: number, h: number) => {
    const from = (at * line + h) * headDim;
    return [...of.qkv.subarray(from, from + headDim)];
  };
  const unweighted = (x: number[]) => {
    const square = x.reduce((sum, value) => sum + value * value, 0) / headDim;
    return x.map((value) => value / Math.sqrt(square + EPS));
  };
  const normed = (x: number[], kind: number, position: number) => {
    const square = x.reduce((sum, value) => sum + value * value, 0) / headDim;
    const gain = (i: number) => of.weight[kind * headDim + i] ?? NaN;
    const y = x.map((value, i) => value / Math.sqrt(square + EPS) * (afterRope ? 1 : gain(i)));
    const half = headDim / 2;
    return y.map((value, i) => {
      const at = 2 * (position * half + i % half);
      const [cos, sin] = [of.rope[at] ?? NaN, of.rope[at + 1] ?? NaN];
      const other = y[(i + half) % headDim] ?? NaN;
      const turned = value * cos + (i < half ? -other : other) * sin;
      return turned * (afterRope ? gain(i) : 1);
    });
  };
  const inFlight = (cell: number) =>
    fields.findIndex((one) => one.slot === row.slot && one.cell === cell && one.live === 1);
  const cellOf = (stored: Float32Array, kind: number, cell: number, kvHead: number) => {
    const at = inFlight(cell);
    if (at >= 0) {
      const of = values === "keys" ? 0 : kind;
      const x = head(at, (group + of) * kvHeads + kvHead);
      const y = kind === 0 ? normed(x, 1, cell) : values ? unweighted(x) : x;
      return [...kept(kvDtype, Float32Array.from(y))];
    }
    const page = PAGES[row.slot * TABLE_PAGES + Math.floor(cell / PAGE)] ?? NaN;
    const from = ((page * kvHeads + kvHead) * PAGE + cell % PAGE) * headDim;
    return [...stored.subarray(from, from + headDim)];
  };
  const cells = Array.from({ length: row.position + 1 }, (_, cell) => cell)
    .filter((cell) => cell > row.position - window);
  return Array.from({ length: group * kvHeads }, (_, h) => {
    const q = normed(head(r, h), 0, row.position);
    const kvHead = Math.floor(h / group);
    const scores = cells.map((cell) => {
      const key = cellOf(of.keys, 0, cell, kvHead);
      const score = q.reduce((sum, x, i) => sum + x * (key[i] ?? NaN), 0) / Math.sqrt(headDim);
      return cap ? cap * Math.tanh(score / cap) : score;
    });
    const peak = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - peak));
    const total = weights.reduce((sum, x) => sum + x, 0);
    const seen = cells.map((cell) => cellOf(of.values, 1, cell, kvHead));
    return Array.from(
      { length: headDim },
      (_, d) => weights.reduce((sum, x, i) => sum + x / total * (seen[i]?.[d] ?? NaN), 0),
    );
  }).flat();
}
