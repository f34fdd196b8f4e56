// gateUp and down in one dispatch: to the bit what two dispatches give, whether words are waited for or made again.
import assert from "node:assert/strict";
import { normedRows } from "../../kernels/matmul/prologue/prologue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import { splitKOf } from "../../kernels/matmul/matmul_shape.ts";
import {
  handoffWords,
  handsOff,
  matmulsWithHandoff,
} from "../../kernels/matmul/handoff/handoff.ts";
import { normLanes } from "../../kernels/norm/rms_norm.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat, Quantization } from "../../src/gpu/weight_format.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { pack, roundedVec8s, uploadQuantized } from "./quantized.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 16,
});
const EPS = 1e-6;

const silu = (x: number) => x / (1 + Math.exp(-x));
const times = (matrix: Float32Array, x: ArrayLike<number>, r: number) => {
  let sum = 0;
  for (let k = 0; k < x.length; k++) sum += (matrix[r * x.length + k] ?? NaN) * (x[k] ?? NaN);
  return sum;
};

interface Shape {
  readonly hidden: number;
  readonly intermediate: number;
  readonly format: FloatFormat | Quantization;
  readonly normed: boolean;
}

const SHAPES: readonly Shape[] = [
  { hidden: 128, intermediate: 256, format: "bf16", normed: false },
  { hidden: 256, intermediate: 1536, format: "f16", normed: true }, // in ranges of k
  { hidden: 128, intermediate: 640, format: "f32", normed: true },
  { hidden: 128, intermediate: 176, format: "bf16", normed: true }, // down's last block is a part of one
  // Ranges of two lengths that are padded to one.
  { hidden: 128, intermediate: 160, format: "bf16", normed: false },
  { hidden: 128, intermediate: 192, format: "bf16", normed: false },
  { hidden: 256, intermediate: 704, format: "bf16", normed: false },
  { hidden: 256, intermediate: 768, format: "q8", normed: false },
  { hidden: 512, intermediate: 1536, format: "q8", normed: true }, // in ranges of k
  { hidden: 512, intermediate: 1024, format: "q4", normed: true },
];

/** A matrix of one shard, the weights that it stands for, and x as it multiplies it. */
function matrixOf(format: Shape["format"], rows: number, cols: number) {
  if (format === "q8" || format === "q4") {
    const values = numbers(rows * cols, rows + cols);
    const matrix = uploadQuantized(device, values, { format, cols, most: HARDWARE.lanes });
    const exact = pack(values, { format, cols, lanes: matrix.lanes }).values;
    return { matrix, exact, taken: roundedVec8s };
  }
  const exact = weights(format, rows, cols);
  const matrix = uploadMatrix(device, exact, { format, cols, lanes: 16, shards: [rows] });
  return { matrix, exact, taken: (x: Float32Array) => x };
}

