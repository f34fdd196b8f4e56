import assert from "node:assert/strict";
import { embed } from "../../kernels/norm/embed.ts";
import { openDevice } from "../gpu/device.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = -7;
const VOCAB = 26;

for (const format of ["bf16", "f16", "f32"] as const) {
  for (const shards of [[VOCAB], [8, 8, 10]]) {
    // 264 columns take two workgroups of 32 invocations of eight columns, the last not full.
    const cols = format === "bf16" ? 264 : 16;
    Deno.test(`embed: ${format}, shards of ${shards}, ${cols} columns, strided`, async () => {
      const outCols = cols + 3;
      const table = weights(format, VOCAB, cols);
      const matrix = uploadMatrix(device, table, { format, cols, shards });
      const tokens = [0, 25, 7, 8, 15, 16, 7, 26, 0xffffffff]; // the last two are no tokens
      const rows = device.words(packRows(tokens.map((token) => ({ token }))));
      const out = device.filled(tokens.length * outCols, LEFT_ALONE);
      const shape = { count: tokens.length, outCols, label: "test" };
      await device.run(embed({ matrix, rows, out }, shape));
      const expected = tokens.flatMap((token) =>
        Array.from({ length: outCols }, (_, c) => {
          const known = token < VOCAB && c < cols;
          return known ? table[token * cols + c] : LEFT_ALONE;
        })
      );
      assert.deepEqual([...await device.readFloats(out)], expected);
    });
  }
}

Deno.test("embed: scaled", async () => {
  const table = weights("bf16", VOCAB, 8);
  const matrix = uploadMatrix(device, table, { format: "bf16", cols: 8, shards: [VOCAB] });
  const out = device.filled(8);
  const rows = device.words(packRows([{ token: 5 }]));
  await device.run(embed({ matrix, rows, out }, { count: 1, scale: 2.5, label: "test" }));
  const expected = Float32Array.from(table.slice(40, 48), (value) => value * 2.5);
  assert.deepEqual(await device.readFloats(out), expected);
});
