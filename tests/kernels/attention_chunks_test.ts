// Attention on matrix units over many rows of one slot: the bits of the kernels for few rows, whose test compares them
// with float64.

import assert from "node:assert/strict";
import { attentionOnDevice, attentionWords } from "../../kernels/attention/attention_on_device.ts";
import {
  chunkOnUnits,
  chunkTile,
  halvesWords,
} from "../../kernels/attention/units/chunk_on_units.ts";
import type { ChunkTile } from "../../kernels/attention/units/chunk_kernels.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { AttentionUnits } from "../../src/gpu/matrices_on_units.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { gpu } = device;
const unit = gpu.matrixUnit;
const ignore = unit === undefined;

interface Shape {
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly kvDtype?: KvDtype;
  readonly cap?: number;
  readonly window?: number;
  /** Cells before the first row. */
  readonly before: number;
  readonly rows: number;
  /** Cells that the block table has room for. */
  readonly context: number;
  /** Rows whose partial sums there is room for; default all. */
  readonly room?: number;
  /** Each workgroup has all segments of cells. */
  readonly direct?: boolean;
}

/** Mesa takes minutes to compile wide heads. */
const SHAPES: readonly Shape[] = gpu.info.software
  ? [
    { group: 2, kvHeads: 2, headDim: 32, before: 13, rows: 41, context: 64 },
    {
      group: 3,
      kvHeads: 1,
      headDim: 32,
      kvDtype: "bf16",
      cap: 5,
      window: 30,
      before: 1030,
      rows: 50,
      context: 1152,
      room: 24,
    },
    {
      group: 3,
      kvHeads: 1,
      headDim: 32,
      kvDtype: "bf16",
      cap: 5,
      window: 30,
      before: 1030,
      rows: 50,
      context: 1152,
      direct: true,
    },
  ]
  : [
    { group: 4, kvHeads: 2, headDim: 128, before: 3, rows: 141, context: 1024 },
    { group: 4, kvHeads: 2, headDim: 128, before: 2043, rows: 141, context: 4096, room: 64 },
    { group: 4, kvHeads: 2, headDim: 128, before: 2043, rows: 141, context: 4096, direct: true },
    { group: 1, kvHeads: 2, headDim: 64, before: 1500, rows: 75, context: 2048 },
    { group: 7, kvHeads: 1, headDim: 128, kvDtype: "bf16", before: 1180, rows: 70, context: 2048 },
    { group: 20, kvHeads: 1, headDim: 64, kvDtype: "f16", before: 1020, rows: 65, context: 2048 },
    {
      group: 3,
      kvHeads: 1,
      headDim: 80,
      cap: 5,
      window: 1030,
      before: 1010,
      rows: 90,
      context: 4096,
    },
    {
      group: 3,
      kvHeads: 1,
      headDim: 80,
      cap: 5,
      window: 1030,
      before: 1010,
      rows: 90,
      context: 4096,
      direct: true,
    },
    {
      group: 4,
      kvHeads: 1,
      headDim: 128,
      cap: 5,
      before: 1010,
      rows: 90,
      context: 4096,
    },
    { group: 3, kvHeads: 1, headDim: 80, before: 1010, rows: 90, context: 4096 },
    { group: 8, kvHeads: 1, headDim: 96, window: 100, before: 0, rows: 64, context: 1024 },
    { group: 1, kvHeads: 1, headDim: 32, kvDtype: "bf16", before: 200, rows: 70, context: 1024 },
  ];

function rowsOf({ before, rows }: Shape) {
  return Array.from({ length: rows }, (_, r) => ({
    slot: 1,
    position: before + r,
    base: before + r + 1,
    path: [],
    live: r < rows - 2 ? 1 : 0,
  }));
}

/** Mesa takes minutes to compile many products of a subgroup. */
function small(tile: ChunkTile): ChunkTile {
  const queries = 16;
  return { ...tile, queries, tile: Math.floor(queries / tile.group), columns: 4, keyParts: 2 };
}

