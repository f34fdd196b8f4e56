import assert from "node:assert/strict";
import { qkvEpilogue } from "../../kernels/matmul/qkv.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import type { TensorMatrices, TensorShard } from "../../src/gpu/matrices_on_units.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadPair } from "./matrices.ts";
import { assertPlaced, PLACED_ROWS, type PlacedShape, placing } from "./placed.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const COLS = 64;
const SHAPES: readonly (PlacedShape & {
  readonly shards: readonly number[];
  readonly biased?: boolean;
})[] = [
  { heads: 4, kvHeads: 2, headDim: 16, kvDtype: "f32", shards: [64] },
  { heads: 3, kvHeads: 3, headDim: 40, kvDtype: "f16", shards: [180] },
  // Cut inside a head, and where k begins.
  { heads: 2, kvHeads: 1, headDim: 64, kvDtype: "bf16", shards: [20, 44, 64] },
  { heads: 4, kvHeads: 2, headDim: 16, kvDtype: "f32", shards: [20, 44], biased: true },
];

for (const software of [true, false]) {
  for (const shape of SHAPES) {
    const { heads, kvHeads, headDim, kvDtype, shards, biased = false } = shape;
    const title =
      `${heads} heads over ${kvHeads} of ${headDim}, ${kvDtype}, ${shards.length} shards`;
    Deno.test(`qkv epilogue: ${title}${biased ? ", biased" : ""}, ${software ? "software" : "hardware"}`, async () => {
      const places = placing(device, shape);
      const count = PLACED_ROWS.length;
      const all = heads + 2 * kvHeads;
      // First halves of all heads, then second halves.
      const weights = numbers(all * headDim * COLS, headDim);
      const bias = numbers(all * headDim, 7);
      const matrix = uploadPair(device, weights, { format: "f32", cols: COLS, shards });
      const x = numbers(count * COLS, 5);
      await device.run(matmul({ matrix, x: device.floats(x), out: places.q }, {
        rows: count,
        epilogue: qkvEpilogue(
          { ...places.place, bias: biased ? device.floats(bias) : undefined },
          places.shape,
        ),
        tuning: tuning(software),
        label: "test",
      }));
      await assertPlaced(device, places, (row, head) =>
        Array.from({ length: headDim }, (_, d) => {
          const half = headDim / 2;
          const n = Math.floor(d / half) * all * half + head * half + d % half;
          const first = biased ? bias[head * headDim + d] ?? NaN : 0;
          return Array.from({ length: COLS }, (_, k) => k).reduce((sum, k) => {
            return sum + (x[row * COLS + k] ?? NaN) * (weights[n * COLS + k] ?? NaN);
          }, first);
        }));
    });
  }
}

const unit = device.gpu.matrixUnit;
/** A row of q is 256 bytes, so that any can be the first of a binding. */
const ON_UNITS = { heads: 4, kvHeads: 2, headDim: 16, kvDtype: "f32" } as const;

Deno.test("qkv epilogue on matrix units: no two functions of a kernel have one name", () => {
  const LARGE = { buffer: { size: 2 ** 30 } as GPUBuffer };
  const kernels = new Map<string, string>();
  for (const kvDtype of ["f32", "f16", "bf16"] as const) {
    const { heads, kvHeads, headDim } = ON_UNITS;
    const places = placing(device, { heads, kvHeads, headDim, kvDtype });
    const shard = { operand: LARGE, first: 0, rows: (heads + 2 * kvHeads) * headDim };
    const matrix = {
      format: "bf16",
      rowOrder: "rope_halves",
      rows: shard.rows,
      cols: COLS,
      lanes: 16,
      shards: [shard],
    } as const;
    const tensor: TensorMatrices = {
      unit: { m: 16, n: 16, k: 16, lanes: 32 },
      limits: device.gpu.limits,
      shards: new Map([[shard, { scales: LARGE, stored: "loaded" }]]),
      experts: new Map(),
      xScales: LARGE,
    };
    for (const rows of [1, 3, 16, 64, 512]) {
      const plan = matmul({ matrix, x: LARGE, out: LARGE }, {
        rows,
        epilogue: qkvEpilogue({ ...places.place, rows: LARGE }, places.shape),
        tuning: { ...tuning(false), tensor },
        label: "test",
      });
      for (const { kernel } of plan) kernels.set(kernel.name, kernel.code);
    }
  }
  const onUnits = [...kernels.keys()].filter((name) => name.startsWith("matmul_tensor"));
  assert.ok(onUnits.length >= 3, [...kernels.keys()].join());
  for (const [name, code] of kernels) {
    const functions = [...code.matchAll(/^fn (\w+)/gm)].map(([, own]) => own);
    assert.deepEqual(functions, [...new Set(functions)], name);
  }
});

for (const together of [1, 3, PLACED_ROWS.length]) {
  Deno.test({
    name: `qkv epilogue on matrix units, ${together} rows at a time`,
    ignore: unit === undefined,
    async fn() {
      if (!unit) return;
      const places = placing(device, ON_UNITS);
      const { heads, kvHeads, headDim } = ON_UNITS;
      const all = heads + 2 * kvHeads;
      const weights = numbers(all * headDim * COLS, headDim);
      new Uint32Array(weights.buffer).forEach((word, i, bits) => bits[i] = word & 0xffff0000);
      const matrix = uploadPair(device, weights, { format: "bf16", cols: COLS, shards: [20, 44] });
      const shards = new Map<typeof matrix.shards[number], TensorShard>();
      for (const shard of matrix.shards) {
        const [scales, faults] = [device.filled(shard.rows), device.filled(shard.rows)];
        await device.run([
          weightScales({ weights: shard.operand, scales, faults }, {
            rows: shard.rows,
            cols: COLS,
          }),
        ]);
        shards.set(shard, { scales, stored: "loaded" });
      }
      const { limits } = device.gpu;
      const xScales = device.filled(together);
      const tensor: TensorMatrices = { unit, limits, shards, experts: new Map(), xScales };
      const x = numbers(PLACED_ROWS.length * COLS, 5);
      for (let first = 0; first < PLACED_ROWS.length; first += together) {
        const rows = device.words(packRows(PLACED_ROWS.slice(first, first + together)));
        const input = device.floats(x.slice(first * COLS, (first + together) * COLS));
        const out = { ...places.q, offset: 4 * first * heads * headDim };
        const plan = matmul({ matrix, x: input, out }, {
          rows: together,
          epilogue: qkvEpilogue({ ...places.place, rows }, places.shape),
          tuning: { ...tuning(true), tensor },
          label: "test",
        });
        assert.ok(plan.some(({ kernel }) => kernel.name.startsWith("matmul_tensor")));
        await device.run(plan);
      }
      await assertPlaced(device, places, (row, head) =>
        Array.from({ length: headDim }, (_, d) => {
          const half = headDim / 2;
          const n = Math.floor(d / half) * all * half + head * half + d % half;
          return Array.from({ length: COLS }, (_, k) => k).reduce((sum, k) => {
            return sum + (x[row * COLS + k] ?? NaN) * (weights[n * COLS + k] ?? NaN);
          }, 0);
        }));
    },
  });
}
