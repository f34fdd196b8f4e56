import { placeHeads } from "../../kernels/attention/place_heads.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { assertPlaced, PLACED_ROWS, type PlacedShape, placing } from "./placed.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const SHAPES: readonly (PlacedShape & { readonly splitK: number })[] = [
  { heads: 4, kvHeads: 2, headDim: 16, kvDtype: "f32", splitK: 4 },
  { heads: 3, kvHeads: 3, headDim: 80, kvDtype: "f16", splitK: 3 },
  { heads: 2, kvHeads: 1, headDim: 128, kvDtype: "bf16", splitK: 2 },
  { heads: 1, kvHeads: 1, headDim: 8, kvDtype: "f32", splitK: 1 },
];

for (const { splitK, ...shape } of SHAPES) {
  const { heads, kvHeads, headDim, kvDtype } = shape;
  Deno.test(`place_heads: ${heads} heads over ${kvHeads} of ${headDim}, ${kvDtype}, ${splitK} ranges of k`, async () => {
    const places = placing(device, shape);
    const count = PLACED_ROWS.length;
    const half = (heads + 2 * kvHeads) * headDim / 2;
    const sums = numbers(splitK * count * 2 * half, headDim);
    await device.run([placeHeads(
      { ...places.place, q: places.q, sums: device.floats(sums) },
      { ...places.shape, splitK, label: "test" },
    )]);
    await assertPlaced(device, places, (row, head) =>
      Array.from({ length: headDim }, (_, d) => {
        // First halves of all heads, then second halves.
        const at = Math.floor(d / (headDim / 2)) * half + head * headDim / 2 + d % (headDim / 2);
        return Array.from({ length: splitK }, (_, s) =>
          sums[(s * count + row) * 2 * half + at] ?? NaN)
          .reduce((sum, value) =>
            Math.fround(sum + value), 0);
      }));
  });
}
