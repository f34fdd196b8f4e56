import assert from "node:assert/strict";
import {
  combineExperts,
  expertMatmul,
  expertTiles,
  tileWords,
} from "../../kernels/experts/experts.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import {
  BLOCK_VEC8S,
  type FloatFormat,
  isInteger,
  lanesFor,
  type Quantization,
  type WeightFormat,
} from "../../src/gpu/weight_format.ts";
import { expertLanes, expertShape, tileSize } from "../../kernels/experts/expert_shape.ts";
import type { Routing } from "../../kernels/experts/route.ts";
import { ScratchPool } from "../../src/gpu/scratch_pool.ts";
import type { Graph } from "../../src/model/graph/graph.ts";
import { layout, planOf } from "../../src/model/lower/lower.ts";
import { contextOf } from "../model/layer_context.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers, shuffled } from "../gpu/numbers.ts";
import { assertWithin, type Bounded, boundedDot, gated } from "./bounds.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadPrequantized } from "./prequantized.ts";
import { pack, roundedVec8s, uploadQuantized } from "./quantized.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

interface Case {
  readonly format: FloatFormat | Quantization | "mxfp4";
  readonly epilogue: "store" | "swiglu";
  readonly numExperts: number;
  readonly topK: number;
  /** Rows of W per expert. */
  readonly n: number;
  readonly k: number;
  readonly perJob: boolean;
  /** Experts in each shard. */
  readonly shards: readonly number[];
  readonly tuning: Tuning;
  /** The last experts, which are parts of one MLP in the matrix. */
  readonly shared?: number;
}

/** topK different experts for each row, some of them popular. */
function choices(rows: number, { numExperts, topK }: Case): number[] {
  return Array.from({ length: rows }, (_, r) => shuffled(numExperts, r % 5).slice(0, topK)).flat();
}

/** y of every job. */
function reference(x: Float32Array, w: Float32Array, experts: readonly number[], of: Case) {
  const { n, k, epilogue, tuning: { lanes } } = of;
  const dot = (job: number, c: number) => {
    const row = of.perJob ? job : Math.floor(job / of.topK);
    const weight = (experts[job] ?? NaN) * n + c;
    return boundedDot(
      x.subarray(row * k, (row + 1) * k),
      w.subarray(weight * k, (weight + 1) * k),
      lanes,
    );
  };
  const outputs = epilogue === "swiglu" ? n / 2 : n;
  return experts.flatMap((_, job) =>
    Array.from({ length: outputs }, (_, c): Bounded => {
      const y = dot(job, c);
      if (epilogue !== "swiglu") return y;
      return gated(y.value / (1 + Math.exp(-y.value)), y, dot(job, c + outputs));
    })
  );
}

/** The experts' matrices, and the numbers they stand for. */
function upload(of: Case): { readonly matrix: Matrix; readonly values: Float32Array } {
  const { format, numExperts, n, k: cols, tuning: { lanes: most } } = of;
  if (isInteger(format)) {
    const values = numbers(numExperts * n * cols, 9);
    const matrix = uploadQuantized(device, values, { format, cols, most });
    return { matrix, values: pack(values, { format, cols, lanes: matrix.lanes }).values };
  }
  if (format === "mxfp4") {
    return uploadPrequantized(device, format, { rows: numExperts * n, cols, most });
  }
  const values = weights(format, numExperts * n, cols);
  const shards = of.shards.map((experts) => experts * n);
  return { matrix: uploadMatrix(device, values, { format, cols, lanes: most, shards }), values };
}

