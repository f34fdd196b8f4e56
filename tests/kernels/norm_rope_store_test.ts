import assert from "node:assert/strict";
import { normRopeStore } from "../../kernels/attention/norm_rope_store.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { blockTable, packRows } from "./rows.ts";
import { assertPlaced, PLACED_ROWS, type PlacedShape, placing } from "./placed.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-6;
const SHAPES: readonly PlacedShape[] = [
  { heads: 4, kvHeads: 2, headDim: 16, kvDtype: "f32" },
  { heads: 3, kvHeads: 3, headDim: 80, kvDtype: "f16" },
  { heads: 2, kvHeads: 1, headDim: 128, kvDtype: "bf16" },
];

for (const software of [true, false]) {
  for (const shape of SHAPES) {
    const { heads, kvHeads, headDim, kvDtype } = shape;
    const title = `${heads} heads over ${kvHeads} of ${headDim}, ${kvDtype}`;
    Deno.test(`norm_rope_store: ${title}, ${software ? "software" : "hardware"}`, async () => {
      const places = placing(device, shape);
      const qkv = numbers(PLACED_ROWS.length * (heads + 2 * kvHeads) * headDim, headDim);
      const weight = numbers(2 * headDim, 1);
      await device.run([normRopeStore(
        { ...places.place, q: places.q, qkv: device.floats(qkv), weight: device.floats(weight) },
        { ...places.shape, eps: EPS, tuning: tuning(software), label: "test" },
      )]);
      await assertPlaced(device, places, (row, head) => {
        const at = (row * (heads + 2 * kvHeads) + head) * headDim;
        const x = qkv.subarray(at, at + headDim);
        if (head >= heads + kvHeads) return x;
        const of = weight.subarray(head < heads ? 0 : headDim);
        const square = x.reduce((sum, value) => sum + value * value, 0) / headDim;
        return x.map((value, i) => value / Math.sqrt(square + EPS) * (of[i] ?? NaN));
      });
    });
  }
}

for (const software of [true, false]) {
  const [heads, kvHeads, headDim] = software ? [4, 2, 16] : [3, 1, 80];
  Deno.test(`norm_rope_store: normed after rope, heads of ${headDim}`, async () => {
    const places = placing(device, { heads, kvHeads, headDim, kvDtype: "f32" });
    const qkv = numbers(PLACED_ROWS.length * (heads + 2 * kvHeads) * headDim, headDim);
    const weight = numbers(2 * headDim, 1);
    await device.run([normRopeStore(
      { ...places.place, q: places.q, qkv: device.floats(qkv), weight: device.floats(weight) },
      { ...places.shape, eps: EPS, afterRope: true, tuning: tuning(software), label: "test" },
    )]);
    await assertPlaced(device, places, (row, head) => {
      const at = (row * (heads + 2 * kvHeads) + head) * headDim;
      const x = qkv.subarray(at, at + headDim);
      const square = x.reduce((sum, value) => sum + value * value, 0) / headDim;
      return x.map((value) => head < heads + kvHeads ? value / Math.sqrt(square + EPS) : value);
    }, weight);
  });
}

for (const values of ["normed", "keys"] as const) {
  for (const software of [true, false]) {
    const [heads, kvHeads, headDim] = software ? [4, 2, 16] : [2, 1, 512];
    Deno.test(`norm_rope_store: values ${values}, heads of ${headDim}`, async () => {
      const places = placing(device, { heads, kvHeads, headDim, kvDtype: "f32" });
      const made = values === "keys" ? heads + kvHeads : heads + 2 * kvHeads;
      const qkv = numbers(PLACED_ROWS.length * made * headDim, headDim);
      const weight = numbers(2 * headDim, 1);
      await device.run([normRopeStore(
        { ...places.place, q: places.q, qkv: device.floats(qkv), weight: device.floats(weight) },
        { ...places.shape, eps: EPS, values, tuning: tuning(software), label: "test" },
      )]);
      await assertPlaced(device, places, (row, head) => {
        const isValue = head >= heads + kvHeads;
        const from = isValue && values === "keys" ? head - kvHeads : head;
        const at = (row * made + from) * headDim;
        const x = qkv.subarray(at, at + headDim);
        const of = weight.subarray(head < heads ? 0 : headDim);
        const square = x.reduce((sum, value) => sum + value * value, 0) / headDim;
        return x.map((value, i) => value / Math.sqrt(square + EPS) * (isValue ? 1 : of[i] ?? NaN));
      });
    });
  }
}

