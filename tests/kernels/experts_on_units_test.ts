// Experts of a plan on matrix units: the other kernels' outputs but for rounding, and the same bits of a row
// at every number of rows. EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import {
  canChoose,
  expertMatmul,
  expertTile,
  expertTiles,
  tileWords,
} from "../../kernels/experts/experts.ts";
import { expertsTakeF16, fitsExpertUnits } from "../../kernels/experts/experts_on_units.ts";
import { unitLaunch, unitTile } from "../../kernels/experts/expert_unit_tiles.ts";
import { tileWeights } from "../../kernels/experts/tile_weights.ts";
import { route, type Routing } from "../../kernels/experts/route.ts";
import { scaledEpilogue } from "../../kernels/lib/epilogue.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { TensorMatrices, TensorShard } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers, shuffled } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { routed } from "./routing.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { limits, matrixUnit } = device.gpu;
const unit = matrixUnit as MatrixUnit;

const [EXPERTS, TOP_K, N, K] = [5, 2, 40, 96];
/** Every tile of expert_unit_tiles.ts is met; some experts have many jobs, others few. */
const ROWS = [1, 3, 12, 20, 40, 90];
const MAX = Math.max(...ROWS);

/** A row's experts do not depend on the other rows; the first expert is popular, and no row has the last. */
function choice(r: number): number[] {
  return r % 3 === 0 ? [0, 1 + r % 3] : shuffled(EXPERTS - 1, r % 7).slice(0, TOP_K);
}

const VALUES = weights("bf16", EXPERTS * N, K);
const upload = (values = VALUES, shards = [2 * N, 3 * N]) =>
  uploadMatrix(device, values, { format: "bf16", cols: K, shards });

const CASES = [["swiglu", "f32"], ["store", "f32"], ["store", "f16"]] as const;

/** Shards, scaled; default two. */
async function onUnits(
  ...of: Parameters<typeof upload>
): Promise<{ matrix: Matrix; tensor: TensorMatrices }> {
  const matrix = upload(...of);
  const experts = new Map<Shard, TensorShard>();
  const shards: Shard[] = [];
  for (const shard of matrix.shards) {
    const tiles = device.filled(shard.rows * K / 2);
    const tiled = { ...shard, operand: tiles };
    const of = { scales: device.filled(shard.rows), faults: device.filled(shard.rows) };
    const shape = { rows: shard.rows, cols: K };
    await device.run([
      weightScales({ weights: shard.operand, ...of }, shape),
      tileWeights({ weights: shard.operand, scales: of.scales, tiles }, { ...shape, unit }),
    ]);
    shards.push(tiled);
    experts.set(tiled, { scales: of.scales, stored: "f16_tiles" });
  }
  const xScales = device.filled(MAX * (TOP_K + 1));
  return {
    matrix: { ...matrix, shards },
    tensor: { unit, limits, shards: new Map(), experts, xScales },
  };
}

/** How far outputs are from the other kernels', beside the largest. */
const BOUNDS = { f32: 2 ** -18, f16: 2 ** -10 };

