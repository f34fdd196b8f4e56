import assert from "node:assert/strict";
import { normPair, pairsNorms } from "../../kernels/norm/norm_pair.ts";
import { rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { packRows } from "./rows.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const EPS = 1e-5;
const LEFT_ALONE = -7;
const NOWHERE = 0xffffffff;
const TOKENS = 12;

function reference(x: Float32Array, weight: Float32Array): number[] {
  const square = x.reduce((sum, value) => sum + value * value, 0) / x.length;
  return Array.from(x, (value, c) => value / Math.sqrt(square + EPS) * (weight[c] ?? NaN));
}

// Fewer vec8s than lanes, as many, and some lanes with one more.
for (const [cols, lanes] of [[8, 1], [72, 16], [512, 64], [4104, 512]] as const) {
  for (const format of ["bf16", "f16", "f32"] as const) {
    for (const indexed of [false, true]) {
      const what = indexed ? "input" : "output";
      const { test } = cols === 72 || format === "bf16" ? Deno : drawn;
      test(`norm_pair: ${cols} columns, ${lanes} lanes, ${format}, keeps its ${what}`, async () => {
        const rows = 4;
        const table = weights(format, TOKENS, cols);
        const matrix = uploadMatrix(device, table, { format, cols, shards: [TOKENS] });
        // A token that there is not, as that of padding may be.
        const tokens = [3, 0, TOKENS + 7, 11];
        const list = device.words(packRows(tokens.map((token) => ({ token }))));
        const h = numbers(5 * cols, 4);
        const [tokenGain, hiddenGain] = [numbers(cols, 5), numbers(cols, 6)];
        const index = indexed ? [4, NOWHERE, 0, 2] : [0, 1, 2, 3];
        const out = device.filled(rows * 2 * cols, LEFT_ALONE);
        const kept = { what, out: device.filled(rows * cols, LEFT_ALONE) } as const;
        const shape = { rows, cols, eps: EPS, lanes, label: "test" };
        const [x, weight] = [device.floats(h), device.floats(hiddenGain)];
        const by = indexed ? { index: device.words(index) } : {};
        const token = { matrix, rows: list, weight: device.floats(tokenGain) };
        await device.run([normPair({ token, hidden: { x, ...by, weight }, out, kept }, shape)]);
        const found = await device.readFloats(out);
        const half = (values: Float32Array, i: number) => values.subarray(i * cols, (i + 1) * cols);
        for (let r = 0; r < rows; r++) {
          const known = (tokens[r] ?? TOKENS) < TOKENS;
          const embedding = half(table, tokens[r] ?? 0);
          const expected = known
            ? reference(embedding, tokenGain)
            : Array<number>(cols).fill(LEFT_ALONE);
          assertClose(half(found, 2 * r), expected, 1e-6, `token of row ${r}`);
          const there = index[r] !== NOWHERE;
          const hidden = there ? reference(half(h, index[r] ?? 0), hiddenGain) : undefined;
          const second = hidden ?? Array<number>(cols).fill(LEFT_ALONE);
          assertClose(half(found, 2 * r + 1), second, 1e-6, `hidden row of row ${r}`);
        }
        // The bits of two norms.
        const twice = device.filled(rows * 2 * cols, LEFT_ALONE);
        const keep = { ...kept, out: device.filled(rows * cols, LEFT_ALONE) };
        const wide = { ...shape, outCols: 2 * cols };
        await device.run([
          ...rmsNorm({ from: { matrix, rows: list }, weight: token.weight, out: twice }, wide),
          ...rmsNorm({ from: { x, ...by }, weight, out: twice, keep }, { ...wide, outFirst: cols }),
        ]);
        assert.deepEqual(await device.readWords(out), await device.readWords(twice));
        assert.deepEqual(await device.readWords(kept.out), await device.readWords(keep.out));
      });
    }
  }
}

for (const [cols, lanes] of [[8, 1], [72, 16], [4104, 512]] as const) {
  for (const put of ["store", "pair", "half"] as const) {
    const how = `scales, ${put}`;
    Deno.test(`norm_pair: ${cols} columns, ${lanes} lanes, ranges of k added, ${how}`, async () => {
      const [rows, splitK, stride, jobs] = [3, 4, 5, 2];
      const table = weights("bf16", TOKENS, cols);
      const matrix = uploadMatrix(device, table, { format: "bf16", cols, shards: [TOKENS] });
      const list = device.words(packRows([3, 0, 11].map((token) => ({ token }))));
      const token = { matrix, rows: list, weight: device.floats(numbers(cols, 5)) };
      const [sums, weight] = [
        device.floats(numbers(splitK * rows * cols, 4)),
        device.floats(numbers(cols, 6)),
      ];
      const keep = () => ({ what: "input", out: device.filled(rows * cols) }) as const;
      const [kept, keptTwice] = [keep(), keep()];
      const stored = {
        normed: device.filled(rows),
        reduced: device.filled(stride + rows * jobs),
        stride,
        jobs,
      };
      const out = device.filled(rows * 2 * cols);
      const twice = device.filled(rows * 2 * cols);
      const xScales = device.filled(rows);
      const shape = { rows, cols, eps: EPS, lanes, label: "test" };
      const wide = { ...shape, outCols: 2 * cols };
      await device.run([
        normPair(
          { token, hidden: { x: sums, splitK, weight }, out, kept, scales: stored, put },
          shape,
        ),
        ...rmsNorm({ from: { matrix, rows: list }, weight: token.weight, out: twice }, wide),
        ...rmsNorm(
          { from: { sums, splitK }, weight, out: twice, keep: keptTwice },
          { ...wide, outFirst: cols },
        ),
        rowScales({ x: twice, scales: xScales }, { rows, cols: 2 * cols }),
      ]);
      assert.deepEqual(await device.readWords(stored.normed), await device.readWords(xScales));
      assert.deepEqual(await device.readWords(kept.out), await device.readWords(keptTwice.out));
      const reduced = await device.readFloats(stored.reduced);
      const untouched = (i: number) => i >= rows && i < stride;
      const largest = Float32Array.from(reduced, (_, i) => untouched(i) ? 0 : 2 ** 74);
      assert.deepEqual(reduced, largest);
      if (put === "store") {
        assert.deepEqual(await device.readWords(out), await device.readWords(twice));
        return;
      }
      const [found, expected] = [await device.readWords(out), await device.readFloats(twice)];
      const halves = new Float16Array(found.buffer, found.byteOffset);
      const scales = await device.readFloats(xScales);
      for (let r = 0; r < rows; r++) {
        for (let c = 0; c < 2 * cols; c++) {
          const value = (expected[r * 2 * cols + c] ?? NaN) * (scales[r] ?? NaN);
          if (put === "half") {
            assert.equal(halves[r * 2 * cols + c], Math.f16round(value));
            continue;
          }
          const at = r * 4 * cols + c;
          const hi = Math.fround(cut(value));
          assert.equal(halves[at], hi);
          assert.equal(halves[at + 2 * cols], Math.f16round(value - hi));
        }
      }
    });
  }
}

const bits = new Float32Array(1);
/** x with the 11 bits that f16 has. */
function cut(x: number): number {
  bits[0] = x;
  new Uint32Array(bits.buffer)[0]! &= 0xffffe000;
  return bits[0];
}

Deno.test("norm_pair: an embedding in several bindings has norms of its own", () => {
  const shards = [0, 6].map((first) => ({ first, rows: 6, operand: device.filled(16) }));
  const table = { format: "f32", rowOrder: "stacked", rows: TOKENS, cols: 8, lanes: 1 } as const;
  assert.equal(pairsNorms({ ...table, shards }), false);
  assert.equal(pairsNorms({ ...table, shards: shards.slice(0, 1) }), true);
});