async function run(shape: Shape, chunk: boolean) {
  const { group, kvHeads, headDim, kvDtype = "f32", cap, window, context } = shape;
  const rows = rowsOf(shape);
  const tablePages = context / PAGE;
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages, kvDtype };
  const units: AttentionUnits = {
    unit: unit as NonNullable<typeof unit>,
    limits: gpu.limits,
  };
  const rules = { ...tuning(false, gpu.limits, gpu.info.backend), attentionUnits: units };
  const words = attentionWords(heads, shape.room ?? rows.length, rules);
  const count = 2 * context * kvHeads * headDim;
  const out = device.filled(rows.length * heads.heads * headDim, -7);
  const halves = device.filled(halvesWords(heads, 64, units), NaN);
  const buffers = {
    q: device.floats(numbers(rows.length * heads.heads * headDim, 1).map((x) => 9 * x)),
    keys: device.words(packedKv(kvDtype, kept(kvDtype, numbers(count, 2)), headDim)),
    values: device.words(packedKv(kvDtype, kept(kvDtype, numbers(count, 3)), headDim)),
    rows: device.words(packRows(rows)),
    pages: device.words(blockTable(2, tablePages)),
    out,
    partial: {
      sums: device.filled(words.sums, NaN),
      stats: device.filled(words.stats, NaN),
    },
  };
  const of = {
    ...heads,
    count: rows.length,
    perSlot: rows.length,
    paths: false,
    label: "test",
    scale: 1 / Math.sqrt(headDim),
    cap,
    window,
    tuning: rules,
  };
  const plan = chunk
    ? chunkOnUnits(buffers, of, {
      units,
      halves,
      choose: (...asked) => {
        const tile = chunkTile(...asked);
        const of = { ...tile, direct: tile.direct || shape.direct === true };
        return gpu.info.software ? small(of) : of;
      },
    })
    : attentionOnDevice(buffers, of);
  const most = shape.before + shape.rows;
  const replayed = plan.filter(({ forCells: { from, upTo } = { from: 0, upTo: Infinity } }) =>
    most >= from && most <= upTo
  );
  await device.run(replayed);
  return {
    kernels: replayed.map(({ kernel }) => kernel.name.replace(/units.*/, "units")),
    out: await device.readWords(out),
  };
}

for (const shape of SHAPES) {
  Deno.test({
    name: `attention of chunks on matrix units, ${JSON.stringify(shape)}`,
    ignore,
    fn: async () => {
      const [chunk, few] = [await run(shape, true), await run(shape, false)];
      assert.ok(chunk.kernels.includes("chunk_units"), chunk.kernels.join());
      assert.ok(few.kernels.includes("attention_units"), few.kernels.join());
      const width = shape.group * shape.kvHeads * shape.headDim;
      for (const r of rowsOf(shape).keys()) {
        const [from, to] = [r * width, (r + 1) * width];
        assert.deepEqual(chunk.out.slice(from, to), few.out.slice(from, to), `row ${r}`);
      }
    },
  });
}

Deno.test("rows go as a chunk where they are many of one slot and there is room for its cells", () => {
  const limits = {
    maxComputeInvocationsPerWorkgroup: 1024,
    maxComputeWorkgroupStorageSize: 49152,
    maxStorageBuffersPerShaderStage: 16,
  };
  const units: AttentionUnits = { unit: { m: 16, n: 16, k: 16, lanes: 32 }, limits };
  const heads = { heads: 32, kvHeads: 8, headDim: 128, tablePages: 4096, kvDtype: "f32" } as const;
  const words = halvesWords(heads, 512, units);
  // hi and lo of a key and a value are as many bytes as both; and a unit each.
  assert.equal(4 * words, 65536 * 8 * (2 * 4 * 128 + 2 * 4));
  assert.equal(halvesWords(heads, 63, units), 0);
  const bound = { ...limits, maxStorageBufferBindingSize: 4 * words - 4 };
  assert.equal(halvesWords(heads, 512, { ...units, limits: bound }), 0);

  const operand = { buffer: { size: 2 ** 32 } as GPUBuffer };
  const buffers = { q: operand, keys: operand, values: operand, rows: operand, pages: operand };
  const names = (count: number, perSlot: number, partial = {}, paths = false) =>
    attentionOnDevice({
      ...buffers,
      out: operand,
      partial: { sums: operand, stats: operand, halves: operand, ...partial },
    }, {
      ...heads,
      count,
      perSlot,
      paths,
      scale: 1,
      label: "",
      tuning: { ...tuning(false), attentionUnits: units },
    }).map(({ kernel: { name }, forCells: { upTo } = { upTo: Infinity } }) =>
      `${name.replace(/_units.*/, "")}${upTo < Infinity ? ` to ${upTo}` : ""}`
    );
  // 32 tiles of 16 rows for each of 8 heads: as many workgroups as a GPU has room for have all cells.
  assert.deepEqual(names(512, 512), ["halves", "chunk"]);
  assert.deepEqual(names(480, 480), ["halves", "chunk", "combine"]);
  // 8 tiles of 16 rows for each of 8 heads: 64 workgroups are too few, two segments of cells make 128.
  assert.deepEqual(names(128, 128), ["attention to 1024", "halves", "chunk", "combine"]);
  const others = [
    names(63, 63),
    names(512, 256),
    names(512, 512, { halves: undefined }),
    names(512, 512, { halves: { ...operand, size: 4 * words - 4 } }),
    names(512, 512, {}, true),
  ];
  for (const other of others) assert.ok(other.includes("attention"), other.join());
  for (const other of others) assert.ok(!other.includes("chunk"), other.join());
});
