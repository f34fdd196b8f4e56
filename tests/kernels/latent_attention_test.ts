// Attention over latents by its own kernel: against f64, and the same bits whatever shares a tile.

import assert from "node:assert/strict";
import {
  latentAttention,
  latentPartialWords,
  tilesLatents,
} from "../../kernels/mla/latent_attention.ts";
import { UsageError } from "../../src/errors.ts";
import type { Dispatch } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";
import { chainOf, randomTree, type Tree, treeRows } from "./trees.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const HARDWARE = tuning(false, device.gpu.limits);

interface Shape {
  readonly heads: number;
  readonly rank: number;
  readonly rope: number;
  readonly kvDtype: KvDtype;
  readonly window?: number;
}

/** What lies in the cells: of a slot, by where it is stored. */
interface Kept {
  readonly slots: number;
  readonly cells: number;
  /** [slots, cells, width]; NaN where no row may read. */
  readonly values: Float32Array;
}

interface Launch {
  readonly perSlot: number;
  readonly paths: boolean;
  /** Rows whose partial sums are kept at a time; default all. */
  readonly room?: number;
  /** Which of the dispatches run; default all. */
  readonly only?: (plan: Dispatch[]) => Dispatch[];
}

const widthOf = ({ rank, rope }: Shape) => rank + rope;
const nameOf = ({ heads, rank, rope, kvDtype, window }: Shape) =>
  `${heads} heads, ${rank} + ${rope}, ${kvDtype}${window ? `, window ${window}` : ""}`;

/** Queries of a row by its seed. */
const queryOf = (shape: Shape, seed: number) => numbers(shape.heads * widthOf(shape), 50 + seed);

/** Latents of a chain in each slot, and nothing after `written` cells. */
function chains(shape: Shape, slots: number, cells: number, written = cells): Kept {
  const width = widthOf(shape);
  const values = kept(shape.kvDtype, numbers(slots * cells * width, 7));
  for (let slot = 0; slot < slots; slot++) {
    values.fill(NaN, (slot * cells + written) * width, (slot + 1) * cells * width);
  }
  return { slots, cells, values };
}

/** Words of each row's output, whose queries are those of its `token`. */
async function run(
  shape: Shape,
  { slots, cells, values }: Kept,
  rows: readonly RowFields[],
  { perSlot, paths, room = rows.length, only = (plan) => plan }: Launch,
): Promise<Uint32Array[]> {
  const { heads, rank, kvDtype, window } = shape;
  const width = widthOf(shape);
  const tablePages = cells / PAGE;
  const pages = blockTable(slots, tablePages);
  const stored = new Float32Array(values.length);
  for (let at = 0; at < slots * cells; at++) {
    const to = (pages[Math.floor(at / PAGE)]! * PAGE + at % PAGE) * width;
    stored.set(values.subarray(at * width, (at + 1) * width), to);
  }
  const sizes = { heads, kvHeads: 1, headDim: width, rank, tablePages, kvDtype };
  const words = latentPartialWords(sizes, room, {});
  const out = device.filled(rows.length * heads * width, -7);
  const plan = latentAttention({
    q: device.floats(rows.flatMap(({ token }) => [...queryOf(shape, token)])),
    latents: device.words(packedKv(kvDtype, stored, width)),
    rows: device.words(packRows(rows)),
    pages: device.words(pages),
    out,
    partial: { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) },
  }, {
    ...sizes,
    count: rows.length,
    perSlot,
    paths,
    scale: 0.3,
    window,
    tuning: HARDWARE,
    label: "test",
  });
  await device.run(only(plan));
  const found = await device.readWords(out);
  return rows.map((_, r) =>
    Uint32Array.from(
      { length: heads * rank },
      (_, i) => found[(r * heads + Math.floor(i / rank)) * width + i % rank]!,
    )
  );
}

