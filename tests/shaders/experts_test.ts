import assert from "node:assert/strict";
import {
  combineExperts,
  expertMatmul,
  expertTiles,
  tileWords,
} from "../../shaders/experts/experts.ts";
import { type FloatFormat, type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers, shuffled } from "../gpu/numbers.ts";
import { assertWithin, type Bounded, boundedDot, gated } from "./bounds.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { pack, uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

interface Case {
  readonly format: FloatFormat;
  readonly epilogue: "store" | "swiglu";
  readonly numExperts: number;
  readonly topK: number;
  /** Rows of W an expert. */
  readonly n: number;
  readonly k: number;
  readonly perJob: boolean;
  /** Experts in each shard. */
  readonly shards: readonly number[];
  readonly tuning: Tuning;
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

function upload(values: Float32Array, of: Case): Matrix {
  return uploadMatrix(device, values, {
    format: of.format,
    cols: of.k,
    lanes: of.tuning.lanes,
    shards: of.shards.map((experts) => experts * of.n),
  });
}

/** Outputs of every job, [jobs][outputs]. */
async function run(matrix: Matrix, x: Float32Array, experts: readonly number[], of: Case) {
  const jobs = { rows: experts.length / of.topK, topK: of.topK, numExperts: of.numExperts };
  const outputs = of.epilogue === "swiglu" ? of.n / 2 : of.n;
  const out = device.filled(experts.length * outputs, 0.5);
  const lists = { experts: device.words(experts), tiles: device.filled(tileWords(jobs)) };
  await device.run([
    ...expertTiles(lists, { ...jobs, tuning: of.tuning, label: "tiles" }),
    ...expertMatmul({ matrix, x: device.floats(x), out, ...lists }, {
      ...jobs,
      epilogue: of.epilogue,
      perJob: of.perJob,
      tuning: of.tuning,
      label: "test",
    }),
  ]);
  const words = await device.readWords(out);
  return experts.map((_, job) => words.slice(job * outputs, (job + 1) * outputs));
}

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
const CASES: Readonly<Record<string, readonly [Case, rows: number]>> = {
  "gate and up, software": [GATE_UP, 5],
  "gate and up, hardware": [{ ...GATE_UP, tuning: tuning(false) }, 3],
  "down in three shards": [{ ...DOWN, shards: [3, 1, 2] }, 9],
  "one row": [{ ...GATE_UP, format: "f32", shards: [2, 4] }, 1],
  "one expert": [{ ...DOWN, numExperts: 1, topK: 1, shards: [1] }, 17],
  "more experts than jobs": [{ ...DOWN, numExperts: 40, topK: 3, n: 2, shards: [40] }, 4],
};

for (const [name, [of, rows]] of Object.entries(CASES)) {
  Deno.test(`experts: ${name}`, async () => {
    const values = weights(of.format, of.numExperts * of.n, of.k);
    const experts = choices(rows, of);
    const x = numbers((of.perJob ? experts.length : rows) * of.k, 3);
    const found = await run(upload(values, of), x, experts, of);
    const actual = found.flatMap((words) => [...new Float32Array(words.buffer)]);
    assertWithin(actual, reference(x, values, experts, of));
  });
}

for (const software of [true, false]) {
  Deno.test(`experts: a row's bits are its own, ${software ? "software" : "hardware"}`, async () => {
    const of = { ...GATE_UP, tuning: tuning(software), shards: [4, 2] };
    const matrix = upload(weights(of.format, of.numExperts * of.n, of.k), of);
    const most = 25;
    const x = numbers(most * of.k, 5);
    const experts = choices(most, of);
    const rowOf = (r: number) => x.subarray(r * of.k, (r + 1) * of.k);
    const alone = [];
    for (let r = 0; r < most; r++) {
      const own = experts.slice(r * of.topK, (r + 1) * of.topK);
      alone.push(await run(matrix, rowOf(r), own, of));
    }
    for (const count of [2, 3, 8, 25]) { // tiles of 2, 2, 8 and 8
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

for (const format of ["q8", "q4"] as const) {
  Deno.test(`experts: ${format} gives what its weights in f32 give`, async () => {
    const of = { ...GATE_UP, k: 192, tuning: tuning(false) };
    const rows = of.numExperts * of.n;
    const values = numbers(rows * of.k, 9);
    const quantized = uploadQuantized(device, values, {
      format,
      cols: of.k,
      most: of.tuning.lanes,
    });
    const { lanes } = quantized;
    const exact = pack(values, { format, cols: of.k, lanes }).values;
    const float = uploadMatrix(device, exact, { format: "f32", cols: of.k, lanes, shards: [rows] });
    const experts = choices(7, of);
    const x = numbers(7 * of.k, 3);
    assert.deepEqual(await run(quantized, x, experts, of), await run(float, x, experts, of));
  });
}

for (const add of [true, false]) {
  Deno.test(`experts: combined and ${add ? "added" : "stored"}`, async () => {
    const [rows, topK, cols] = [3, 4, 264];
    const y = numbers(rows * topK * cols, 1);
    const shares = numbers(rows * topK, 2);
    const out = device.filled(rows * cols, 0.5);
    const buffers = { y: device.floats(y), weights: device.floats(shares), out };
    await device.run([combineExperts(buffers, { rows, topK, cols, add, label: "test" })]);
    const wanted = Array.from({ length: rows * cols }, (_, at) => {
      const [r, c] = [Math.floor(at / cols), at % cols];
      const jobs = Array.from({ length: topK }, (_, k) => r * topK + k);
      return jobs.reduce((sum, job) => sum + shares[job]! * y[job * cols + c]!, add ? 0.5 : 0);
    });
    assertClose(await device.readFloats(out), wanted, 1e-5, "combined");
  });
}
