import assert from "node:assert/strict";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import type { TensorInfo } from "../../src/model/files/safetensors.ts";
import type { Loader } from "../../src/model/weights/loader.ts";
import { E2M1 } from "../../src/model/checkpoint/quantized/dequantize.ts";
import { widen } from "../../src/model/files/widen.ts";
import { openDevice } from "../gpu/device.ts";
import { loader, randomLoader } from "./loaders.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

function tensor(...shape: number[]): TensorInfo {
  const size = shape.reduce((product, n) => product * n, 2);
  return { name: "t", dtype: "BF16", dtypeName: "BF16", shape, file: "f", begin: 0, size };
}

const ZEROS: Checkpoint = {
  name: "zeros",
  tensors: new Map(),
  json: () => undefined,
  text: () => undefined,
  read: () => {},
  [Symbol.dispose]: () => {},
};

/** The device with a smaller limit on what one binding holds. */
function limited(bytes: number): Gpu {
  const { maxStorageBuffersPerShaderStage } = device.gpu.limits;
  const sizes = { maxStorageBufferBindingSize: bytes, maxBufferSize: 1 << 30 };
  const limits = { ...sizes, maxStorageBuffersPerShaderStage };
  return { ...device.gpu, limits: limits as GPUSupportedLimits };
}

/** All that plans read of a matrix but for the weights. */
function shapeOf({ format, rows, cols, shards }: Matrix) {
  const cuts = shards.map(({ first, rows, operand: { buffer: { label, size } } }) => {
    return { first, rows, label, size };
  });
  return { format, rows, cols, cuts };
}

async function valuesOf({ shards }: Matrix): Promise<number[]> {
  const values: number[] = [];
  for (const { operand } of shards) {
    values.push(...widen(new Uint8Array((await device.readWords(operand)).buffer), "BF16"));
  }
  return values;
}

const deviation = (values: readonly number[]) =>
  Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);

for (const bytes of [1 << 20, 16 * 16]) {
  Deno.test(`random weights: shards within ${bytes} bytes are those of the real loader`, () => {
    const gpu = limited(bytes);
    const build = (load: Loader) =>
      [
        load.matrix("qkv", [tensor(8, 16), tensor(4, 16), tensor(4, 16)]),
        load.matrix("head", [tensor(37, 16)]),
        load.pair("gateUp", tensor(11, 16), tensor(11, 16)),
      ].map(shapeOf);
    assert.deepEqual(build(randomLoader(gpu, { seed: 1 })), build(loader(gpu, ZEROS)));
  });
}

Deno.test("random weights: every shard is filled, to 1 / sqrt(columns) unless told", async () => {
  const load = randomLoader(limited(64 * 64 * 2), { seed: 1 });
  const matrix = load.matrix("m", [tensor(150, 64)]);
  const pair = load.pair("p", tensor(64, 64), tensor(64, 64));
  await load.fill();
  assert.equal(matrix.shards.length, 3);
  for (const values of [await valuesOf(matrix), await valuesOf(pair)]) {
    assert.ok(values.every((value) => value !== 0));
    assert.ok(Math.abs(deviation(values) * Math.sqrt(64) - 1) < 0.05, `${deviation(values)}`);
  }
  const narrow = randomLoader(device.gpu, { seed: 1, std: 0.02 });
  const asked = narrow.matrix("m", [tensor(150, 64)]);
  await narrow.fill();
  assert.ok(Math.abs(deviation(await valuesOf(asked)) / 0.02 - 1) < 0.05);
});

Deno.test("random weights: a seed repeats; matrices and shards are apart", async () => {
  const make = async (seed: number) => {
    const load = randomLoader(limited(8 * 64 * 2), { seed });
    const matrices = [load.matrix("a", [tensor(16, 64)]), load.matrix("b", [tensor(16, 64)])];
    await load.fill();
    const shards = matrices.flatMap((matrix) =>
      matrix.shards.map((shard) => ({ ...matrix, shards: [shard as Shard] }))
    );
    return await Promise.all(shards.map(valuesOf));
  };
  const first = await make(1);
  assert.deepEqual(await make(1), first);
  const all = [...first, ...await make(2)].map((values) => values.join());
  assert.equal(all.length, 8);
  assert.equal(new Set(all).size, 8);
});

Deno.test("random weights: experts in MXFP4 have the deviation of others, to a power of two", async () => {
  const load = randomLoader(device.gpu, { seed: 1 });
  const [rows, cols] = [64, 128];
  const expert = { ...tensor(rows, cols), dtype: "GROUPED_MXFP4", dtypeName: "MXFP4" } as const;
  const matrix = load.experts("e", [[expert], [expert]]);
  assert.equal(matrix.format, "mxfp4");
  await load.fill();
  const [{ operand, scales } = {}] = matrix.shards;
  assert.ok(operand && scales);
  const exponents = new Uint8Array((await device.readWords(scales)).buffer);
  assert.equal(exponents.length, 2 * rows * cols / 32);
  assert.deepEqual(new Set(exponents).size, 1);
  const codes = [...await device.readWords(operand)].flatMap((word) =>
    Array.from({ length: 8 }, (_, i) => word >>> 4 * i & 15)
  );
  assert.equal(codes.length, 2 * rows * cols);
  const scale = 2 ** ((exponents[0] ?? NaN) - 127);
  const found = deviation(codes.map((code) => scale * (E2M1[code] ?? NaN))) * Math.sqrt(cols);
  assert.ok(found > 0.7 && found < 1.42, `${found}`);
});

Deno.test("random weights: norms are ones, biases and sinks zeros", async () => {
  const load = randomLoader(device.gpu, { seed: 1 });
  const bias = load.vector("b", { ...tensor(24), name: "mlp.experts.down_proj_bias" });
  assert.deepEqual([...await device.readFloats(bias)], Array(24).fill(0));
  const values = await device.readFloats(load.vector("n", tensor(24)));
  assert.deepEqual([...values], Array(24).fill(1));
});
