// A matmul of a plan on matrix units: the other kernels' outputs but for rounding, with each epilogue and
// over ranges of k, and the same bits at every number of rows. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { matmul, type PlainEpilogue } from "../../kernels/matmul/matmul.ts";
import { scaledEpilogue } from "../../kernels/lib/epilogue.ts";
import { GATES } from "../../kernels/lib/gate.ts";
import { fewTile } from "../../kernels/matmul/tensor/few_tiles.ts";
import { fitsUnits, storesScalesOnUnits } from "../../kernels/matmul/tensor/matmul_on_units.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { halveWeights, weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import { fewRows } from "../../kernels/matmul/tensor/matmul_tensor_few.ts";
import type { TensorMatrices, TensorShard } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { limits, matrixUnit } = device.gpu;
const unit = matrixUnit as MatrixUnit;

const [MATRIX_ROWS, COLS, SPLIT_K] = [300, 1024, 2];
/** One tile of rows and less, two tiles, many: every tile of tensor_tiles.ts is met. */
const ROWS = [1, 3, unit?.m ?? 8, (unit?.m ?? 8) + 1, 3 * (unit?.m ?? 8), 9 * (unit?.m ?? 8)];
const MAX = Math.max(...ROWS);

function noise(stream: number, count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => hash32(7, stream, i) / 2 ** 31 - 1);
}

/**
 * Two shards of one matrix, and what units need of them: one is as it is, the other has become f16. `plain` is
 * the matrix as it was. A gated one has half as many columns of outputs.
 */
async function build(
  { gated }: { gated: boolean },
): Promise<{ matrix: Matrix; plain: Matrix; tensor: TensorMatrices }> {
  const words = [100, 200].map((rows, i) =>
    // bf16 from 2^-4 to 1 of both signs, two a word.
    Uint32Array.from(
      { length: rows * COLS / 2 },
      (_, at) => (hash32(7, i, at) & 0x81ff81ff) + 0x3d803d80,
    )
  );
  const upload = () =>
    words.map((part, i): Shard => ({
      operand: device.words(part),
      first: i * (gated ? 50 : 100),
      rows: 2 * part.length / COLS,
    }));
  const [shards, plain] = [upload(), upload()];
  const tensorShards = new Map<Shard, TensorShard>();
  for (const [i, shard] of shards.entries()) {
    const shape = { rows: shard.rows, cols: COLS };
    const of = { weights: shard.operand, scales: device.filled(shard.rows) };
    const faults = device.filled(shard.rows);
    await device.run([weightScales({ ...of, faults }, shape)]);
    assert.ok((await device.readWords(faults)).every((count) => count === 0));
    if (i === 1) await device.run([halveWeights(of, shape)]);
    tensorShards.set(shard, { scales: of.scales, stored: i === 1 ? "f16" : "loaded" });
  }
  const of = {
    format: "bf16",
    rowOrder: "stacked",
    rows: MATRIX_ROWS,
    cols: COLS,
    lanes: tuning(true).lanes,
  } as const;
  return {
    matrix: { ...of, shards },
    plain: { ...of, shards: plain },
    tensor: {
      unit,
      limits,
      shards: tensorShards,
      experts: new Map(),
      xScales: device.filled(MAX),
    },
  };
}

for (
  const { epilogue, splitK, width } of [
    { epilogue: "store", splitK: 1, width: MATRIX_ROWS },
    { epilogue: "store", splitK: SPLIT_K, width: SPLIT_K * MATRIX_ROWS },
    { epilogue: "add", splitK: 1, width: MATRIX_ROWS },
    { epilogue: "swiglu", splitK: 1, width: MATRIX_ROWS / 2 },
  ] satisfies { epilogue: PlainEpilogue; splitK: number; width: number }[]
) {
  Deno.test({
    name: `a matmul on matrix units, ${epilogue}, ${splitK} ranges of k`,
    ignore: matrixUnit === undefined,
    async fn() {
      const { matrix, plain, tensor } = await build({ gated: epilogue === "swiglu" });
      const values = noise(9, MAX * COLS).map((value) => value / 16);
      const run = async (rows: number, units: boolean) => {
        const [x, out] = [
          device.floats(values.slice(0, rows * COLS)),
          device.filled(rows * width, 3),
        ];
        const rules = { ...tuning(true), ...units ? { tensor } : {} };
        const launch = { rows, epilogue, splitK, tuning: rules, label: "test" };
        const plan = matmul({ matrix: units ? matrix : plain, x, out }, launch);
        const names = plan.map(({ kernel }) => kernel.name);
        assert.equal(names.some((name) => name.startsWith("matmul_tensor")), units);
        await device.run(plan);
        return await device.readFloats(out);
      };
      const whole = await run(MAX, true);
      const other = await run(MAX, false);
      const worst = whole.reduce(
        (most, y, i) => Math.max(most, Math.abs(y - (other[i] ?? NaN))),
        0,
      );
      const largest = Math.max(...other.map(Math.abs));
      assert.ok(worst <= largest * 2 ** -18, `${worst} beside ${largest}`);
      assert.ok(largest > 1);
      for (const rows of ROWS) {
        const found = await run(rows, true);
        for (let range = 0; range < splitK; range++) {
          const part = (all: Float32Array, of: number) => {
            const from = range * of * (width / splitK);
            return all.subarray(from, from + rows * (width / splitK));
          };
          assert.deepEqual(part(found, rows), part(whole, MAX), `${rows} rows`);
        }
      }
    },
  });
}

