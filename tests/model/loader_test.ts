import assert from "node:assert/strict";
import { labelOf } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Arena, measuringArena, openArena } from "../../src/gpu/arena.ts";
import { loader, shapesAlone, type WeightSource } from "../../src/model/weights/loader.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";
import { widen } from "../../src/model/files/widen.ts";
import { openDevice } from "../gpu/device.ts";
import { checkpointInMemory, join } from "./checkpoint_in_memory.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

/** 12 rows of 6 floats a shard: 6 each of gate and up. */
const LIMITS = {
  maxStorageBufferBindingSize: 12 * 24,
  maxBufferSize: 768,
} as GPUSupportedLimits;

async function assertShards({ shards }: Matrix, expected: readonly Uint8Array[][]) {
  const found = await Promise.all(shards.map(({ operand }) => device.readWords(operand)));
  assert.deepEqual(found.map(({ buffer }) => new Uint8Array(buffer)), expected.map(join));
}

Deno.test("loader: what shares a buffer keeps its bytes, zeros where none came", async () => {
  const memory = checkpointInMemory({
    norm: ["BF16", 5],
    head: ["F16", 7, 18],
    gate: ["F32", 11, 6],
    up: ["F32", 11, 6],
  });
  const gpu = { ...device.gpu, limits: LIMITS };
  const make = (source: WeightSource, arena: Arena) => {
    const load = loader(gpu, source, arena);
    return {
      norm: load.norm("norm", 1, memory.tensor("norm")),
      head: load.matrix("head", [memory.tensor("head")]),
      pair: load.pair("gateUp", memory.tensor("gate"), memory.tensor("up")),
      ids: load.ids("ids", 2, () => Int32Array.of(-3, 4)),
    };
  };
  const source = checkpointWeights(gpu, memory);
  const measure = measuringArena();
  make(shapesAlone(source), measure);
  assert.deepEqual(measure.items, [20, 8 * 36, 12 * 24, 10 * 24, 16]);
  assert.equal(memory.largest, 0);
  const { norm, head, pair, ids } = make(source, openArena(gpu, "slab", measure.items));
  const operands = [
    norm,
    ...[head, pair].flatMap(({ shards }) => shards.map((s) => s.operand)),
    ids,
  ];
  assert.deepEqual(
    operands.map((operand) => [operand.buffer.label, operand.offset, labelOf(operand)]),
    [
      ["slab.0", 0, "norm"],
      ["slab.0", 256, "head"],
      ["slab.1", 0, "gateUp#0"],
      ["slab.1", 512, "gateUp#1"],
      ["slab.2", 0, "ids"],
    ],
  );
  const plusOne = widen(memory.bytes("norm"), "BF16").map((value) => 1 + value);
  assert.deepEqual(await device.readFloats(norm), plusOne);
  await assertShards(head, [[memory.bytes("head"), new Uint8Array(36)]]);
  await assertShards(pair, [
    [memory.rows("gate", 0, 6), memory.rows("up", 0, 6)],
    [memory.rows("gate", 6, 11), memory.rows("up", 6, 11)],
  ]);
  assert.deepEqual([...await device.readWords(ids)], [-3 >>> 0, 4, 0, 0]);
});
