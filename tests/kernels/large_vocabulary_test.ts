// Tensors above the adapter's binding limit, at the vocabularies of Llama 3 and Qwen: loaded in
// shards, they must give the bits that they give whole.

import assert from "node:assert/strict";
import { choose } from "../../kernels/sample/choose.ts";
import { qkvEpilogue } from "../../kernels/matmul/qkv.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { matmulShape } from "../../kernels/matmul/matmul_shape.ts";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import { rmsNorm } from "../../kernels/norm/rms_norm.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, Table } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import type { TensorInfo } from "../../src/model/files/safetensors.ts";
import type { Loader } from "../../src/model/weights/loader.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { loader } from "../model/loaders.ts";
import { choose as reference } from "../reference/choose.ts";
import { PLACED_ROWS, placing } from "./placed.ts";
import { packRows, packSlots } from "./rows.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const ROWS = 3;
const LARGE = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 32768 };
/** Widths that the kernel asked for takes: 256 is one stage of hardware's kernels, which keep it resident. */
const KERNELS = [
  { kind: "cached", tuning: tuning(true), hidden: 64 },
  { kind: "resident", tuning: tuning(false, LARGE), hidden: 256 },
] as const;

/** A tensor of bf16. */
interface Bits {
  readonly hidden: number;
  /** [rows, hidden] */
  readonly words: Uint16Array;
}

/** Either sign, from 2^-5 to 2^-3. */
function randomTensor(rows: number, hidden: number, seed: number): Bits {
  const words = new Uint16Array(rows * hidden);
  let state = hash32(seed, 0, 0);
  for (let i = 0; i < words.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' LCG, its high bits
    words[i] = 0x3d00 + (state >>> 16 & 0x80ff);
  }
  return { hidden, words };
}

function widened({ hidden, words }: Bits, row: number): Float32Array {
  const bits = words.subarray(row * hidden, (row + 1) * hidden);
  return new Float32Array(Uint32Array.from(bits, (half) => half << 16).buffer);
}

/** Loaders of the tensors: with the device's limit, and with one that a third of `rows` fills. */
function loaders(tensors: Readonly<Record<string, Bits>>, rows: number, { lanes }: Tuning) {
  const [{ hidden }] = Object.values(tensors) as [Bits];
  const infos = Object.entries(tensors).map(([name, { words: bits }]): TensorInfo => {
    const shape = [bits.length / hidden, hidden];
    const dtype = { dtype: "BF16", dtypeName: "BF16" } as const;
    return { name, ...dtype, shape, file: "memory", begin: 0, size: bits.byteLength };
  });
  const checkpoint: Checkpoint = {
    name: "memory",
    tensors: new Map(infos.map((info) => [info.name, info])),
    json: () => undefined,
    text: () => undefined,
    read: ({ name }, offset, into) => {
      const { words } = tensors[name] as Bits;
      into.set(new Uint8Array(words.buffer, offset, into.length));
    },
    [Symbol.dispose]: () => {},
  };
  const limits = { maxStorageBufferBindingSize: rows / 3 * hidden * 2, maxBufferSize: 2 ** 30 };
  const lowered: Gpu = { ...device.gpu, limits: limits as GPUSupportedLimits };
  return {
    tensor: (name: string) => checkpoint.tensors.get(name) as TensorInfo,
    whole: loader(device.gpu, checkpoint, { lanes }),
    cut: loader(lowered, checkpoint, { lanes }),
  };
}

/** The first and last row of each shard. */
function edges({ shards }: Matrix): number[] {
  return shards.flatMap(({ first, rows }) => [first, first + rows - 1]);
}

/** The matrix whole and in shards, of which there are more than three. */
function both<Found extends Matrix>(
  { whole, cut }: { readonly whole: Loader; readonly cut: Loader },
  load: (from: Loader) => Found,
): { readonly whole: Found; readonly cut: Found } {
  const found = { whole: load(whole), cut: load(cut) };
  assert.equal(found.whole.shards.length, 1);
  assert.ok(found.cut.shards.length >= 3, `${found.cut.shards.length} shards`);
  return found;
}

