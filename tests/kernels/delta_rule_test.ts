/** Gated DeltaNet's recurrence at the sizes of published models: its formula in float64, and the same bits for any forwards. */
import assert from "node:assert/strict";
import { deltaRule, stepWords } from "../../kernels/recurrent/delta_rule.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HEADS = { keyHeads: 2, valueHeads: 6, keyDim: 128, valueDim: 128 };
const { keyHeads, valueHeads, keyDim, valueDim } = HEADS;
const MIXED = 2 * keyHeads * keyDim + valueHeads * valueDim;
const VALUES = valueHeads * valueDim;
const SLOTS = 2;
const STEP_ROWS = 4;
const EPS = 1e-6;
const WEIGHTS = numbers(2 * valueHeads + valueDim, 9);

/** What a row of a text reads, by the text and the position, and for rejected rows by `draft`. */
function rowOf({ text, position, draft = 0 }: { text: number; position: number; draft?: number }) {
  const seed = 1000 * text + position + 500 * draft;
  const mixed = numbers(MIXED, seed);
  return {
    mixed,
    projected: [...mixed, ...numbers(VALUES, seed + 7)],
    rates: numbers(2 * valueHeads, seed + 11),
  };
}

interface RowSpec {
  readonly slot: number;
  readonly text: number;
  readonly position: number;
  readonly draft?: number;
  readonly live?: number;
}

function memory() {
  return {
    states: device.filled(SLOTS * valueHeads * keyDim * valueDim, 3),
    steps: device.filled(SLOTS * stepWords(HEADS, STEP_ROWS), 5),
    stepRows: STEP_ROWS,
  };
}

async function forward(of: ReturnType<typeof memory>, rows: readonly RowSpec[], perSlot: number) {
  const inputs = rows.map(rowOf);
  const floats = (name: "mixed" | "projected" | "rates") =>
    device.floats(inputs.flatMap((row) => [...row[name]]));
  const out = device.filled(rows.length * VALUES, 0);
  const buffers = {
    rows: device.words(packRows(rows)),
    mixed: floats("mixed"),
    projected: floats("projected"),
    rates: floats("rates"),
    weights: device.floats(WEIGHTS),
    out,
  };
  const shape = { heads: HEADS, eps: EPS, count: rows.length, perSlot, label: "delta" };
  await device.run([deltaRule({ memory: of, ...buffers }, shape)]);
  const all = await device.readFloats(out);
  return rows.map((_, i) => all.slice(i * VALUES, (i + 1) * VALUES));
}

/** Outputs of a text's positions 0 to count - 1, in float64. */
function reference(text: number, count: number): number[][] {
  const states = Array.from({ length: valueHeads }, () => new Float64Array(keyDim * valueDim));
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
  const unit = (x: readonly number[]) => {
    const length = Math.sqrt(x.reduce((sum, y) => sum + y * y, 1e-6));
    return x.map((y) => y / length);
  };
  return Array.from({ length: count }, (_, position) => {
    const { mixed, projected, rates } = rowOf({ text, position });
    const part = (from: number, size: number) => [...mixed.slice(from, from + size)];
    return states.flatMap((state, head) => {
      const at = Math.floor(head / (valueHeads / keyHeads)) * keyDim;
      const q = unit(part(at, keyDim)).map((x) => x / Math.sqrt(keyDim));
      const k = unit(part(keyHeads * keyDim + at, keyDim));
      const v = part(2 * keyHeads * keyDim + head * valueDim, valueDim);
      const rate = rates[valueHeads + head]! + WEIGHTS[valueHeads + head]!;
      const decay = Math.exp(-Math.exp(WEIGHTS[head]!) * Math.log1p(Math.exp(rate)));
      const beta = sigmoid(rates[head]!);
      const o = v.map((value, j) => {
        const cell = (i: number) => i * valueDim + j;
        for (let i = 0; i < keyDim; i++) state[cell(i)]! *= decay;
        const found = k.reduce((sum, x, i) => sum + x * state[cell(i)]!, 0);
        const delta = beta * (value - found);
        for (const [i, x] of k.entries()) state[cell(i)]! += x * delta;
        return q.reduce((sum, x, i) => sum + x * state[cell(i)]!, 0);
      });
      const rms = Math.sqrt(o.reduce((sum, x) => sum + x * x, 0) / valueDim + EPS);
      return o.map((x, j) => {
        const z = projected[MIXED + head * valueDim + j]!;
        return WEIGHTS[2 * valueHeads + j]! * x / rms * z * sigmoid(z);
      });
    });
  });
}

const run = (slot: number, text: number, from: number, to: number, draft = 0): RowSpec[] =>
  Array.from({ length: to - from }, (_, i) => ({ slot, text, position: from + i, draft }));

Deno.test("long and short runs, rejected rows and another text in a slot: the formula, and the bits of row by row", async () => {
  const alone = memory();
  const bits: Float32Array[] = [];
  for (const row of run(0, 1, 0, 16)) bits.push(...await forward(alone, [row], 1));
  const expected = reference(1, 16);
  for (const [i, found] of bits.entries()) assertClose(found, expected[i]!, 2e-4, `position ${i}`);

  const together = memory();
  const padding = { slot: 0, text: 0, position: 0, live: 0 };
  // Prompts of 10 and 3 rows, more than are stored as steps and fewer; both end in padding or another's rows.
  const first = await forward(together, [
    ...run(1, 1, 0, 10),
    padding,
    padding,
    ...run(0, 2, 0, 3),
    padding,
  ], 4);
  const found = first.slice(0, 10);
  // Of 4 rows 2 are right, of the next 3 one; then two.
  const second = await forward(together, [...run(1, 1, 10, 12), ...run(1, 1, 12, 14, 1)], 4);
  found.push(...second.slice(0, 2));
  const third = await forward(
    together,
    [...run(1, 1, 12, 13), ...run(1, 1, 13, 15, 1), padding],
    4,
  );
  found.push(...third.slice(0, 1));
  // Measurements run a forward again.
  for (let again = 0; again < 2; again++) {
    const last = await forward(together, [...run(0, 2, 3, 4), ...run(1, 1, 13, 16)], 1);
    if (again > 0) found.push(...last.slice(1));
  }
  for (const [i, row] of found.entries()) assert.deepEqual(row, bits[i], `position ${i}`);
  // Another text begins where the first was.
  const other = await forward(together, run(1, 3, 0, 2), 2);
  for (const [i, row] of other.entries()) {
    assertClose(row, reference(3, 2)[i]!, 2e-4, `another text, position ${i}`);
  }
});