for (const activation of ["silu", "gelu_tanh"] as const) {
  const { epilogue: name } = GATES[activation];
  Deno.test({
    name: `a matmul on matrix units notes the scales of what it makes, ${name}`,
    ignore: matrixUnit === undefined,
    async fn() {
      const { matrix, tensor } = await build({ gated: true });
      const launch = { splitK: 1, tuning: { ...tuning(true), tensor }, label: "test" };
      const width = MATRIX_ROWS / 2;
      for (const rows of [1, fewRows(unit), fewRows(unit) + 1, unit.m, MAX]) {
        // Rows of several sizes.
        const x = device.floats(
          noise(9, rows * COLS).map((value, i) => value * 2 ** ((i / COLS | 0) % 9 - 5)),
        );
        const xScales = device.filled(rows);
        await device.run([rowScales({ x, scales: xScales }, { rows, cols: COLS })]);
        const [plain, out] = [device.filled(rows * width), device.filled(rows * width)];
        const outScales = device.filled(rows, 2 ** 74);
        const epilogue = scaledEpilogue(activation, outScales);
        assert.ok(storesScalesOnUnits(matrix, { epilogue, tuning: launch.tuning }));
        const plan = matmul({ matrix, x, xScales, out }, { ...launch, rows, epilogue });
        assert.equal(plan.length, matrix.shards.length);
        await device.run(plan);
        await device.run(matmul({ matrix, x, out: plain }, { ...launch, rows, epilogue: name }));
        assert.deepEqual(await device.readWords(out), await device.readWords(plain));
        const made = await device.readFloats(plain);
        const expected = Float32Array.from({ length: rows }, (_, r) => {
          const peak = Math.max(...made.subarray(r * width, (r + 1) * width).map(Math.abs));
          return 2 ** (14 - Math.floor(Math.log2(peak)));
        });
        assert.deepEqual(await device.readFloats(outScales), expected);
      }
    },
  });
}

Deno.test("weights that are f16 for matrix units go to no other kernel", async () => {
  const { matrix, plain, tensor } = await build({ gated: false });
  const few = { ...tensor, limits: { ...limits, maxStorageBuffersPerShaderStage: 4 } };
  const [x, out] = [device.filled(COLS), device.filled(MATRIX_ROWS)];
  const launch = { rows: 1, epilogue: "store", label: "test" } as const;
  const rules = { ...tuning(true), tensor: few };
  assert.throws(() => matmul({ matrix, x, out }, { ...launch, tuning: rules }), /f16/);
  assert.ok(matmul({ matrix: plain, x, out }, { ...launch, tuning: rules }).length > 0);
});

Deno.test("tiles of few rows suit the matrix, and stages fill its range", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const tileOf = (
    rows: number,
    columns: number,
    cols: number,
    splitK = 1,
    format: "bf16" | "q8" = "bf16",
  ) =>
    fewTile(unit, { maxComputeWorkgroupStorageSize: 49152 }, {
      format,
      rows,
      columns,
      range: cols / splitK,
      splitK,
    });
  const wide = { columns: 2, stage: 64, ahead: 2, branched: false };
  const narrow = { columns: 1, stage: 128, ahead: 2, branched: false };
  // Subgroups share x.
  assert.deepEqual(tileOf(2, 128256, 4096), { ...wide, subgroups: 2 });
  assert.deepEqual(tileOf(2, 28672, 4096), { ...wide, subgroups: 2, columns: 1 });
  assert.deepEqual(tileOf(8, 4096, 14336, 4), { ...narrow, subgroups: 4 });
  assert.deepEqual(tileOf(8, 4096, 4096, 4), { ...narrow, subgroups: 4 });
  assert.deepEqual(tileOf(3, 6144, 4096), { ...narrow, subgroups: 3, stage: 256 });
  assert.deepEqual(tileOf(3, 7168, 4096), narrow, "more than there are multiprocessors");
  assert.deepEqual(tileOf(4, 4096, 1024), narrow);
  // Turns of the loop that are cut short.
  assert.deepEqual(tileOf(4, 4096, 1152), { ...narrow, branched: true });
  assert.deepEqual(tileOf(3, 64, 4192), { columns: 1, stage: 32, ahead: 1, branched: true });
  assert.deepEqual(tileOf(8, 28672, 4096, 1, "q8"), wide);
  // As many rows as the unit has columns.
  assert.deepEqual(tileOf(9, 28672, 4096), { ...wide, subgroups: 4 });
  assert.equal(tileOf(16, 4096, 14336, 4), undefined, "long ranges");
  assert.equal(tileOf(9, 4096, 1024), undefined);
  assert.equal(tileOf(9, 28672, 4096, 1, "q8"), undefined);
  assert.equal(tileOf(17, 28672, 4096), undefined);
});

Deno.test("matrices that matrix units do not take: other formats, narrow ranges of k", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const of = { unit, limits, splitK: 1 };
  const bf16 = { format: "bf16", rows: 64, cols: 128 } as const;
  assert.ok(fitsUnits(bf16, of));
  assert.ok(fitsUnits({ ...bf16, format: "q8" }, of));
  assert.ok(fitsUnits({ ...bf16, format: "u4", cols: 96 }, of));
  assert.ok(!fitsUnits({ ...bf16, format: "q4", cols: 192 }, { ...of, splitK: 4 }));
  assert.ok(!fitsUnits({ ...bf16, format: "f32" }, of));
  assert.ok(!fitsUnits({ ...bf16, cols: 72 }, of));
  assert.ok(!fitsUnits(bf16, { ...of, splitK: 8 }));
});
