// One row that a matmul on matrix units norms itself: the bits of a norm that is a dispatch of its own, in what it
// makes and in all that the norm leaves. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { normedRows } from "../../kernels/matmul/prologue/prologue.ts";
import { normsOnUnits } from "../../kernels/matmul/prologue/norms_on_units.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { scaledEpilogue } from "../../kernels/lib/epilogue.ts";
import { normLanes, rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { fewTile } from "../../kernels/matmul/tensor/few_tiles.ts";
import { halveWeights, weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import type { TensorShard } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { limits, matrixUnit } = device.gpu;
const unit = matrixUnit as MatrixUnit;
const LIMITS = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 32768,
  maxStorageBuffersPerShaderStage: 16,
};
const EPS = 1e-6;

/** A matrix of two shards on units, one as f16. */
async function build(rows: number, cols: number) {
  const values = weights("bf16", rows, cols);
  const shards = [rows / 2, rows / 2];
  const matrix = uploadMatrix(device, values, { format: "bf16", cols, lanes: 16, shards });
  const found = new Map<Shard, TensorShard>();
  for (const [i, shard] of matrix.shards.entries()) {
    const of = { weights: shard.operand, scales: device.filled(shard.rows) };
    const shape = { rows: shard.rows, cols };
    const faults = device.filled(shard.rows);
    await device.run([
      weightScales({ ...of, faults }, shape),
      ...i === 1 ? [halveWeights(of, shape)] : [],
    ]);
    found.set(shard, { scales: of.scales, stored: i === 1 ? "f16" : "loaded" });
  }
  const tensor = { unit, limits: { ...limits, ...LIMITS }, shards: found, experts: new Map() };
  const rules = { ...tuning(false, LIMITS), tensor: { ...tensor, xScales: device.filled(1) } };
  return { matrix, rules };
}

const CASES = [
  { cols: 192, rows: 60, added: "nothing", precision: "f32" },
  { cols: 256, rows: 36, added: "sums", precision: "f32" },
  { cols: 992, rows: 36, added: "sums", precision: "f16" },
  { cols: 320, rows: 44, added: "experts", precision: "f32" },
] as const;

for (const of of CASES) {
  const { cols, rows, added, precision } = of;
  Deno.test({
    name: `one row of ${cols} normed by a matmul on matrix units, ${added} added, x ${precision}`,
    ignore: matrixUnit === undefined,
    async fn() {
      const { matrix, rules: { tensor, ...plain } } = await build(rows, cols);
      const rules = { ...plain, tensor: { ...tensor, precision } };
      const weight = device.floats(numbers(cols, 5));
      const [stride, jobs] = [3, 2];
      const made = () => ({
        x: device.floats(numbers(cols, 4)),
        stream: device.filled(cols, 9),
        reduced: device.filled(stride + jobs, 1),
        out: device.filled(rows, 9),
      });
      const [own, apart] = [made(), made()];
      const sums = { sums: device.floats(numbers(3 * cols, 6)), splitK: 3 };
      const experts = {
        outputs: device.floats(numbers(3 * cols, 7)),
        experts: 3,
        shares: device.floats(numbers(3, 8)),
      };
      const adding = { nothing: undefined, sums, experts }[added];
      const [normed, scales] = [device.filled(cols), device.filled(1)];
      const noted = { normed: scales, reduced: apart.reduced, stride, jobs };
      const shape = { cols, lanes: rules.rowLanes };
      const from = {
        nothing: { x: apart.x },
        sums: { x: apart.x, ...sums },
        experts: { stream: apart.x, ...experts },
      }[added];
      const prologue = normedRows({
        weight,
        eps: EPS,
        lanes: normLanes(shape),
        resets: { ...noted, reduced: own.reduced },
        added: adding && { ...adding, stream: own.stream },
      }, { cols, rows: 1 });
      const launch = { rows: 1, epilogue: "store", tuning: rules, label: "test" } as const;
      assert.ok(normsOnUnits(matrix, { rows: 1, added: adding, bound: 0, tuning: rules }));
      await device.run([
        ...matmul({ matrix, x: own.x, out: own.out }, { ...launch, prologue }),
        ...rmsNorm({ from, weight, out: normed, scales: noted }, {
          rows: 1,
          ...shape,
          eps: EPS,
          label: "norm",
        }),
        ...matmul({ matrix, x: normed, xScales: scales, out: apart.out }, launch),
      ]);
      const words = await device.readWords(own.out);
      assert.deepEqual(words, await device.readWords(apart.out));
      assert.ok(words.every((word) => word << 1 !== 0));
      // The norm by itself resets one row's of each.
      assert.deepEqual(await device.readWords(own.reduced), await device.readWords(apart.reduced));
      if (!adding) return;
      assert.deepEqual(await device.readWords(own.stream), await device.readWords(apart.x));
    },
  });
}

Deno.test({
  name: "one row normed by a gated matmul on matrix units, whose output's scale is noted",
  ignore: matrixUnit === undefined,
  async fn() {
    const [rows, cols] = [44, 160];
    const { matrix, rules } = await build(rows, cols);
    const weight = device.floats(numbers(cols, 5));
    const x = device.floats(numbers(cols, 4));
    const shape = { cols, lanes: rules.rowLanes };
    const prologue = normedRows({ weight, eps: EPS, lanes: normLanes(shape) }, { cols, rows: 1 });
    const of = [prologue, undefined].map((prologue) => ({
      prologue,
      out: device.filled(rows / 2),
      noted: device.filled(1, 2 ** 74),
    }));
    const normed = device.filled(cols);
    await device.run(
      rmsNorm({ from: { x }, weight, out: normed }, { rows: 1, ...shape, eps: EPS, label: "norm" }),
    );
    for (const { prologue, out, noted } of of) {
      const launch = {
        rows: 1,
        epilogue: scaledEpilogue("silu", noted),
        tuning: rules,
        label: "test",
      };
      const io = { matrix, x: prologue ? x : normed, out };
      await device.run(matmul(io, prologue ? { ...launch, prologue } : launch));
    }
    const [own, apart] = of as [typeof of[0], typeof of[0]];
    assert.deepEqual(await device.readWords(own.out), await device.readWords(apart.out));
    assert.deepEqual(await device.readWords(own.noted), await device.readWords(apart.noted));
  },
});

Deno.test("a matmul on matrix units that norms its row is recorded on any machine", async () => {
  const [rows, cols] = [44, 320];
  const { matrix, rules } = await build(rows, cols);
  const tensor = { ...rules.tensor, unit: { m: 16, n: 16, k: 16, lanes: 32, narrow: 8 } };
  const [x, weight, stream] = [device.filled(cols), device.filled(cols), device.filled(cols)];
  const sums = { sums: device.filled(3 * cols), splitK: 3, stream };
  const outputs = { outputs: device.filled(3 * cols), experts: 3 };
  const experts = { ...outputs, shares: device.filled(3), stream };
  const lanes = normLanes({ cols, lanes: rules.rowLanes });
  const kernels = [undefined, sums, experts].map((added) => {
    const prologue = normedRows({ weight, eps: EPS, lanes, added }, { cols, rows: 1 });
    const launch = {
      rows: 1,
      epilogue: "store",
      tuning: { ...rules, tensor },
      label: "test",
    } as const;
    return matmul({ matrix, x, out: device.filled(rows) }, { ...launch, prologue })[0]?.kernel.name;
  });
  for (const name of kernels) assert.match(name ?? "", /^matmul_tensor_few_.*normed/);
  assert.equal(new Set(kernels).size, kernels.length);
});

Deno.test("tiles of one row: two of outputs where workgroups are many, long stages where ranges are short", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32, narrow: 8 };
  const tileOf = (columns: number, cols: number, splitK = 1, bytes = 49152, resident = false) => {
    const limits = { maxComputeWorkgroupStorageSize: bytes };
    const { columns: tiles, stage, branched } =
      fewTile(unit, limits, { rows: 1, columns, range: cols / splitK, splitK, resident }) ?? {};
    return [tiles, stage, branched];
  };
  assert.deepEqual(tileOf(28672, 4096), [2, 64, false]);
  assert.deepEqual(tileOf(4096, 14336, 4), [2, 128, false]);
  assert.deepEqual(tileOf(6144, 4096), [1, 256, false]);
  assert.deepEqual(tileOf(5120, 2048), [1, 256, true]);
  assert.deepEqual(tileOf(4096, 1024), [1, 256, true]);
  assert.deepEqual(tileOf(4096, 1024, 1, 49152, true), [1, 128, true]);
  assert.deepEqual(tileOf(2048, 4096, 4), [1, 128, true]);
  assert.deepEqual(tileOf(4096, 1152), [1, 128, true]);
  assert.deepEqual(tileOf(64, 4160), [1, 64, true]);
  assert.deepEqual(tileOf(64, 4192), [1, 32, true]);
  assert.deepEqual(tileOf(4096, 1024, 1, 8192), [1, 128, true], "little workgroup memory");
  assert.deepEqual(tileOf(64, 64, 1, 256), [undefined, undefined, undefined]);
});

Deno.test({
  name: "norms on the way on matrix units: one row of narrow matrices that are not quantized",
  ignore: matrixUnit === undefined,
  async fn() {
    const { matrix, rules } = await build(64, 256);
    const norms = (of: Matrix, rows: number, bound = 0, at: typeof rules = rules) =>
      normsOnUnits(of, { rows, added: undefined, bound, tuning: at });
    assert.ok(norms(matrix, 1));
    assert.ok(!norms(matrix, 2));
    assert.ok(!norms(matrix, 1, 11), "too many storage buffers");
    assert.ok(!norms({ ...matrix, format: "q8" }, 1));
    assert.ok(!norms({ ...matrix, cols: 1056 }, 1), "a wide row");
    assert.ok(!norms(matrix, 1, 0, { ...rules, software: true }));
    const small = { ...rules.tensor.limits, maxComputeWorkgroupStorageSize: 3000 };
    assert.ok(!norms(matrix, 1, 0, { ...rules, tensor: { ...rules.tensor, limits: small } }));
  },
});
