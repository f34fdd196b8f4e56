import assert from "node:assert/strict";
import {
  requireLoaded,
  type StoredWeights,
  type TensorMatrices,
  type TensorShard,
} from "../../src/gpu/matrices_on_units.ts";
import type { Shard } from "../../src/gpu/matrix.ts";

const OPERAND = { buffer: { size: 256 } as GPUBuffer };

Deno.test("weights that were stored as f16 for matrix units are no other kernel's", () => {
  const shard: Shard = { operand: OPERAND, first: 0, rows: 2 };
  const of = (map: "shards" | "experts", stored: StoredWeights): TensorMatrices => {
    const there = new Map<Shard, TensorShard>([[shard, { scales: OPERAND, stored }]]);
    const none = { shards: new Map(), experts: new Map() };
    return { ...none, [map]: there } as unknown as TensorMatrices;
  };
  const read = (tensor?: TensorMatrices) =>
    requireLoaded({ shards: [shard] }, tensor, "layers.0.o");
  read();
  read(of("shards", "loaded"));
  read(of("experts", "loaded"));
  assert.throws(() => read(of("shards", "f16")), {
    message: 'Cannot plan "layers.0.o": its weights are stored as f16 for matrix units',
  });
  assert.throws(() => read(of("experts", "f16_tiles")), {
    message: 'Cannot plan "layers.0.o": its weights are stored as f16_tiles for matrix units',
  });
});
