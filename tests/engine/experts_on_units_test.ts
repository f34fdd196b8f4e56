// Which mixtures go to matrix units when they are loaded. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { scaleExperts } from "../../src/engine/matrices/experts.ts";
import { withTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import { openGpu } from "../gpu/shared.ts";
import { checkModels, loadWith } from "../../src/engine/load/load.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type MatrixUnit, targetUnits } from "../../src/gpu/matrix_unit.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";
import { folderOf } from "./speculated.ts";

/** What golden dimensions fit; on an adapter without units the weights are scaled all the same. */
const UNIT: MatrixUnit = { m: 8, n: 8, k: 8, lanes: 8 };

/** Qwen3-MoE: layers 0 and 2 of 3 are mixtures. */
async function load(gpu: Gpu) {
  const models = checkModels(openCheckpoint(folderOf("qwen3_moe")), undefined);
  const loaded = await loadWith(gpu, models, (checkpoint) => checkpointWeights(gpu, checkpoint));
  const mixtures = loaded.target.weights.layers.flatMap(({ mlp }) =>
    mlp.kind === "mixture" ? [mlp] : []
  );
  assert.equal(mixtures.length, 2);
  return { loaded, mixtures };
}

async function words(gpu: Gpu, { shards }: Matrix): Promise<Uint32Array[]> {
  const read = [];
  for (const { operand } of shards) read.push(new Uint32Array(await readBuffer(gpu, operand)));
  return read;
}

/** Of bf16 words, two a word. */
function values(words: Uint32Array): Float32Array {
  const halves = new Uint16Array(words.buffer);
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

Deno.test("experts are f16 times their rows' scales, in groups of rows; a layer with a faulty row stays as it is", async () => {
  const gpu = await openGpu();
  const { loaded, mixtures: [first, last] } = await load(gpu);
  const [weights, faulty] = [first!.gateUp, last!.down];
  const before = (await words(gpu, weights))[0]!;
  // 1 and 2^-60 in one row.
  const { buffer, offset } = faulty.shards[0]!.operand;
  gpu.device.queue.writeBuffer(buffer, offset ?? 0, Uint32Array.of(0x3f80_2180));
  const kept = [await words(gpu, last!.gateUp), await words(gpu, faulty)];

  const scales = await scaleExperts(gpu, loaded, {
    unit: UNIT,
    limits: gpu.limits,
    forwards: targetUnits({ batch: 1, mixture: true }, "bf16"),
  });
  const scaled = [first!.gateUp, first!.down].flatMap(({ shards }) => shards);
  assert.deepEqual(new Set(scales.keys()), new Set(scaled));
  assert.deepEqual([await words(gpu, last!.gateUp), await words(gpu, faulty)], kept);

  const shard = weights.shards[0]!;
  const prepared = scales.get(shard)!;
  assert.equal(prepared.stored, "f16_tiles");
  const rows = new Float32Array(await readBuffer(gpu, prepared.scales));
  assert.equal(rows.length, shard.rows);
  const after = new Float16Array((await words(gpu, weights))[0]!.buffer);
  const wanted = values(before).map((value, i) => value * rows[Math.floor(i / weights.cols)]!);
  // In the order of tile_weights.wgsl: eights of k of groups of rows.
  const [group, eights] = [UNIT.n / 2, weights.cols / 8];
  const inOrder = wanted.map((_, i) => {
    const eight = Math.floor(i / 8);
    const row = Math.floor(eight / eights / group) * group + eight % group;
    return wanted[row * weights.cols + Math.floor(eight / group) % eights * 8 + i % 8]!;
  });
  assert.deepEqual(Float32Array.from(after), inOrder);
});

Deno.test("mixtures of a device with matrix units go there at every number of rows", async () => {
  const gpu = await openGpu();
  const { loaded, mixtures } = await load(gpu);
  const { tensor } = await withTensorMatrices(gpu, loaded);
  const shards = mixtures.flatMap(({ gateUp, down }) => [...gateUp.shards, ...down.shards]);
  assert.deepEqual(tensor && new Set(tensor.experts.keys()), gpu.matrixUnit && new Set(shards));
});