/** Outputs of every job, [jobs][outputs]. */
async function run(matrix: Matrix, x: Float32Array, experts: readonly number[], of: Case) {
  const sizes = { rows: experts.length / of.topK, topK: of.topK, numExperts: of.numExperts };
  const jobs = { ...sizes, tile: tileSize(sizes, of.tuning, of.format) };
  const outputs = of.epilogue === "swiglu" ? of.n / 2 : of.n;
  const out = device.filled(experts.length * outputs, 0.5);
  const lists = {
    experts: device.words(experts),
    tiles: device.filled(tileWords(sizes, of.tuning)),
  };
  await device.run([
    ...expertTiles(lists, { ...jobs, matrix, tuning: of.tuning, label: "tiles" }),
    ...expertMatmul({ matrix, x: device.floats(x), out, ...lists }, {
      ...jobs,
      epilogue: of.epilogue,
      perJob: of.perJob,
      tuning: of.tuning,
      ...of.shared ? { shared: of.shared } : {},
      label: "test",
    }),
  ]);
  const words = await device.readWords(out);
  return experts.map((_, job) => words.slice(job * outputs, (job + 1) * outputs));
}

/**
 * Columns that give each lane an odd number of blocks: 5, or with all tests the 11 of Qwen's experts, whose kernels are
 * twice as long.
 */
const ODD = EXHAUSTIVE ? 1408 : 640;

const GATE_UP: Case = {
  format: "bf16",
  epilogue: "swiglu",
  numExperts: 6,
  topK: 2,
  n: 22,
  k: 264,
  perJob: false,
  shards: [6],
  tuning: tuning(true),
};
const DOWN: Case = { ...GATE_UP, format: "f16", epilogue: "store", k: 40, perJob: true };
const HARDWARE = tuning(false);
const STAGED: Case = { ...GATE_UP, k: 768, n: 36, tuning: HARDWARE };
const SINGLE = { epilogue: "store", perJob: true } as const;
const CASES: Readonly<Record<string, readonly [Case, rows: number]>> = {
  "gate and up, software": [GATE_UP, 5],
  "gate and up, hardware": [{ ...GATE_UP, tuning: HARDWARE }, 3],
  "down in three shards": [{ ...DOWN, shards: [3, 1, 2] }, 9],
  "one row": [{ ...GATE_UP, format: "f32", shards: [2, 4] }, 1],
  "one expert": [{ ...DOWN, numExperts: 1, topK: 1, shards: [1] }, 17],
  "more experts than jobs": [{ ...DOWN, numExperts: 40, topK: 3, n: 2, shards: [40] }, 4],
  "staged, one row": [{ ...STAGED, shards: [1, 5] }, 1],
  "staged, two rows without lists": [{ ...STAGED, numExperts: 9, shards: [9] }, 2],
  "staged, tiles of 2": [{ ...STAGED, format: "f16", epilogue: "store", perJob: true }, 3],
  "prefetched, tiles of 4": [{ ...STAGED, shards: [2, 3, 1] }, 19],
  "prefetched, tiles of 8": [{ ...STAGED, numExperts: 2, shards: [2], n: 10 }, 37],
  "an odd number of blocks a lane, one row": [{ ...STAGED, k: ODD, n: 6 }, 1],
  "an odd number of blocks a lane, tiles of 4": [{ ...STAGED, k: ODD, n: 6, format: "f32" }, 12],
};

/** Rows of gpt-oss: 45 packed blocks for each of two lanes. */
const MXFP4 = { ...STAGED, ...SINGLE, format: "mxfp4", numExperts: 4, k: 2880, n: 8 } as const;
const MXFP4_CASES: Readonly<Record<string, readonly [Case, rows: number]>> = {
  "mxfp4 of 2880 columns, software": [{ ...MXFP4, tuning: tuning(true) }, 3],
  // These take long to compile.
  ...EXHAUSTIVE
    ? {
      "mxfp4 of 2880 columns, one row": [MXFP4, 1],
      "mxfp4 of 2880 columns, tiles of 4": [MXFP4, 9],
    } as const
    : {},
};

for (const [name, [of, rows]] of Object.entries({ ...CASES, ...MXFP4_CASES })) {
  const { test } = of.k === ODD || of.format === "mxfp4" ? drawn : Deno;
  test(`experts: ${name}`, async () => {
    const { matrix, values } = upload(of);
    const experts = choices(rows, of);
    const x = numbers((of.perJob ? experts.length : rows) * of.k, 3);
    const found = await run(matrix, x, experts, of);
    const actual = found.flatMap((words) => [...new Float32Array(words.buffer)]);
    assertWithin(actual, reference(x, values, experts, of));
  });
}

