// The matmul that keeps x of a whole range of k in workgroup memory: the bits of the others, whatever brings x.

import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import { splitsOf } from "../../kernels/attention/splits.ts";
import { combinedHeads, gatedHeads, normedRows } from "../../kernels/matmul/prologue/prologue.ts";
import { gatesHeads, normsRows } from "../../kernels/matmul/prologue/norms_rows.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { matmulShape, shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import { gatedNorm } from "../../kernels/norm/gated_norm.ts";
import { normLanes, rmsNorm } from "../../kernels/norm/rms_norm.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertWithin, boundedDot } from "./bounds.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";
import { packRows } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 32768,
  maxStorageBuffersPerShaderStage: 16,
});
const N = 70; // leaves a workgroup of pairs unfilled

interface Use {
  readonly rows: number;
  readonly splitK: number;
}

/** A tuning under which the matrix is launched with these stages and groups. */
function launched(matrix: Matrix, stage: number, groups: number, rows: number): Tuning {
  const launches = new Map([[shapeKey(matrix), new Map([[rows, { stage, groups }]])]]);
  return { ...HARDWARE, launches };
}

function matrixOf(format: "bf16" | "f32" | "q8" | "q4", cols: number): Matrix {
  const { lanes } = HARDWARE;
  if (format === "q8" || format === "q4") {
    return uploadQuantized(device, numbers(N * cols, 3), { format, cols, most: lanes });
  }
  return uploadMatrix(device, weights(format, N, cols), { format, cols, lanes, shards: [40, 30] });
}

async function run(
  matrix: Matrix,
  x: Operand,
  { rows, splitK }: Use,
  tuning: Tuning,
): Promise<Uint32Array> {
  const out = device.filled(splitK * rows * matrix.rows);
  const shape = { rows, splitK, epilogue: "store", tuning, label: "test" } as const;
  await device.run(matmul({ matrix, x, out }, shape));
  return await device.readWords(out);
}

/** Rows, and groups of lanes that share a column. */
const ROWS = [[1, 4], [3, 16], [4, 8], [5, 8]] as const;

for (const format of ["bf16", "f32", "q8", "q4"] as const) {
  for (const [cols, splitK] of [[1024, 1], format === "q4" ? [2048, 2] : [1536, 2]] as const) {
    const { test } = format === (splitK === 1 ? "bf16" : "q4") ? Deno : drawn;
    test(`matmul resident: ${format}, ${cols} in ${splitK}, has the bits of stages`, async () => {
      const matrix = matrixOf(format, cols);
      const range = cols / 8 / splitK;
      for (const [rows, groups] of EXHAUSTIVE ? ROWS : ROWS.slice(1, 3)) {
        const use = { rows, splitK };
        const x = device.floats(numbers(rows * cols, rows));
        const staged = launched(matrix, range % 64 === 0 ? 64 : 32, 8, rows);
        const resident = launched(matrix, range, groups, rows);
        assert.equal(matmulShape(matrix, { ...use, tuning: resident }).kind, "resident");
        assert.notEqual(matmulShape(matrix, { ...use, tuning: staged }).kind, "resident");
        const expected = await run(matrix, x, use, staged);
        assert.deepEqual(await run(matrix, x, use, resident), expected, `${rows} rows`);
        assert.ok(expected.some((word) => word << 1 !== 0));
      }
    });
  }
}

Deno.test("matmul resident: the sums of float64", async () => {
  const [cols, rows] = [1024, 3];
  const values = weights("bf16", N, cols);
  const { lanes } = HARDWARE;
  const matrix = uploadMatrix(device, values, { format: "bf16", cols, lanes, shards: [N] });
  const x = numbers(rows * cols, 9);
  const resident = launched(matrix, cols / 8, 8, rows);
  const words = await run(matrix, device.floats(x), { rows, splitK: 1 }, resident);
  const of = (values: Float32Array, i: number) => values.subarray(i * cols, (i + 1) * cols);
  const expected = Array.from(
    { length: rows * N },
    (_, i) => boundedDot(of(x, Math.floor(i / N)), of(values, i % N), lanes),
  );
  assertWithin(new Float32Array(words.buffer), expected);
});

interface Normed {
  readonly cols: number;
  readonly rows: number;
  readonly splitK: number;
  readonly groups: number;
  /** Whether v is stored a second time; default false. */
  readonly keeps?: boolean;
  readonly format?: "bf16" | "q8" | "q4";
  readonly widen?: number;
  /** Whether v is stored; default true. */
  readonly stores?: boolean;
  /** Whether the sums are normed before they are added, and then multiplied by a number; default neither. */
  readonly branch?: "normed" | "scaled";
}

