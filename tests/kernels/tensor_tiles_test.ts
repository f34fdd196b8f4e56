// Which workgroups matmuls on matrix units have: large enough, as many as keep a large GPU busy.

import assert from "node:assert/strict";
import { tensorTile } from "../../kernels/matmul/tensor/tensor_tiles.ts";
import { tileSize } from "../../kernels/matmul/tensor/matmul_tensor.ts";

const UNIT = { m: 16, n: 16, k: 16, lanes: 32 };
const LIMITS = { maxComputeWorkgroupStorageSize: 49152, maxComputeInvocationsPerWorkgroup: 1024 };

function chosen(rows: number, columns: number, range: number, splitK = 1) {
  const low = rows > 64 ? 1 : 0; // prompts of two numbers, rounds of one
  const tile = tensorTile(UNIT, LIMITS, { rows, columns, range, splitK, low });
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

Deno.test("tiles of a prompt in f16: larger, and those that the fewest waves take the least time with", () => {
  const of = (rows: number, columns: number, range: number) => {
    const tile = tensorTile(UNIT, LIMITS, {
      rows,
      columns,
      range,
      splitK: 1,
      halves: true,
      low: 0,
    });
    assert.ok(tile);
    return [...tileSize(UNIT, tile), tile.stage, tile.subgroups];
  };
  assert.deepEqual(of(512, 28672, 4096), [128, 192, 64, 8]);
  assert.deepEqual(of(512, 4096, 14336), [128, 128, 64, 8]);
  assert.deepEqual(of(1024, 28672, 4096), [128, 128, 32, 4]);
  assert.deepEqual(of(512, 1024, 3072), [64, 96, 64, 4]);
  assert.deepEqual(of(512, 28672, 4096 + 32), [128, 160, 32, 4]); // no stages of 64
});

Deno.test("tiles of rounds: no more workgroups than cores have room for, where columns allow", () => {
  for (
    const { rows, shape: [columns, cols, splitK], size, workgroups } of [
      { rows: 16, shape: [28672, 4096, 1], size: [16, 112], workgroups: 256 },
      { rows: 16, shape: [6144, 4096, 1], size: [16, 48], workgroups: 128 },
      { rows: 16, shape: [4096, 14336, 4], size: [16, 64], workgroups: 256 },
      { rows: 32, shape: [128256, 4096, 1], size: [32, 128], workgroups: 1002 },
      { rows: 17, shape: [28672, 4096, 1], size: [32, 224], workgroups: 128 },
      { rows: 32, shape: [6144, 4096, 1], size: [32, 48], workgroups: 128 },
      { rows: 32, shape: [4096, 1024, 1], size: [32, 32], workgroups: 128 },
      { rows: 48, shape: [28672, 4096, 1], size: [48, 224], workgroups: 128 },
      { rows: 64, shape: [6144, 4096, 1], size: [64, 48], workgroups: 128 },
      { rows: 64, shape: [28672, 4096, 1], size: [64, 224], workgroups: 128 },
      { rows: 64, shape: [128256, 4096, 1], size: [64, 256], workgroups: 501 },
      { rows: 64, shape: [4096, 4096, 4], size: [64, 128], workgroups: 128 },
    ] as const
  ) {
    const found = chosen(rows, columns, cols / splitK, splitK);
    assert.deepEqual([found.tileRows, found.tileColumns], size, `${rows} rows, ${columns}`);
    assert.equal(found.workgroups, workgroups);
  }
});

Deno.test("tiles of rounds: as many columns as leave fewest cores idle in the end", () => {
  assert.equal(chosen(16, 128256, 4096).tileColumns, 64);
  assert.equal(chosen(16, 28672, 4096).tileColumns, 112);
});

Deno.test("tiles of rounds: two numbers of x leave less room, quantized weights have tiles of their own", () => {
  const of = { rows: 64, columns: 28672, range: 4096, splitK: 1 };
  const sizeOf = (more: { low: 0 | 1; format?: "q8" }) => {
    const tile = tensorTile(UNIT, LIMITS, { ...of, ...more });
    assert.ok(tile);
    return [tile.grid, tile.own, tile.inTurn ?? false];
  };
  assert.deepEqual(sizeOf({ low: 0 }), [[1, 7], [4, 2], true]);
  assert.deepEqual(sizeOf({ low: 1 }), [[4, 2], [1, 7], false]);
  assert.deepEqual(sizeOf({ low: 0, format: "q8" }), [[4, 2], [1, 7], false]);
});

Deno.test("tiles of rounds: stages divide any range of k", () => {
  assert.equal(chosen(32, 28672, 4096 + 32).tile.stage, 32);
  assert.equal(chosen(16, 6144, 4096 + 64).tile.stage, 64);
  // Rows of rounds have no tiles of prompts where these alone fit.
  const of = { rows: 16, columns: 6144, range: 1056, splitK: 1, low: 0, halves: true } as const;
  const tile = tensorTile(UNIT, LIMITS, of);
  assert.ok(tile);
  assert.deepEqual([tile.stage, tileSize(UNIT, tile)[0]], [32, 16]);
});

Deno.test("no tile where the adapter has room for none", () => {
  const none = { ...LIMITS, maxComputeWorkgroupStorageSize: 1024 };
  const of = { rows: 32, columns: 4096, range: 4096, splitK: 1, low: 0 } as const;
  assert.equal(tensorTile(UNIT, none, of), undefined);
});
