import assert from "node:assert/strict";
import { matmul } from "../../kernels/matmul/matmul.ts";
import {
  defaultLaunch,
  matmulShape,
  residentShape,
  shapeKey,
} from "../../kernels/matmul/matmul_shape.ts";
import { canBeResident } from "../../kernels/matmul/matmul_stages.ts";
import { workgroupBytes } from "../../kernels/matmul/matmul_kernels.ts";
import { normLanes } from "../../kernels/norm/rms_norm.ts";
import { axes, chooseLaunch, isLaunch } from "../../kernels/matmul/matmul_tune.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Launch, type Tuning, tuning } from "../../src/gpu/tuning.ts";
import { lanesFor } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

const LARGE = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 32768 };
const SMALL = { maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize: 16384 };
const HARDWARE = tuning(false, LARGE);

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

function matrix(cols: number, format: Matrix["format"] = "bf16"): Matrix {
  return { format, rowOrder: "stacked", rows: 64, cols, lanes: 16, shards: [] };
}

/** Every launch that `axes` leads to from the rules' one. */
function reachable(of: Matrix, rows: number, limits = LARGE, from = HARDWARE): Launch[] {
  const use = { rows, splitK: 1, tuning: from };
  return axes(of, use, limits).reduce(
    (held, vary) => [...held, ...held.flatMap(vary)],
    [defaultLaunch(of, use)],
  );
}

function texts(launches: readonly Launch[]): string[] {
  return [...new Set(launches.map(({ stage, groups }) => `${stage}x${groups}`))]
    .toSorted();
}

function forced(of: Matrix, rows: number, launch: Launch, from: Tuning = HARDWARE): Tuning {
  return { ...from, launches: new Map([[shapeKey(of), new Map([[rows, launch]])]]) };
}

Deno.test("x and the sums of its norm fit into workgroup memory, whatever was measured with stages", () => {
  const sizes = [16384, 32768, 49152];
  const counts = [1, 2, 3, 4, 5, 6];
  let fitted = 0;
  for (const maxComputeWorkgroupStorageSize of sizes) {
    const limits = { ...LARGE, maxComputeWorkgroupStorageSize };
    for (const format of ["bf16", "f32", "q8", "q4"] as const) {
      for (let cols = 256; cols <= 4096; cols += 256) {
        const of = { ...matrix(cols, format), lanes: lanesFor(format, cols, 16) };
        for (const rows of counts) {
          const from = forced(of, rows, { stage: 64, groups: 16 }, tuning(false, limits));
          const use = { rows, splitK: 1, tuning: from };
          if (!canBeResident(of, use)) continue;
          const shape = residentShape(of, use);
          const bytes = workgroupBytes(shape, of.lanes) +
            4 * shape.rows * normLanes({ cols, lanes: 512 });
          assert.ok(bytes <= maxComputeWorkgroupStorageSize, `${format} ${cols} ${rows}: ${bytes}`);
          fitted++;
        }
      }
    }
  }
  assert.ok(fitted > 100);
});

Deno.test("one row of many floats in ranges of k has twice the invocations, and all its weights on the way", () => {
  const of: Matrix = {
    format: "bf16",
    rowOrder: "stacked",
    rows: 2048,
    cols: 4096,
    lanes: 16,
    shards: [],
  };
  const shape = (of: Matrix, rows: number, splitK = 4, widen = 1) => {
    const { pairs, groups, ahead } = residentShape(of, { rows, splitK, tuning: HARDWARE }, widen);
    return { pairs, groups, ahead };
  };
  assert.deepEqual(shape(of, 1), { pairs: 1, groups: 16, ahead: 8 });
  const plain = { pairs: 2, groups: 8, ahead: 4 };
  assert.deepEqual(shape(of, 2), plain);
  assert.deepEqual(shape(of, 1, 1), { ...plain, pairs: 1 });
  assert.deepEqual(shape(of, 1, 4, 2), { ...plain, groups: 16 });
  assert.deepEqual(shape({ ...of, rows: 2046 }, 1), { ...plain, ahead: 8 });
  assert.deepEqual(shape({ ...of, format: "q8" }, 1), { ...plain, ahead: 2 });
});

