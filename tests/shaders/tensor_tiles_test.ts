// Which workgroups matmuls on matrix units have: large enough, as many as keep a large GPU busy.

import assert from "node:assert/strict";
import { tensorTile } from "../../shaders/tensor/tensor_tiles.ts";
import { tileSize } from "../../shaders/tensor/matmul_tensor.ts";

const UNIT = { m: 16, n: 16, k: 16, lanes: 32 };
const LIMITS = { maxComputeWorkgroupStorageSize: 49152, maxComputeInvocationsPerWorkgroup: 1024 };

function chosen(rows: number, columns: number, range: number, splitK = 1) {
  const tile = tensorTile(UNIT, LIMITS, { rows, columns, range, splitK });
  assert.ok(tile);
  const [tileRows, tileColumns] = tileSize(UNIT, tile);
  const workgroups = Math.ceil(rows / tileRows) * Math.ceil(columns / tileColumns) * splitK;
  return { tile, tileRows, tileColumns, workgroups };
}

Deno.test("tiles of a prompt: four subgroups where cores have many of them", () => {
  const { tile, workgroups } = chosen(512, 28672, 4096);
  assert.equal(workgroups, 1792);
  assert.equal(tile.subgroups, 4);
});

Deno.test("tiles of a prompt: as wide as makes the fewest waves", () => {
  const of = (columns: number, range: number, splitK = 1) => {
    const { tileRows, tileColumns, workgroups } = chosen(512, columns, range, splitK);
    return [tileRows, tileColumns, workgroups];
  };
  assert.deepEqual(of(4096, 1024), [64, 128, 256]);
  assert.deepEqual(of(5120, 2048), [64, 160, 256]);
  assert.deepEqual(of(6144, 4096), [64, 96, 512]);
  assert.deepEqual(of(1024, 512, 4), [64, 128, 256]);
});

Deno.test("tiles of two units' rows are two stages ahead, ranges of k that no such stage divides are not", () => {
  assert.equal(chosen(32, 28672, 4096).tile.ahead, 2);
  assert.equal(chosen(32, 6144, 4096).workgroups, 96);
  assert.equal(chosen(32, 28672, 4096 + 32).tile.stage, 32);
});

Deno.test("no tile where the adapter has room for none", () => {
  const none = { ...LIMITS, maxComputeWorkgroupStorageSize: 1024 };
  const of = { rows: 32, columns: 4096, range: 4096, splitK: 1 };
  assert.equal(tensorTile(UNIT, none, of), undefined);
});
