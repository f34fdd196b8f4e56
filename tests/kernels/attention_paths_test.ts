// Nodes of a draft tree have the bits that plain decoding gives them, wherever their cells lie.

import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { packedKv } from "./kv.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";
import { chainOf, randomTree, type Tree, TREE_CELLS, treeRows } from "./trees.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

// Around pages of 16, chunks of 64 and the chunk that a path of up to 16 cells runs into.
const BASES = [0, 1, 15, 16, 33, 48, 49, 55, 62, 63, 64, 65, 100, 127, 150];
const TABLE_PAGES = Math.ceil((BASES.at(-1)! + TREE_CELLS) / PAGE);
const CELLS = TABLE_PAGES * PAGE;

interface Shape {
  /** Whose kernel: a software adapter takes small groups in registers. */
  readonly software: boolean;
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Rows of a slot. */
  readonly nodes: number;
  readonly kvDtype?: KvDtype;
  readonly cap?: number;
  readonly window?: number;
  /** Rows whose partial sums are kept at a time; default all. */
  readonly room?: number;
}

/** Which key and value lie in a cell of a slot; undefined = none that a row may read. */
type Contents = (slot: number, cell: number) => number | undefined;

/** Keys or values of all cells: `of` has [contents, kvHeads, headDim]. */
function pagedCells(of: Float32Array, slots: number, contents: Contents, shape: Shape) {
  const { kvHeads, headDim, kvDtype = "f32" } = shape;
  const values = new Float32Array(slots * CELLS * kvHeads * headDim).fill(3e4);
  const pages = blockTable(slots, TABLE_PAGES);
  for (let at = 0; at < slots * CELLS; at++) {
    const content = contents(Math.floor(at / CELLS), at % CELLS);
    if (content === undefined) continue;
    const page = pages[Math.floor(at / PAGE)] ?? NaN;
    for (let h = 0; h < kvHeads; h++) {
      const from = (content * kvHeads + h) * headDim;
      const to = ((page * kvHeads + h) * PAGE + at % PAGE) * headDim;
      values.set(of.subarray(from, from + headDim), to);
    }
  }
  return device.words(packedKv(kvDtype, values, headDim));
}

/** Output words of each row; row r has the r-th q. */
async function run(
  shape: Shape,
  rows: readonly RowFields[],
  { slots, contents, ...of }: {
    slots: number;
    contents: Contents;
    perSlot: number;
    paths: boolean;
  },
): Promise<Uint32Array[]> {
  const { group, kvHeads, headDim, software, kvDtype = "f32", cap, window, room } = shape;
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES, kvDtype };
  const words = partialWords(heads, room ?? rows.length, tuning(software));
  const width = group * kvHeads * headDim;
  const many = (MAX_TREES * CELLS + rows.length) * kvHeads * headDim;
  const out = device.filled(rows.length * width, -7);
  const buffers = {
    q: device.floats(numbers(rows.length * width, 1).map((value) => value * 3)),
    keys: pagedCells(numbers(many, 2), slots, contents, shape),
    values: pagedCells(numbers(many, 3), slots, contents, shape),
    rows: device.words(packRows(rows)),
    pages: device.words(blockTable(slots, TABLE_PAGES)),
    out,
    partial: { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) },
  };
  const launch = { count: rows.length, ...of, tuning: tuning(software), label: "test" };
  const scoring = { scale: 1 / Math.sqrt(headDim), cap, window };
  await device.run(attention(buffers, { ...heads, ...scoring, ...launch }));
  const found = await device.readWords(out);
  return rows.map((_, i) => found.slice(i * width, (i + 1) * width));
}

const MAX_TREES = 2;

/** What lies before the base of a tree, and at its nodes; every third node is a sibling's equal. */
const before = (slot: number, cell: number) => slot * CELLS + cell;
const nodeOf = ({ slot, paths }: Tree, node: number) =>
  MAX_TREES * CELLS + slot * paths.length + (node % 3 === 0 ? 0 : node);

/** The trees as they lie: slot s has tree s. */
function scattered(trees: readonly Tree[]): Contents {
  return (slot, cell) => {
    const tree = trees[slot] as Tree;
    if (cell < tree.base) return before(slot, cell);
    const node = tree.offsets.indexOf(cell - tree.base);
    return node < 0 ? undefined : nodeOf(tree, node);
  };
}

/** Each row has a slot of its own: what its tree has before the base, then its path in order. */
function inOrder(trees: readonly Tree[]): Contents {
  const nodes = trees.flatMap((tree) => tree.paths.map((path) => ({ tree, path })));
  return (slot, cell) => {
    const { tree, path } = nodes[slot] as { tree: Tree; path: readonly number[] };
    if (cell < tree.base) return before(tree.slot, cell);
    const node = path[cell - tree.base];
    return node === undefined ? undefined : nodeOf(tree, node);
  };
}

