/** Short convolutions: their formula, and the same bits however many rows a forward has. */
import assert from "node:assert/strict";
import { type ConvForm, shortConv } from "../../kernels/recurrent/short_conv.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const COLS = 72;
const TAPS = 4;
const SLOTS = 2;
/** A forward of 4 rows stores them at once, one of 5 afterwards. */
const RING_ROWS = 7;
const WEIGHT = numbers(COLS * TAPS, 2);

interface RowSpec {
  readonly slot: number;
  readonly text: number;
  readonly position: number;
  readonly live?: number;
}

const xCols = (form: ConvForm) => form === "gated" ? 3 * COLS : COLS + 8;
const rowOf = (form: ConvForm, { text, position }: Pick<RowSpec, "text" | "position">) =>
  numbers(xCols(form), 1000 * text + position);

const newRing = () => device.filled(SLOTS * RING_ROWS * COLS, 5);

async function forward(form: ConvForm, ring: Operand, rows: readonly RowSpec[]) {
  const out = device.filled(rows.length * COLS, 7);
  const buffers = {
    x: device.floats(rows.flatMap((row) => [...rowOf(form, row)])),
    weight: device.floats(WEIGHT),
    rows: device.words(packRows(rows)),
    ring,
    out,
  };
  const shape = { form, cols: COLS, xCols: xCols(form), taps: TAPS, ringRows: RING_ROWS };
  await device.run(shortConv(buffers, { ...shape, count: rows.length, label: "conv" }));
  const all = await device.readFloats(out);
  return rows.map((_, i) => all.slice(i * COLS, (i + 1) * COLS));
}

function reference(form: ConvForm, text: number, position: number): number[] {
  const convolved = (at: number, col: number) => {
    if (at < 0) return 0;
    const x = rowOf(form, { text, position: at });
    return form === "gated" ? x[col]! * x[2 * COLS + col]! : x[col]!;
  };
  return Array.from({ length: COLS }, (_, col) => {
    const sum = Array.from({ length: TAPS }).reduce<number>(
      (sum, _, i) => sum + WEIGHT[col * TAPS + i]! * convolved(position - TAPS + 1 + i, col),
      0,
    );
    const gate = rowOf(form, { text, position })[COLS + col]!;
    return form === "gated" ? gate * sum : sum / (1 + Math.exp(-sum));
  });
}

const run = (slot: number, text: number, from: number, to: number): RowSpec[] =>
  Array.from({ length: to - from }, (_, i) => ({ slot, text, position: from + i }));

const PADDING = { slot: 0, text: 9, position: 0, live: 0 };

for (const form of ["silu", "gated"] as const) {
  Deno.test(`${form}: prompts of several slots with padding, then rounds: the formula, and the bits of row by row`, async () => {
    const alone = newRing();
    const bits: Float32Array[] = [];
    for (const row of run(0, 1, 0, 40)) bits.push(...await forward(form, alone, [row]));
    for (const [i, found] of bits.entries()) {
      assertClose(found, reference(form, 1, i), 1e-6, `position ${i}`);
    }

    const ring = newRing();
    const found: Float32Array[] = [];
    const first = await forward(form, ring, [
      ...run(1, 1, 0, 13),
      PADDING,
      PADDING,
      PADDING,
      ...run(0, 2, 0, 2),
      PADDING,
    ]);
    found.push(...first.slice(0, 13));
    assert.deepEqual(first[13], new Float32Array(COLS));
    assertClose(first[17]!, reference(form, 2, 1), 1e-6, "another text");
    // Of four rows two are right.
    found.push(
      ...(await forward(form, ring, [...run(1, 1, 13, 15), ...run(1, 3, 15, 17)])).slice(0, 2),
    );
    found.push(...await forward(form, ring, run(1, 1, 15, 16)));
    // A run that begins where another ends, both with rows in the ring.
    const third = await forward(form, ring, [...run(0, 2, 2, 7), ...run(1, 1, 16, 40)]);
    found.push(...third.slice(5));
    // The first three read what the ring has of the other text, which padding leaves alone.
    for (const [i, row] of third.slice(0, 5).entries()) {
      assertClose(row, reference(form, 2, 2 + i), 1e-6, `another text, position ${2 + i}`);
    }
    for (const [i, row] of found.entries()) assert.deepEqual(row, bits[i], `position ${i}`);
    assert.equal(found.length, bits.length);
    assert.deepEqual(
      (await device.readFloats(ring)).slice(RING_ROWS * COLS),
      (await device.readFloats(alone)).slice(0, RING_ROWS * COLS),
    );
  });
}