for (const [epilogue, precision] of CASES) {
  Deno.test({
    name: `experts of a plan on matrix units, ${epilogue}, x ${precision}`,
    ignore: matrixUnit === undefined,
    async fn() {
      const perJob = epilogue === "store";
      const outputs = TOP_K * (perJob ? N : N / 2);
      const xRow = K * (perJob ? TOP_K : 1);
      const x = numbers(MAX * xRow, 3);
      const { matrix, tensor } = await onUnits();
      const run = async (rows: number, units: boolean) => {
        const rules = { ...tuning(true), ...units ? { tensor: { ...tensor, precision } } : {} };
        const of = units ? matrix : upload();
        const all = { rows, topK: TOP_K, numExperts: EXPERTS };
        const jobs = { ...all, tile: expertTile(all, of, rules), tuning: rules };
        const lists = {
          experts: device.words(Array.from({ length: rows }, (_, r) => choice(r)).flat()),
          tiles: device.filled(tileWords(jobs, rules, unit)),
        };
        const out = device.filled(rows * outputs, 3);
        const input = device.floats(x.slice(0, rows * xRow));
        const plan = [
          ...expertTiles(lists, { ...jobs, matrix: of, label: "tiles" }),
          ...expertMatmul({ matrix: of, x: input, out, ...lists }, {
            ...jobs,
            epilogue,
            perJob,
            label: "test",
          }),
        ];
        assert.equal(plan.some(({ kernel }) => kernel.name.startsWith("expert_tensor")), units);
        await device.run(plan);
        return await device.readFloats(out);
      };
      const whole = await run(MAX, true);
      const other = await run(MAX, false);
      const worst = Math.max(...whole.map((y, i) => Math.abs(y - (other[i] ?? NaN))));
      const largest = Math.max(...other.map(Math.abs));
      assert.ok(worst <= largest * BOUNDS[precision], `${worst} beside ${largest}`);
      assert.equal(worst > largest * BOUNDS.f32, precision === "f16");
      for (const rows of ROWS) {
        const found = await run(rows, true);
        assert.deepEqual(found, whole.slice(0, rows * outputs), `${rows} rows`);
      }
    },
  });
}

Deno.test({
  name: "experts on matrix units reduce the scales of what they gate",
  ignore: matrixUnit === undefined,
  async fn() {
    const { matrix, tensor } = await onUnits();
    for (const rows of [1, 3, 40]) {
      const jobs = { rows, topK: TOP_K, numExperts: EXPERTS };
      const all = { ...jobs, tile: unitTile(jobs, unit) };
      const rules = { ...tuning(true), tensor };
      const lists = {
        experts: device.words(Array.from({ length: rows }, (_, r) => choice(r)).flat()),
        tiles: device.filled(tileWords(jobs, rules, unit)),
      };
      const count = rows * TOP_K;
      // Rows of several sizes.
      const x = device.floats(
        numbers(rows * K, 3).map((value, i) => value * 10 ** ((i / K | 0) % 5)),
      );
      const of = {
        ...all,
        tuning: rules,
        epilogue: "swiglu",
        perJob: false,
        label: "test",
      } as const;
      const [out, plain, scales] = [0, 1, 2].map((i) =>
        device.filled(i === 2 ? count : count * N / 2, 2 ** 74)
      ) as [Operand, Operand, Operand];
      const scaled = scaledEpilogue("silu", scales);
      await device.run([
        ...expertTiles(lists, { ...of, matrix }),
        ...expertMatmul({ matrix, x, out, ...lists }, { ...of, epilogue: scaled }),
        ...expertMatmul({ matrix, x, out: plain, ...lists }, of),
      ]);
      assert.deepEqual(await device.readWords(out), await device.readWords(plain));
      const found = device.filled(count);
      await device.run([rowScales({ x: out, scales: found }, { rows: count, cols: N / 2 })]);
      assert.deepEqual(await device.readWords(scales), await device.readWords(found));
    }
  },
});

/** Rows of the last `shared` experts as those of one MLP: [gate; up], or down's by output. */
function asOneMlp(values: Float32Array, gated: boolean, shared: number): Float32Array {
  const first = EXPERTS - shared;
  const places = gated
    ? [0, N / 2].flatMap((begin) =>
      Array.from({ length: shared * N / 2 }, (_, i) => [i / (N / 2) | 0, begin + i % (N / 2)])
    )
    : Array.from({ length: shared * N }, (_, i) => [i % shared, i / shared | 0]);
  const rows = places.flatMap(([e = 0, c = 0]) => {
    const at = (first + e) * N + c;
    return [...values.subarray(at * K, (at + 1) * K)];
  });
  return Float32Array.from([...values.subarray(0, first * N * K), ...rows]);
}