Deno.test("launches to measure: stages that the width divides into, else all", () => {
  const cached = ["0x16", "0x4", "0x8"];
  const short = ["32x16", "32x4", "32x8"];
  const long = ["64x16", "64x4", "64x8"];
  assert.deepEqual(texts(reachable(matrix(264), 4)), [...cached, ...short, ...long]);
  assert.deepEqual(texts(reachable(matrix(256), 4)), [...cached, ...short]);
  const whole = ["128x16", "128x4", "128x8"]; // x of the whole width stays in workgroup memory
  const few = texts(reachable(matrix(1024), 4));
  assert.deepEqual(few, [...cached, ...whole, ...short, ...long].toSorted());
  assert.deepEqual(texts(reachable(matrix(1024), 24)), [...cached, ...short, ...long]);
});

Deno.test("launches to measure: integers never come through the cache at some rows only", () => {
  const of = matrix(1024, "q8");
  const all = ["32x16", "32x4", "32x8", "64x16", "64x4", "64x8"];
  const whole = ["128x16", "128x4", "128x8"];
  assert.deepEqual(texts(reachable(of, 4)), [...whole, ...all]);
  assert.deepEqual(texts(reachable(of, 1)), [...whole, ...all]);
  assert.deepEqual(texts(reachable(of, 7)), [...whole, ...all]);
  assert.deepEqual(texts(reachable(of, 17)), all);
  assert.deepEqual(texts(reachable(matrix(1088, "q8"), 4)), ["0x16", "0x4", "0x8"]);
});

Deno.test("launches to measure: one row of integers, prefetched too, with one pair of outputs a group where rules have two", () => {
  const of = (format: Matrix["format"]) => ({ ...matrix(4096, format), rows: 28672 });
  const withOne = (format: Matrix["format"], rows: number) =>
    reachable(of(format), rows).filter(({ pairs }) => pairs === 1);
  for (const format of ["q4", "q8"] as const) {
    const one = withOne(format, 1).filter(({ stage, groups }) => stage === 128 && groups === 8);
    assert.deepEqual(one.map(({ prefetch }) => prefetch), [undefined, true]);
    assert.equal(withOne(format, 4).length, 0);
    assert.ok(reachable(of(format), 4).every(({ prefetch }) => prefetch === undefined));
  }
  assert.equal(withOne("bf16", 1).length, 0);
  assert.ok(reachable(of("bf16"), 1).every(({ prefetch }) => prefetch === undefined));
  // Few workgroups have it by rule.
  assert.equal(reachable(matrix(4096, "q4"), 1).filter(({ pairs }) => pairs).length, 0);
  const launch: Launch = { stage: 128, groups: 8, pairs: 1 };
  const shape = (rows: number, partial = false) => {
    const tuned = forced(of("q4"), rows, launch);
    const { pairs } = matmulShape(of("q4"), { rows, splitK: 1, partial, tuning: tuned });
    return pairs;
  };
  assert.deepEqual([shape(1), shape(2), shape(1, true)], [1, 2, 2]);
});

Deno.test("launches to measure: none that an adapter has no workgroup memory for", () => {
  const found = reachable(matrix(1024), 24, SMALL, tuning(false, SMALL));
  const possible = ["0x4", "0x8", "32x4", "32x8", "64x4", "64x8"];
  assert.deepEqual(texts(found), possible);
});

Deno.test("the rules' launches fit the workgroup memory of every adapter", () => {
  for (const limits of [SMALL, LARGE]) {
    const from = tuning(false, limits);
    for (const format of ["bf16", "q8", "q4", "u4"] as const) {
      for (let rows = 1; rows <= 40; rows++) {
        const of = matrix(4096, format);
        const shape = matmulShape(of, { rows, splitK: 1, tuning: from });
        const bytes = workgroupBytes(shape, of.lanes);
        assert.ok(bytes <= limits.maxComputeWorkgroupStorageSize, `${format}, ${rows}: ${bytes}`);
      }
    }
  }
});

