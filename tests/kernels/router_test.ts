// From the residual stream to the chosen experts.

import assert from "node:assert/strict";
import { biasEpilogue } from "../../kernels/lib/epilogue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { rmsNorm, type RowScales } from "../../kernels/norm/rms_norm.ts";
import { route, type Routing } from "../../kernels/experts/route.ts";
import {
  canNormRouted,
  routerLogits,
  routerStoresScales,
} from "../../kernels/experts/router_logits.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { tuning, type TuningLimits } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { routed } from "./routing.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LARGE: TuningLimits = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 32768,
};
const EPS = 1e-5;

interface Case extends Routing {
  readonly format: FloatFormat;
  readonly cols: number;
  readonly splitK: number;
  readonly shared: number;
  /** Whether the logits have a bias. */
  readonly biased?: boolean;
  readonly limits?: TuningLimits;
}

const PLAIN: Case = {
  format: "bf16",
  cols: 384,
  splitK: 2,
  shared: 0,
  scores: "softmax",
  numExperts: 8,
  topK: 2,
  groups: 1,
  topGroups: 1,
  groupBest: 1,
  normalize: true,
  scale: 1,
};

const CASES: Readonly<Record<string, Case>> = {
  "Mixtral": PLAIN,
  "Qwen3-MoE": { ...PLAIN, cols: 2048, splitK: 1, numExperts: 128, topK: 8, limits: LARGE },
  "an odd number of experts": { ...PLAIN, format: "f32", numExperts: 37, topK: 5, splitK: 3 },
  "two experts that every row has": {
    ...PLAIN,
    cols: 1408,
    numExperts: 64,
    topK: 6,
    shared: 2,
    normalize: false,
  },
  "DeepSeek-V2": {
    ...PLAIN,
    format: "f16",
    numExperts: 160,
    topK: 6,
    groups: 8,
    topGroups: 3,
    normalize: false,
    scale: 16,
  },
  "more of a row than is on its way at once": { ...PLAIN, cols: 4352, splitK: 1, limits: LARGE },
  "gpt-oss": {
    ...PLAIN,
    cols: 2880,
    splitK: 1,
    numExperts: 32,
    topK: 4,
    biased: true,
    limits: LARGE,
  },
  "DeepSeek-V3": {
    ...PLAIN,
    scores: "sigmoid",
    numExperts: 256,
    topK: 8,
    groups: 8,
    topGroups: 4,
    groupBest: 2,
    scale: 2.5,
    shared: 1,
  },
};

/** What goes in, the same for each number of rows. */
function inputs(of: Case, rows: number) {
  const { cols, numExperts, splitK, format } = of;
  return {
    x: numbers(rows * cols, 1),
    sums: Array.from({ length: splitK }, (_, s) => numbers(rows * cols, 2 + s)),
    norm: numbers(cols, 7),
    bias: numbers(numExperts, 8),
    // Rows of a matrix are even in number.
    matrix: weights(format, numExperts + numExperts % 2, cols),
  };
}

/** Few rows in one dispatch up to their logits, more in two: both leave the same. */
async function run(
  of: Case,
  { x, sums, norm, bias, matrix }: ReturnType<typeof inputs>,
  noted?: RowScales,
) {
  const { format, cols, topK, shared, splitK } = of;
  const rows = x.length / cols;
  const launch = tuning(false, of.limits);
  const table = uploadMatrix(device, matrix, {
    format,
    cols,
    lanes: launch.lanes,
    shards: [matrix.length / cols],
  });
  const few = canNormRouted(table, rows, launch);
  assert.equal(few, rows <= 8);
  const [before, normed] = [device.floats(x), device.filled(rows * cols)];
  const logits = device.filled(rows * table.rows);
  const experts = device.filled(rows * (topK + shared));
  const weights = device.filled(rows * (topK + shared));
  const parts = device.floats(Float32Array.from(sums.flatMap((part) => [...part])));
  const weight = device.floats(norm);
  const place = { rows, eps: EPS, label: "test" };
  const stream = few ? device.filled(rows * cols) : before;
  const ofLogits = of.biased ? device.floats(bias) : undefined;
  const toLogits = few
    ? [routerLogits(
      {
        matrix: table,
        x: before,
        added: { sums: parts, splitK, stream },
        norm: weight,
        bias: ofLogits,
        normed,
        logits,
        scales: noted,
      },
      { ...place, tuning: launch },
    )]
    : [
      ...rmsNorm(
        { from: { x: before, sums: parts, splitK }, weight, out: normed, scales: noted },
        { ...place, cols, lanes: launch.rowLanes },
      ),
      ...matmul(
        { matrix: table, x: normed, out: logits },
        { ...place, epilogue: ofLogits ? biasEpilogue(ofLogits) : "store", tuning: launch },
      ),
    ];
  const ofScores = of.scores === "sigmoid" ? device.floats(bias) : undefined;
  await device.run([
    ...toLogits,
    route({ logits, bias: ofScores, experts, weights }, {
      ...of,
      rows,
      stride: table.rows,
      tuning: launch,
      label: "test",
    }),
  ]);
  return {
    x: await device.readFloats(stream),
    normed: await device.readFloats(normed),
    experts: await device.readWords(experts),
    weights: await device.readFloats(weights),
  };
}