Deno.test({
  name: "experts on matrix units: those that every row has are parts of one MLP",
  ignore: matrixUnit === undefined,
  async fn() {
    const shared = 2;
    const [topK, routed] = [1 + shared, EXPERTS - shared];
    for (const epilogue of ["swiglu", "store"] as const) {
      const perJob = epilogue === "store";
      const apart = await onUnits();
      const one = await onUnits(asOneMlp(VALUES, !perJob, shared), [EXPERTS * N]);
      for (const rows of [1, 7]) {
        const experts = Array.from(
          { length: rows },
          (_, r) => [r % routed, routed, routed + 1],
        ).flat();
        const x = device.floats(numbers(rows * (perJob ? topK : 1) * K, 3));
        const jobs = { rows, topK, numExperts: EXPERTS };
        const run = async ({ matrix, tensor }: typeof apart, shared: number) => {
          const rules = { ...tuning(true), tensor };
          const tile = unitTile(jobs, unit);
          const of = { ...jobs, tile, tuning: rules, epilogue, perJob, shared, label: "test" };
          const lists = {
            experts: device.words(experts),
            tiles: device.filled(tileWords(jobs, rules, unit)),
          };
          const out = device.filled(rows * topK * (perJob ? N : N / 2));
          await device.run([
            ...expertTiles(lists, { ...of, matrix }),
            ...expertMatmul({ matrix, x, out, ...lists }, of),
          ]);
          return await device.readWords(out);
        };
        assert.deepEqual(await run(one, shared), await run(apart, 0), `${epilogue}, ${rows} rows`);
      }
    }
  },
});

Deno.test({
  name: "experts on matrix units: one row's are chosen by those who multiply",
  ignore: matrixUnit === undefined,
  async fn() {
    const limits = {
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupStorageSize: 32768,
      maxStorageBuffersPerShaderStage: 16,
    };
    // More experts than a subgroup has lanes, and some that every row has.
    for (const [numExperts, shared, shards] of [[21, 0, [8, 13]], [3, 2, [5]]] as const) {
      const all = numExperts + shared;
      const values = weights("bf16", all * N, K);
      const { matrix, tensor } = await onUnits(values, shards.map((count) => count * N));
      const rules = { ...tuning(false, limits), tensor };
      const routing: Routing = {
        scores: "softmax" as const,
        numExperts,
        topK: 3,
        normalize: true,
        scale: 1.5,
        groups: 1,
        topGroups: 1,
        groupBest: 1 as const,
      };
      const topK = routing.topK + shared;
      const x = device.floats(numbers(K, 3));
      const of = {
        rows: 1,
        topK,
        numExperts: all,
        shared,
        tile: 1,
        tuning: rules,
        epilogue: "swiglu" as const,
        perJob: false,
        label: "test",
      };
      assert.ok(canChoose(matrix, routing, { ...of, biased: false }));
      assert.ok(
        !canChoose(matrix, routing, {
          ...of,
          biased: false,
          tuning: { ...rules, storageBuffers: 9 },
        }),
        "too few storage buffers",
      );
      // Of equals the lower number is better, zeros are equal whatever their sign.
      for (const given of [[0.5, -1, 0.5, 2, 0.5], [-0, 0, -3, -0, -1], [-1, 4, 7, -2, 9, 5]]) {
        const row = Array.from({ length: numExperts }, (_, e) => given[e % given.length]!);
        const logits = device.floats(Float32Array.from(row));
        const made = () => ({
          experts: device.filled(topK),
          weights: device.filled(topK),
          out: device.filled(topK * N / 2, 3),
        });
        const [own, apart] = [made(), made()];
        const io = { matrix, x, tiles: logits };
        const stride = numExperts;
        await device.run([
          ...expertMatmul(
            { ...io, ...own, choice: { routing, logits, stride, weights: own.weights } },
            of,
          ),
          route({ logits, bias: undefined, ...apart }, {
            ...routing,
            rows: 1,
            shared,
            stride,
            tuning: rules,
            label: "test",
          }),
          ...expertMatmul({ ...io, ...apart }, of),
        ]);
        const wanted = routed(row, [], { ...routing, shared }).experts;
        assert.deepEqual([...await device.readWords(own.experts)], wanted);
        for (const what of ["weights", "out"] as const) {
          const [found, other] = [own[what], apart[what]];
          assert.deepEqual(await device.readWords(found), await device.readWords(other), what);
        }
      }
    }
  },
});

