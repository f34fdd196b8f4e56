// Partial sums of attention's splits are added, also where a window leaves a row fewer places for them than it has
// splits: split c is at place c % kept then. The two kernels have the same bits.

import assert from "node:assert/strict";
import { combineSums } from "../../kernels/attention/attention_combine.ts";
import { COMBINE_LANES, SPLIT_CELLS } from "../../kernels/attention/splits.ts";
import { halfRows } from "../../kernels/matmul/tensor/half_rows.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [HEADS, HEAD_DIM] = [2, 64];
const SINKS = [1.5, -0.5];

interface Case {
  readonly window: number;
  /** Places of a row. */
  readonly kept: number;
  readonly positions: readonly number[];
  readonly sinks: boolean;
}

const CASES: readonly Case[] = [
  // At most two splits, and more than 16, which lanes share.
  { window: 30, kept: 3, positions: [0, 29, 63, 64, 93, 94, 269, 400], sinks: false },
  { window: 30, kept: 3, positions: [64, 269, 400], sinks: true },
  { window: 1030, kept: 18, positions: [5, 1060, 1150, 1300], sinks: false },
];

/** The splits that a row sees, the oldest first. */
function splitsOf(position: number, window: number): number[] {
  const first = Math.floor(Math.max(0, position + 1 - window) / SPLIT_CELLS);
  const end = Math.floor(position / SPLIT_CELLS) + 1;
  return Array.from({ length: end - first }, (_, i) => first + i);
}

for (const { window, kept, positions, sinks } of CASES) {
  const name = `a window of ${window} cells in ${kept} places${sinks ? ", with sinks" : ""}`;
  Deno.test(`attention's partial sums are added: ${name}`, async () => {
    // The last row is padding.
    const count = positions.length + 1;
    const sums = new Float32Array(count * HEADS * kept * HEAD_DIM).fill(NaN);
    const stats = new Float32Array(count * HEADS * kept * 2).fill(NaN);
    const expected = positions.flatMap((position, row) =>
      Array.from({ length: HEADS }, (_, head) => {
        const of = splitsOf(position, window);
        assert.ok(of.length <= kept);
        const peaks = numbers(of.length, row + head).map((peak) => 3 * peak);
        const totals = numbers(of.length, row + head + 9).map((total) => 1 + Math.abs(total));
        const values = of.map((_, i) => numbers(HEAD_DIM, 100 * row + 10 * head + i));
        for (const [i, split] of of.entries()) {
          const at = (row * HEADS + head) * kept + split % kept;
          stats.set([peaks[i] as number, totals[i] as number], 2 * at);
          sums.set(values[i] as Float32Array, HEAD_DIM * at);
        }
        const weights = [...peaks].map(Math.exp);
        const sink = sinks ? Math.exp(SINKS[head] as number) : 0;
        const total = weights.reduce(
          (sum, weight, i) => sum + weight * (totals[i] as number),
          sink,
        );
        return Array.from(
          { length: HEAD_DIM },
          (_, d) =>
            weights.reduce((sum, weight, i) => sum + weight * (values[i]?.[d] ?? NaN), 0) / total,
        );
      })
    );
    const rows = [...positions.map((position) => ({ position })), { position: 70, live: 0 }];
    const buffers = {
      sums: device.floats(sums),
      stats: device.floats(stats),
      rows: device.words(packRows(rows)),
      ...sinks && { sinks: device.floats(SINKS) },
    };
    const of = { heads: HEADS, headDim: HEAD_DIM, count, kept, firstRow: 0, window };
    const found = await Promise.all([true, false].map(async (many) => {
      const out = device.filled(count * HEADS * HEAD_DIM, 7);
      const [first] = combineSums({ ...buffers, out }, {
        ...of,
        many,
        label: "test",
        work: { bytes: 0, flops: 0 },
      });
      assert.ok(first);
      await device.run([first]);
      return await device.readFloats(out);
    }));
    for (const out of found) {
      const padding = Array(HEADS * HEAD_DIM).fill(0);
      assertClose(out, [...expected.flat(), ...padding], 1e-5, name);
    }
    if (kept <= COMBINE_LANES) assert.deepEqual(found[0], found[1]);
  });
}

for (const sinks of [false, true]) {
  for (const gated of [false, true]) {
    const name = [...sinks ? ["sinks"] : [], ...gated ? ["a gate"] : []].join(" and ") || "neither";
    Deno.test(`attention's sums are rounded to f16 as by a dispatch of its own, with ${name}`, async () => {
      // More eights of a row than invocations, and no multiple of them; rows behind two others.
      const [heads, headDim, kept, count, firstRow] = [18, 128, 3, 5, 2];
      const cols = heads * headDim;
      const values = device.floats(numbers(count * cols, 3));
      const gate = { values, cols, first: 0, gating: "sigmoid", width: 1 } as const;
      const rows = [0, 63, 64, 190].map((position) => ({ position }));
      const buffers = {
        sums: device.floats(numbers(count * heads * kept * headDim, 1)),
        stats: device.floats(numbers(count * heads * kept * 2, 2).map((value) => 2 + value)),
        rows: device.words(packRows([{}, {}, ...rows, { live: 0 }])),
        ...sinks && { sinks: device.floats(numbers(heads, 4)) },
        ...gated && { gate },
      };
      const of = {
        heads,
        headDim,
        count,
        kept,
        firstRow,
        window: 0xffffffff,
        many: true,
        label: "test",
        work: { bytes: 0, flops: 0 },
      };
      const [x, halves, expected] = [cols, cols / 2, cols / 2].map((width) =>
        device.filled(count * width, 7)
      ) as [Operand, Operand, Operand];
      const [scales, expectedScales] = [device.filled(count + 3, 9), device.filled(count)];
      await device.run([
        ...combineSums({ ...buffers, out: x }, of),
        ...combineSums({ ...buffers, out: halves }, { ...of, half: { scales, first: 3 } }),
        halfRows({ x, scales: expectedScales, out: expected }, {
          rows: count,
          cols,
          label: "halves",
        }),
      ]);
      assert.deepEqual(await device.readWords(halves), await device.readWords(expected));
      const stored = await device.readFloats(scales);
      assert.deepEqual([...stored.slice(0, 3)], [9, 9, 9]);
      assert.deepEqual(stored.slice(3), await device.readFloats(expectedScales));
      assert.ok(new Set(await device.readWords(halves)).size > cols);
    });
  }
}