Deno.test("whether integers meet rounded activations does not depend on the rows", () => {
  for (const format of ["q8", "q4"] as const) {
    for (let cols = 64; cols <= 4096; cols += 64) {
      const of = { ...matrix(cols, format), lanes: lanesFor(format, cols, HARDWARE.lanes) };
      for (const splitK of [1, 2, 4].filter((splitK) => cols / 8 % splitK === 0)) {
        const kinds = Array.from({ length: 40 }, (_, i) => {
          const { kind } = matmulShape(of, { rows: i + 1, splitK, tuning: HARDWARE });
          return kind === "cached";
        });
        assert.equal(new Set(kinds).size, 1, `${format}, ${cols} wide, ${splitK} splitK`);
      }
    }
  }
});

Deno.test("many rows: full tiles, x prefetched, more pairs where workgroups are enough", () => {
  const tileOf = (rows: number, of = { ...matrix(4096), rows: 28672 }, from = HARDWARE) => {
    const { kind, rows: tile, pairs } = matmulShape(of, { rows, splitK: 1, tuning: from });
    return `${kind} ${tile} ${pairs}`;
  };
  assert.deepEqual([1, 6, 7, 8, 9, 12, 13, 40].map((rows) => tileOf(rows)), [
    ...[
      "staged 1 2",
      "staged 6 2",
      "prefetch 8 2",
      "prefetch 8 2",
      "prefetch 12 2",
      "prefetch 12 2",
    ],
    ...["prefetch 8 4", "prefetch 8 4"],
  ]);
  assert.equal(tileOf(40, matrix(4096)), "prefetch 8 2");
  assert.equal(tileOf(9, { ...matrix(4096), rows: 28672 }, tuning(false, SMALL)), "prefetch 8 4");
});

Deno.test("many rows of integers: packed in tiles of four and eight, more pairs where workgroups are enough", () => {
  const shapeAt = (rows: number, { of = {}, from = HARDWARE }: {
    readonly of?: Partial<Matrix>;
    readonly from?: Tuning;
  } = {}) => {
    const shape = matmulShape({ ...matrix(4096, "q8"), rows: 28672, ...of }, {
      rows,
      splitK: 1,
      tuning: from,
    });
    assert.ok(shape.kind !== "cached");
    return `${shape.kind} ${shape.dots} ${shape.rows} ${shape.pairs} ${shape.stage}`;
  };
  assert.deepEqual([4, 5, 8, 12, 13, 40].map((rows) => shapeAt(rows)), [
    ...["staged packed 4 4 32", "staged packed 3 4 32", "staged packed 4 4 32"],
    ...["staged packed 4 4 32", "staged packed 4 4 32", "staged packed 8 4 32"],
  ]);
  // A short range of k.
  assert.equal(shapeAt(40, { of: { cols: 1024 } }), "staged packed 4 4 32");
  // A packed block of q4 alone is longer than the stage of q8.
  assert.equal(shapeAt(12, { of: { format: "q4" } }), "staged packed 4 4 64");
  assert.equal(shapeAt(40, { of: { rows: 64 } }), "staged packed 8 2 32");
  const without = tuning(false, LARGE, "metal");
  assert.equal(shapeAt(40, { from: without }), "prefetch whole 8 4 32");
});

Deno.test("small matrices: up to 16 rows in tiles of four, integers packed in all of them", () => {
  const shapeAt = (rows: number, format: Matrix["format"]) => {
    const shape = matmulShape(matrix(1024, format), { rows, splitK: 1, tuning: HARDWARE });
    return `${shape.kind} ${shape.rows} ${"dots" in shape ? shape.dots : ""}`;
  };
  assert.deepEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17].map((rows) => shapeAt(rows, "q8")), [
    ...["resident 1 packed", "resident 2 packed", "staged 3 packed", "staged 4 packed"],
    ...["staged 3 packed", "staged 3 packed", "staged 4 packed", "staged 4 packed"],
    ...["staged 3 packed", "staged 4 packed", "staged 4 packed"],
  ]);
  assert.equal(shapeAt(16, "bf16"), "resident 4 floats");
  assert.equal(shapeAt(17, "bf16"), "prefetch 8 floats");
});

