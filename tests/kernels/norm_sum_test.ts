import assert from "node:assert/strict";
import { combineExperts } from "../../kernels/experts/experts.ts";
import { normSum } from "../../kernels/norm/norm_sum.ts";
import { type NormedBranch, rmsNorm } from "../../kernels/norm/rms_norm.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const CASES = [[136, 16, 1, 3], [704, 8, 2, 8], [4104, 512, 3, 8]] as const;
const ROWS = 3;

for (const [cols, lanes, splitK, count] of CASES) {
  const what = `${cols} columns, ${lanes} lanes, ${splitK} ranges of k`;
  const shape = { rows: ROWS, cols, eps: 1e-6, lanes, label: "test" };
  const sums = () => device.floats(numbers(splitK * ROWS * cols, 1));
  const weight = (seed: number) => device.floats(numbers(cols, seed));
  const experts = () => ({
    outputs: device.floats(numbers(ROWS * count * cols, 2)),
    shares: device.floats(numbers(ROWS * count, 3)),
    count,
    weight: weight(5),
  });

  Deno.test(`norm_sum: the bits of two norms and a combination, ${what}`, async () => {
    const x = { sums: sums(), splitK, weight: weight(4) };
    const of = experts();
    const [found, expected] = [device.filled(ROWS * cols), device.filled(ROWS * cols)];
    const sum = device.filled(ROWS * cols);
    await device.run([
      normSum({ x, experts: of, out: found }, shape),
      combineExperts(
        { y: of.outputs, weights: of.shares, out: sum, bias: undefined },
        { rows: ROWS, topK: count, cols, add: false, label: "test" },
      ),
      ...rmsNorm({ from: x, weight: x.weight, out: expected }, shape),
      ...rmsNorm({ from: { x: sum }, weight: of.weight, out: expected }, { ...shape, put: "add" }),
    ]);
    const words = await device.readWords(found);
    assert.ok(words.some((word) => word !== 0));
    assert.deepEqual(words, await device.readWords(expected));
  });

  for (const scaled of [false, true]) {
    Deno.test(`a norm that adds such a sum, normed, to its rows${scaled ? ", and multiplies them" : ""}: the bits of both apart, ${what}`, async () => {
      const x = { sums: sums(), splitK, weight: weight(4) };
      const of = experts();
      const scalar = scaled ? device.floats(numbers(1, 8)) : undefined;
      const outs = () => ({
        stream: device.floats(numbers(ROWS * cols, 6)),
        out: device.filled(ROWS * cols),
        kept: device.filled(ROWS * cols),
      });
      const [found, expected] = [outs(), outs()];
      const sum = device.filled(ROWS * cols);
      const normed = ({ stream, out, kept }: typeof found, branch: NormedBranch) =>
        rmsNorm({
          from: { x: stream, branch, scalar },
          weight: weight(9),
          out,
          keep: { what: "input", out: kept },
        }, shape);
      await device.run([
        ...normed(found, {
          sums: x.sums,
          splitK,
          weight: weight(7),
          eps: shape.eps,
          experts: { ...of, sumsWeight: x.weight },
        }),
        normSum({ x, experts: of, out: sum }, shape),
        ...normed(expected, { sums: sum, splitK: 1, weight: weight(7), eps: shape.eps }),
      ]);
      for (const name of ["stream", "out", "kept"] as const) {
        const words = await device.readWords(found[name]);
        assert.ok(words.some((word) => word !== 0));
        assert.deepEqual(words, await device.readWords(expected[name]), name);
      }
    });
  }
}
