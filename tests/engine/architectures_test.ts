import assert from "node:assert/strict";
import { checkModel } from "../../src/engine/check.ts";

/** Goldens and their files of expected values; made by tools/goldens, whose NOTES.md tells them. */
const GOLDENS: Readonly<Record<string, readonly string[]>> = {
  llama2: ["expected"],
  llama3: ["expected"],
  llama_linear: ["expected", "expected_long"],
  llama_dynamic: ["expected", "expected_long"],
  llama_yarn: ["expected", "expected_long"],
  llama_longrope: ["expected", "expected_long"],
  qwen3: ["expected"],
};

/** Standard deviations; at ten times as much the wrong kind of GELU would pass. */
const TOLERANCE = 2e-4;

for (const [name, files] of Object.entries(GOLDENS)) {
  for (const file of files) {
    Deno.test(`${name} computes what transformers does: ${file}`, async () => {
      const model = new URL(`../golden/${name}`, import.meta.url).pathname;
      const expected = `${model}/${file}.safetensors`;
      const report = await checkModel({ model, expected, tolerance: TOLERANCE });
      const past = report.tensors.filter(({ ok }) => !ok);
      assert.deepEqual(past.map(({ name, relToStd }) => ({ name, relToStd })), []);
      const { argmaxAgreement: argmax, greedyAgreement: greedy } = report;
      assert.equal(argmax.same, argmax.total);
      assert.equal(greedy?.same, greedy?.total);
    });
  }
}
