import assert from "node:assert/strict";
import { matmul } from "../../shaders/matmul.ts";
import { defaultLaunch, matmulShape, shapeKey } from "../../shaders/matmul_shape.ts";
import { axes, chooseLaunch, isLaunch } from "../../shaders/matmul_tune.ts";
import { type Launch, type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";

const LARGE = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 32768 };
const SMALL = { maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize: 16384 };
const HARDWARE = tuning(false, LARGE);

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

function matrix(cols: number, format: Matrix["format"] = "bf16"): Matrix {
  return { format, rows: 64, cols, lanes: 16, shards: [] };
}

/** Every launch that `axes` leads to from the rules' one. */
function reachable(of: Matrix, rows: number, limits = LARGE, from = HARDWARE): Launch[] {
  const use = { rows, splits: 1, tuning: from };
  return axes(of, use, limits).reduce(
    (held, vary) => [...held, ...held.flatMap(vary)],
    [defaultLaunch(of, use)],
  );
}

function texts(launches: readonly Launch[]): string[] {
  return [...new Set(launches.map(({ stage, groups, tile }) => `${stage}x${groups}x${tile}`))]
    .toSorted();
}

function forced(of: Matrix, rows: number, launch: Launch, from: Tuning = HARDWARE): Tuning {
  return { ...from, launches: new Map([[shapeKey(of), new Map([[rows, launch]])]]) };
}

Deno.test("launches to measure: stages that the width divides into, tiles for many rows only", () => {
  const few = ["0x16x8", "0x4x8", "0x8x8", "32x16x8", "32x4x8", "32x8x8"];
  const staged = ["64x16x8", "64x4x8", "64x8x8"];
  assert.deepEqual(texts(reachable(matrix(256), 4)), few);
  assert.deepEqual(texts(reachable(matrix(1024), 4)), [...few, ...staged]);
  assert.deepEqual(texts(reachable(matrix(264), 4)), ["0x16x8", "0x4x8", "0x8x8"]);
  assert.equal(texts(reachable(matrix(1024), 24)).includes("64x16x12"), true);
  assert.equal(texts(reachable(matrix(1024), 24)).includes("0x16x12"), false);
});

Deno.test("launches to measure: none that an adapter has no workgroup memory for", () => {
  const found = reachable(matrix(1024), 24, SMALL, tuning(false, SMALL));
  const eight = ["0x4x8", "0x8x8", "32x4x8", "32x8x8", "64x4x8", "64x8x8"];
  assert.deepEqual(texts(found), [...eight, "32x4x12", "32x8x12"].toSorted());
});

Deno.test("a launch from elsewhere counts only where it could have been measured", () => {
  const use = { rows: 4, splits: 1, tuning: HARDWARE };
  const is = (launch: Launch) => isLaunch(launch, matrix(256), use, LARGE);
  assert.equal(is({ stage: 32, groups: 16, tile: 8 }), true);
  assert.equal(is({ stage: 64, groups: 16, tile: 8 }), false);
  assert.equal(is({ stage: 32, groups: 3, tile: 8 }), false);
  assert.equal(is({ stage: 32, groups: 16, tile: 12 }), false);
});

Deno.test("the fastest is kept, the held one where the gain is noise", () => {
  const [a, b, c] = [64, 32, 0].map((stage) => ({ stage, groups: 8, tile: 8 })) as [
    Launch,
    Launch,
    Launch,
  ];
  const choice = (first: number, second: number, third: number) =>
    chooseLaunch([{ launch: a, ms: first }, { launch: b, ms: second }, { launch: c, ms: third }]);
  assert.equal(choice(10, 9, 8), c);
  assert.equal(choice(10, 9.9, Infinity), a);
  assert.equal(choice(10, 12, 11), a);
  assert.equal(choice(Infinity, Infinity, 3), c);
});

Deno.test("rows between take what was measured nearest", () => {
  const of = matrix(1024);
  const launches = new Map([[
    shapeKey(of),
    new Map(
      [1, 4, 8, 24].map((
        rows,
        i,
      ) => [rows, { stage: 64, groups: [4, 8, 16, 4][i] as number, tile: 12 }]),
    ),
  ]]);
  const groupsAt = (rows: number) =>
    matmulShape(of, { rows, splits: 1, tuning: { ...HARDWARE, launches } }).groups;
  assert.deepEqual([1, 2, 3, 5, 6, 12, 17, 256].map(groupsAt), [4, 4, 8, 8, 16, 16, 4, 4]);
  const other = matrix(2048);
  assert.deepEqual(
    matmulShape(other, { rows: 1, splits: 1, tuning: { ...HARDWARE, launches } }),
    matmulShape(other, { rows: 1, splits: 1, tuning: HARDWARE }),
  );
});

Deno.test("a stage that ranges of k do not divide into gives way to the rules", () => {
  const of = matrix(1024);
  const tuned = forced(of, 1, { stage: 64, groups: 4, tile: 8 });
  const shape = matmulShape(of, { rows: 1, splits: 4, tuning: tuned });
  assert.deepEqual(shape, matmulShape(of, { rows: 1, splits: 4, tuning: HARDWARE }));
});

/** Words of W x for rows of x, launched as told. */
async function product(of: Matrix, x: Float32Array, tuning: Tuning): Promise<Uint32Array> {
  const rows = x.length / of.cols;
  const out = device.filled(rows * of.rows, 0.25);
  const shape = { rows, finish: "store", tuning, label: "test" } as const;
  await device.run(matmul({ matrix: of, x: device.floats(x), out }, shape));
  return await device.readWords(out);
}

for (
  const { format, counts } of [{ format: "bf16", counts: [1, 24] }, {
    format: "q4",
    counts: [5],
  }] as const
) {
  Deno.test(`matmul bits: every launch that may be chosen gives those of the rules, ${format}`, async () => {
    const [n, cols] = [70, 1024];
    const values = weights("bf16", n, cols);
    const of: Matrix = format === "q4"
      ? uploadQuantized(device, values, { format, cols, most: 16 })
      : uploadMatrix(device, values, { format, cols, lanes: 16, shards: [n] });
    for (const rows of counts) {
      const x = numbers(rows * cols, rows);
      const byRule = await product(of, x, HARDWARE);
      for (const launch of reachable(of, rows)) {
        const found = await product(of, x, forced(of, rows, launch));
        assert.deepEqual(found, byRule, `${rows} rows, ${JSON.stringify(launch)}`);
      }
    }
  });
}