for (
  const of of [
    { cols: 256, rows: 1, splitK: 0, groups: 8 },
    { cols: 256, rows: 6, splitK: 1, groups: 4, keeps: true },
    { cols: 1024, rows: 1, splitK: 4, groups: 4 },
    { cols: 1024, rows: 3, splitK: 2, groups: 16 },
    { cols: 1024, rows: 4, splitK: 4, groups: 8 },
    { cols: 1024, rows: 1, splitK: 2, groups: 8, keeps: true },
    { cols: 3072, rows: 1, splitK: 3, groups: 8 },
    { cols: 1024, rows: 1, splitK: 4, groups: 8, widen: 4 },
    { cols: 1024, rows: 1, splitK: 2, groups: 8, widen: 5, format: "q4" },
    { cols: 2048, rows: 1, splitK: 4, groups: 8, widen: 4, format: "q8", stores: false },
    { cols: 1024, rows: 1, splitK: 2, groups: 8, branch: "scaled" },
    { cols: 512, rows: 3, splitK: 1, groups: 4, branch: "normed" },
    { cols: 2560, rows: 1, splitK: 4, groups: 8, branch: "scaled", widen: 4, format: "q4" },
  ] satisfies Normed[]
) {
  const {
    cols,
    rows,
    splitK,
    groups,
    keeps = false,
    format = "bf16",
    widen,
    stores = true,
    branch: kind,
  } = of;
  const { test } = keeps && rows > 1 || widen === 5 || kind === "scaled" && !widen ? Deno : drawn;
  const name = `${format}, ${rows} rows of ${cols} and ${splitK} sums, groups times ${widen ?? 1}${
    kind ? `, ${kind}` : ""
  }`;
  test(`matmul resident: norm as rms_norm's, ${name}`, async () => {
    const matrix = matrixOf(format, cols);
    const [x, weight] = [numbers(rows * cols, 4), device.floats(numbers(cols, 5))];
    const sums = device.floats(numbers(Math.max(1, splitK) * rows * cols, 6));
    const norm = { rows, cols, eps: 1e-6, lanes: HARDWARE.rowLanes, label: "norm" };
    const [before, normed] = [device.floats(x), device.filled(rows * cols)];
    const branch = kind && {
      weight: device.floats(numbers(cols, 7)),
      eps: 1e-3,
      scalar: kind === "scaled" ? device.floats([0.7]) : undefined,
    };
    const from = branch
      ? {
        x: before,
        branch: { sums, splitK, weight: branch.weight, eps: branch.eps },
        scalar: branch.scalar,
      }
      : splitK > 0
      ? { x: before, sums, splitK }
      : { x: before };
    await device.run(rmsNorm({ from, weight, out: normed }, norm));
    const use = { rows, splitK: 1 };
    const expected = await run(matrix, normed, use, launched(matrix, 32, 8, rows));

    const stream = device.filled(rows * cols);
    const out = device.filled(rows * N);
    const added = splitK > 0
      ? { sums, splitK, branch, stream: stores ? stream : undefined }
      : undefined;
    const lanes = normLanes({ cols, lanes: HARDWARE.rowLanes });
    const place = { outCols: 3 * cols, outFirst: cols };
    const kept = keeps ? { out: device.filled(rows * 3 * cols, -1), ...place } : undefined;
    const prologue = normedRows({ weight, eps: norm.eps, lanes, added, kept }, {
      cols,
      rows,
      widen,
    });
    const tuning = launched(matrix, cols / 8, groups, rows);
    const shape = { ...use, epilogue: "store", tuning, prologue, label: "test" } as const;
    await device.run(matmul({ matrix, x: device.floats(x), out }, shape));
    assert.deepEqual(await device.readWords(out), expected);
    if (splitK > 0) {
      const wanted = stores ? before : device.filled(rows * cols);
      assert.deepEqual(await device.readWords(stream), await device.readWords(wanted));
    }
    if (kept) {
      const [all, v] = [await device.readFloats(kept.out), await device.readFloats(before)];
      const wanted = Array.from(all, (_, i) => {
        const c = i % (3 * cols) - cols;
        return c >= 0 && c < cols ? v[Math.floor(i / 3 / cols) * cols + c] : -1;
      });
      assert.deepEqual([...all], wanted);
    }
  });
}

