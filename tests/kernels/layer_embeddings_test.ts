// Token embeddings of layers joined with a projection: the formula in float64, and a row's own bits.
import assert from "node:assert/strict";
import { joinEmbeddings, layerWords } from "../../kernels/norm/layer_embeddings.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [EPS, TOKEN_SCALE, PROJECTED_SCALE] = [1e-6, 16, 0.25];

for (const [rows, layers, width] of [[1, 3, 8], [5, 2, 72], [3, 4, 33]] as const) {
  Deno.test(`layer_embeddings: ${rows} rows, ${layers} layers of ${width}`, async () => {
    const size = rows * layers * width;
    const [tokens, projected, weight] = [numbers(size, 1), numbers(size, 2), numbers(width, 3)];
    projected.fill(0, 0, width); // of the first layer: eps alone is under the root
    const join = async (first: number, count: number) => {
      const words = layerWords({ rows: count, width });
      const out = device.filled(layers * words, -7);
      const part = (x: Float32Array) =>
        device.floats(x.slice(first * layers * width, (first + count) * layers * width));
      await device.run([
        joinEmbeddings(
          { tokens: part(tokens), projected: part(projected), weight: device.floats(weight), out },
          {
            rows: count,
            layers,
            width,
            eps: EPS,
            tokenScale: TOKEN_SCALE,
            projectedScale: PROJECTED_SCALE,
            label: "join",
          },
        ),
      ]);
      const all = await device.readFloats(out);
      assert.ok(all.every((x, i) => i % words < count * width || x === -7));
      return (layer: number, row: number) =>
        all.slice(layer * words + row * width, layer * words + (row + 1) * width);
    };
    const found = await join(0, rows);
    const last = await join(rows - 1, 1);
    for (let layer = 0; layer < layers; layer++) {
      assert.deepEqual(last(layer, 0), found(layer, rows - 1));
      for (let row = 0; row < rows; row++) {
        const at = (row * layers + layer) * width;
        const own = [...projected.slice(at, at + width)].map((x) => PROJECTED_SCALE * x);
        const root = Math.sqrt(own.reduce((sum, x) => sum + x * x, 0) / width + EPS);
        const wanted = own.map((x, i) =>
          (x / root * weight[i]! + TOKEN_SCALE * tokens[at + i]!) / Math.SQRT2
        );
        assertClose(found(layer, row), wanted, 1e-6, `layer ${layer}, row ${row}`);
      }
    }
  });
}