for (const [i, { hidden, intermediate, format, normed }] of SHAPES.entries()) {
  for (const [j, turns] of [0, 50_000].entries()) {
    const title = `${hidden} to ${intermediate}, ${format}${normed ? ", normed" : ""}`;
    // In turn, so that floats and integers, normed or not, wait and do not wait.
    const isShort = [1, 3, 5].includes(i) && (i + (i >> 1)) % 2 === j;
    const { test } = isShort ? Deno : drawn;
    test(`matmuls with handoffs: ${title}, ${turns} turns`, async () => {
      const first = matrixOf(format, 2 * intermediate, hidden);
      const second = matrixOf(format, hidden, intermediate);
      const [gateUp, down] = [first.matrix, second.matrix];
      const splitK = splitKOf(down, HARDWARE);
      const use = { gateUp, down, splitK, tuning: HARDWARE };
      assert.ok(handsOff(use));
      const [x, gain] = [numbers(hidden, 1), numbers(hidden, 2).map((value) => value + 2)];
      const norm = { weight: device.floats(gain), eps: EPS };
      const lanes = normLanes({ cols: hidden, lanes: HARDWARE.rowLanes });
      const prologue = normed
        ? { prologue: normedRows({ ...norm, lanes }, { cols: hidden, rows: 1 }) }
        : {};
      const own = { x: device.floats(x), act: device.filled(intermediate) };
      const expected = device.filled(splitK * hidden);
      const launch = { rows: 1, tuning: HARDWARE, label: "apart" };
      await device.run([
        ...matmul({ matrix: gateUp, x: own.x, out: own.act }, {
          ...launch,
          ...prologue,
          epilogue: "swiglu",
        }),
        ...matmul({ matrix: down, x: own.act, out: expected }, {
          ...launch,
          epilogue: "store",
          splitK,
        }),
      ]);
      const wanted = await device.readWords(expected);

      const handoff = device.words(new Uint32Array(handoffWords(intermediate)));
      const out = device.filled(splitK * hidden, NaN);
      const of = {
        ...use,
        turns,
        gate: "gate_silu" as const,
        label: "joined",
        ...normed ? { norm: { ...norm, lanes } } : {},
      };
      // What one leaves, the next finds.
      for (let run = 0; run < 3; run++) {
        await device.run([matmulsWithHandoff({ ...own, handoff, out }, of)]);
        assert.deepEqual(await device.readWords(out), wanted);
        assert.ok((await device.readWords(handoff)).every((word) => word === 0));
      }

      // Where the first's workgroups never run, the second's make the words.
      const joined = matmulsWithHandoff(
        { ...own, handoff, out: device.filled(splitK * hidden) },
        of,
      );
      const [, y, z] = joined.workgroups;
      await device.run([{
        ...joined,
        buffers: { ...joined.buffers, b_out: out },
        constants: { ...joined.constants, b_PLACES_BEFORE: 0, b_TURNS: 0 },
        workgroups: [1, y, z - (joined.groupsBefore ?? 0)],
      }]);
      assert.deepEqual(await device.readWords(out), wanted);

      const square = x.reduce((sum, value) => sum + value * value, 0) / hidden;
      const scale = normed ? 1 / Math.sqrt(square + EPS) : 1;
      const input = x.map((value, i) => value * scale * (normed ? gain[i] ?? NaN : 1));
      const product = (r: number) => times(first.exact, first.taken(input), r);
      const act = await device.readFloats(own.act);
      const gatedProducts = Array.from(
        { length: intermediate },
        (_, r) => silu(product(r)) * product(intermediate + r),
      );
      assertClose(act, gatedProducts, 1e-4, "gateUp");
      const found = await device.readFloats(out);
      const sums = Array.from(
        { length: hidden },
        (_, c) =>
          Array.from({ length: splitK }, (_, z) => found[z * hidden + c] ?? NaN)
            .reduce((sum, value) => sum + value, 0),
      );
      const taken = second.taken(act);
      const all = Array.from(
        { length: hidden },
        (_, r) => times(second.exact, taken, r),
      );
      assertClose(Float32Array.from(sums), all, 1e-4, "down");
    });
  }
}

Deno.test("matmuls hand off where x of both stays in workgroup memory", () => {
  const matrix = (rows: number, cols: number): Matrix => ({
    format: "bf16",
    rowOrder: "stacked",
    rows,
    cols,
    lanes: 16,
    shards: [{ operand: device.filled(4), first: 0, rows }],
  });
  const use = {
    gateUp: matrix(6144, 1024),
    down: matrix(1024, 3072),
    splitK: 4,
    tuning: HARDWARE,
  };
  assert.ok(handsOff(use));
  assert.ok(handsOff({ ...use, gateUp: matrix(1408, 256), down: matrix(256, 704), splitK: 1 }));
  const long = { gateUp: matrix(2192, 256), down: matrix(256, 1096), splitK: 1 };
  assert.ok(
    !handsOff({ ...use, ...long }),
    "more blocks than are loaded ahead, the last one a part",
  );
  assert.ok(!handsOff({ ...use, gateUp: matrix(28672, 4096), down: matrix(4096, 14336) }));
  assert.ok(!handsOff({ ...use, tuning: tuning(true) }));
  const staged = new Map([[1, { stage: 32, groups: 8 }]]);
  const launches = new Map([use.gateUp, use.down].map((of) => [shapeKey(of), staged]));
  const measured = { ...use, tuning: { ...HARDWARE, launches } };
  assert.ok(handsOff(measured), "launches of each alone do not count");
  const [x, words] = [device.filled(1024), device.words(new Uint32Array(handoffWords(3072)))];
  const buffers = { x, handoff: words, act: device.filled(3072), out: device.filled(4096) };
  const joined = matmulsWithHandoff(buffers, { ...measured, gate: "gate_silu", label: "joined" });
  const { kernel } = matmulsWithHandoff(buffers, { ...use, gate: "gate_silu", label: "joined" });
  assert.equal(joined.kernel.name, kernel.name);
});
