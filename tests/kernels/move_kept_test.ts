// What recurrent layers keep of trees: once the accepted rows are moved, later rows have the bits of row by row.
import assert from "node:assert/strict";
import { type DeltaHeads, deltaRule, stepWords } from "../../kernels/recurrent/delta_rule.ts";
import { moveKept, type StateBuffers } from "../../kernels/recurrent/move_kept.ts";
import { shortConv } from "../../kernels/recurrent/short_conv.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { NO_SLOT } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { packRows, type RowFields, treeRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const SLOTS = 3;
/** Rows of a tree, levels below its root, and the rows of a forward with one more sequence and padding. */
const [ROWS, DEPTH, BATCH] = [9, 4, 3];
/** Where the kept rows begin in `last`. */
const KEPT = 5;
const TREES: readonly (readonly number[])[] = [
  [0, 0, 1, 1, 2, 3, 4, 6], // two branches
  [0, 1, 2, 3, 0, 5, 6, 7], // two chains
  [0, 0, 0, 0, 4, 4, 6, 7], // the first path is the last child's
];

interface Layer {
  /** Buffers that keep rows of slots, and how. */
  readonly kept: StateBuffers;
  /** The outputs of rows, each made from the numbers of its seed. */
  forward(
    rows: readonly Partial<RowFields>[],
    seeds: readonly number[],
    perSlot: number,
    paths: boolean,
  ): Promise<Float32Array[]>;
}

async function outputs(
  dispatches: readonly Dispatch[],
  out: Operand,
  count: number,
  width: number,
) {
  await device.run(dispatches);
  const all = await device.readFloats(out);
  return Array.from({ length: count }, (_, i) => all.slice(i * width, (i + 1) * width));
}

const [COLS, TAPS] = [70, 4];

/** A short convolution whose ring has just enough rows. */
function convolution(form: "silu" | "gated"): Layer {
  const [ringRows, xCols] = [ROWS + TAPS - 1, form === "gated" ? 3 * COLS : COLS + 2];
  const ring = device.filled(SLOTS * ringRows * COLS, 5);
  const weight = device.floats(numbers(COLS * TAPS, 2));
  return {
    kept: { buffers: [ring], places: ringRows, words: COLS },
    forward(rows, seeds, _, paths) {
      const out = device.filled(rows.length * COLS, 7);
      const x = device.floats(seeds.flatMap((seed) => [...numbers(xCols, seed)]));
      const buffers = { x, weight, rows: device.words(packRows(rows)), ring, out };
      const shape = { form, cols: COLS, xCols, taps: TAPS, ringRows, label: "conv", paths };
      return outputs(shortConv(buffers, { ...shape, count: rows.length }), out, rows.length, COLS);
    },
  };
}

const HEADS: DeltaHeads = { keyHeads: 1, valueHeads: 2, keyDim: 24, valueDim: 40 };

/** A recurrence that stores as many steps as a tree has rows. */
function recurrence(): Layer {
  const { keyHeads, valueHeads, keyDim, valueDim } = HEADS;
  const [cols, width] = [2 * keyHeads * keyDim + valueHeads * valueDim, valueHeads * valueDim];
  const states = device.filled(SLOTS * valueHeads * keyDim * valueDim, 3);
  const steps = device.filled(SLOTS * stepWords(HEADS, ROWS), 5);
  const decayWeights = device.floats(numbers(2 * valueHeads, 9));
  return {
    kept: { buffers: [steps], places: ROWS, heads: HEADS },
    forward(rows, seeds, perSlot, paths) {
      const count = rows.length;
      const out = device.filled(count * width);
      const of = (size: number, more: number) =>
        device.floats(seeds.flatMap((seed) => [...numbers(size, seed + more)]));
      const buffers = {
        memory: { states, steps, stepRows: ROWS },
        rows: device.words(packRows(rows)),
        mixed: of(cols, 0),
        rates: of(2 * valueHeads, 11),
        decayWeights,
        out,
      };
      const shape = { heads: HEADS, count, perSlot, paths, label: "delta" };
      return outputs([deltaRule(buffers, shape)], out, count, width);
    },
  };
}

const chain = (slot: number, from: number, count: number): Partial<RowFields>[] =>
  Array.from({ length: count }, (_, i) => {
    const position = from + i;
    return { slot, position, cell: position, base: position + 1 };
  });

const LAYERS = {
  "a convolution with silu": () => convolution("silu"),
  "a gated convolution": () => convolution("gated"),
  "a recurrence": recurrence,
};

for (const [name, open] of Object.entries(LAYERS)) {
  Deno.test(`move_kept: rounds of trees, all numbers of accepted rows, ${name}`, async () => {
    const [layer, alone] = [open(), open()];
    // Slots 2 and 0 have texts of other lengths; the place between them has no sequence.
    const texts = [{ slot: 2, length: 0, place: 0 }, { slot: 0, length: 0, place: 2 }];
    for (const [t, text] of texts.entries()) {
      text.length = 5 + 4 * t;
      const seeds = Array.from({ length: text.length }, (_, i) => 100 * t + i);
      for (const each of [layer, alone]) {
        await each.forward(chain(text.slot, 0, text.length), seeds, text.length, false);
      }
    }
    // So many rounds that cells pass the end of rings several times.
    for (let round = 0; round < 12; round++) {
      const parents = texts.map((_, t) => TREES[(round + t) % TREES.length]!);
      const rows: Partial<RowFields>[] = Array.from({ length: BATCH * ROWS }, () => ({ live: 0 }));
      const seeds = rows.map((_, i) => 1000 * (round + 1) + 20 * i);
      for (const [t, { slot, length, place }] of texts.entries()) {
        treeRows(length, parents[t]!).forEach((row, i) =>
          rows[place * ROWS + i] = { ...row, slot }
        );
      }
      const found = await layer.forward(rows, seeds, ROWS, true);
      const last = new Uint32Array(KEPT + BATCH * (DEPTH + 1)).fill(NO_SLOT);
      const extend = Array.from(
        { length: BATCH * (DEPTH + 1) },
        (): Partial<RowFields> => ({ live: 0 }),
      );
      for (const [t, text] of texts.entries()) {
        const { slot, length, place } = text;
        const end = (round * 5 + t * 3) % ROWS; // the last accepted row
        const path = [0];
        for (let at = end; at > 0; at = parents[t]![at - 1]!) path.splice(1, 0, at);
        for (const [j, row] of path.entries()) {
          const at = place * (DEPTH + 1) + j;
          extend[at] = { slot, position: length + j, cell: length + j };
          last[KEPT + at] = place * ROWS + row;
          // Row by row each accepted row has the same bits.
          const seed = seeds[place * ROWS + row]!;
          const [own] = await alone.forward(chain(slot, length + j, 1), [seed], 1, false);
          assert.deepEqual(
            found[place * ROWS + row],
            own,
            `round ${round}, slot ${slot}, row ${row}`,
          );
        }
        text.length += path.length;
      }
      const buffers = { extend: device.words(packRows(extend)), last: device.words(last) };
      const shape = { batch: BATCH, rows: ROWS, depth: DEPTH, kept: KEPT };
      await device.run(moveKept(buffers, layer.kept, shape));
    }
  });
}
