import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import {
  type LatentHeads,
  type LatentInput,
  latentPrepare,
} from "../../kernels/mla/latent_prepare.ts";
import { latentAttention, latentPartialWords } from "../../kernels/mla/latent_attention.ts";
import { latentRunsValue, latentValue } from "../../kernels/mla/latent_value.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { bytesOf, type Operand } from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { kept, unpackedKv } from "./kv.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";
import { chainOf, randomTree, treeRows } from "./trees.ts";
import { drawn } from "../exhaustive.ts";

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

/** Buffers that a launch which only absorbs queries does not use. */
function unused() {
  return {
    normWeight: device.filled(4),
    pages: device.words([0, 0, 0, 0]),
    latents: device.filled(64),
  };
}

/** The largest scale; a kernel that notes scales reduces it. */
const LARGEST = 2 ** 74;

/** The scales of the rows of x, as a dispatch of its own finds them. */
async function scalesOf(x: Operand, rows: number): Promise<Uint32Array> {
  const scales = device.filled(rows);
  await device.run([rowScales({ x, scales }, { rows, cols: bytesOf(x) / 4 / rows })]);
  return await device.readWords(scales);
}

/** Default settings of a launch. */
const KEEPING = { eps: 1e-6, tablePages: 1, kvDtype: "f32" } as const;

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
    await device.run([latentPrepare({
      kvB,
      input: {
        x: device.floats([...q, 1, 2, 3, 4]), // longer than its rows
        cols: heads * (nope + rope),
        latent: undefined,
        queries: true,
      },
      out,
      rope: uploadRope(rope),
      rows: device.words(packRows(rows)),
      ...unused(),
    }, { ...shape, ...KEEPING })]);
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
    const attentionOutput = device.floats(mixed);
    await device.run([latentValue({ kvB, attentionOutput, out }, shape)]);
    const wanted = Array.from({ length: count * heads * value }, (_, at) => {
      const [query, d] = [Math.floor(at / value), at % value];
      const first = (query % heads * (nope + value) + nope + d) * rank;
      let sum = 0;
      for (let k = 0; k < rank; k++) sum += values[first + k]! * mixed[query * (rank + rope) + k]!;
      return sum;
    });
    assertClose(await device.readFloats(out), wanted, 1e-5, "values");
    const [again, scales] = [device.filled(count * heads * value), device.filled(count, LARGEST)];
    await device.run([latentValue({ kvB, attentionOutput, out: again, scales }, shape)]);
    assert.deepEqual(await device.readWords(again), await device.readWords(out));
    assert.deepEqual(await device.readWords(scales), await scalesOf(out, count));
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
    await device.run([latentPrepare({
      kvB: upload(LITE).kvB,
      input: { x: device.floats(x), cols: width, latent: 0, queries: false },
      out: device.filled(4),
      normWeight: device.floats(gain),
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
    const input = { x: queries, cols: from, latent: undefined, queries: true };
    await device.run([
      latentPrepare({ kvB, input, out: absorbed, rope, rows: own, ...unused() }, {
        ...shape,
        ...KEEPING,
      }),
      latentValue({ kvB, attentionOutput: absorbed, out }, shape),
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

/** What a row of latent attention is made of: its q, and what is kept of its token. */
interface Given {
  readonly row: RowFields;
  readonly q: ArrayLike<number>;
  readonly kept: ArrayLike<number>;
}

/** What lies in cells that no row may read. */
const GARBAGE = 0x461c461c;

type Tiled = "no" | "yes" | "merged";

/** Stores what is kept of `given`, rows of `slots` slots, and returns each row's output words. */
async function attended(
  given: readonly Given[],
  { kvDtype, slots, perSlot, paths, tiled }: {
    kvDtype: KvDtype;
    /** Whether attention is latent_attention.wgsl, and who adds its runs. */
    tiled: Tiled;
    slots: number;
    perSlot: number;
    paths: boolean;
  },
): Promise<Uint32Array[]> {
  const { heads, rank, rope: ropeDim, value: valueDim, nope } = LITE;
  const width = rank + ropeDim;
  const tablePages = Math.ceil(POSITIONS * 2 / PAGE);
  const count = given.length;
  const common = { count, tuning: tuning(false), label: "test" };
  const sizes = { heads, kvHeads: 1, headDim: width, rank, tablePages, kvDtype };
  const words = tiled === "no"
    ? partialWords(sizes, count, common.tuning)
    : latentPartialWords(sizes, count, {});
  const rows = device.words(packRows(given.map(({ row }) => row)));
  const [rope, pages] = [uploadRope(ropeDim), device.words(blockTable(slots, tablePages))];
  const [absorbed, mixed, out] = [width, width, valueDim].map((each) =>
    device.filled(count * heads * each)
  ) as [Operand, Operand, Operand];
  const latents = device.words(
    Array<number>(slots * tablePages * PAGE * width * KV_BYTES[kvDtype] / 4).fill(GARBAGE),
  );
  const latent = heads * (nope + ropeDim);
  const x = device.floats(given.flatMap(({ q, kept }) => [...Array.from(q), ...Array.from(kept)]));
  const input: LatentInput = { x, cols: latent + width, latent, queries: true };
  const { kvB } = upload(LITE);
  const partial = {
    sums: device.filled(words.sums, NaN),
    stats: device.filled(words.stats, NaN),
  };
  const buffers = { q: absorbed, rows, pages, out: mixed, partial };
  const launch = { ...common, perSlot, paths, scale: (nope + ropeDim) ** -0.5 };
  const scales = device.filled(count, LARGEST);
  const [value, shape] = [{ kvB, out, scales }, { ...LITE, ...common }];
  await device.run([
    latentPrepare(
      {
        kvB,
        input,
        out: absorbed,
        normWeight: device.floats(numbers(rank, 4)),
        rope,
        rows,
        pages,
        latents,
      },
      { ...LITE, ...common, eps: 1e-6, tablePages, kvDtype },
    ),
    ...tiled === "no"
      ? attention({ ...buffers, keys: latents, values: latents }, { ...sizes, ...launch })
      : latentAttention({ ...buffers, latents }, {
        ...sizes,
        ...launch,
        ...tiled === "merged" ? { finish: (runs) => latentRunsValue(value, runs, shape) } : {},
      }),
    ...tiled === "merged" ? [] : [latentValue({ ...value, attentionOutput: mixed }, shape)],
  ]);
  assert.deepEqual(await device.readWords(scales), await scalesOf(out, count));
  const found = await device.readWords(out);
  return given.map((_, r) => found.slice(r * heads * valueDim, (r + 1) * heads * valueDim));
}

for (const [kvDtype, base, nodes] of [["f32", 21, 7], ["f16", 1, 14], ["bf16", 9, 9]] as const) {
  // How latents of 16 bits are read is in latent_attention_test.ts, how they are kept above.
  const { test } = kvDtype === "f32" ? Deno : drawn;
  test(`latent: a scattered path has the bits of a chain, ${kvDtype}`, async () => {
    const width = LITE.heads * (LITE.nope + LITE.rope);
    const tree = randomTree(0, base, nodes, base);
    const given = (row: RowFields, token: number): Given => ({
      row,
      q: numbers(width, 100 + token),
      kept: numbers(LITE.rank + LITE.rope, 200 + token),
    });
    const first: RowFields = { ...rowsOf(1)[0]!, position: 0, base: 1 };
    const prefix = Array.from(
      { length: base },
      (_, cell) => given({ ...first, position: cell, cell, base: cell + 1 }, cell),
    );
    const scattered = treeRows(tree).map((row, node) => given(row, base + node));
    const together = [...prefix, ...scattered];
    const shape = { kvDtype, slots: 1, perSlot: together.length, paths: true };
    // Each node has a slot of its own that holds all it sees, in order.
    const chains = tree.paths.map((path) => [...prefix, ...path.map((node) => scattered[node]!)]);
    const alone = chains.flatMap((chain, slot) =>
      chain.map((each) => ({ ...each, row: chainOf(each.row, slot) }))
    );
    const ends = chains.map((_, n) => chains.slice(0, n + 1).flat().length - 1);
    const apart = { kvDtype, slots: nodes, perSlot: 1, paths: false };
    const wanted = await attended(alone, { ...apart, tiled: "no" });
    const found = (await attended(together, { ...shape, tiled: "no" })).slice(base);
    ends.forEach((end, node) => assert.deepEqual(found[node], wanted[end], `node ${node}`));
    const tiled = await attended(alone, { ...apart, tiled: "merged" });
    for (const how of ["yes", "merged"] as const) {
      const found = (await attended(together, { ...shape, tiled: how })).slice(base);
      ends.forEach((end, node) => {
        assert.deepEqual(found[node], tiled[end], `node ${node}, ${how}`);
        const [own, other] = [found[node]!, wanted[end]!].map(({ buffer }) =>
          new Float32Array(buffer)
        );
        assertClose(own!, other!, 1e-5, `node ${node} of another kernel`);
      });
    }
  });
}