/** softmax(0.3 q . k) v over what a chain's row sees. */
function reference(shape: Shape, { cells, values }: Kept, row: RowFields): number[] {
  const { heads, rank, window = Infinity } = shape;
  const width = widthOf(shape);
  const q = queryOf(shape, row.token);
  const seen = row.live
    ? Array.from({ length: row.position + 1 }, (_, i) => i)
      .filter((i) => i > row.position - window)
      .map((i) =>
        values.subarray((row.slot * cells + i) * width, (row.slot * cells + i + 1) * width)
      )
    : [];
  return Array.from({ length: heads }, (_, h) => {
    const own = q.subarray(h * width, (h + 1) * width);
    const scores = seen.map((key) => 0.3 * key.reduce((sum, k, i) => sum + k * own[i]!, 0));
    const peak = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - peak));
    const total = weights.reduce((a, b) => a + b, 0);
    return Array.from(
      { length: rank },
      (_, d) => weights.reduce((sum, w, c) => sum + w * seen[c]![d]!, 0) / (total || 1),
    );
  }).flat();
}

/** Rows that follow each other up to a slot's last cell. */
function rowsUpTo(cells: number, count: number, slot = 0): RowFields[] {
  return Array.from({ length: count }, (_, i) => {
    const position = cells - count + i;
    const live = count > 2 && i === 1 ? 0 : 1;
    return { token: i, position, slot, cell: position, base: position + 1, live, path: [] };
  });
}

const SHAPES: readonly Shape[] = [
  { heads: 3, rank: 64, rope: 16, kvDtype: "f32" },
  { heads: 16, rank: 40, rope: 8, kvDtype: "bf16", window: 37 },
  { heads: 5, rank: 136, rope: 24, kvDtype: "f16", window: 150 },
  { heads: 20, rank: 8, rope: 8, kvDtype: "f32" },
];
/** What always runs, and the shape of single tests: one kernel each. */
const SHORT = SHAPES[1] as Shape;
/** Wide ones, where the adapter has workgroup memory for them: DeepSeek's takes 48 KiB. */
const WIDE: Shape = { heads: 16, rank: 264, rope: 56, kvDtype: "f32" };
const REAL: readonly Shape[] = HARDWARE.workgroupBytes < 49152 ? [WIDE] : [
  { heads: 16, rank: 512, rope: 64, kvDtype: "f32" },
  { heads: 16, rank: 512, rope: 64, kvDtype: "bf16" },
  { heads: 16, rank: 512, rope: 64, kvDtype: "f16", window: 200 },
];
/** Rows of a slot, each with kernels of their own. */
const countsOf = (shape: Shape) => EXHAUSTIVE ? [2, 5, 16, 18] : shape === SHORT ? [5, 18] : [18];

for (const shape of [...SHAPES, ...REAL]) {
  const [cells, written] = [20 * PAGE, 277];
  const latents = chains(shape, 2, cells, written);
  const most = 18;
  const rows = rowsUpTo(written, most);

  const { test } = shape === SHORT ? Deno : drawn;
  test(`latent attention: reference, ${nameOf(shape)}`, async () => {
    const counts = [[1, 17], [33, 277]] as const;
    const more = [[1, 1], [1, 16], [3, 40], [7, 130], [18, 18]] as const;
    for (const [count, at] of [...counts, ...EXHAUSTIVE ? more : []]) {
      const some = rowsUpTo(at, count, 1);
      const found = await run(shape, latents, some, { perSlot: count, paths: false });
      for (const [r, row] of some.entries()) {
        const wanted = reference(shape, latents, row);
        assertClose(
          new Float32Array(found[r]!.buffer),
          wanted,
          2e-5,
          `row ${r} of ${count}, ${at}`,
        );
      }
    }
  });

  test(`latent attention: a row's bits are its own, ${nameOf(shape)}`, async () => {
    const alone: Uint32Array[] = [];
    for (const row of rows) {
      alone.push(...await run(shape, latents, [row], { perSlot: 1, paths: false }));
    }
    for (const count of countsOf(shape)) {
      const some = rows.slice(-count);
      const launches: Launch[] = [
        { perSlot: count, paths: false },
        { perSlot: count, paths: true },
        { perSlot: 1, paths: false },
        ...count === most ? [{ perSlot: count, paths: false, room: 16 }] : [],
      ];
      for (const launch of launches) {
        const found = await run(shape, latents, some, launch);
        assert.deepEqual(found, alone.slice(-count), `${count} rows, ${JSON.stringify(launch)}`);
      }
    }
  });
}