/** In f64; the logits of the normed rows that the kernel made, for its choice hangs on their last bits. */
function reference(of: Case, { x, sums, norm, bias, matrix }: ReturnType<typeof inputs>) {
  const { cols, numExperts } = of;
  const stream = [...x].map((value, i) =>
    value + sums.reduce((sum, part) => sum + (part[i] ?? NaN), 0)
  );
  const rows = Array.from({ length: x.length / cols }, (_, r) => {
    const row = stream.slice(r * cols, (r + 1) * cols);
    const scale = 1 / Math.sqrt(row.reduce((sum, v) => sum + v * v, 0) / cols + EPS);
    const normed = row.map((v, c) => v * scale * (norm[c] ?? NaN));
    const logits = Array.from(
      { length: numExperts },
      (_, e) =>
        normed.reduce(
          (sum, v, c) => sum + v * (matrix[e * cols + c] ?? NaN),
          of.biased ? bias[e] ?? NaN : 0,
        ),
    );
    return { normed, ...routed(logits, [...bias], of) };
  });
  return {
    x: stream,
    normed: rows.flatMap(({ normed }) => normed),
    experts: rows.flatMap(({ experts }) => experts),
    weights: rows.flatMap(({ weights }) => weights),
  };
}

for (const [name, of] of Object.entries(CASES)) {
  Deno.test(`router: ${name}`, async () => {
    const given = inputs(of, 5);
    const found = await run(of, given);
    const wanted = reference(of, given);
    assertClose(found.x, wanted.x, 1e-6, "x");
    assertClose(found.normed, wanted.normed, 1e-5, "normed");
    assert.deepEqual([...found.experts], wanted.experts);
    assertClose(found.weights, wanted.weights, 1e-4, "weights");
  });

  for (const count of EXHAUSTIVE ? [3, 11] : [11]) {
    Deno.test(`router: ${name}, a row's bits are its own, ${count} rows`, async () => {
      const given = inputs(of, count);
      const together = await run(of, given);
      const { cols, topK, shared } = of;
      for (let r = 0; r < 3; r++) {
        const own = (values: Float32Array) => values.subarray(r * cols, (r + 1) * cols);
        const alone = await run(of, { ...given, x: own(given.x), sums: given.sums.map(own) });
        const chosen = topK + shared;
        const found = {
          x: together.x.slice(r * cols, (r + 1) * cols),
          normed: together.normed.slice(r * cols, (r + 1) * cols),
          experts: together.experts.slice(r * chosen, (r + 1) * chosen),
          weights: together.weights.slice(r * chosen, (r + 1) * chosen),
        };
        assert.deepEqual(found, alone, `row ${r}`);
      }
    });
  }
}

