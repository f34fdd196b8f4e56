// Experts of one row, or a few: the kernel that multiplies chooses them, and the last matmul weighs and adds them.

import assert from "node:assert/strict";
import { canChoose, expertMatmul } from "../../kernels/experts/experts.ts";
import { canSum, expertSums } from "../../kernels/experts/expert_sums.ts";
import { rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { route, type Routing } from "../../kernels/experts/route.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning, type TuningLimits } from "../../src/gpu/tuning.ts";
import { type FloatFormat, isInteger, type Quantization } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { assertWithin, type Bounded, boundedDot, gated } from "./bounds.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadPrequantized } from "./prequantized.ts";
import { pack, roundedVec8s, uploadQuantized } from "./quantized.ts";
import { routed } from "./routing.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { subgroup } = device.gpu.info;

const LIMITS: TuningLimits = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 32768,
  maxStorageBuffersPerShaderStage: 16,
};
const HARDWARE = tuning(false, LIMITS);

interface Case {
  readonly format: FloatFormat | Quantization | "mxfp4";
  readonly numExperts: number;
  readonly topK: number;
  /** The last experts, which every row has. */
  readonly shared: number;
  /** Whether the shared experts have a gate: one more logit of each row, after those of the experts. */
  readonly sharedGate?: boolean;
  /** Rows of W per expert. */
  readonly n: number;
  readonly k: number;
  readonly rows: number;
  readonly normalize: boolean;
  /** Whether the outputs of experts have biases. */
  readonly biased?: boolean;
}

/**
 * Columns that give each lane an odd number of blocks: 5, or with all tests the 11 of Qwen's experts, whose kernels are
 * twice as long.
 */
const ODD = EXHAUSTIVE ? 1408 : 640;

const PLAIN: Case = {
  format: "bf16",
  numExperts: 9,
  topK: 2,
  shared: 0,
  n: 36,
  k: 256,
  rows: 1,
  normalize: true,
};

const CASES: Readonly<Record<string, Case>> = {
  "one row": PLAIN,
  "as wide as stages are not": { ...PLAIN, k: 384, n: 22, topK: 3 },
  "many experts, three rows": { ...PLAIN, numExperts: 150, topK: 8, n: 14, k: 128, rows: 3 },
  "experts that every row has": { ...PLAIN, format: "f32", shared: 2, topK: 3, rows: 2 },
  "an odd number of blocks a lane": { ...PLAIN, k: ODD, n: 10, normalize: false },
  "q8": { ...PLAIN, format: "q8", k: 512, shared: 1 },
  "an expert with a gate that every row has": { ...PLAIN, shared: 1, sharedGate: true, rows: 2 },
  "q8 of 8 lanes": { ...PLAIN, format: "q8", k: 1408, n: 6, rows: 2 },
  "q8 of 8 lanes, more outputs than a workgroup has": {
    ...PLAIN,
    format: "q8",
    k: 1408,
    n: 36,
    topK: 5,
    shared: 2,
  },
  "biases": { ...PLAIN, topK: 3, biased: true },
  "mxfp4 packed for 2 lanes": {
    ...PLAIN,
    format: "mxfp4",
    numExperts: 5,
    topK: 4,
    k: EXHAUSTIVE ? 2880 : 704,
    n: 12,
    biased: true,
  },
  "q4": { ...PLAIN, format: "q4", k: 1024, n: 6 },
};

function routingOf(
  { numExperts, topK, normalize, shared, sharedGate }: Case,
): Routing & { shared: number; sharedGate: boolean | undefined } {
  return {
    sharedGate,
    scores: "softmax",
    numExperts,
    topK,
    normalize,
    scale: 1.5,
    shared,
    groups: 1,
    topGroups: 1,
    groupBest: 1,
  };
}

/** Matrices of the experts, including those that every row has, and the numbers they stand for. */
function upload(of: Case): { readonly matrix: Matrix; readonly values: Float32Array } {
  const { format, numExperts, shared, n, k: cols } = of;
  const rows = (numExperts + shared) * n;
  if (isInteger(format)) {
    const given = numbers(rows * cols, 9);
    const matrix = uploadQuantized(device, given, { format, cols, most: HARDWARE.lanes });
    return { matrix, values: pack(given, { format, cols, lanes: matrix.lanes }).values };
  }
  if (format === "mxfp4") {
    return uploadPrequantized(device, format, { rows, cols, most: HARDWARE.lanes });
  }
  const values = weights(format, rows, cols);
  const shape = { format, cols, lanes: HARDWARE.lanes, shards: [rows] };
  return { matrix: uploadMatrix(device, values, shape), values };
}

/** Logits of a row. */
const strideOf = ({ numExperts, sharedGate }: Case) => numExperts + Number(sharedGate ?? false);

