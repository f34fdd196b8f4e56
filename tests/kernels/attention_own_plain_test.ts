// Attention that turns and stores heads without norms: to the bit what the epilogue of their matmul and attention over
// stored heads do. Those are held against float64 by qkv_epilogue_test and attention_test.

import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { qkvEpilogue } from "../../kernels/matmul/qkv.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { kept, packedKv } from "./kv.ts";
import { uploadMatrix } from "./matrices.ts";
import { blockTable, packRows } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const COLS = 64;
const [SLOTS, TABLE_PAGES] = [3, 10]; // pages that no split divides
const CELLS = TABLE_PAGES * PAGE;
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
}

const SHAPES: readonly Shape[] = [
  { group: 4, kvHeads: 2, headDim: 128, kvDtype: "f32" },
  { group: 3, kvHeads: 1, headDim: 80, kvDtype: "f16" },
  { group: 8, kvHeads: 1, headDim: 32, kvDtype: "bf16" },
  { group: 4, kvHeads: 1, headDim: 128, kvDtype: "f32", window: 70 }, // with the kernels of the first
  ...EXHAUSTIVE ? [{ group: 1, kvHeads: 2, headDim: 64, kvDtype: "f32", window: 70 }] as const : [],
];

/** A row of each slot, at these cells; the last of the second list is padding. */
const BEFORE = [[0, 63, 100], [159, 1, 128]];

async function run(shape: Shape, before: readonly number[], own: boolean) {
  const { group, kvHeads, headDim, kvDtype, window } = shape;
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES, kvDtype };
  const fields = before.map((cell, slot) => {
    const live = slot === 2 && cell === 128 ? 0 : 1;
    return { slot, position: cell, cell, base: cell + 1, live };
  });
  const count = fields.length;
  const words = partialWords(heads, count, HARDWARE);
  const all = SLOTS * CELLS * kvHeads * headDim;
  const [keys, values] = [3, 4].map((seed) =>
    device.words(packedKv(kvDtype, kept(kvDtype, numbers(all, seed)), headDim))
  ) as [ReturnType<typeof device.words>, ReturnType<typeof device.words>];
  const table = { theta: 1e4, width: headDim, scaling: { kind: "default" } } as const;
  const rope = device.floats(
    new Float32Array(ropeTable(table, headDim, { positions: CELLS, context: CELLS })),
  );
  const rows = device.words(packRows(fields));
  const pages = device.words(blockTable(SLOTS, TABLE_PAGES));
  const width = (group + 2) * kvHeads * headDim;
  const matrix = uploadMatrix(device, numbers(width * COLS, 5), {
    format: "f32",
    cols: COLS,
    lanes: 16,
    shards: [width],
  });
  const x = device.floats(numbers(count * COLS, 6));
  const qkv = device.filled(count * width, -7);
  const q = device.filled(count * group * kvHeads * headDim, -7);
  const out = device.filled(count * group * kvHeads * headDim, -7);
  const partial = { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) };
  const launch = { ...heads, count, perSlot: 1, paths: false, tuning: HARDWARE };
  const place = { rope, rows, pages, keys, values };
  const project = { rows: count, tuning: HARDWARE, label: "qkv" };
  await device.run([
    ...own
      ? matmul({ matrix, x, out: qkv }, { ...project, epilogue: "store" })
      : matmul({ matrix, x, out: q }, { ...project, epilogue: qkvEpilogue(place, heads) }),
    ...attention({
      q,
      keys,
      values,
      rows,
      pages,
      out,
      partial,
      ...own ? { own: { qkv, rope } } : {},
    }, { ...launch, scale: 1 / Math.sqrt(headDim), window, label: "test" }),
  ]);
  return {
    out: await device.readFloats(out),
    keys: await device.readWords(keys),
    values: await device.readWords(values),
  };
}

for (const shape of SHAPES) {
  const { group, kvHeads, headDim, kvDtype, window } = shape;
  const title = `${group} x ${kvHeads} heads of ${headDim}, ${kvDtype}`;
  const { test } = headDim === 32 ? Deno : drawn;
  test(`attention turns and stores its heads: ${title}, window ${window}`, async () => {
    for (const before of BEFORE) {
      const wanted = await run(shape, before, false);
      assert.ok(wanted.out.some((value) => value !== 0 && Number.isFinite(value)));
      assert.deepEqual(await run(shape, before, true), wanted);
    }
  });
}
