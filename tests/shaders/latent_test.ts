import assert from "node:assert/strict";
import {
  type LatentHeads,
  latentQuery,
  latentStore,
  latentValue,
} from "../../shaders/attention/latent.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { ropeTable } from "../../src/model/plan/rope.ts";
import { PAGE } from "../../src/model/plan/rows_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { kept, unpackedKv } from "./kv.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { packRows, type RowFields } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LITE: LatentHeads = {
  heads: 3,
  nope: 24,
  rope: 16,
  value: 40,
  rank: 64,
  interleaved: true,
};
const POSITIONS = 40;

/** `x` turned as the formula of DeepSeek has it, by angles position * 100^(-2i / width). */
function turned(x: readonly number[], position: number, interleaved: boolean): number[] {
  const half = x.length / 2;
  return x.map((_, j) => {
    const i = interleaved ? Math.floor(j / 2) : j % half;
    const [a, b] = interleaved ? [2 * i, 2 * i + 1] : [i, i + half];
    const angle = position * 100 ** (-i / half);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    return j === a ? x[a]! * cos - x[b]! * sin : x[b]! * cos + x[a]! * sin;
  });
}

function uploadRope(width: number) {
  const rope = { theta: 100, width, scaling: { kind: "default" } } as const;
  return device.floats(ropeTable(rope, width, { positions: POSITIONS, context: POSITIONS }));
}

function rowsOf(count: number): RowFields[] {
  return Array.from({ length: count }, (_, i) => ({
    token: 0,
    position: (7 * i) % POSITIONS,
    slot: i % 2,
    cell: i,
    base: 0,
    path: [],
    live: i === 2 ? 0 : 1,
  }));
}

function upload({ heads, nope, value, rank }: LatentHeads) {
  const cols = heads * (nope + value);
  const values = weights("bf16", cols, rank);
  return {
    values,
    kvB: uploadMatrix(device, values, { format: "bf16", cols: rank, shards: [cols] }),
  };
}

for (
  const [software, count, of] of [
    [true, 3, LITE],
    [false, 9, { ...LITE, interleaved: false }],
    [false, 1, { ...LITE, rank: 512 }],
  ] as const
) {
  Deno.test(`latent: queries of ${count} rows, rank ${of.rank}, ${software ? "software" : "hardware"}`, async () => {
    const { heads, nope, rope, value, rank } = of;
    const { values, kvB } = upload(of);
    const q = numbers(count * heads * (nope + rope), 1);
    const rows = rowsOf(count);
    const out = device.filled(count * heads * (rank + rope));
    const shape = { ...of, count, tuning: tuning(software), label: "test" };
    await device.run([latentQuery({
      kvB,
      q: device.floats([...q, 1, 2, 3, 4]), // longer than its rows
      out,
      rope: uploadRope(rope),
      rows: device.words(packRows(rows)),
    }, shape)]);
    const wanted = rows.flatMap(({ position }, r) =>
      Array.from({ length: heads }, (_, h) => {
        const own = [
          ...q.subarray((r * heads + h) * (nope + rope), (r * heads + h + 1) * (nope + rope)),
        ];
        const absorbed = Array.from({ length: rank }, (_, k) =>
          own.slice(0, nope).reduce((sum, x, i) =>
            sum + x * values[(h * (nope + value) + i) * rank + k]!, 0));
        return [...absorbed, ...turned(own.slice(nope), position, of.interleaved)];
      }).flat()
    );
    assertClose(await device.readFloats(out), wanted, 1e-5, "queries");
  });

  Deno.test(`latent: values of ${count} rows, rank ${of.rank}, ${software ? "software" : "hardware"}`, async () => {
    const { heads, nope, rope, value, rank } = of;
    const { values, kvB } = upload(of);
    const mixed = numbers(count * heads * (rank + rope), 2);
    const out = device.filled(count * heads * value);
    const shape = { ...of, count, tuning: tuning(software), label: "test" };
    await device.run([latentValue({ kvB, mixed: device.floats(mixed), out }, shape)]);
    const wanted = Array.from({ length: count * heads * value }, (_, at) => {
      const [query, d] = [Math.floor(at / value), at % value];
      const first = (query % heads * (nope + value) + nope + d) * rank;
      let sum = 0;
      for (let k = 0; k < rank; k++) sum += values[first + k]! * mixed[query * (rank + rope) + k]!;
      return sum;
    });
    assertClose(await device.readFloats(out), wanted, 1e-5, "values");
  });
}

for (const kvDtype of ["f32", "f16", "bf16"] as const satisfies readonly KvDtype[]) {
  Deno.test(`latent: kept as ${kvDtype}`, async () => {
    const { rank, rope } = LITE;
    const width = rank + rope;
    const rows = rowsOf(5);
    const x = numbers(rows.length * width, 3);
    const gain = numbers(rank, 4);
    const words = width * (kvDtype === "f32" ? 1 : 1 / 2);
    const latents = device.filled(3 * PAGE * words);
    const pages = [2, 0];
    await device.run([latentStore({
      x: device.floats(x),
      gain: device.floats(gain),
      rope: uploadRope(rope),
      rows: device.words(packRows(rows)),
      pages: device.words(pages),
      latents,
    }, {
      ...LITE,
      count: rows.length,
      tuning: tuning(true),
      eps: 1e-6,
      tablePages: 1,
      kvDtype,
      label: "test",
    })]);
    const found = unpackedKv(kvDtype, await device.readWords(latents), width);
    const wanted = new Float32Array(found.length);
    for (const [r, { slot, cell, position, live }] of rows.entries()) {
      const own = [...x.subarray(r * width, (r + 1) * width)];
      const latent = own.slice(0, rank);
      const scale = 1 / Math.sqrt(latent.reduce((sum, v) => sum + v * v, 0) / rank + 1e-6);
      const row = [
        ...latent.map((v, i) => v * scale * gain[i]!),
        ...turned(own.slice(rank), position, true),
      ];
      if (live) wanted.set(row, (pages[slot]! * PAGE + cell) * width);
    }
    assertClose(found, kept(kvDtype, wanted), kvDtype === "f32" ? 1e-6 : 1e-2, kvDtype);
  });
}

Deno.test("latent: a row's bits are its own", async () => {
  const of = LITE;
  const { kvB } = upload(of);
  const [from, to] = [of.nope + of.rope, of.rank + of.rope].map((width) => of.heads * width) as [
    number,
    number,
  ];
  const count = 11;
  const q = numbers(count * from, 5);
  const rows = rowsOf(count);
  const rope = uploadRope(of.rope);
  const run = async (first: number, some: number) => {
    const [absorbed, out] = [device.filled(some * to), device.filled(some * of.heads * of.value)];
    const shape = { ...of, count: some, tuning: tuning(false), label: "test" };
    const own = device.words(packRows(rows.slice(first, first + some)));
    const queries = device.floats(q.subarray(first * from, (first + some) * from));
    await device.run([
      latentQuery({ kvB, q: queries, out: absorbed, rope, rows: own }, shape),
      latentValue({ kvB, mixed: absorbed, out }, shape),
    ]);
    return [...await device.readWords(out)];
  };
  const alone = [];
  for (let r = 0; r < count; r++) alone.push(...await run(r, 1));
  for (const some of [2, 7, 11]) {
    assert.deepEqual(
      await run(0, some),
      alone.slice(0, some * of.heads * of.value),
      `${some} rows`,
    );
  }
});