for (const vocab of [128_256, 151_936]) {
  for (const { kind, tuning: of, hidden } of KERNELS) {
    const { test } = (vocab === 128_256) === (kind === "resident") ? Deno : drawn;
    test(`large vocabulary: head and choice over shards, ${vocab}, ${kind}`, async () => {
      const table = randomTensor(vocab, hidden, vocab);
      const load = loaders({ head: table }, vocab, of);
      const head = both(load, (from) => from.matrix("head", [load.tensor("head")]));
      const launch = matmulShape(head.cut, { rows: ROWS, splitK: 1, tuning: of });
      assert.equal(launch.kind, kind);
      const x = numbers(ROWS * hidden, 5);
      const logits = async (matrix: Matrix): Promise<Operand> => {
        const out = device.filled(ROWS * vocab, NaN);
        const shape = { rows: ROWS, epilogue: "store", tuning: of, label: "head" } as const;
        await device.run(matmul({ matrix, x: device.floats(x), out }, shape));
        return out;
      };
      const made = await logits(head.cut);
      const found = await device.readFloats(made);
      assert.deepEqual(
        await device.readWords(made),
        await device.readWords(await logits(head.whole)),
      );
      for (const token of edges(head.cut)) {
        const dot = widened(table, token).reduce((sum, weight, k) => sum + weight * (x[k] ?? 0), 0);
        assertClose([found[token] ?? NaN], [dot], 1e-5, `logit of ${token}`);
      }
      await assertChoices(made, found, vocab, of);
    });
  }

  Deno.test(`large vocabulary: embeddings from shards, ${vocab}`, async () => {
    const hidden = 64;
    const table = randomTensor(vocab, hidden, vocab);
    const load = loaders({ embed: table }, vocab, tuning(false));
    const matrix = both(load, (from): Table => from.table("embed", load.tensor("embed")));
    const tokens = [...edges(matrix.cut), 77];
    const normed = async (from: Table) => {
      const [out, kept] = [0, 0].map(() => device.filled(tokens.length * hidden)) as [
        Operand,
        Operand,
      ];
      const rows = device.words(packRows(tokens.map((token) => ({ token }))));
      await device.run(rmsNorm({
        from: { matrix: from, rows },
        weight: device.filled(hidden, 1),
        out,
        keep: { what: "input", out: kept },
      }, { rows: tokens.length, cols: hidden, eps: 1e-6, lanes: 256, label: "norm" }));
      return { normed: await device.readWords(out), kept: await device.readFloats(kept) };
    };
    const found = await normed(matrix.cut);
    assert.deepEqual(found, await normed(matrix.whole));
    const expected = tokens.flatMap((token) => [
      ...widened(table, token),
    ]);
    assert.deepEqual([...found.kept], expected);
  });
}

/** Greedy rows, and sampled ones from the largest 20. */
async function assertChoices(logits: Operand, values: Float32Array, vocab: number, of: Tuning) {
  const settings = Array.from({ length: ROWS }, (_, row) => ({
    ...GREEDY,
    ...row < 2 ? {} : { temperature: 0.7, topK: 20, seed: row },
  }));
  const chosen = device.filled(ROWS);
  await device.run(choose({
    logits,
    partials: device.filled(ROWS * slicePartialWords(vocab)),
    rows: device.words(packRows(settings.map((_, slot) => ({ slot, position: 9 })))),
    slots: device.words(packSlots(settings)),
    chosen,
  }, { count: ROWS, vocab, stride: vocab, lanes: of.rowLanes }));
  const expected = settings.map((sampling, row) =>
    reference(values.subarray(row * vocab, (row + 1) * vocab), sampling, 10)
  );
  assert.deepEqual([...await device.readWords(chosen)], expected);
}

for (const { kind, tuning: of, hidden } of KERNELS) {
  Deno.test(`large tensors: the qkv epilogue over shards, ${kind}`, async () => {
    const shape = { heads: 12, kvHeads: 2, headDim: 128, kvDtype: "f16" } as const;
    const { heads, kvHeads, headDim } = shape;
    const tensors = {
      q: randomTensor(heads * headDim, hidden, 1),
      k: randomTensor(kvHeads * headDim, hidden, 2),
      v: randomTensor(kvHeads * headDim, hidden, 3),
    };
    const load = loaders(tensors, (heads + 2 * kvHeads) * headDim, of);
    const { tensor } = load;
    const matrix = both(load, (from) =>
      from.heads(
        "qkv",
        { turned: [tensor("q"), tensor("k")], plain: [tensor("v")] },
        { headDim, width: headDim },
      ));
    const shaped = matmulShape(matrix.cut, { rows: PLACED_ROWS.length, splitK: 1, tuning: of });
    assert.equal(shaped.kind, kind);
    const x = device.floats(numbers(PLACED_ROWS.length * hidden, 8));
    const placed = async (from: Matrix) => {
      const { q, place, shape: sizes } = placing(device, shape);
      const rows = PLACED_ROWS.length;
      const epilogue = qkvEpilogue(place, sizes);
      await device.run(matmul({ matrix: from, x, out: q }, {
        rows,
        epilogue,
        tuning: of,
        label: "qkv",
      }));
      return await Promise.all([q, place.keys, place.values].map(device.readWords));
    };
    const whole = await placed(matrix.whole);
    assert.ok(whole.every((words) => new Set(words).size > headDim));
    assert.deepEqual(await placed(matrix.cut), whole);
  });
}
