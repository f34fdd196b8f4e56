import assert from "node:assert/strict";
import { scaleBy } from "../../kernels/elementwise/elementwise.ts";
import { combineExperts } from "../../kernels/experts/experts.ts";
import { type NormInput, type NormKept, rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-5;
const LEFT_ALONE = -7;
const NOWHERE = 0xffffffff;

function reference(x: Float32Array, weight: Float32Array): number[] {
  const square = x.reduce((sum, value) => sum + value * value, 0) / x.length;
  return Array.from(x, (value, c) => value / Math.sqrt(square + EPS) * (weight[c] ?? NaN));
}

const alone = (count: number) => Array<number>(count).fill(LEFT_ALONE);
const line = (x: Float32Array, cols: number, r: number) => x.subarray(r * cols, (r + 1) * cols);

// One lane for all, fewer vec8s than lanes, full rows of lanes, and some lanes with one vec8 more.
for (const lanes of [1, 16, 256, 512]) {
  for (const cols of [8, 200, 704, 4104]) {
    Deno.test(`rms_norm: ${cols} columns, ${lanes} lanes, into a window`, async () => {
      const rows = 3;
      const [outCols, outFirst] = [cols + 12, 4];
      const x = numbers(rows * cols, cols);
      const weight = numbers(cols, 1);
      const out = device.filled(rows * outCols, LEFT_ALONE);
      const buffers = { from: { x: device.floats(x) }, weight: device.floats(weight), out };
      const shape = { rows, cols, eps: EPS, lanes, outCols, outFirst, label: "test" };
      await device.run(rmsNorm(buffers, shape));
      const actual = await device.readFloats(out);
      for (let r = 0; r < rows; r++) {
        const found = line(actual, outCols, r);
        const expected = reference(line(x, cols, r), weight);
        assertClose(found.subarray(outFirst, outFirst + cols), expected, 1e-6, `row ${r}`);
        const around = [...found.subarray(0, outFirst), ...found.subarray(outFirst + cols)];
        assert.deepEqual(around, alone(12));
      }
    });
  }
}

for (const lanes of [16, 512]) {
  Deno.test(`rms_norm: a row's bits do not depend on the rows beside it, ${lanes} lanes`, async () => {
    const cols = 1032;
    const x = numbers(17 * cols, 5);
    const weight = device.floats(numbers(cols, 6));
    const normed = async (from: number, rows: number) => {
      const out = device.filled(rows * cols);
      const part = device.floats(x.subarray(from * cols, (from + rows) * cols));
      const shape = { rows, cols, eps: EPS, lanes, label: "test" };
      await device.run(rmsNorm({ from: { x: part }, weight, out }, shape));
      return [...await device.readWords(out)];
    };
    const all = await normed(0, 17);
    for (const [from, rows] of [[0, 1], [16, 1], [3, 2], [1, 16]] as const) {
      const expected = all.slice(from * cols, (from + rows) * cols);
      assert.deepEqual(await normed(from, rows), expected);
    }
  });
}

for (const lanes of [1, 16, 256, 512]) {
  Deno.test(`rms_norm: notes the scale of what it writes, ${lanes} lanes`, async () => {
    const [rows, cols, stride, jobs] = [5, 4104, 64, 3];
    // Rows of all sizes, one of zeros; the largest number anywhere in a row.
    const x = numbers(rows * cols, 9).map((value, i) =>
      value * [1, 1e-9, 0, 1e9, 1][i / cols | 0]!
    );
    for (const r of [0, 1, 3, 4]) x[r * cols + r * 997 % cols]! *= 40;
    const [out, plain] = [device.filled(rows * cols), device.filled(rows * cols)];
    const scales = device.filled(stride, LEFT_ALONE);
    const reduced = device.filled(stride + (rows + 1) * jobs, LEFT_ALONE);
    const weight = device.floats(numbers(cols, 1));
    const [from, shape] = [{ x: device.floats(x) }, { rows, cols, eps: EPS, lanes, label: "test" }];
    await device.run(
      rmsNorm({ from, weight, out, scales: { normed: scales, reduced, stride, jobs } }, shape),
    );
    await device.run(rmsNorm({ from, weight, out: plain }, shape));
    assert.deepEqual(await device.readWords(out), await device.readWords(plain));
    const found = device.filled(rows);
    await device.run([rowScales({ x: out, scales: found }, { rows, cols })]);
    const left = alone(stride - rows);
    const expected = [...await device.readFloats(found), ...left];
    assert.deepEqual([...await device.readFloats(scales)], expected);
    // Those of the other inputs are the largest.
    const cleared = Array<number>((1 + jobs) * rows).fill(2 ** 74);
    const others = [...cleared.slice(0, rows), ...left, ...cleared.slice(rows), ...alone(jobs)];
    assert.deepEqual([...await device.readFloats(reduced)], others);
  });
}

Deno.test("rms_norm: a row of zeros stays zero", async () => {
  const cols = 72;
  const x = device.filled(cols);
  const out = device.filled(cols, LEFT_ALONE);
  const shape = { rows: 1, cols, eps: EPS, lanes: 16, label: "test" };
  await device.run(rmsNorm({ from: { x }, weight: device.filled(cols, 1), out }, shape));
  assert.deepEqual(await device.readWords(out), new Uint32Array(cols));
});

const COLS = 136;
const WEIGHT = numbers(COLS, 2);

/** Normed rows of any input with 16 lanes, and what was kept. */
async function run(
  from: NormInput,
  rows: number,
  keep?: NormKept,
): Promise<{ out: Float32Array; kept: Float32Array | undefined }> {
  const out = device.filled(rows * COLS, LEFT_ALONE);
  const weight = device.floats(WEIGHT);
  const shape = { rows, cols: COLS, eps: EPS, lanes: 16, label: "test" };
  await device.run(rmsNorm({ from, weight, out, keep }, shape));
  return {
    out: await device.readFloats(out),
    kept: keep && await device.readFloats(keep.out),
  };
}

Deno.test("rms_norm: rows by index, any order, rows twice, lanes without a slot left alone", async () => {
  const x = device.floats(numbers(5 * COLS, 3));
  const all = await run({ x }, 5);
  const { out } = await run({ x, index: device.words([4, 0, NOWHERE, 4]) }, 4);
  const expected = [4, 0, undefined, 4].flatMap((r) =>
    r === undefined ? alone(COLS) : [...line(all.out, COLS, r)]
  );
  assert.deepEqual([...out], expected);
});

for (const format of ["bf16", "f16", "f32"] as const) {
  for (const shards of [[26], [8, 8, 10]]) {
    Deno.test(`rms_norm: token embeddings in ${format}, shards of ${shards}`, async () => {
      const table = weights(format, 26, COLS);
      const matrix = uploadMatrix(device, table, { format, cols: COLS, shards });
      const tokens = [0, 25, 7, 8, 15, 16, 7, 26, NOWHERE]; // the last two are no tokens
      const rows = device.words(packRows(tokens.map((token) => ({ token }))));
      const kept = device.filled(tokens.length * COLS, LEFT_ALONE);
      const from = { matrix, rows };
      const found = await run(from, tokens.length, { what: "input", out: kept });
      const values = tokens.map((token) =>
        token < 26 ? [...table.slice(token * COLS, (token + 1) * COLS)] : undefined
      );
      const x = device.floats(values.flatMap((row) => row ?? alone(COLS)));
      const plain = await run({ x }, tokens.length);
      const expected = values.flatMap((row, r) =>
        row ? [...line(plain.out, COLS, r)] : alone(COLS)
      );
      assert.deepEqual([...found.out], expected);
      assert.deepEqual([...found.kept ?? []], values.flatMap((row) => row ?? alone(COLS)));
    });
  }
}

Deno.test("rms_norm: keeps its input or its output in a window", async () => {
  const values = numbers(3 * COLS, 4);
  const x = device.floats(values);
  const plain = await run({ x }, 3);
  const window = { outCols: COLS + 16, outFirst: 4 };
  for (const what of ["input", "output"] as const) {
    const kept = device.filled(3 * (COLS + 16), LEFT_ALONE);
    const found = await run({ x }, 3, { what, out: kept, ...window });
    assert.deepEqual(found.out, plain.out);
    const source = what === "input" ? values : plain.out;
    const expected = [0, 1, 2].flatMap((
      r,
    ) => [...alone(4), ...line(source, COLS, r), ...alone(12)]);
    assert.deepEqual([...found.kept ?? []], expected);
  }
});

Deno.test("rms_norm: keeps its input by slot, also of rows by index", async () => {
  const values = numbers(5 * COLS, 8);
  const x = device.floats(values);
  for (const index of [undefined, [4, 1, 2]]) {
    const kept = device.filled(4 * COLS, LEFT_ALONE);
    const slot = device.words([3, NOWHERE, 0]);
    const from = index ? { x, index: device.words(index) } : { x };
    const found = await run(from, 3, { what: "slot", out: kept, slot });
    const of = (r: number) => line(values, COLS, index?.[r] ?? r);
    const expected = [...of(2), ...alone(2 * COLS), ...of(0)];
    assert.deepEqual([...found.kept ?? []], expected);
    const plain = await run(from, 3);
    assert.deepEqual(found.out, plain.out);
  }
});

Deno.test("rms_norm: the sums of a split matmul are added first, and x keeps the result", async () => {
  const [rows, cols, splitK] = [3, 24, 2];
  const count = rows * cols;
  const [before, sums] = [numbers(count, 1), numbers(splitK * count, 2)];
  const added = before.map((value, i) =>
    Math.fround(value + Math.fround((sums[i] ?? NaN) + (sums[count + i] ?? NaN)))
  );
  const weight = device.floats(numbers(cols, 3));
  const shape = { rows, cols, eps: EPS, lanes: 4, label: "test" };
  const [x, out, alone] = [device.floats(before), device.filled(count), device.filled(count)];
  await device.run(rmsNorm({ from: { x, sums: device.floats(sums), splitK }, weight, out }, shape));
  await device.run(rmsNorm({ from: { x: device.floats(added) }, weight, out: alone }, shape));
  assert.deepEqual(await device.readFloats(x), added);
  assert.deepEqual(await device.readWords(out), await device.readWords(alone));

  const [branch, total] = [device.filled(count), device.filled(count)];
  const left = sums.subarray(0, count).map((value, i) => value + (sums[count + i] ?? NaN));
  await device.run(
    rmsNorm({ from: { sums: device.floats(sums), splitK }, weight, out: branch }, shape),
  );
  await device.run(rmsNorm({ from: { x: device.floats(left) }, weight, out: total }, shape));
  assert.deepEqual(await device.readWords(branch), await device.readWords(total));
});

Deno.test("rms_norm: weighted outputs of experts are added first, as combine_experts does", async () => {
  for (const [rows, cols, experts] of [[3, 24, 1], [2, 264, 5], [1, 2048, 8]] as const) {
    const count = rows * cols;
    const [before, y] = [numbers(count, 1), numbers(count * experts, 2)];
    const weight = device.floats(numbers(cols, 3));
    const [outputs, shares] = [device.floats(y), device.floats(numbers(rows * experts, 4))];
    const shape = { rows, cols, eps: EPS, lanes: 256, label: "test" };
    const [stream, out] = [device.floats(before), device.filled(count)];
    const from = { stream, outputs, shares, experts };
    await device.run(rmsNorm({ from, weight, out }, shape));

    const [x, wanted] = [device.floats(before), device.filled(count)];
    const combine = { rows, topK: experts, cols, add: true, label: "test" };
    await device.run([
      combineExperts({ y: outputs, weights: shares, out: x }, combine),
      ...rmsNorm({ from: { x }, weight, out: wanted }, shape),
    ]);
    assert.deepEqual(await device.readWords(stream), await device.readWords(x));
    assert.deepEqual(await device.readWords(out), await device.readWords(wanted));
    const total = before.map((value, i) => {
      const [r, c] = [Math.floor(i / cols), i % cols];
      const share = numbers(rows * experts, 4).subarray(r * experts, (r + 1) * experts);
      const at = (k: number) => y[(r * experts + k) * cols + c] ?? NaN;
      return share.reduce((sum, value, k) => sum + value * at(k), value);
    });
    assertClose(await device.readFloats(stream), total, 1e-5, "x");
  }
});

Deno.test("rms_norm: adds to what out holds", async () => {
  const rows = 3;
  const from = { x: device.floats(numbers(rows * COLS, 9)) };
  const before = numbers(rows * COLS, 10);
  const out = device.floats(before);
  const weight = device.floats(WEIGHT);
  const shape = { rows, cols: COLS, eps: EPS, lanes: 16, label: "test" };
  await device.run(rmsNorm({ from, weight, out }, { ...shape, put: "add" }));
  const plain = await run(from, rows);
  const expected = before.map((value, i) => value + (plain.out[i] ?? NaN));
  // Drivers may fuse the last product with the addition: one rounding less.
  assertClose(await device.readFloats(out), expected, 2 ** -23, "added");
});

Deno.test("rms_norm: token embeddings are scaled before the norm and as they are kept", async () => {
  const table = weights("bf16", 26, COLS);
  const matrix = uploadMatrix(device, table, { format: "bf16", cols: COLS, shards: [26] });
  const rows = device.words(packRows([{ token: 3 }]));
  const kept = device.filled(COLS, LEFT_ALONE);
  const scale = 11.3125;
  const found = await run({ matrix, rows, scale }, 1, { what: "input", out: kept });
  const scaled = Float32Array.from(table.slice(3 * COLS, 4 * COLS), (value) => value * scale);
  assert.deepEqual(found.kept, scaled);
  assert.deepEqual(found.out, (await run({ x: device.floats(scaled) }, 1)).out);
});

for (const scaled of [false, true]) {
  for (const splitK of [1, 3]) {
    const name = `${splitK} ranges of k${scaled ? ", times a scalar" : ""}`;
    Deno.test(`rms_norm: a branch that is normed, added and normed has the bits of each apart, ${name}`, async () => {
      for (const [cols, lanes] of [[COLS, 16], [4104, 512]] as const) {
        const rows = 3;
        const [stream, parts] = [numbers(rows * cols, 7), numbers(splitK * rows * cols, 8)];
        const [inner, outer] = [device.floats(numbers(cols, 3)), device.floats(numbers(cols, 4))];
        const sums = { sums: device.floats(parts), splitK };
        const scalar = scaled ? device.floats(Float32Array.of(0.7)) : undefined;
        const shape = { rows, cols, eps: EPS, lanes, label: "test" };
        const [together, apart] = [device.floats(stream), device.floats(stream)];
        const [found, kept] = [device.filled(rows * cols), device.filled(rows * cols)];
        const from = { x: together, branch: { ...sums, weight: inner, eps: 1e-3 }, scalar };
        const keep = { what: "input", out: kept } as const;
        await device.run(rmsNorm({ from, weight: outer, out: found, keep }, shape));
        const product = scaled ? device.filled(rows * cols) : apart;
        const expected = device.filled(rows * cols);
        await device.run([
          ...rmsNorm({ from: sums, weight: inner, out: apart }, {
            ...shape,
            eps: 1e-3,
            put: "add",
          }),
          ...scalar ? [scaleBy({ x: apart, scalar, out: product }, { rows, cols, label: "" })] : [],
          ...rmsNorm({ from: { x: product }, weight: outer, out: expected }, shape),
        ]);
        const words = await device.readWords(product);
        assert.deepEqual(await device.readWords(together), words);
        assert.deepEqual(await device.readWords(kept), words);
        assert.deepEqual(await device.readWords(found), await device.readWords(expected));
      }
    });
  }
}