/** Some logits are equal: of equal experts the lower number is chosen. */
function logitsOf(of: Case): Float32Array {
  return numbers(strideOf(of) * of.rows, 4).map((logit, i) =>
    i % 5 === 2 ? 0.75 : i % 7 === 3 ? (i % 2 === 0 ? 0 : -0) : logit
  );
}

/** The dot product of a job's row of W and its row of x. */
function dotOf(x: Float32Array, values: Float32Array, { n, k }: Case, lanes: number) {
  return ({ row, expert, c }: { row: number; expert: number; c: number }): Bounded => {
    const at = (expert * n + c) * k;
    return boundedDot(x.subarray(row * k, (row + 1) * k), values.subarray(at, at + k), lanes);
  };
}

function jobsOf({ numExperts, topK, shared, rows }: Case) {
  return { rows, topK: topK + shared, numExperts: numExperts + shared };
}

const SHORT = ["biases", "many experts, three rows", "q8"];

for (const [name, of] of Object.entries(CASES)) {
  const { test } = SHORT.includes(name) ? Deno : drawn;
  // Several shared experts lie as parts of one MLP; a single one is an MLP of its own.
  const single = of.shared < 2;

  // Which kernel chooses depends on the experts and the pairs of outputs, not on the columns.
  const picks = EXHAUSTIVE || [PLAIN.k, 128, 512].includes(of.k) ? subgroup : undefined;
  const isLong = of.k > 1024 && !EXHAUSTIVE;
  const ways = single && !isLong ? [undefined, picks].filter((size, i) => i === 0 || size) : [];
  for (const size of ways) {
    const by = size ? ", each subgroup for itself" : "";
    const tuning = { ...HARDWARE, subgroup: size };
    test(`experts of few rows: chosen by those who multiply${by}, ${name}`, async () => {
      const { rows, n, k } = of;
      const { matrix, values } = upload(of);
      const jobs = jobsOf(of);
      const total = rows * jobs.topK;
      const routing = routingOf(of);
      const [x, given] = [numbers(rows * k, 3), logitsOf(of)];
      const logits = device.floats(given);
      const made = () => ({ experts: device.filled(total), weights: device.filled(total) });
      const out = () => device.filled(total * n / 2);
      const launch = {
        ...jobs,
        tile: 1,
        perJob: false,
        shared: of.shared,
        tuning,
        epilogue: "swiglu" as const,
        label: "test",
      };
      assert.ok(canChoose(matrix, routing, { ...launch, biased: false }));
      const [own, apart] = [{ ...made(), out: out() }, { ...made(), out: out() }];
      const io = { matrix, x: device.floats(x), tiles: logits };
      // Experts have factors of their own where no shared experts follow the chosen ones.
      const factor = numbers(of.numExperts, 5);
      const factors = of.shared ? undefined : device.floats(factor);
      const { sharedGate } = of;
      const stride = strideOf(of);
      const choice = { routing, logits, stride, weights: own.weights, factors, sharedGate };
      const choosing = expertMatmul({ ...io, ...own, choice }, launch);
      const kind = size ? /_picked_\d+x\d+(_factors)?$/ : /_chosen(_factors)?$/;
      for (const { kernel } of choosing) assert.match(kernel.name, kind);
      await device.run([
        ...choosing,
        route({ logits, bias: undefined, factors, ...apart }, {
          ...routing,
          rows,
          stride,
          tuning,
          label: "test",
        }),
        ...expertMatmul({ ...io, ...apart }, launch),
      ]);
      const read = async ({ experts, weights, out }: typeof own) => ({
        experts: await device.readWords(experts),
        weights: await device.readWords(weights),
        out: await device.readWords(out),
      });
      const found = await read(own);
      if (rows === 1) assert.deepEqual(found, await read(apart));
      const chosen = Array.from({ length: rows }, (_, r) => {
        const row = [...given.subarray(r * stride, (r + 1) * stride)];
        const gate = sharedGate ? row.pop() : undefined;
        return routed(row, [], { ...routing, gate });
      });
      assert.deepEqual([...found.experts], chosen.flatMap(({ experts }) => experts));
      const counts = chosen.flatMap(({ experts, weights }) =>
        weights.map((weight, k) => weight * (factors ? factor[experts[k]!]! : 1))
      );
      assertClose(new Float32Array(found.weights.buffer), counts, 1e-5, "weights");
      const dot = dotOf(isInteger(of.format) ? roundedVec8s(x) : x, values, of, matrix.lanes);
      const wanted = chosen.flatMap(({ experts }, row) =>
        experts.flatMap((expert) =>
          Array.from({ length: n / 2 }, (_, c) => {
            const y = dot({ row, expert, c });
            return gated(
              y.value / (1 + Math.exp(-y.value)),
              y,
              dot({ row, expert, c: c + n / 2 }),
            );
          })
        )
      );
      assertWithin([...new Float32Array(found.out.buffer)], wanted);
    });
  }

  test(`experts of few rows: weighed and added by the last matmul, ${name}`, async () => {
    const cols = 8 * Math.ceil(of.n / 8); // as wide as norms take them
    const wide = { ...of, n: cols };
    const { matrix, values } = upload(wide);
    for (const rows of [1, 3]) {
      const jobs = { ...jobsOf(of), rows };
      const total = rows * jobs.topK;
      const x = numbers(total * of.k, 3);
      const listed = Array.from({ length: total }, (_, job) => job * 5 % jobs.numExperts);
      const shares = numbers(total, 6);
      const stream = numbers(rows * cols, 8);
      const lists = { experts: device.words(listed), tiles: device.filled(1) };
      const launch = { ...jobs, shared: of.shared, tuning: HARDWARE, label: "test" };
      const outputs = device.filled(total * cols);
      const biases = of.biased ? numbers(jobs.numExperts * cols, 7) : undefined;
      const bias = biases && device.floats(biases);
      const io = { matrix, x: device.floats(x) };
      const added = { x: device.floats(stream), out: device.filled(rows * cols) };
      const apart = { x: device.floats(stream), out: device.filled(rows * cols) };
      const norm = { rows, cols, eps: 1e-5, lanes: HARDWARE.rowLanes, label: "test" };
      const weight = device.floats(numbers(cols, 2));
      await device.run([
        ...expertSums(
          { ...io, ...lists, weights: device.floats(shares), bias, out: added.x },
          launch,
        ),
        ...rmsNorm({ from: { x: added.x }, weight, out: added.out }, norm),
        ...expertMatmul({ ...io, out: outputs, ...lists }, {
          ...launch,
          tile: 1,
          epilogue: "store",
          perJob: true,
        }),
        ...rmsNorm({
          from: {
            stream: apart.x,
            outputs,
            shares: device.floats(shares),
            experts: jobs.topK,
            bias: bias && { values: bias, experts: lists.experts },
          },
          weight,
          out: apart.out,
        }, norm),
      ]);
      for (const what of ["x", "out"] as const) {
        const [found, wanted] = [added[what], apart[what]];
        assert.deepEqual(await device.readWords(found), await device.readWords(wanted), what);
      }
      if (!single) continue;
      const dot = dotOf(isInteger(of.format) ? roundedVec8s(x) : x, values, wide, matrix.lanes);
      const wanted = Array.from({ length: rows * cols }, (_, at) => {
        const [row, c] = [Math.floor(at / cols), at % cols];
        const before = stream[at]!;
        const parts = Array.from({ length: jobs.topK }, (_, j) => {
          const job = row * jobs.topK + j;
          const y = dot({ row: job, expert: listed[job]!, c });
          const value = y.value + (biases?.[listed[job]! * cols + c] ?? 0);
          return { value: value * shares[job]!, bound: y.bound * Math.abs(shares[job]!) };
        });
        const value = parts.reduce((sum, part) => sum + part.value, before);
        const size = parts.reduce((sum, part) => sum + Math.abs(part.value), Math.abs(before));
        return {
          value,
          bound: parts.reduce((sum, { bound }) => sum + bound, 0) + size * parts.length * 2 ** -23,
        };
      });
      assertWithin(await device.readFloats(added.x), wanted);
    }
  });
}