Deno.test("norm_rope_store: queries of a layer without keys leave the pages as they are", async () => {
  const [heads, kvHeads, headDim] = [4, 2, 64];
  const places = placing(device, { heads, kvHeads, headDim, kvDtype: "f32" });
  const both = numbers(PLACED_ROWS.length * (heads + 2 * kvHeads) * headDim, headDim);
  const q = PLACED_ROWS.flatMap((_, row) => {
    const at = row * (heads + 2 * kvHeads) * headDim;
    return [...both.subarray(at, at + heads * headDim)];
  });
  const shape = { ...places.shape, eps: EPS, tuning: tuning(true), label: "test" };
  const weight = device.floats(numbers(2 * headDim, 1));
  const store = (qkv: Float32Array, values: "plain" | "none") =>
    device.run([
      normRopeStore({ ...places.place, q: places.q, qkv: device.floats(qkv), weight }, {
        ...shape,
        values,
      }),
    ]);
  const pages = () => device.readWords(places.place.keys);
  const empty = await pages();
  await store(Float32Array.from(q), "none");
  const found = await device.readFloats(places.q);
  assert.deepEqual(await pages(), empty);
  await store(both, "plain");
  assert.deepEqual(await device.readFloats(places.q), found);
  assert.notDeepEqual(await pages(), empty);
});

Deno.test("norm_rope_store: what rows have behind v is not read", async () => {
  const [heads, kvHeads, headDim] = [4, 2, 64];
  const own = (heads + 2 * kvHeads) * headDim;
  const weight = device.floats(numbers(2 * headDim, 1));
  const stored = async (rowCols: number) => {
    const places = placing(device, { heads, kvHeads, headDim, kvDtype: "f32" });
    const qkv = PLACED_ROWS.flatMap((_, row) => [
      ...numbers(own, row),
      ...numbers(rowCols - own, 99),
    ]);
    const shape = { ...places.shape, eps: EPS, tuning: tuning(true), label: "test", rowCols };
    await device.run([
      normRopeStore({ ...places.place, q: places.q, qkv: device.floats(qkv), weight }, shape),
    ]);
    const { keys, values } = places.place;
    return await Promise.all([places.q, keys, values].map((of) => device.readWords(of)));
  };
  // As many columns as there are gates: not a whole number of heads.
  assert.deepEqual(await stored(own + 6), await stored(own));
});

for (const { heads, kvHeads, headDim, kvDtype } of SHAPES) {
  Deno.test(`norm_rope_store: over all heads, ${heads} over ${kvHeads} of ${headDim}`, async () => {
    const places = placing(device, { heads, kvHeads, headDim, kvDtype });
    const width = (heads + 2 * kvHeads) * headDim;
    const qkv = numbers(PLACED_ROWS.length * width, headDim);
    const weight = numbers((heads + kvHeads) * headDim, 1);
    await device.run([normRopeStore(
      { ...places.place, q: places.q, qkv: device.floats(qkv), weight: device.floats(weight) },
      { ...places.shape, eps: EPS, whole: true, tuning: tuning(true), label: "test" },
    )]);
    await assertPlaced(device, places, (row, head) => {
      const line = qkv.subarray(row * width, (row + 1) * width);
      const x = line.subarray(head * headDim, (head + 1) * headDim);
      if (head >= heads + kvHeads) return x;
      const all = head < heads
        ? line.subarray(0, heads * headDim)
        : line.subarray(heads * headDim, (heads + kvHeads) * headDim);
      const square = all.reduce((sum, value) => sum + value * value, 0) / all.length;
      return x.map((value, i) =>
        value / Math.sqrt(square + EPS) * (weight[head * headDim + i] ?? NaN)
      );
    });
  });
}

Deno.test("norm_rope_store: many rows, heads side by side, have the bits of few", async () => {
  const [heads, kvHeads, headDim, count] = [5, 3, 80, 70];
  const tablePages = Math.ceil(count / PAGE);
  const positions = tablePages * PAGE;
  const rope = { theta: 10000, width: headDim, scaling: { kind: "default" } } as const;
  const shared = {
    rope: device.floats(ropeTable(rope, headDim, { positions, context: positions })),
    pages: device.words(blockTable(1, tablePages)),
    weight: device.floats(numbers(2 * headDim, 1)),
  };
  const width = (heads + 2 * kvHeads) * headDim;
  const qkv = numbers(count * width, 2);
  const sizes = { heads, kvHeads, headDim, tablePages, kvDtype: "f32" } as const;
  const kv = () => device.filled(positions * kvHeads * headDim, 7);
  const run = async (each: number) => {
    const [keys, values] = [kv(), kv()];
    const q: number[] = [];
    for (let first = 0; first < count; first += each) {
      const rows = Array.from(
        { length: each },
        (_, i) => ({ cell: first + i, position: first + i }),
      );
      const out = device.filled(each * heads * headDim);
      await device.run([normRopeStore(
        {
          ...shared,
          keys,
          values,
          q: out,
          rows: device.words(packRows(rows)),
          qkv: device.floats(qkv.slice(first * width, (first + each) * width)),
        },
        { ...sizes, count: each, eps: EPS, tuning: tuning(false), label: "test" },
      )]);
      q.push(...await device.readWords(out));
    }
    return [q, [...await device.readWords(keys)], [...await device.readWords(values)]];
  };
  assert.deepEqual(await run(count), await run(10));
});