Deno.test("large matrices of few workgroups: three and four rows in tiles of two, prefetched", () => {
  const shapeAt = (rows: number, of: Partial<Matrix> = {}) => {
    const shape = matmulShape({ ...matrix(4096), rows: 6144, ...of }, {
      rows,
      splitK: 1,
      tuning: HARDWARE,
    });
    return `${shape.kind} ${shape.rows} ${"stage" in shape ? shape.stage : ""}`;
  };
  assert.deepEqual([1, 2, 3, 4, 5].map((rows) => shapeAt(rows)), [
    ...["staged 1 128", "staged 2 128", "prefetch 2 64", "prefetch 2 64", "staged 5 64"],
  ]);
  assert.equal(shapeAt(4, { rows: 28672 }), "staged 4 64");
  assert.equal(shapeAt(4, { format: "q8" }), "staged 4 64");
});

Deno.test("a launch from elsewhere counts only where it could have been measured", () => {
  const use = { rows: 4, splitK: 1, tuning: HARDWARE };
  const is = (launch: Launch) => isLaunch(launch, matrix(256), use, LARGE);
  assert.equal(is({ stage: 32, groups: 16 }), true);
  assert.equal(is({ stage: 64, groups: 16 }), false);
  assert.equal(is({ stage: 32, groups: 3 }), false);
});

Deno.test("the fastest is kept, the held one where the gain is noise", () => {
  const [a, b, c] = [64, 32, 0].map((stage) => ({ stage, groups: 8 })) as [
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
      ) => [rows, { stage: 64, groups: [4, 8, 16, 4][i] as number }]),
    ),
  ]]);
  const groupsAt = (rows: number) =>
    matmulShape(of, { rows, splitK: 1, tuning: { ...HARDWARE, launches } }).groups;
  // Of a small matrix up to 16 rows are tiles of four at most.
  assert.deepEqual([1, 2, 3, 5, 6, 7, 12, 17, 256].map(groupsAt), [4, 4, 8, 8, 8, 8, 8, 4, 4]);
  const other = matrix(2048);
  assert.deepEqual(
    matmulShape(other, { rows: 1, splitK: 1, tuning: { ...HARDWARE, launches } }),
    matmulShape(other, { rows: 1, splitK: 1, tuning: HARDWARE }),
  );
});

Deno.test("a stage that ranges of k do not divide into gives way to the rules", () => {
  const of = matrix(1024);
  const tuned = forced(of, 1, { stage: 64, groups: 4 });
  const shape = matmulShape(of, { rows: 1, splitK: 4, tuning: tuned });
  assert.deepEqual(shape, matmulShape(of, { rows: 1, splitK: 4, tuning: HARDWARE }));
});

/** Words of W x for rows of x, launched as told. */
async function product(of: Matrix, x: Float32Array, tuning: Tuning): Promise<Uint32Array> {
  const rows = x.length / of.cols;
  const out = device.filled(rows * of.rows, 0.25);
  const shape = { rows, epilogue: "store", tuning, label: "test" } as const;
  await device.run(matmul({ matrix: of, x: device.floats(x), out }, shape));
  return await device.readWords(out);
}

for (const [format, cols] of [["q4", 1024], ["q8", 1088]] as const) {
  drawn.test(`matmul bits: one row of ${format}, prefetched or not, one pair of outputs a group or two`, async () => {
    const n = 6400;
    const of = uploadQuantized(device, numbers(n * cols, 5), { format, cols, most: 16 });
    const x = numbers(cols, 6);
    const launches: Launch[] = [
      { stage: 64, groups: 8 },
      { stage: 64, groups: 8, pairs: 1 },
      { stage: 64, groups: 8, prefetch: true },
      { stage: 64, groups: 4, pairs: 1, prefetch: true },
    ];
    const shapes = launches.map((launch) => {
      const { kind, pairs } = matmulShape(of, {
        rows: 1,
        splitK: 1,
        tuning: forced(of, 1, launch),
      });
      return `${kind} ${pairs}`;
    });
    assert.deepEqual(shapes, ["staged 2", "staged 1", "prefetch 2", "prefetch 1"]);
    const byRule = await product(of, x, HARDWARE);
    for (const launch of launches) {
      const found = await product(of, x, forced(of, 1, launch));
      assert.deepEqual(found, byRule, JSON.stringify(launch));
    }
  });
}

for (
  const { format, counts } of [{ format: "bf16", counts: [1, 24] }, {
    format: "q4",
    counts: [5],
  }] as const
) {
  const { test } = format === "q4" ? Deno : exhaustive;
  test(`matmul bits: every launch that may be chosen gives those of the rules, ${format}`, async () => {
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
