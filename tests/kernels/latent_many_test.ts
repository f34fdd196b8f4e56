// Latent attention of many rows by its own kernels: against f64, and to the bit what those of few rows compute.

import assert from "node:assert/strict";
import { type LatentHeads, latentPrepare } from "../../kernels/mla/latent_prepare.ts";
import { latentAttention, latentPartialWords } from "../../kernels/mla/latent_attention.ts";
import { latentValue } from "../../kernels/mla/latent_value.ts";
import { prepareRows, valueRows } from "../../kernels/mla/kv_b.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { kept, packedKv } from "./kv.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const HARDWARE = tuning(false, device.gpu.limits);
const namesOf = (plan: readonly Dispatch[]) => plan.map(({ kernel }) => kernel.name).join(" ");

/** Rows of a prompt's chunk that ends at cell `end` of its slot; the second is padding. */
function chunkOf(end: number, count: number, slot = 0): RowFields[] {
  return Array.from({ length: count }, (_, i) => {
    const position = end - count + i;
    const live = i === 1 ? 0 : 1;
    return { token: i, position, slot, cell: position, base: position + 1, live, path: [] };
  });
}

interface AttentionCase {
  readonly heads: number;
  readonly rank: number;
  readonly rope: number;
  readonly kvDtype: KvDtype;
  readonly cells: number;
  /** Of each slot, the end of its chunk. */
  readonly ends: readonly number[];
  /** Rows of a slot. */
  readonly count: number;
  /** Rows whose partial sums are kept; default all. */
  readonly room?: number;
}

const ATTENTION: readonly AttentionCase[] = [
  { heads: 16, rank: 144, rope: 8, kvDtype: "f32", cells: 160, ends: [67], count: 67 },
  { heads: 5, rank: 168, rope: 24, kvDtype: "bf16", cells: 704, ends: [690], count: 211 },
  { heads: 16, rank: 152, rope: 16, kvDtype: "f16", cells: 288, ends: [270, 65], count: 65 },
  {
    heads: 24,
    rank: 144,
    rope: EXHAUSTIVE ? 32 : 8, // with the kernels of the first
    kvDtype: "f32",
    cells: 1200,
    ends: [1190],
    count: 50,
    room: 20,
  },
];

for (const of of ATTENTION) {
  const { heads, rank, rope, kvDtype, cells, ends, count, room = ends.length * count } = of;
  const { test } = of === ATTENTION[0] ? Deno : drawn;
  test(`many latent rows: attention of ${count} rows up to ${ends}, ${heads} heads, ${rank} + ${rope}, ${kvDtype}`, async () => {
    const width = rank + rope;
    const tablePages = cells / PAGE;
    const pages = blockTable(ends.length, tablePages);
    const values = kept(kvDtype, numbers(ends.length * cells * width, 7));
    const stored = new Float32Array(values.length).fill(NaN);
    for (let at = 0; at < ends.length * cells; at++) {
      if (at % cells >= ends[Math.floor(at / cells)]!) continue;
      const to = (pages[Math.floor(at / PAGE)]! * PAGE + at % PAGE) * width;
      stored.set(values.subarray(at * width, (at + 1) * width), to);
    }
    const rows = ends.flatMap((end, slot) => chunkOf(end, count, slot));
    const q = numbers(rows.length * heads * width, 8);
    const sizes = { heads, kvHeads: 1, headDim: width, rank, tablePages, kvDtype };
    const words = latentPartialWords(sizes, room, {});
    const latents = device.words(packedKv(kvDtype, stored, width));
    const attend = async (first: number, some: number, perSlot: number): Promise<Uint32Array> => {
      const out = device.filled(some * heads * width, -7);
      const longest = Math.max(...rows.slice(first, first + some).map((row) => row.position + 1));
      const plan = latentAttention({
        q: device.floats(q.subarray(first * heads * width, (first + some) * heads * width)),
        rows: device.words(packRows(rows.slice(first, first + some))),
        latents,
        out,
        pages: device.words(pages),
        partial: { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) },
      }, {
        ...sizes,
        count: some,
        perSlot,
        paths: false,
        scale: 0.3,
        label: "test",
        tuning: HARDWARE,
      }).filter(({ forCells }) =>
        !forCells || forCells.from <= longest && longest <= forCells.upTo
      );
      assert.equal(namesOf(plan).includes("latent_prefill_weights"), perSlot > 1, namesOf(plan));
      await device.run(plan);
      return await device.readWords(out);
    };
    const found = await attend(0, rows.length, count);
    const row = heads * width;
    const some = [0, 1, 2, 15, 16, 31, count - 1, rows.length - 1];
    for (const r of new Set(some)) {
      const alone = await attend(r, 1, 1);
      assert.deepEqual(found.subarray(r * row, (r + 1) * row), alone, `row ${r}`);
      const { slot, position, live } = rows[r]!;
      const seen = Array.from(
        { length: live ? position + 1 : 0 },
        (_, c) => values.subarray((slot * cells + c) * width, (slot * cells + c + 1) * width),
      );
      const wanted = Array.from({ length: heads }, (_, h) => {
        const own = q.subarray(r * row + h * width, r * row + (h + 1) * width);
        const scores = seen.map((key) => 0.3 * key.reduce((sum, k, i) => sum + k * own[i]!, 0));
        const peak = Math.max(...scores);
        const weights = scores.map((score) => Math.exp(score - peak));
        const total = weights.reduce((a, b) => a + b, 0) || 1;
        return Array.from(
          { length: rank },
          (_, d) => weights.reduce((sum, w, c) => sum + w * seen[c]![d]!, 0) / total,
        );
      }).flat();
      const floats = new Float32Array(found.buffer);
      const out = Array.from(
        { length: heads },
        (_, h) => [...floats.subarray(r * row + h * width, r * row + h * width + rank)],
      ).flat();
      assertClose(Float32Array.from(out), wanted, 2e-5, `row ${r}`);
    }
  });
}

