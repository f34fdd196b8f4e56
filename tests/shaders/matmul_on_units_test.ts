// A matmul of a plan on matrix units: the other kernels' outputs but for rounding, with each epilogue and
// over ranges of k, and the same bits at every number of rows. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { matmul, type PlainEpilogue } from "../../shaders/matmul/matmul.ts";
import { notedEpilogue } from "../../shaders/fragments/epilogue.ts";
import { fitsUnits, notesOnUnits } from "../../shaders/tensor/matmul_on_units.ts";
import { rowScales, weightScales } from "../../shaders/tensor/matmul_tensor.ts";
import { fewRows } from "../../shaders/tensor/matmul_tensor_few.ts";
import { type Matrix, type TensorMatrices, tuning } from "../../src/gpu/matrix.ts";
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
const MOST = Math.max(...ROWS);

function noise(stream: number, count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => hash32(7, stream, i) / 2 ** 31 - 1);
}

/** Two shards of one matrix, and its scales; of a gated one half as many columns of outputs. */
async function build(
  { gated }: { gated: boolean },
): Promise<{ matrix: Matrix; tensor: TensorMatrices }> {
  const scales: TensorMatrices["scales"] extends ReadonlyMap<infer K, infer V> ? Map<K, V> : never =
    new Map();
  const shards = [100, 200].map((rows, i) => {
    const words = Uint32Array.from(
      { length: rows * COLS / 2 },
      // bf16 from 2^-4 to 1 of both signs, two a word.
      (_, at) => (hash32(7, i, at) & 0x81ff81ff) + 0x3d803d80,
    );
    return { operand: device.words(words), first: i * (gated ? 50 : 100), rows };
  });
  for (const shard of shards) {
    const of = { scales: device.filled(shard.rows), faults: device.filled(shard.rows) };
    await device.run([
      weightScales({ weights: shard.operand, ...of }, { rows: shard.rows, cols: COLS }),
    ]);
    assert.ok((await device.readWords(of.faults)).every((count) => count === 0));
    scales.set(shard, of.scales);
  }
  const lanes = tuning(true).lanes;
  return {
    matrix: { format: "bf16", rows: MATRIX_ROWS, cols: COLS, lanes, shards },
    tensor: { unit, limits, scales, xScales: device.filled(MOST) },
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
      const { matrix, tensor } = await build({ gated: epilogue === "swiglu" });
      const values = noise(9, MOST * COLS).map((value) => value / 16);
      const run = async (rows: number, units: boolean) => {
        const [x, out] = [
          device.floats(values.slice(0, rows * COLS)),
          device.filled(rows * width, 3),
        ];
        const rules = { ...tuning(true), ...units ? { tensor } : {} };
        const launch = { rows, epilogue, splitK, tuning: rules, label: "test" };
        const plan = matmul({ matrix, x, out }, launch);
        const names = plan.map(({ kernel }) => kernel.name);
        assert.equal(names.some((name) => name.startsWith("matmul_tensor")), units);
        await device.run(plan);
        return await device.readFloats(out);
      };
      const whole = await run(MOST, true);
      const other = await run(MOST, false);
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
          assert.deepEqual(part(found, rows), part(whole, MOST), `${rows} rows`);
        }
      }
    },
  });
}

for (const name of ["swiglu", "geglu"] as const) {
  Deno.test({
    name: `a matmul on matrix units notes the scales of what it makes, ${name}`,
    ignore: matrixUnit === undefined,
    async fn() {
      const { matrix, tensor } = await build({ gated: true });
      const launch = { splitK: 1, tuning: { ...tuning(true), tensor }, label: "test" };
      const width = MATRIX_ROWS / 2;
      for (const rows of [1, unit.m, fewRows(unit)]) {
        const x = device.floats(noise(9, rows * COLS).map((value) => value * 2 ** (rows - 9)));
        const xScales = device.filled(rows);
        await device.run([rowScales({ x, scales: xScales }, { rows, cols: COLS })]);
        const [plain, out] = [device.filled(rows * width), device.filled(rows * width)];
        const noted = device.filled(rows, 2 ** 74);
        const epilogue = notedEpilogue(name, noted);
        assert.ok(notesOnUnits(matrix, { rows, epilogue, tuning: launch.tuning }));
        const plan = matmul({ matrix, x, xScales, out }, { ...launch, rows, epilogue });
        assert.equal(plan.length, matrix.shards.length);
        await device.run(plan);
        await device.run(matmul({ matrix, x, out: plain }, { ...launch, rows, epilogue: name }));
        assert.deepEqual(await device.readWords(out), await device.readWords(plain));
        const expected = device.filled(rows);
        await device.run([rowScales({ x: plain, scales: expected }, { rows, cols: width })]);
        assert.deepEqual(await device.readFloats(noted), await device.readFloats(expected));
      }
      const epilogue = notedEpilogue(name, device.filled(1));
      const use = { rows: fewRows(unit) + 1, epilogue, tuning: launch.tuning };
      assert.ok(!notesOnUnits(matrix, use));
    },
  });
}

Deno.test("matrices that matrix units do not take: other formats, narrow ranges of k", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const of = { unit, limits, splitK: 1 };
  const bf16 = { format: "bf16", rows: 64, cols: 128 } as const;
  assert.ok(fitsUnits(bf16, of));
  assert.ok(!fitsUnits({ ...bf16, format: "q8" }, of));
  assert.ok(!fitsUnits({ ...bf16, format: "f32" }, of));
  assert.ok(!fitsUnits({ ...bf16, cols: 72 }, of));
  assert.ok(!fitsUnits(bf16, { ...of, splitK: 8 }));
});