const ROWS_OF: Readonly<Record<string, Case>> = {
  "software": { ...GATE_UP, shards: [4, 2] },
  "through the cache": { ...GATE_UP, tuning: HARDWARE, shards: [4, 2] },
  "staged": { ...STAGED, shards: [4, 2] },
  "staged, tiles of 8 for many": { ...STAGED, numExperts: 2, topK: 2, n: 10, shards: [1, 1] },
  "q8 of 16 lanes": { ...STAGED, format: "q8" },
  "q8 that cannot be packed": {
    ...STAGED,
    format: "q8",
    tuning: tuning(false, undefined, "metal"),
  },
  "q8 of 8 lanes, an odd number of blocks each": { ...STAGED, format: "q8", k: ODD, n: 6 },
  "q4 of 8 lanes": { ...STAGED, format: "q4" },
  "mxfp4 packed for 2 lanes": {
    ...STAGED,
    ...SINGLE,
    format: "mxfp4",
    k: 704,
    n: 6,
    perJob: false,
  },
  // Workgroup memory has room for three of the four blocks of each lane.
  "mxfp4 of 16 lanes": { ...STAGED, ...SINGLE, format: "mxfp4", k: 2048, n: 6, perJob: false },
  "q4 of 16 lanes, down": { ...STAGED, format: "q4", k: 1024, n: 10, epilogue: "store" },
};

for (const [name, of] of Object.entries(ROWS_OF)) {
  // Of integers one of 8 bits, and floats of 4 bits; below are those of q4.
  const { test } = !isInteger(of.format) || name === "q8 of 16 lanes" ? Deno : drawn;
  test(`experts: a row's bits are its own, ${name}`, async () => {
    const { matrix } = upload(of);
    const most = of.topK === of.numExperts ? 37 : 25;
    const x = numbers(most * of.k, 5);
    const experts = choices(most, of);
    const rowOf = (r: number) => x.subarray(r * of.k, (r + 1) * of.k);
    const alone = [];
    for (let r = 0; r < most; r++) {
      const own = experts.slice(r * of.topK, (r + 1) * of.topK);
      alone.push(await run(matrix, rowOf(r), own, of));
    }
    assert.ok(alone.flat().every((words) => words.every((word) => word << 1 !== 0)));
    // Tiles of 2 to 8 on software; 1, 2 and 4 on hardware, or of integers that cannot be packed 8.
    for (const count of EXHAUSTIVE ? [2, 3, 6, 8, most] : [3, most]) {
      const order = shuffled(most, count).slice(0, count);
      const some = Float32Array.from(order.flatMap((r) => [...rowOf(r)]));
      const chosen = order.flatMap((r) => experts.slice(r * of.topK, (r + 1) * of.topK));
      const together = await run(matrix, some, chosen, of);
      for (const [i, r] of order.entries()) {
        const own = together.slice(i * of.topK, (i + 1) * of.topK);
        assert.deepEqual(own, alone[r], `row ${r} as ${i} of ${count}`);
      }
    }
  });
}