Deno.test("latent attention: 48 KiB of workgroup memory do for DeepSeek's latents", () => {
  const tiles = (workgroupBytes: number, headDim: number, software = false) =>
    tilesLatents({ headDim }, { software, workgroupBytes });
  assert.equal(tiles(49152, 576), true);
  assert.equal(tiles(32768, 576), false);
  assert.equal(tiles(32768, 320), true);
  assert.equal(tiles(49152, 576, true), false);
});

Deno.test("latent attention: rows of two slots", async () => {
  const shape = SHORT;
  const latents = chains(shape, 2, 256);
  const rows = [...rowsUpTo(60, 3, 1), ...rowsUpTo(200, 3, 0)];
  const found = await run(shape, latents, rows, { perSlot: 3, paths: false });
  for (const [r, row] of rows.entries()) {
    const wanted = reference(shape, latents, row);
    assertClose(new Float32Array(found[r]!.buffer), wanted, 2e-5, `row ${r}`);
  }
});

Deno.test("latent attention: passes for short and for long contexts have the same bits", async () => {
  const shape: Shape = { heads: 4, rank: 40, rope: 8, kvDtype: "bf16" };
  const latents = chains(shape, 1, 2304);
  for (const count of [1, 16, 100]) {
    const rows = rowsUpTo(1900, count);
    const passes = async (only: Launch["only"]) =>
      await run(shape, latents, rows, { perSlot: count, paths: false, only: only! });
    const short = await passes((plan) =>
      plan.filter(({ forCells }) => (forCells?.upTo ?? 0) < 1e9)
    );
    const long = await passes((plan) =>
      plan.filter(({ forCells }) => (forCells?.upTo ?? 1e9) > 1e9 || !forCells)
    );
    if (count <= 16) assert.deepEqual(short, long, `${count} rows`);
    const wanted = reference(shape, latents, rows[0]!);
    assertClose(new Float32Array(long[0]!.buffer), wanted, 2e-5, `${count} rows`);
  }
});

Deno.test("latent attention: a row among more than a thousand queries has the bits it has alone", async () => {
  const { window: _, ...shape } = SHORT;
  const latents = chains(shape, 1, 1024);
  const rows = rowsUpTo(1001, 70);
  const found = await run(shape, latents, rows, { perSlot: 70, paths: false });
  for (const r of [0, 1, 37, 69]) {
    const [alone] = await run(shape, latents, [rows[r]!], { perSlot: 1, paths: false });
    assert.deepEqual(found[r], alone, `row ${r}`);
    const wanted = reference(shape, latents, rows[r]!);
    assertClose(new Float32Array(alone!.buffer), wanted, 2e-5, `row ${r}`);
  }
});

drawn.test("latent attention: few rows of many heads on both sides of 2,048 cells have the bits they have alone", async () => {
  const shape: Shape = { heads: 128, rank: 144, rope: 8, kvDtype: "f32" };
  const latents = chains(shape, 1, 2304);
  for (const end of [2048, 2052]) {
    const rows = rowsUpTo(end, 8);
    const found = await run(shape, latents, rows, { perSlot: 8, paths: false });
    for (const r of [0, 7]) {
      const [alone] = await run(shape, latents, [rows[r]!], { perSlot: 1, paths: false });
      assert.deepEqual(found[r], alone, `row ${r} up to ${end}`);
    }
    const wanted = reference(shape, latents, rows[7]!);
    assertClose(new Float32Array(found[7]!.buffer), wanted, 2e-5, `up to ${end}`);
  }
});

Deno.test("latent attention: a long context", async () => {
  const shape: Shape = { heads: 4, rank: 40, rope: 8, kvDtype: "bf16" };
  const latents = chains(shape, 1, 576 * PAGE);
  const rows = rowsUpTo(9100, 18);
  const long = (plan: Dispatch[]) =>
    plan.filter(({ forCells }) => (forCells?.upTo ?? Infinity) > 1e9);
  const found = await run(shape, latents, rows, { perSlot: 18, paths: false, only: long });
  const [alone] = await run(shape, latents, [rows[5]!], { perSlot: 1, paths: false, only: long });
  assert.deepEqual(found[5], alone);
  assertClose(new Float32Array(alone!.buffer), reference(shape, latents, rows[5]!), 2e-5, "long");
});