/** Rows of the trees, among them padding, and roots that are chains of their own. */
function rowsOf(trees: readonly Tree[]): RowFields[] {
  return trees.flatMap((tree) =>
    treeRows(tree).map((row, node) => {
      if (node === 2) return { ...row, slot: 0, live: 0 };
      const plain = row.path.every((offset, i) => offset === i);
      return plain ? chainOf(row, row.slot) : row;
    })
  );
}

const SHAPES: readonly Shape[] = [
  { software: false, group: 1, kvHeads: 2, headDim: 32, nodes: 5 }, // tiles of three rows
  { software: false, group: 1, kvHeads: 1, headDim: 64, nodes: 16, window: 9, cap: 4 },
  { software: false, group: 2, kvHeads: 1, headDim: 32, nodes: 20, kvDtype: "bf16" },
  { software: false, group: 2, kvHeads: 1, headDim: 32, nodes: 12, window: 70, room: 8 },
  { software: false, group: 4, kvHeads: 2, headDim: 64, nodes: 12, kvDtype: "f16" },
  { software: false, group: 16, kvHeads: 1, headDim: 576, nodes: 6, kvDtype: "bf16" }, // latents
  { software: false, group: 4, kvHeads: 8, headDim: 64, nodes: 13 }, // these two share reads
  { software: false, group: 2, kvHeads: 16, headDim: 64, nodes: 7, kvDtype: "bf16", window: 70 },
  { software: false, group: 8, kvHeads: 2, headDim: 64, nodes: 16 }, // and these have tiles of one row
  { software: false, group: 16, kvHeads: 4, headDim: 64, nodes: 16, kvDtype: "f16" },
  { software: true, group: 2, kvHeads: 2, headDim: 32, nodes: 24 },
  { software: true, group: 4, kvHeads: 1, headDim: 16, nodes: 16, kvDtype: "f16", window: 3 },
  { software: true, group: 8, kvHeads: 1, headDim: 16, nodes: 16, kvDtype: "bf16", window: 70 },
  { software: true, group: 2, kvHeads: 1, headDim: 128, nodes: 7, cap: 20 }, // in chunks
];

function nameOf(shape: Shape): string {
  const { software, group, kvHeads, headDim, nodes, kvDtype = "f32", window, cap } = shape;
  const scoring = `${window ? `, window ${window}` : ""}${cap ? `, cap ${cap}` : ""}`;
  const family = software ? "software" : "hardware";
  return `${nodes} nodes, ${group} x ${kvHeads} heads of ${headDim}, ${kvDtype}${scoring}, ${family}`;
}

/** Indices in SHAPES: a tile of three rows, a window, tiles of one row; both families of a software adapter. */
const SHORT = [0, 3, 8, 10, 13];

for (const [place, shape] of SHAPES.entries()) {
  const { test } = SHORT.includes(place) ? Deno : drawn;
  test(`attention: a scattered path has the bits of a chain, ${nameOf(shape)}`, async () => {
    for (const [i, base] of BASES.entries()) {
      if ((shape.headDim > 256 || !EXHAUSTIVE) && i % 4 !== 1) continue; // slow
      const other = BASES[(i + 7) % BASES.length] ?? NaN;
      const trees = [base, other].map((from, slot) =>
        randomTree(slot, from, shape.nodes, 10 * i + slot)
      );
      // A root at the place of its number is a chain; the others of its tile are not.
      const [first] = trees as [Tree, ...Tree[]];
      if (i % 2 === 0) trees[0] = { ...first, offsets: rooted(first.offsets) };
      const rows = rowsOf(trees);
      const chains = rows.map((row, r) => chainOf(row, r));
      const together = { slots: trees.length, perSlot: shape.nodes, contents: scattered(trees) };
      const found = await run(shape, rows, { ...together, paths: true });
      const alone = { slots: rows.length, perSlot: 1, contents: inOrder(trees), paths: false };
      const wanted = await run({ ...shape, room: rows.length }, chains, alone);
      rows.forEach((row, r) => {
        assert.deepEqual(found[r], wanted[r], `row ${r}: ${JSON.stringify(row)}`);
      });
    }
  });
}

/** The same offsets but for the root's, which is 0. */
function rooted(offsets: readonly number[]): number[] {
  return offsets.map((offset, node) => node === 0 ? 0 : offset === 0 ? offsets[0] ?? NaN : offset);
}