Deno.test("experts: gateUp and down of different formats read lists of their own tile sizes", async () => {
  const sizes = { numExperts: 4, shards: [4] };
  const up: Case = { ...STAGED, ...sizes, format: "q8", n: 272 };
  const down: Case = { ...STAGED, ...sizes, ...SINGLE, n: 16, k: 136 };
  const [rows, jobs] = [70, 140];
  const tileOf = ({ format }: Case) => tileSize({ ...sizes, rows, topK: 2 }, HARDWARE, format);
  assert.deepEqual([up, down].map(tileOf), [4, 8]);
  const [gateUpMatrix, downMatrix] = [upload(up).matrix, upload(down).matrix];
  const x = numbers(rows * up.k, 3);
  const experts = choices(rows, up);

  const act = await run(gateUpMatrix, x, experts, up);
  const acts = act.flatMap((words) => [...new Float32Array(words.buffer)]);
  const wanted = await run(downMatrix, Float32Array.from(acts), experts, down);

  const context = contextOf({ hidden: up.k, cells: 64, rows, tuning: HARDWARE });
  const scratch = new ScratchPool(device.gpu, "scratch");
  const out = device.filled(jobs * down.n, 0.5);
  const record = (graph: Graph) => {
    const of = {
      experts: graph.input("experts", rows, 2, device.words(experts)),
      jobs: { routing: { numExperts: 4, topK: 2 } as Routing, shared: 0 },
    };
    const input = graph.input("x", rows, up.k, device.floats(x));
    const both = graph.expertLinear(input, { ...of, matrix: gateUpMatrix, perJob: false }, "up");
    const gate = graph.gate(both, "silu", "gate");
    const y = graph.expertLinear(gate, { ...of, matrix: downMatrix, perJob: true }, "down");
    graph.copy(y, { out, outCols: down.n, outFirst: 0 }, "copy");
  };
  scratch.allocate([layout({ ...context, scratch }, record)]);
  await device.run(planOf({ ...context, scratch }, record));
  const found = await device.readWords(out);
  assert.deepEqual(found, Uint32Array.from(wanted.flatMap((words) => [...words])));
});

/** The rows of experts, the last `shared` of them as the rows of one MLP: [gate; up], or down's by output. */
function asOneMlp(values: Float32Array, of: Case): Float32Array {
  const { numExperts, n, k, epilogue, shared = 0 } = of;
  const first = numExperts - shared;
  const row = (expert: number, c: number) => {
    const at = (first + expert) * n + c;
    return [...values.subarray(at * k, (at + 1) * k)];
  };
  const parts = [...Array(shared).keys()];
  const columns = (count: number) => [...Array(count).keys()];
  const half = n / 2;
  const rows = epilogue === "swiglu"
    ? [0, half].flatMap((begin) =>
      parts.flatMap((e) => columns(half).flatMap((c) => row(e, begin + c)))
    )
    : columns(n).flatMap((c) => parts.flatMap((e) => row(e, c)));
  return Float32Array.from([...values.subarray(0, first * n * k), ...rows]);
}

for (const base of [GATE_UP, { ...DOWN, shards: [6] }, STAGED, { ...STAGED, ...SINGLE }]) {
  const name = `${base.epilogue}, ${base.k} columns`;
  const { test } = base.epilogue === "store" && base.k === STAGED.k ? drawn : Deno;
  test(`experts: those that every row has are parts of one MLP, ${name}`, async () => {
    for (const shared of EXHAUSTIVE ? [1, 2, 3] : [1, 3]) {
      const { format, numExperts, n, k: cols, tuning: { lanes } } = base;
      const apart = { ...base, topK: 2 + shared };
      const values = weights(format as FloatFormat, numExperts * n, cols);
      const shape = { format: format as FloatFormat, cols, lanes, shards: [numExperts * n] };
      const of = { ...apart, shared };
      const one = uploadMatrix(device, asOneMlp(values, of), shape);
      for (const rows of [1, 7]) {
        const routed = choices(rows, { ...base, numExperts: numExperts - shared });
        const experts = Array.from({ length: rows }, (_, r) => [
          ...routed.slice(2 * r, 2 * r + 2),
          ...Array.from({ length: shared }, (_, s) => numExperts - shared + s),
        ]).flat();
        const x = numbers((of.perJob ? experts.length : rows) * cols, 3);
        const wanted = await run(uploadMatrix(device, values, shape), x, experts, apart);
        assert.deepEqual(await run(one, x, experts, of), wanted);
      }
    }
  });
}

