import { deepEqual, equal, throws } from "node:assert/strict";
import { GROUP, lanesFor } from "../../../src/gpu/weight_format.ts";
import { openCheckpoint } from "../../../src/model/checkpoint/checkpoint.ts";
import {
  blocksConfig,
  blocksToLanes,
  blockValues,
  packBlocks,
  storedShape,
} from "../../../src/model/checkpoint/quantized/blocks.ts";
import { weights } from "../../kernels/matrices.ts";
import { pack } from "../../kernels/quantized.ts";
import { type Files, tensorFile, withFolder } from "../folders.ts";

const COLS = 256;

/** Rows with what is hard to round: zeros, ties, the smallest and the largest numbers, one sign alone. */
function hardRows(): Float32Array {
  const values = new Float32Array(weights("f32", 8, COLS));
  values.fill(0, 0, GROUP);
  values.fill(-0, GROUP, 2 * GROUP);
  for (let i = 0; i < GROUP; i++) {
    values[2 * GROUP + i] = (i - 16) / 2; // halves of the step of q4
    values[3 * GROUP + i] = (i + 0.5) * 127 / 31.5; // of q8
    values[4 * GROUP + i] = (i - 9) * 2 ** -20; // scales below the normal f16
    values[5 * GROUP + i] = (i - 20) * 1e6; // above the largest f16
    values[6 * GROUP + i] = i % 2 === 0 ? 3 : -3; // the largest of both signs
    values[7 * GROUP + i] = (i - 15) * 1e-9; // scales that round to 0
  }
  return values;
}

for (const format of ["q8", "q4"] as const) {
  Deno.test(`blocks: ${format} is to the bit what the shader packs, in the order of any lanes`, () => {
    const values = hardRows();
    const blocks = packBlocks(values, format);
    equal(blocks.length, 8 * storedShape(format, [8, COLS])[1]);
    for (const most of [1, 2, 4, 16]) {
      const lanes = lanesFor(format, COLS, most);
      const expected = pack(values, { format, cols: COLS, lanes });
      const { words, scales } = blocksToLanes({ format, cols: COLS, lanes })(blocks);
      deepEqual(new Uint32Array(words.buffer), expected.words, `${lanes} lanes`);
      deepEqual(new Uint32Array(scales.buffer), expected.scales, `${lanes} lanes`);
      deepEqual(blockValues(blocks, format).map((x) => x + 0), expected.values.map((x) => x + 0));
    }
  });
}

Deno.test("blocks: what no conversion wrote is refused in one line", () => {
  const file = (change: Record<string, unknown>): Files => ({
    "config.json": { quantization_config: { ...blocksConfig("q4"), ...change } },
    "model.safetensors": tensorFile({ a: [4] }),
  });
  const cases: [Files, RegExp][] = [
    [file({ version: 2 }), /has version 2, supported is 1/],
    [file({ format: "q5" }), /has format "q5", supported are q4, q8/],
  ];
  for (const [files, message] of cases) {
    withFolder(files, (folder) => throws(() => openCheckpoint(folder), message));
  }
});
