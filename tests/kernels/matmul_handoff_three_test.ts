// `o`, gateUp and down in one dispatch: to the bit what three give, whether words are waited for or made again. Those
// are held against float64 by other tests.
import assert from "node:assert/strict";
import { normedRows, PLAIN_ROWS } from "../../kernels/matmul/prologue/prologue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { splitKOf } from "../../kernels/matmul/matmul_shape.ts";
import {
  handoffWords,
  handsOff,
  handsOffFirst,
  matmulsWithHandoff,
  sumWords,
} from "../../kernels/matmul/handoff/handoff.ts";
import { normLanes } from "../../kernels/norm/rms_norm.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat, Quantization } from "../../src/gpu/weight_format.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";
import { exhaustive } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 20,
});
const EPS = 1e-6;

interface Shape {
  /** Outputs of attention. */
  readonly heads: number;
  readonly hidden: number;
  readonly intermediate: number;
  readonly format: FloatFormat | Quantization;
}

const SHAPES: readonly Shape[] = [
  { heads: 256, hidden: 256, intermediate: 704, format: "bf16" },
  { heads: 1024, hidden: 128, intermediate: 1536, format: "f16" }, // both in ranges of k
  { heads: 128, hidden: 384, intermediate: 176, format: "f32" },
  { heads: 1024, hidden: 256, intermediate: 768, format: "q8" },
];

function matrixOf(format: Shape["format"], rows: number, cols: number): Matrix {
  if (format === "q8" || format === "q4") {
    const values = numbers(rows * cols, rows + cols);
    return uploadQuantized(device, values, { format, cols, most: HARDWARE.lanes });
  }
  const exact = weights(format, rows, cols);
  return uploadMatrix(device, exact, { format, cols, lanes: 16, shards: [rows] });
}

/** A launch without the workgroups of the first of its `count` kernels, or of the first two. */
function without(joined: Dispatch, count: 1 | 2): Dispatch {
  const { constants, workgroups: [, y, z] } = joined;
  const { b_PLACES_BEFORE: first = 0, c_PLACES_BEFORE: both = 0 } = constants;
  const gone = count === 1 ? first : both;
  const places = { b_PLACES_BEFORE: 0, c_PLACES_BEFORE: both - gone };
  return { ...joined, constants: { ...constants, ...places }, workgroups: [1, y, z - gone] };
}

for (const { heads, hidden, intermediate, format } of SHAPES) {
  const title = `${heads} to ${hidden} to ${intermediate}, ${format}`;
  const { test } = format === "bf16" ? Deno : exhaustive;
  test(`three matmuls with handoffs: ${title}`, async () => {
    const o = matrixOf(format, hidden, heads);
    const gateUp = matrixOf(format, 2 * intermediate, hidden);
    const down = matrixOf(format, hidden, intermediate);
    const [ofO, splitK] = [o, down].map((matrix) => splitKOf(matrix, HARDWARE)) as [number, number];
    const use = { gateUp, down, splitK, tuning: HARDWARE };
    const [attended, x] = [device.floats(numbers(heads, 1)), device.floats(numbers(hidden, 2))];
    const first = { matrix: o, splitK: ofO, prologue: PLAIN_ROWS, x: attended };
    assert.ok(handsOff(use) && handsOffFirst(first, use));

    const [sums, stream] = [device.filled(ofO * hidden), device.filled(hidden, NaN)];
    const [act, out] = [device.filled(intermediate), device.filled(splitK * hidden)];
    const norm = {
      weight: device.floats(numbers(hidden, 3)),
      eps: EPS,
      lanes: normLanes({ cols: hidden, lanes: HARDWARE.rowLanes }),
      added: { sums, splitK: ofO, stream },
    };
    const launch = { rows: 1, tuning: HARDWARE, label: "apart" };
    const store = { ...launch, epilogue: "store" } as const;
    const prologue = normedRows(norm, { cols: hidden, rows: 1 });
    await device.run([
      ...matmul({ matrix: o, x: attended, out: sums }, { ...store, splitK: ofO }),
      ...matmul({ matrix: gateUp, x, out: act }, { ...launch, epilogue: "swiglu", prologue }),
      ...matmul({ matrix: down, x: act, out }, { ...store, splitK }),
    ]);
    const wanted = [await device.readWords(out), await device.readWords(stream)];

    const of = { ...use, gate: "gate_silu", label: "joined" } as const;
    /** What a launch leaves, of words that are zeros. */
    const left = async (
      kept: { readonly words: Operand; readonly handoff: Operand },
      turns: number,
      changed = (joined: Dispatch) => joined,
    ) => {
      const [stream, out] = [device.filled(hidden, NaN), device.filled(splitK * hidden, NaN)];
      const to = { ...norm, added: { ...norm.added, stream } };
      const how = { ...of, norm: to, first: { ...first, words: kept.words }, turns };
      await device.run([changed(matmulsWithHandoff({ x, handoff: kept.handoff, act, out }, how))]);
      return [await device.readWords(out), await device.readWords(stream)];
    };
    const zeros = () => ({
      words: device.words(new Uint32Array(sumWords(hidden))),
      handoff: device.words(new Uint32Array(handoffWords(intermediate))),
    });
    const kept = zeros();
    for (const turns of [0, 50_000, 50_000]) {
      assert.deepEqual(await left(kept, turns), wanted);
      // The next dispatch finds no words.
      for (const words of [kept.words, kept.handoff]) {
        assert.ok((await device.readWords(words)).every((word) => word === 0));
      }
    }
    // Where workgroups of the first never run, or of the first two, the others make the words.
    for (const count of [1, 2] as const) {
      assert.deepEqual(await left(zeros(), 0, (joined) => without(joined, count)), wanted);
    }
  });
}

Deno.test("three matmuls are joined where few words are read", () => {
  const matrix = (rows: number, cols: number): Matrix => ({
    format: "bf16",
    rowOrder: "stacked",
    rows,
    cols,
    lanes: 16,
    shards: [{ operand: device.filled(4), first: 0, rows }],
  });
  const use = {
    gateUp: matrix(2048, 512),
    down: matrix(512, 1024),
    splitK: 1,
    tuning: HARDWARE,
  };
  const first = { matrix: matrix(512, 512), splitK: 1, prologue: PLAIN_ROWS };
  assert.ok(handsOffFirst(first, use));
  assert.ok(!handsOffFirst({ ...first, prologue: { ...PLAIN_ROWS, widen: 2 } }, use));
  const wide = { gateUp: matrix(6144, 1024), down: matrix(1024, 3072), splitK: 4 };
  const o = { ...first, matrix: matrix(1024, 2048), splitK: 4 };
  assert.ok(!handsOffFirst(o, { ...use, ...wide }), "words");
});
