import assert from "node:assert/strict";
import { checkQuantized, klDivergence } from "../../src/engine/check/check_quantized.ts";
import { EXHAUSTIVE, exhaustive } from "../exhaustive.ts";

const PROMPTS = [
  "Count from 1 to 12.",
  ...EXHAUSTIVE ? ["Tell me a story about a fox and a lantern."] : [],
];

function assertSmallCost(report: Awaited<ReturnType<typeof checkQuantized>>): void {
  const { logits, klDivergence, argmaxAgreement, positions, acceptLength, weightBytes } = report;
  assert.ok(logits.max > logits.rms);
  assert.ok(klDivergence > 0 && klDivergence < 0.01, `${klDivergence}`);
  assert.equal(argmaxAgreement.total, positions);
  assert.ok(argmaxAgreement.same > 0.9 * positions);
  assert.ok(acceptLength && acceptLength.quantized > 2 && acceptLength.plain > 2);
  assert.ok(weightBytes.quantized < weightBytes.plain);
}

Deno.test("check_quantized: 8 bits cost little, not nothing", async () => {
  const q8 = await checkQuantized({ prompts: PROMPTS, model: { quantize: "q8" } });
  assert.ok(q8.logits.rms > 1e-4 && q8.logits.rms < 0.02, `q8 ${q8.logits.rms}`);
  assertSmallCost(q8);
});

exhaustive.test("check_quantized: 4 bits cost more than 8", async () => {
  const q8 = await checkQuantized({ prompts: PROMPTS, model: { quantize: "q8" } });
  const model = { quantize: "q4", quantizeDraft: true } as const;
  const q4 = await checkQuantized({ prompts: PROMPTS, model });
  assert.ok(q4.logits.rms > 4 * q8.logits.rms && q4.logits.rms < 0.3, `q4 ${q4.logits.rms}`);
  assertSmallCost(q4);
  assert.equal(q8.positions, q4.positions);
  assert.equal(q8.acceptLength?.plain, q4.acceptLength?.plain);
});

Deno.test("check_quantized: the divergence of known distributions", () => {
  const p = Float32Array.of(0, 0, Math.log(3), 0);
  const q = Float32Array.of(0, 0, 0, 0);
  // Rows (1/2, 1/2) against itself and (3/4, 1/4) against (1/2, 1/2).
  const expected = (0.75 * Math.log(1.5) + 0.25 * Math.log(0.5)) / 2;
  assert.ok(Math.abs(klDivergence(p, q, 2) - expected) < 1e-7);
});