interface KvB extends LatentHeads {
  readonly format: FloatFormat;
  readonly count: number;
}

const PRODUCTS: readonly KvB[] = [
  {
    heads: 2,
    nope: 24,
    rope: 16,
    value: 40,
    rank: 64,
    interleaved: true,
    format: "bf16",
    count: 256,
  },
  {
    heads: 3,
    nope: 52,
    rope: 8,
    value: 72,
    rank: 136,
    interleaved: false,
    format: "f32",
    count: 259,
  },
  {
    heads: 1,
    nope: 76,
    rope: 8,
    value: 10,
    rank: 520,
    interleaved: true,
    format: "f16",
    count: 257,
  },
];

for (const of of PRODUCTS) {
  const { test } = of.format === "bf16" ? Deno : drawn;
  const { heads, nope, rope, value, rank, format, count } = of;
  const name = `${count} rows, ${heads} heads of ${nope} and ${value}, rank ${rank}, ${format}`;
  const width = rank + rope;
  const matrix = weights(format, heads * (nope + value), rank);
  const kvB = uploadMatrix(device, matrix, {
    format,
    cols: rank,
    shards: [heads * (nope + value)],
  });
  const shape = { ...of, tuning: HARDWARE, label: "test" };

  test(`many latent rows: values, ${name}`, async () => {
    const mixed = numbers(count * heads * width, 2);
    const [attentionOutput, out, few] = [
      device.floats([...mixed, 1, 2, 3, 4]), // longer than its rows
      device.filled(count * heads * value, -7),
      device.filled(count * heads * value, -7),
    ] as [Operand, Operand, Operand];
    const many = valueRows({ kvB, attentionOutput, out }, shape);
    const fewer = latentValue({ kvB, attentionOutput, out: few }, shape);
    assert.notEqual(namesOf([many]), namesOf([fewer]));
    await device.run([many, fewer]);
    assert.deepEqual(await device.readWords(out), await device.readWords(few));
    const wanted = Array.from({ length: count * heads * value }, (_, at) => {
      const [query, d] = [Math.floor(at / value), at % value];
      const first = (query % heads * (nope + value) + nope + d) * rank;
      let sum = 0;
      for (let k = 0; k < rank; k++) sum += matrix[first + k]! * mixed[query * width + k]!;
      return sum;
    });
    assertClose(await device.readFloats(out), wanted, 1e-5, "values");
  });

  test(`many latent rows: absorbed queries and what is kept, ${name}`, async () => {
    const latent = heads * (nope + rope);
    const cols = latent + width;
    const x = numbers(count * cols, 3);
    const rows = chunkOf(count, count);
    const tablePages = Math.ceil(count / PAGE);
    const spread = { theta: 100, width: rope, scaling: { kind: "default" } } as const;
    const run = async (of: "few" | "many") => {
      const out = device.filled(count * heads * width, -7);
      const latents = device.filled(tablePages * PAGE * width, -7);
      const buffers = {
        kvB,
        input: { x: device.floats(x), cols, latent, queries: true },
        out,
        latents,
        normWeight: device.floats(numbers(rank, 4)),
        rope: device.floats(ropeTable(spread, rope, { positions: count, context: count })),
        rows: device.words(packRows(rows)),
        pages: device.words(blockTable(1, tablePages)),
      };
      const how = { ...shape, eps: 1e-6, tablePages, kvDtype: "f32" } as const;
      const plan = of === "few" ? [latentPrepare(buffers, how)] : prepareRows(buffers, how);
      assert.equal(plan.length, of === "few" ? 1 : 2);
      await device.run(plan);
      return { out, latents };
    };
    const [few, many] = [await run("few"), await run("many")];
    assert.deepEqual(await device.readWords(many.out), await device.readWords(few.out));
    assert.deepEqual(await device.readWords(many.latents), await device.readWords(few.latents));
    const found = await device.readFloats(many.out);
    const wanted = Array.from(
      { length: count * heads },
      (_, query) =>
        Array.from({ length: rank }, (_, k) => {
          const [r, h] = [Math.floor(query / heads), query % heads];
          let sum = 0;
          for (let i = 0; i < nope; i++) {
            sum += x[r * cols + h * (nope + rope) + i]! *
              matrix[(h * (nope + value) + i) * rank + k]!;
          }
          return sum;
        }),
    ).flat();
    const absorbed = found.filter((_, at) => at % width < rank);
    assertClose(absorbed, wanted, 1e-5, "queries");
  });
}
