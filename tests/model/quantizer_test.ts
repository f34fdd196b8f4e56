import assert from "node:assert/strict";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { type Arena, measuringArena, openArena } from "../../src/gpu/arena.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import type { TensorInfo } from "../../src/model/files/safetensors.ts";
import {
  loader as openLoader,
  shapesAlone,
  type WeightSource,
} from "../../src/model/weights/loader.ts";
import { openQuantizer } from "../../src/model/weights/quantizer.ts";
import { batches } from "../../src/model/weights/shards.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";
import { widen } from "../../src/model/files/widen.ts";
import { openDevice } from "../gpu/device.ts";
import { packed, weights } from "../kernels/matrices.ts";
import { pack } from "../kernels/quantized.ts";
import { loader, randomLoader } from "./loaders.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const COLS = 128;
const ROW_BYTES = 2 * COLS;

function tensor(name: string, rows: number, cols = COLS): TensorInfo {
  const shape = [rows, cols];
  const size = rows * cols * 2;
  return { name, dtype: "BF16", dtypeName: "BF16", shape, file: "f", begin: 0, size };
}

/** A checkpoint whose tensor "n" is `values` from row n on. */
function checkpointOf(values: Float32Array): Checkpoint {
  const bytes = new Uint8Array(packed("bf16", values).buffer);
  return {
    name: "memory",
    tensors: new Map(),
    json: () => undefined,
    text: () => undefined,
    read({ name }, offset, into) {
      const from = Number(name) * ROW_BYTES + offset;
      into.set(bytes.subarray(from, from + into.length));
    },
    [Symbol.dispose]: () => {},
  };
}

function limited(bytes: number): Gpu {
  const limits = { maxStorageBufferBindingSize: bytes, maxBufferSize: 1 << 30 };
  return { ...device.gpu, limits: limits as GPUSupportedLimits };
}

/** Asserts that the shards are `parts` packed. */
async function assertShards(matrix: Matrix, parts: readonly Float32Array[]): Promise<void> {
  const { format, cols, lanes, shards } = matrix;
  assert.ok(format === "q8" || format === "q4");
  assert.equal(shards.length, parts.length);
  for (const [i, part] of parts.entries()) {
    const { operand, scales } = shards[i] as Shard;
    const expected = pack(part, { format, cols, lanes });
    assert.deepEqual(await device.readWords(operand), expected.words, `words ${i}`);
    assert.ok(scales);
    assert.deepEqual(await device.readWords(scales), expected.scales, `scales ${i}`);
  }
}

const rowsOf = (values: Float32Array, from: number, to: number) =>
  values.subarray(from * COLS, to * COLS);

for (const to of ["q8", "q4"] as const) {
  Deno.test(`quantizer: tensors stack into ${to} through a staging buffer of five rows`, async () => {
    const values = weights("bf16", 26, COLS);
    using quantizer = openQuantizer(device.gpu, 5 * ROW_BYTES + 128);
    let loaded = 0;
    const load = loader(device.gpu, checkpointOf(values), {
      quantize: { to, quantizer },
      onBytes: (bytes) => loaded += bytes,
      lanes: 32,
    });
    const matrix = load.matrix("qkv", [tensor("0", 13), tensor("13", 2), tensor("15", 11)]);
    assert.equal(matrix.lanes, to === "q8" ? 8 : 4);
    await assertShards(matrix, [values]);
    assert.equal(loaded, 26 * ROW_BYTES);
  });

  Deno.test(`quantizer: shards of ${to} are cut by its own bytes`, async () => {
    const values = weights("bf16", 22, COLS);
    using quantizer = openQuantizer(device.gpu, 3 * ROW_BYTES);
    const bytes = to === "q8" ? COLS : COLS / 2;
    const load = loader(limited(8 * bytes), checkpointOf(values), { quantize: { to, quantizer } });
    const matrix = load.pair("gateUp", tensor("0", 11), tensor("11", 11));
    const parts = [[0, 4], [4, 8], [8, 11]].map(([from = 0, until = 0]) =>
      Float32Array.of(...rowsOf(values, from, until), ...rowsOf(values, 11 + from, 11 + until))
    );
    await assertShards(matrix, parts);
  });

  Deno.test(`quantizer: random weights in ${to} are the bf16 ones quantized`, async () => {
    using quantizer = openQuantizer(device.gpu, 5 * ROW_BYTES);
    const plain = randomLoader(device.gpu, { seed: 3, nextStream: () => 7 });
    const packing = randomLoader(device.gpu, {
      seed: 3,
      nextStream: () => 7,
      quantize: { to, quantizer },
    });
    const of = [tensor("0", 13), tensor("1", 11)];
    const [float, quantized] = [plain.matrix("m", of), packing.matrix("m", of)];
    plain.fill();
    packing.fill();
    const words = await device.readWords((float.shards[0] as Shard).operand);
    await assertShards(quantized, [widen(new Uint8Array(words.buffer), "BF16")]);
  });
}

Deno.test("quantizer: words and scales are packed side by side in one buffer", async () => {
  const values = weights("bf16", 36, COLS);
  using quantizer = openQuantizer(device.gpu, 5 * ROW_BYTES);
  const quantize = { to: "q8", quantizer } as const;
  const source = checkpointWeights(device.gpu, checkpointOf(values), { quantize });
  const make = (from: WeightSource, arena: Arena) => {
    const load = openLoader(device.gpu, from, arena);
    return [load.matrix("a", [tensor("0", 26)]), load.matrix("b", [tensor("26", 10)])] as const;
  };
  const measure = measuringArena();
  make(shapesAlone(source), measure);
  const [a, b] = make(source, openArena(device.gpu, "slab", measure.items));
  const operands = [a, b].flatMap(({ shards }) =>
    shards.flatMap(({ operand, scales }) => [operand, scales as Operand])
  );
  assert.equal(operands.length, 4);
  assert.equal(new Set(operands.map(({ buffer }) => buffer)).size, 1);
  await assertShards(a, [rowsOf(values, 0, 26)]);
  await assertShards(b, [rowsOf(values, 26, 36)]);
});

Deno.test("quantizer: tables and widths that are no multiple of 64 stay", () => {
  using quantizer = openQuantizer(device.gpu);
  const quantize = { to: "q4", quantizer } as const;
  const load = loader(device.gpu, checkpointOf(weights("bf16", 8, COLS)), { quantize });
  const random = randomLoader(device.gpu, { seed: 1, quantize });
  for (const { table, matrix } of [load, random]) {
    assert.equal(table("embed", tensor("0", 8)).format, "bf16");
    assert.equal(matrix("odd", [tensor("0", 4, 96)]).format, "bf16");
    assert.equal(matrix("even", [tensor("0", 4, 64)]).format, "q4");
  }
});

Deno.test("batches: runs in order, at most so many rows, one shard each", () => {
  const of = (rows: number, shard: number, shardRow: number, tensorRow: number) => (
    { tensor: tensor("0", 99), tensorRow, rows, shard, shardRow }
  );
  const found = batches([of(7, 0, 4, 0), of(2, 0, 0, 7), of(3, 1, 0, 9)], 4);
  assert.deepEqual(found, [
    [of(4, 0, 4, 0)],
    [of(3, 0, 8, 4), of(1, 0, 0, 7)],
    [of(1, 0, 1, 8)],
    [of(3, 1, 0, 9)],
  ]);
});