for (const format of ["q8", "q4"] as const) {
  Deno.test(`experts: ${format} through the cache gives what its weights in f32 give`, async () => {
    const of = { ...GATE_UP, k: 192, format, tuning: tuning(true) };
    const rows = of.numExperts * of.n;
    const { matrix, values } = upload(of);
    const { lanes } = matrix;
    const float = uploadMatrix(device, values, {
      format: "f32",
      cols: of.k,
      lanes,
      shards: [rows],
    });
    const count = EXHAUSTIVE ? 7 : 3; // tiles of 8 or of 2
    const experts = choices(count, of);
    const x = numbers(count * of.k, 3);
    assert.deepEqual(await run(matrix, x, experts, of), await run(float, x, experts, of));
  });

  Deno.test(`experts: ${format} staged rounds activations by vec8s`, async () => {
    const all = [[768, 4], [ODD, 1], [1024, 1], [ODD, 11]] as const;
    for (const [k, rows] of EXHAUSTIVE ? all : all.slice(0, 2)) {
      const of = { ...STAGED, format, k, n: 14, epilogue: "store" } as const;
      const { matrix, values } = upload(of);
      const experts = choices(rows, of);
      const x = numbers(rows * k, 3);
      const found = await run(matrix, x, experts, of);
      const actual = found.flatMap((words) => [...new Float32Array(words.buffer)]);
      assertWithin(actual, reference(roundedVec8s(x), values, experts, of));
    }
  });
}

for (const [add, biased] of [[true, false], [false, false], [true, true]] as const) {
  const name = `combined and ${add ? "added" : "stored"}${biased ? ", with biases" : ""}`;
  Deno.test(`experts: ${name}`, async () => {
    const [rows, topK, cols] = [3, 4, 264];
    const y = numbers(rows * topK * cols, 1);
    const shares = numbers(rows * topK, 2);
    const out = device.filled(rows * cols, 0.5);
    const experts = choices(rows, { ...GATE_UP, topK });
    const values = numbers(GATE_UP.numExperts * cols, 4);
    const bias = biased
      ? { values: device.floats(values), experts: device.words(experts) }
      : undefined;
    const buffers = { y: device.floats(y), weights: device.floats(shares), out, bias };
    await device.run([combineExperts(buffers, { rows, topK, cols, add, label: "test" })]);
    const wanted = Array.from({ length: rows * cols }, (_, at) => {
      const [r, c] = [Math.floor(at / cols), at % cols];
      const jobs = Array.from({ length: topK }, (_, k) => r * topK + k);
      const added = (job: number) => biased ? values[experts[job]! * cols + c]! : 0;
      const of = (job: number) => shares[job]! * (y[job * cols + c]! + added(job));
      return jobs.reduce((sum, job) => sum + of(job), add ? 0.5 : 0);
    });
    assertClose(await device.readFloats(out), wanted, 1e-5, "combined");
  });
}

Deno.test("experts: stages fit into workgroup memory and divide rows of whole lanes", () => {
  for (const maxComputeWorkgroupStorageSize of [16384, 32768, 49152]) {
    const limits = { maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize };
    for (const backend of ["vulkan", "metal"]) {
      const tuned = tuning(false, limits, backend);
      for (const format of Object.keys(BLOCK_VEC8S) as WeightFormat[]) {
        for (const cols of [256, 768, 1024, 1408, 1536, 2048, 2816, 2880, 5632, 7168]) {
          const lanes = lanesFor(format, cols, tuned.lanes);
          const matrix = {
            format,
            rows: 64,
            cols,
            lanes,
            shards: [],
            rowOrder: "stacked",
          } as const;
          const sizes = [1, 3, 9, 37, 500].map((rows) =>
            tileSize({ rows, topK: 2, numExperts: 4 }, tuned, format)
          );
          for (const tile of new Set(sizes)) {
            const shape = expertShape(matrix, { tile, outputs: 64 }, tuned);
            const what = `${format} of ${cols}, tiles of ${tile}, ${JSON.stringify(shape)}`;
            const blocks = cols / 8 / BLOCK_VEC8S[format];
            const whole = blocks % expertLanes(matrix, tuned) === 0;
            if (shape.kind === "cached") {
              assert.ok(!whole, what);
              continue;
            }
            const { kind, dots, stage } = shape;
            const buffers = kind === "prefetch" ? 2 : 1;
            const bytes = (dots === "packed" ? 12 : 32) * tile * stage * buffers + 4 * tile;
            assert.ok(bytes <= maxComputeWorkgroupStorageSize, what);
            assert.ok(!whole || cols / 8 % stage === 0, what);
          }
        }
      }
    }
  }
});