Deno.test("tiles of experts: one job alone, half a unit's rows, or the unit's rows up to four times", () => {
  const of = { topK: 8, numExperts: 128 };
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const tiles = [1, 2, 64, 128, 256, 512, 4096].map((rows) => unitTile({ ...of, rows }, unit));
  assert.deepEqual(tiles, [1, 8, 8, 16, 32, 32, 64]);
});

Deno.test("workgroups of a job alone: more subgroups where k is short, more columns where jobs are many", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const limits = { maxComputeWorkgroupStorageSize: 49152, maxComputeInvocationsPerWorkgroup: 1024 };
  const launch = (cols: number, outputs: number) => {
    const { grid, own, stage } = unitLaunch(unit, limits, { tile: 1, cols, outputs })!;
    return [grid[1], own[1], stage];
  };
  assert.deepEqual(launch(2048, 8 * 1536), [1, 1, 64]);
  assert.deepEqual(launch(2048, 8 * 2816), [1, 2, 64]);
  assert.deepEqual(launch(768, 8 * 2048), [4, 1, 128]);
  assert.deepEqual(launch(1376, 8 * 2048), [1, 1, 32]);
});

Deno.test("experts that matrix units do not take: other formats, odd rows, narrow ranges of k", () => {
  const unit = { m: 16, n: 16, k: 16, lanes: 32 };
  const of = { unit, limits, numExperts: 4 };
  const bf16 = { format: "bf16", rows: 64, cols: 96 } as const;
  assert.ok(fitsExpertUnits(bf16, of));
  assert.ok(fitsExpertUnits({ ...bf16, format: "q8" }, of));
  assert.ok(!fitsExpertUnits({ ...bf16, format: "f32" }, of));
  assert.ok(!fitsExpertUnits({ ...bf16, rows: 60 }, of));
  assert.ok(!fitsExpertUnits({ ...bf16, rows: 48 }, of));
  assert.ok(!fitsExpertUnits({ ...bf16, cols: 40 }, of));
});

Deno.test("x of experts is rounded before them: one f16 for a number, more rows than rounds have", () => {
  const shard = { operand: device.filled(4), first: 0, rows: 2 };
  const scaled = new Map([[shard, { scales: device.filled(2), stored: "f16_tiles" as const }]]);
  const of = (rows: number, { precision, format = "bf16", experts = scaled }: {
    precision?: TensorMatrices["precision"];
    format?: "bf16" | "q8";
    experts?: TensorMatrices["experts"];
  }) => {
    const unit = { m: 16, n: 16, k: 16, lanes: 32 };
    const tensor = {
      unit,
      precision,
      experts,
      limits,
      shards: new Map(),
      xScales: device.filled(1),
    };
    return expertsTakeF16({ format, shards: [shard] }, { rows, tensor });
  };
  assert.deepEqual([1, 64, 65, 512].map((rows) => of(rows, { precision: "f16" })), [
    ...[false, false, true, true],
  ]);
  assert.equal(of(512, { precision: "f32" }), false);
  assert.equal(of(512, { precision: "f32", format: "q8" }), true); // weights are rounded to f16 themselves
  assert.equal(of(512, { precision: "f16", experts: new Map() }), false);
  const tensor = undefined;
  assert.equal(expertsTakeF16({ format: "bf16", shards: [shard] }, { rows: 512, tensor }), false);
});