Deno.test("experts of few rows: other adapters, shapes and kinds of choice take other kernels", () => {
  const { matrix } = upload(PLAIN);
  const routing = routingOf(PLAIN);
  const software = tuning(true, LIMITS);
  const chooses = (of: Partial<Routing>, tile = 1, at = HARDWARE) =>
    canChoose(matrix, { ...routing, ...of }, { tile, biased: false, tuning: at });
  assert.ok(chooses({}));
  assert.ok(!chooses({}, 2));
  assert.ok(!chooses({}, 1, software));
  assert.ok(!chooses({}, 1, { ...HARDWARE, storageBuffers: 6 }), "too few storage buffers");
  assert.ok(!chooses({ scores: "sigmoid" }));
  assert.ok(!chooses({ scores: "biased_softmax" }));
  assert.ok(!chooses({ groups: 3, topGroups: 2 }));
  const sums = (of: Matrix, jobs: { rows: number; topK: number }, at = HARDWARE) =>
    canSum(of, jobs, { tuning: at, biased: false });
  assert.ok(sums(matrix, { rows: 1, topK: 8 }));
  assert.ok(sums(matrix, { rows: 2, topK: 8 }));
  assert.ok(!sums(matrix, { rows: 3, topK: 8 }));
  assert.ok(!sums(matrix, { rows: 1, topK: 17 }), "more lanes than invocations");
  assert.ok(!sums(matrix, { rows: 1, topK: 8 }, software));
  assert.ok(!sums({ ...matrix, cols: 264 }, { rows: 1, topK: 8 }));
  const [shard] = matrix.shards;
  assert.ok(!sums({ ...matrix, shards: [shard!, shard!] }, { rows: 1, topK: 8 }));
});
