// Router, choice and first matmul of few rows in one dispatch leave what they leave in three.

import assert from "node:assert/strict";
import { expertMatmul } from "../../shaders/experts/experts.ts";
import { expertSums } from "../../shaders/experts/few/expert_sums.ts";
import { canRoute, postedWords, routedExperts } from "../../shaders/experts/few/routed_experts.ts";
import { route, type Routing } from "../../shaders/router/route.ts";
import { rowLogits } from "../../shaders/router/row_logits.ts";
import {
  type FloatFormat,
  isInteger,
  type Matrix,
  type Quantization,
  tuning,
} from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 32768,
  maxStorageBuffersPerShaderStage: 16,
});
const EPS = 1e-5;

interface Case {
  readonly format: FloatFormat | Quantization;
  readonly numExperts: number;
  readonly topK: number;
  /** The last experts, which every row has. */
  readonly shared: number;
  /** Rows of W an expert. */
  readonly n: number;
  readonly k: number;
  readonly rows: number;
  readonly splitK: number;
}

const PLAIN: Case = {
  ...{ format: "bf16", numExperts: 9, topK: 2, shared: 0, n: 36, k: 256, rows: 1, splitK: 1 },
};

const CASES: Readonly<Record<string, Case>> = {
  "one row": PLAIN,
  "two rows of many experts": {
    ...PLAIN,
    numExperts: 150,
    topK: 8,
    n: 70,
    k: 384,
    rows: 2,
    splitK: 3,
  },
  "experts that every row has": { ...PLAIN, format: "f32", shared: 2, topK: 3, splitK: 2 },
  "as wide as Qwen3-30B-A3B": { ...PLAIN, numExperts: 128, topK: 8, n: 66, k: 2048, splitK: 4 },
  "q8": { ...PLAIN, format: "q8", k: 512, rows: 2, shared: 1 },
  "q4, wide": { ...PLAIN, format: "q4", k: 3072, n: 6, splitK: 2 },
};

function upload({ format, numExperts, shared, n, k: cols }: Case): Matrix {
  const rows = (numExperts + shared) * n;
  if (isInteger(format)) {
    return uploadQuantized(device, numbers(rows * cols, 9), { format, cols, most: HARDWARE.lanes });
  }
  const shape = { format, cols, lanes: HARDWARE.lanes, shards: [rows] };
  return uploadMatrix(device, weights(format, rows, cols), shape);
}

/** A router, some of whose experts are alike. */
function routerOf({ numExperts, k: cols }: Case): Matrix {
  const rows = numExperts + numExperts % 2;
  const values = weights("bf16", rows, cols);
  for (let e = 5; e < numExperts; e += 5) values.copyWithin(e * cols, 2 * cols, 3 * cols);
  return uploadMatrix(device, values, {
    ...{ format: "bf16", cols, lanes: HARDWARE.lanes, shards: [rows] },
  });
}

for (const [name, of] of Object.entries(CASES)) {
  for (const patience of [0, 2000]) {
    const how = patience === 0 ? "each does all the work" : "waiting for each other";
    Deno.test(`routed experts: ${name}, ${how}`, async () => {
      const { numExperts, topK, shared, n, k: cols, rows, splitK } = of;
      const routing: Routing = {
        ...{ scores: "softmax", numExperts, topK, normalize: true, scale: 1.5 },
        ...{ groups: 1, topGroups: 1, groupBest: 1 },
      };
      const [matrix, router] = [upload(of), routerOf(of)];
      const jobs = { rows, topK: topK + shared, numExperts: numExperts + shared };
      const total = rows * jobs.topK;
      const given = {
        x: device.floats(numbers(rows * cols, 1)),
        sums: device.floats(numbers(splitK * rows * cols, 2)),
        norm: device.floats(numbers(cols, 3)),
      };
      const results = () => ({
        stream: device.filled(rows * cols),
        out: device.filled(total * n / 2),
        experts: device.filled(total),
        weights: device.filled(total),
      });
      const [own, apart] = [results(), results()];
      const launch = { ...jobs, shared, tuning: HARDWARE, label: "test" };
      const posted = device.words(Array(postedWords({ rows, cols, numExperts })).fill(0));
      assert.ok(canRoute({ matrix, router, routing }, launch));
      const [normed, logits] = [device.filled(rows * cols), device.filled(rows * router.rows)];
      await device.run([
        routedExperts({ matrix, ...own, of: { routing, router, ...given, ...own, posted } }, {
          ...{ ...launch, splitK, eps: EPS, patience },
        }),
        rowLogits({ matrix: router, ...given, stream: apart.stream, normed, logits }, {
          ...{ ...launch, splitK, eps: EPS },
        }),
        route({ logits, bias: undefined, ...apart }, {
          ...{ ...launch, ...routing, stride: router.rows },
        }),
        ...expertMatmul({ matrix, ...apart, x: normed, tiles: logits }, {
          ...{ ...launch, tile: 1, perJob: false, epilogue: "swiglu" },
        }),
      ]);
      for (const what of ["stream", "experts", "weights", "out"] as const) {
        const [found, wanted] = [own[what], apart[what]];
        assert.deepEqual(await device.readWords(found), await device.readWords(wanted), what);
      }
      const down = upload({ ...of, n: 64, k: n % 256 === 0 ? n : 256, format: "bf16" });
      await device.run(expertSums({
        ...{
          matrix: down,
          x: device.floats(numbers(total * 256, 5)),
          out: device.filled(64 * rows),
        },
        ...{ experts: own.experts, weights: own.weights, posted },
      }, launch));
      assert.ok((await device.readWords(posted)).slice(0, 8 * 64).every((word) => word === 0));
    });
  }
}
