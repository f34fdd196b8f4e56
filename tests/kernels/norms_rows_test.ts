// Where a matmul norms x or adds the splits of attention itself.

import assert from "node:assert/strict";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { normedRows } from "../../kernels/matmul/prologue/prologue.ts";
import { combinesHeads, normsRows } from "../../kernels/matmul/prologue/norms_rows.ts";
import { lanesOf } from "../../kernels/matmul/matmul_lanes.ts";
import { workgroupBytes } from "../../kernels/matmul/matmul_kernels.ts";
import { residentShape } from "../../kernels/matmul/matmul_shape.ts";
import { normLanes } from "../../kernels/norm/rms_norm.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { lanesFor } from "../../src/gpu/weight_format.ts";

const LIMITS = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 16,
};
const HARDWARE = tuning(false, LIMITS);

function matrix(rows: number, cols: number): Matrix {
  const shards = [{ operand: {} as Operand, first: 0, rows }]; // nothing looks into it
  return { format: "bf16", rowOrder: "stacked", rows, cols, lanes: 16, shards };
}

Deno.test("norms on the way: few rows of narrow matrices, where all workgroups read little", () => {
  const norms = (of: Matrix, rows: number, bound = 0, at = HARDWARE) =>
    normsRows(of, { rows, added: { splitK: 4 }, bound, tuning: at });
  const qkv = matrix(4096, 1024);
  assert.deepEqual([1, 2, 4, 5, 8].map((rows) => norms(qkv, rows)), [
    1,
    1,
    1,
    undefined,
    undefined,
  ]);
  assert.equal(norms(matrix(512, 256), 8), 1);
  assert.equal(norms(matrix(512, 256), 9), undefined);
  assert.equal(norms(matrix(512, 264), 1), undefined, "the lanes do not divide the width");
  assert.equal(norms(qkv, 1, 11), undefined, "too many storage buffers");
  assert.equal(norms(qkv, 1, 0, tuning(true, LIMITS)), undefined);
});

Deno.test("norms on the way: one row of large matrices, in few large workgroups", () => {
  const norms = (of: Matrix, rows = 1, splitK = 4, at = HARDWARE) =>
    normsRows(of, { rows, added: { splitK }, bound: 0, tuning: at });
  const gateUp = matrix(28672, 4096);
  assert.deepEqual([norms(gateUp), norms(gateUp, 2)], [4, undefined]);
  assert.deepEqual([norms(matrix(34816, 5120)), norms(matrix(65536, 5120))], [5, undefined]);
  const alone = [8192, 12288, 32768].map((rows) => norms(matrix(rows, 2048), 1, 0));
  assert.deepEqual(alone, [1, 2, 1], "nothing is added to the row, so little is read");
  assert.equal(norms(matrix(40960, 6144)), undefined, "its workgroups read too much");
  const small = tuning(false, { ...LIMITS, maxComputeInvocationsPerWorkgroup: 512 });
  assert.deepEqual([gateUp, matrix(34816, 5120)].map((of) => norms(of, 1, 4, small)), [
    4,
    undefined,
  ]);
});

Deno.test("rows of two widths that are padded to one length in workgroup memory are normed by one kernel", () => {
  const sums = { buffer: {} as GPUBuffer, size: 0 }; // nothing looks into it
  const kernelOf = (cols: number) => {
    const of = { ...matrix(2048, cols), shards: [{ operand: sums, first: 0, rows: 2048 }] };
    assert.equal(normsRows(of, { rows: 1, added: { splitK: 4 }, bound: 0, tuning: HARDWARE }), 1);
    const lanes = normLanes({ cols, lanes: HARDWARE.rowLanes });
    const norm = { weight: sums, eps: 1e-6, lanes, added: { sums, splitK: 4, stream: sums } };
    const [launch] = matmul({ matrix: of, x: sums, out: sums }, {
      rows: 1,
      epilogue: "store",
      prologue: normedRows(norm, { cols, rows: 1 }),
      tuning: HARDWARE,
      label: "test",
    });
    return launch?.kernel;
  };
  // 23 blocks of every lane, of which some lanes lack the last one: 24 in workgroup memory.
  assert.equal(kernelOf(2880), kernelOf(2904));
});

Deno.test("x that is resident by rule has room beside the sums, of lanes and of norms, in workgroups of any size", () => {
  const found = new Set<number>();
  for (const bytes of [16384, 32768, 49152, 65536]) {
    const limits = { ...LIMITS, maxComputeWorkgroupStorageSize: bytes };
    const at = tuning(false, limits);
    for (const format of ["bf16", "q8", "q4"] as const) {
      for (let cols = 64; cols < 11520; cols += 64) {
        const lanes = lanesFor(format, cols, 16);
        for (const rows of [1, 2, 3, 4, 6, 8]) {
          for (const outputs of [512, 4096, 24576]) {
            const of = { ...matrix(outputs, cols), format, lanes };
            const widen = normsRows(of, { rows, added: { splitK: 4 }, bound: 0, tuning: at });
            if (widen === undefined) continue;
            const shape = residentShape(of, { rows, splitK: 1, tuning: at }, widen);
            const squares = 4 * shape.rows * normLanes({ cols, lanes: at.rowLanes });
            const taken = workgroupBytes(shape, lanesOf(of, at)) + squares;
            assert.ok(taken <= bytes, `${format} [${outputs}, ${cols}], ${rows} rows: ${taken}`);
            found.add(widen);
          }
        }
      }
    }
  }
  assert.deepEqual([...found].toSorted(), [1, 4, 5]);
});

Deno.test("experts weighed on the way: one row of narrow matrices", () => {
  const norms = (of: Matrix, rows: number, bound = 0) =>
    normsRows(of, { rows, added: { experts: 8 }, bound, tuning: HARDWARE });
  assert.deepEqual([1, 2].map((rows) => norms(matrix(3648, 2048), rows)), [1, undefined]);
  assert.equal(norms(matrix(5120, 2048), 1), undefined, "many weights");
  assert.equal(norms(matrix(512, 2048), 1, 10), undefined, "too many storage buffers");
});

Deno.test("splits added on the way: few rows of few heads", () => {
  const adds = (of: Matrix, rows: number, at = HARDWARE) =>
    combinesHeads(of, { rows, splitK: 4, tuning: at });
  assert.deepEqual([1, 2, 3].map((rows) => adds(matrix(1024, 2048), rows)), [true, true, false]);
  assert.deepEqual([1, 2].map((rows) => adds(matrix(2048, 4096), rows)), [true, false]);
  assert.equal(adds(matrix(4096, 4096), 1), false);
  const wide = { splitK: 4, widen: 2, tuning: HARDWARE };
  assert.deepEqual(
    [1, 2].map((rows) => combinesHeads(matrix(4096, 4096), { rows, ...wide })),
    [true, false],
  );
  assert.equal(combinesHeads(matrix(1024, 2048), { rows: 4, ...wide }), false, "few weights");
  assert.equal(adds(matrix(1024, 2048), 1, tuning(true, LIMITS)), false);
});