Deno.test({
  name: "router: notes the scales of what it norms, and raises the others",
  ignore: !routerStoresScales({
    storageBuffers: device.gpu.limits.maxStorageBuffersPerShaderStage,
  }, true),
  async fn() {
    for (const [one, rows] of [[PLAIN, 5], [PLAIN, 10], [CASES["DeepSeek-V3"]!, 5]] as const) {
      const [stride, jobs] = [64, 3];
      const given = inputs(one, rows);
      // Rows of all sizes, one of zeros.
      const sized = (_: number, i: number) => [1, 1e-9, 0, 1e9, 1][(i / one.cols | 0) % 5]!;
      const weighed = (x: Float32Array) => x.map((value, i) => value * sized(value, i));
      const rated = { ...given, x: weighed(given.x), sums: given.sums.map(weighed) };
      const noted = {
        normed: device.filled(rows),
        stride,
        jobs,
        reduced: device.filled(stride + rows * jobs, 3),
      };
      const found = await run(one, rated, noted);
      assert.deepEqual(found, await run(one, rated));
      const scales = device.filled(rows);
      const x = device.floats(found.normed);
      await device.run([rowScales({ x, scales }, { rows, cols: one.cols })]);
      assert.deepEqual(await device.readWords(noted.normed), await device.readWords(scales));
      const raised = Array.from(
        { length: stride + rows * jobs },
        (_, i) => i < rows || i >= stride ? 2 ** 74 : 3,
      );
      assert.deepEqual([...await device.readFloats(noted.reduced)], raised);
    }
  },
});

for (const rows of [1, 5]) {
  Deno.test(`router: experts with a norm of their own, ${rows} rows: the bits of two norms and a matmul`, async () => {
    for (const noted of [false, true]) {
      const of = CASES["Qwen3-MoE"]!;
      const { x, norm, matrix } = inputs(of, rows);
      const { format, cols } = of;
      const launch = tuning(false, of.limits);
      const shards = [matrix.length / cols];
      const table = uploadMatrix(device, matrix, { format, cols, lanes: launch.lanes, shards });
      const own = device.floats(numbers(cols, 11));
      const from = { x: device.floats(x) };
      const weight = device.floats(norm);
      const place = { rows, eps: EPS, label: "test" };
      const wide = { ...place, cols, lanes: launch.rowLanes };
      const made = () => ({
        normed: device.filled(rows * cols),
        logits: device.filled(rows * table.rows),
        scales: { normed: device.filled(rows), stride: 64, jobs: 1, reduced: device.filled(128) },
      });
      const [found, expected, routed] = [made(), made(), device.filled(rows * cols)];
      const scales = (of: typeof found) => noted ? of.scales : undefined;
      await device.run([
        routerLogits(
          {
            matrix: table,
            ...from,
            added: undefined,
            norm: weight,
            expertsNorm: own,
            ...found,
            scales: scales(found),
          },
          { ...place, tuning: launch },
        ),
        ...rmsNorm({ from, weight, out: routed }, wide),
        ...rmsNorm({ from, weight: own, out: expected.normed, scales: scales(expected) }, wide),
        ...matmul({ matrix: table, x: routed, out: expected.logits }, {
          ...place,
          epilogue: "store",
          tuning: launch,
        }),
      ]);
      const read = async ({ normed, logits, scales }: typeof found) => ({
        normed: await device.readWords(normed),
        logits: await device.readWords(logits),
        scales: await device.readWords(scales.normed),
        reduced: await device.readWords(scales.reduced),
      });
      const words = await read(found);
      assert.deepEqual(words, await read(expected));
      assert.equal(words.scales.some((word) => word !== 0), noted);
    }
  });
}

Deno.test("router: software adapters, other backends than Vulkan, cut routers, many rows and little workgroup memory take other kernels", () => {
  const table = (cols: number, shards: number[]) =>
    uploadMatrix(device, weights("bf16", 8, cols), { format: "bf16", cols, lanes: 16, shards });
  const few = (cols: number, shards: number[], rows = 1, of = tuning(false)) =>
    canNormRouted(table(cols, shards), rows, of);
  assert.ok(few(384, [8]));
  assert.ok(!few(384, [8], 1, tuning(true)));
  assert.ok(!few(384, [8], 1, tuning(false, undefined, "metal")));
  assert.ok(!few(384, [8], 1, tuning(false, undefined, "dx12")));
  assert.ok(!few(384, [8], 9));
  assert.ok(!few(384, [4, 4]));
  assert.ok(!few(4096, [8]));
});
