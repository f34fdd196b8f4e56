/** The recurrence that convolves its rows itself: the bits of the convolution's own dispatch, in all that is stored. */
import assert from "node:assert/strict";
import {
  convolves,
  type DeltaHeads,
  deltaRule,
  stepWords,
} from "../../kernels/recurrent/delta_rule.ts";
import { shortConv } from "../../kernels/recurrent/short_conv.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const SHAPES: readonly DeltaHeads[] = [
  { keyHeads: 2, valueHeads: 6, keyDim: 32, valueDim: 64 },
  { keyHeads: 1, valueHeads: 2, keyDim: 24, valueDim: 40 },
  { keyHeads: 1, valueHeads: 33, keyDim: 16, valueDim: 128 },
];
const [SLOTS, STEP_ROWS, TAPS] = [2, 4, 4];
const RING_ROWS = STEP_ROWS + TAPS - 1;
/** Columns of a row after the convolved ones. */
const OTHERS = 16;

interface RowSpec {
  readonly slot: number;
  readonly position: number;
  readonly draft?: number;
  readonly live?: number;
}

interface Memory {
  readonly ring: Operand;
  readonly states: Operand;
  readonly steps: Operand;
}

const widthOf = ({ keyHeads, valueHeads, keyDim, valueDim }: DeltaHeads) =>
  2 * keyHeads * keyDim + valueHeads * valueDim;

function memoryOf(heads: DeltaHeads): Memory {
  const { valueHeads, keyDim, valueDim } = heads;
  return {
    ring: device.filled(SLOTS * RING_ROWS * widthOf(heads), 5),
    states: device.filled(2 * SLOTS * valueHeads * keyDim * valueDim, 3),
    steps: device.filled(SLOTS * stepWords(heads, STEP_ROWS), 5),
  };
}

const weights = (heads: DeltaHeads) => device.floats(numbers(widthOf(heads) * TAPS, 2));

/** Runs a forward, and reads its outputs and all that is stored. */
async function forward(
  heads: DeltaHeads,
  { ring, states, steps }: Memory,
  { rows, perSlot, fused }: {
    readonly rows: readonly RowSpec[];
    readonly perSlot: number;
    readonly fused: boolean;
  },
) {
  const [cols, count] = [widthOf(heads), rows.length];
  const [xCols, weight] = [cols + OTHERS, weights(heads)];
  const seedOf = ({ slot, position, draft = 0 }: RowSpec) => 1000 * slot + position + 500 * draft;
  const x = device.floats(rows.flatMap((row) => [...numbers(xCols, seedOf(row))]));
  const out = device.filled(count * heads.valueHeads * heads.valueDim, 0);
  const mixed = device.filled(count * cols, 0);
  const packed = device.words(packRows(rows));
  const shape = { form: "silu", cols, xCols, taps: TAPS, ringRows: RING_ROWS, count } as const;
  const itself = fused && convolves(shape, { storageBuffers: 16 });
  await device.run([
    ...itself
      ? []
      : shortConv({ x, weight, rows: packed, ring, out: mixed }, { ...shape, label: "conv" }),
    deltaRule({
      memory: { states, steps, stepRows: STEP_ROWS, checkpoints: true },
      rows: packed,
      mixed: itself ? x : mixed,
      conv: itself ? { weight, ring, xCols, ringRows: RING_ROWS } : undefined,
      rates: device.floats(rows.flatMap((row) => [...numbers(2 * heads.valueHeads, seedOf(row))])),
      decayWeights: device.floats(numbers(2 * heads.valueHeads, 9)),
      out,
    }, { heads, count, perSlot, label: "delta" }),
  ]);
  const all = { out, ring, states, steps };
  return {
    itself,
    found: Object.fromEntries(
      await Promise.all(
        Object.entries(all).map(async ([name, of]) => [name, await device.readWords(of)] as const),
      ),
    ),
  };
}

const run = (slot: number, from: number, to: number, draft = 0): RowSpec[] =>
  Array.from({ length: to - from }, (_, i) => ({ slot, position: from + i, draft }));

const PADDING = { slot: 0, position: 0, live: 0 };

for (const heads of SHAPES) {
  Deno.test(`rounds, drafts that are left out, prompts and padding: the bits of a convolution before, ${heads.keyDim} keys`, async () => {
    const [own, apart] = [memoryOf(heads), memoryOf(heads)];
    const forwards: readonly (readonly [rows: readonly RowSpec[], perSlot: number])[] = [
      // Fewer rows than the convolution reads before each row.
      [run(1, 0, 2), 2],
      [[...run(1, 2, 3), ...run(1, 3, 5, 1)], 3],
      // A prompt's rows go the other way in both.
      [[...run(0, 0, 10), ...run(1, 3, 5)], 12],
      // Rows of two slots, a rejected draft among them; then three rows of which one is right, and padding.
      [[...run(0, 10, 12), ...run(1, 5, 6), ...run(1, 6, 7, 1)], 2],
      [[...run(1, 6, 7), ...run(1, 7, 9, 1), PADDING], 4],
      [run(1, 7, 8), 1],
    ];
    const ways: boolean[] = [];
    for (const [i, [rows, perSlot]] of forwards.entries()) {
      const one = await forward(heads, own, { rows, perSlot, fused: true });
      const other = await forward(heads, apart, { rows, perSlot, fused: false });
      ways.push(one.itself);
      assert.deepEqual(one.found, other.found, `forward ${i}`);
    }
    assert.deepEqual(ways, [true, true, false, true, true, true]);
  });
}

Deno.test("other taps than four, other forms, many rows and few bindings keep the convolution's own dispatch", () => {
  const shape = { form: "silu", taps: 4, xCols: 80, ringRows: 7, count: 4 } as const;
  const adapter = { storageBuffers: 9 };
  assert.ok(convolves(shape, adapter));
  assert.ok(!convolves(shape, { storageBuffers: 8 }));
  for (const other of [{ taps: 3 }, { form: "gated" }, { count: 5 }, { xCols: 82 }] as const) {
    assert.ok(!convolves({ ...shape, ...other }, adapter), JSON.stringify(other));
  }
});