for (const cols of [1096, 2880]) {
  const rows = 1;
  const { test } = cols < 2048 ? Deno : drawn;
  test(`matmul resident: norm of a row of ${cols}, whose last blocks some lanes have not, as rms_norm's`, async () => {
    const matrix = matrixOf("bf16", cols);
    const use = { rows, splitK: 1 };
    const alone = { rows, added: undefined, bound: 0, tuning: HARDWARE };
    assert.ok(normsRows(matrix, alone));
    assert.ok(!normsRows(matrix, { ...alone, rows: 2 }));
    const [x, weight] = [device.floats(numbers(rows * cols, 4)), device.floats(numbers(cols, 5))];
    const norm = { rows, cols, eps: 1e-6, lanes: HARDWARE.rowLanes, label: "norm" };
    const [normed, out] = [device.filled(rows * cols), device.filled(rows * N)];
    await device.run(rmsNorm({ from: { x }, weight, out: normed }, norm));
    const expected = await run(matrix, normed, use, HARDWARE);
    assert.ok(expected.some((word) => word << 1 !== 0));
    const prologue = normedRows({ weight, eps: norm.eps, lanes: normLanes(norm) }, { cols, rows });
    const shape = { ...use, epilogue: "store", tuning: HARDWARE, prologue, label: "test" } as const;
    const plan = matmul({ matrix, x, out }, shape);
    for (const { kernel } of plan) assert.match(kernel.name, /^matmul_resident_.*_part_/);
    await device.run(plan);
    assert.deepEqual(await device.readWords(out), expected);
  });
}

for (
  const [cols, rows, experts, groups] of [[256, 1, 3, 8], [2048, 1, 8, 8], [
    1024,
    3,
    2,
    16,
  ]] as const
) {
  const { test } = rows > 1 ? Deno : drawn;
  test(`matmul resident: norm of ${rows} rows of ${cols} and ${experts} experts, as rms_norm's`, async () => {
    const matrix = matrixOf("bf16", cols);
    const [x, weight] = [numbers(rows * cols, 4), device.floats(numbers(cols, 5))];
    const added = {
      outputs: device.floats(numbers(rows * experts * cols, 6)),
      shares: device.floats(numbers(rows * experts, 7)),
      experts,
    };
    const norm = { rows, cols, eps: 1e-6, lanes: HARDWARE.rowLanes, label: "norm" };
    const [before, normed] = [device.floats(x), device.filled(rows * cols)];
    await device.run(rmsNorm({ from: { stream: before, ...added }, weight, out: normed }, norm));
    const use = { rows, splitK: 1 };
    const expected = await run(matrix, normed, use, launched(matrix, 32, 8, rows));
    assert.ok(expected.some((word) => word << 1 !== 0));

    const [stream, out] = [device.filled(rows * cols), device.filled(rows * N)];
    const lanes = normLanes({ cols, lanes: HARDWARE.rowLanes });
    const of = { weight, eps: norm.eps, lanes, added: { ...added, stream } };
    const prologue = normedRows(of, { cols, rows });
    const tuning = launched(matrix, cols / 8, groups, rows);
    const shape = { ...use, epilogue: "store", tuning, prologue, label: "test" } as const;
    await device.run(matmul({ matrix, x: device.floats(x), out }, shape));
    assert.deepEqual(await device.readWords(out), expected);
    assert.deepEqual(await device.readWords(stream), await device.readWords(before));
  });
}

for (
  const [format, cols, headDim, splitK, rows] of [
    ["q8", 1024, 128, 2, 1],
    ["q8", 1024, 64, 2, 3],
    ["bf16", 512, 32, 1, 4],
    ["q4", 2048, 128, 2, 2],
  ] as const
) {
  const { test } = format === "q8" && rows === 1 ? Deno : drawn;
  test(`matmul resident: norms and gates heads as gated_norm, ${format}, ${rows} rows of heads of ${headDim}`, async () => {
    const matrix = matrixOf(format, cols);
    const gate = { cols: 2 * cols + 8, first: cols + 4 };
    const x = device.floats(numbers(rows * cols, 4));
    const values = device.floats(numbers(rows * gate.cols, 5).map((z) => 4 * z));
    const weight = device.floats(numbers(headDim, 6));
    const normed = device.filled(rows * cols);
    const eps = 1e-6;
    await device.run([
      gatedNorm({ x, gate: values, weight, out: normed }, {
        rows,
        cols,
        headDim,
        gate,
        eps,
        lanes: HARDWARE.rowLanes,
        label: "norm",
      }),
    ]);
    const use = { rows, splitK };
    const expected = await run(matrix, normed, use, launched(matrix, 32, 8, rows));
    assert.ok(expected.some((word) => word << 1 !== 0));
    const prologue = gatedHeads({ weight, headDim, eps, gate: { values, ...gate } });
    const out = device.filled(splitK * rows * N);
    const shape = { ...use, epilogue: "store", tuning: HARDWARE, prologue, label: "test" } as const;
    await device.run(matmul({ matrix, x, out }, shape));
    assert.deepEqual(await device.readWords(out), expected);
  });
}

Deno.test("few rows of heads are normed and gated by a matmul whose ranges have whole heads", () => {
  const matrix = matrixOf("bf16", 1024);
  const use = { rows: 1, splitK: 2, bound: 0, headDim: 128, tuning: HARDWARE };
  assert.ok(gatesHeads(matrix, use));
  assert.ok(!gatesHeads(matrix, { ...use, rows: 5 }));
  assert.ok(!gatesHeads(matrix, { ...use, headDim: 1024 }));
  assert.ok(!gatesHeads(matrix, { ...use, tuning: { ...HARDWARE, storageBuffers: 4 } }));
  assert.ok(!gatesHeads(matrix, { ...use, tuning: { ...HARDWARE, software: true } }));
});