/** The trees' nodes as they lie. */
function scattered(shape: Shape, trees: readonly Tree[], cells: number): Kept {
  const width = widthOf(shape);
  const { values } = chains(shape, trees.length, cells);
  for (const [slot, { base, offsets }] of trees.entries()) {
    for (let cell = base; cell < cells; cell++) {
      if (offsets.includes(cell - base)) continue;
      values.fill(NaN, (slot * cells + cell) * width, (slot * cells + cell + 1) * width);
    }
  }
  return { slots: trees.length, cells, values };
}

/** Each node has a slot of its own that holds what it sees, in order. */
function inOrder(shape: Shape, trees: readonly Tree[], of: Kept): Kept {
  const width = widthOf(shape);
  const nodes = trees.flatMap((tree) => tree.paths.map((path) => ({ tree, path })));
  const values = new Float32Array(nodes.length * of.cells * width).fill(NaN);
  for (const [slot, { tree, path }] of nodes.entries()) {
    const end = tree.base + path.length;
    for (let cell = 0; cell < end; cell++) {
      const node = path[cell - tree.base];
      const lies = node === undefined ? cell : tree.base + tree.offsets[node]!;
      const from = (tree.slot * of.cells + lies) * width;
      values.set(of.values.subarray(from, from + width), (slot * of.cells + cell) * width);
    }
  }
  return { slots: nodes.length, cells: of.cells, values };
}

for (const [i, shape] of [...SHAPES, ...REAL].entries()) {
  const { test } = shape === SHORT ? Deno : drawn;
  test(`latent attention: a scattered path has the bits of a chain, ${nameOf(shape)}`, async () => {
    const trees = [[1, 5], [15, 12], [129, 9]] as const;
    const more = [[16, 6], [120, 20]] as const;
    for (const [base, nodes] of [...trees, ...EXHAUSTIVE ? more : []]) {
      if (shape.rank > 256 && base % 15 !== 0) continue; // slow
      const placed = [base, base + 3].map((from, slot) =>
        randomTree(slot, from, nodes, 10 * i + slot)
      );
      const latents = scattered(shape, placed, 192);
      const rows = placed.flatMap(treeRows)
        .map((row, r) => ({ ...row, token: r, live: r === 2 ? 0 : 1 }));
      const launch = { perSlot: nodes, paths: true };
      const found = await run(shape, latents, rows, launch);
      const ordered = inOrder(shape, placed, latents);
      const alone = rows.map((row, r) => chainOf(row, r));
      const wanted = await run(shape, ordered, alone, { perSlot: 1, paths: false });
      rows.forEach((row, r) => assert.deepEqual(found[r], wanted[r], JSON.stringify(row)));
    }
  });
}

Deno.test("latent attention: partial sums are as many as an adapter binds, or an error of one line", () => {
  // GLM-4.7-Flash at 131,072 tokens.
  const sizes = { heads: 20, rank: 512, tablePages: 8192 };
  const bytesOf = (bindingBytes?: number) =>
    4 * latentPartialWords(sizes, 1024, bindingBytes === undefined ? {} : { bindingBytes }).sums;
  const least = 4 * 20 * 512 * 8 * 1024; // eight rows of 1,024 segments each
  assert.equal(bytesOf(), least);
  assert.equal(bytesOf(least), least);
  assert.throws(() => bytesOf(128 << 20), (error) => {
    assert.ok(error instanceof UsageError);
    assert.equal(
      error.message,
      `Cannot run attention over 131072 tokens: its partial sums take ${least} bytes, ` +
        `and the adapter binds at most ${128 << 20}`,
    );
    return true;
  });
  const short = { ...sizes, tablePages: 1024 };
  const most = { bindingBytes: 100 << 20 };
  const { sums } = latentPartialWords(short, 1024, most);
  assert.ok(4 * sums <= most.bindingBytes && 4 * sums > most.bindingBytes - 4 * 20 * 512);
});