for (
  const of of [
    { heads: 4, headDim: 64, position: 500, rows: 1 },
    { heads: 2, headDim: 128, position: 1023, rows: 2 },
    { heads: 8, headDim: 32, position: 40, rows: 3 },
    { heads: 2, headDim: 128, position: 600, rows: 4 },
    { heads: 2, headDim: 128, position: 900, rows: 2, window: 300 },
    { heads: 4, headDim: 64, position: 100, rows: 1, window: 70, sunk: true },
    { heads: 2, headDim: 128, position: 900, rows: 3, sunk: true },
    { heads: 8, headDim: 64, position: 700, rows: 2, format: "q8" },
    { heads: 8, headDim: 64, position: 700, rows: 1, format: "q8", gated: "sigmoid" },
    { heads: 4, headDim: 64, position: 500, rows: 3, gated: "softplus" },
    // Many weights in ranges of k: twice the invocations of a workgroup.
    { heads: 32, headDim: 128, position: 100, rows: 1, outputs: 2050, splitK: 4, tablePages: 8 },
  ] as const
) {
  const {
    heads,
    headDim,
    position,
    rows,
    window,
    format,
    outputs,
    splitK,
    tablePages,
    sunk,
    gated,
  } = {
    window: undefined,
    sunk: false,
    gated: undefined,
    format: "bf16" as const,
    outputs: N,
    splitK: 1,
    tablePages: 96,
    ...of,
  };
  const name = `${format}, ${rows} rows at ${position}, ${heads} heads of ${headDim}, window ${
    window ?? "none"
  }${sunk ? ", sinks" : ""}${gated ? `, ${gated}` : ""}`;
  const isShort = format === "q8" && rows === 2 || gated && rows === 1 ||
    sunk && window !== undefined;
  const { test } = isShort ? Deno : drawn;
  test(`matmul resident: adds the splits of attention as attention_combine, ${name}`, async () => {
    const cols = heads * headDim;
    const cells = tablePages * 16;
    const { lanes } = HARDWARE;
    const matrix = outputs === N
      ? matrixOf(format, cols)
      : uploadMatrix(device, weights("bf16", outputs, cols), {
        format: "bf16",
        cols,
        lanes,
        shards: [outputs],
      });
    const kv = cells * heads * headDim;
    const shape = { heads, kvHeads: heads, headDim, tablePages, kvDtype: "f32" } as const;
    const words = partialWords(shape, rows, { software: false });
    const partial = { sums: device.filled(words.sums), stats: device.filled(words.stats) };
    const sinks = sunk ? device.floats(numbers(heads, 4)) : undefined;
    const [gateCols, gateFirst] = [2 * cols + 4, cols + 4];
    const gate = gated && {
      values: device.floats(numbers(rows * gateCols, 8)),
      cols: gateCols,
      first: gateFirst,
      gating: gated,
      width: gated === "softplus" ? headDim : 1,
    };
    const live = Array.from({ length: rows }, (_, i) => {
      const at = position + 1 - rows + i;
      return { position: at, cell: at, base: at + 1, live: Number(i !== 1 || rows < 3) };
    });
    const list = device.words(packRows(live));
    const attended = device.filled(rows * cols);
    await device.run(attention({
      q: device.floats(numbers(rows * cols, 1)),
      keys: device.floats(numbers(kv, 2)),
      values: device.floats(numbers(kv, 3)),
      rows: list,
      pages: device.words(Array(tablePages).keys().toArray()),
      partial,
      out: attended,
      sinks,
      gate,
    }, {
      ...shape,
      count: rows,
      perSlot: rows,
      paths: false,
      scale: 0.3,
      window,
      tuning: HARDWARE,
      label: "attention",
    }));
    const use = { rows, splitK };
    const expected = await run(matrix, attended, use, launched(matrix, 32, 8, rows));
    assert.ok(expected.some((word) => word << 1 !== 0));

    for (const widen of [1, 2]) {
      const out = device.filled(splitK * rows * outputs);
      const prologue = combinedHeads({
        ...partial,
        rows: list,
        heads,
        headDim,
        window,
        splits: splitsOf(shape),
        sinks,
        gate,
      }, widen);
      const tuning = launched(matrix, cols / 8, 8, rows);
      const of = { ...use, epilogue: "store", tuning, prologue, label: "test" } as const;
      await device.run(matmul({ matrix, x: device.filled(rows * cols), out }, of));
      assert.deepEqual(await device.readWords(out), expected);
    }
  });
}
