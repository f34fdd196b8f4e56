import assert from "node:assert/strict";
import { openModels } from "../../../src/engine/load/load.ts";
import { costsOf } from "../../../src/engine/tune/costs/costs_of.ts";
import { openGpu } from "../../gpu/shared.ts";

Deno.test("costs that are measured hold for the kernels that they were measured with", async () => {
  using models = openModels({});
  const gpu = await openGpu();
  const target = { bytes: 1, parameters: 1 };
  const weights = { bytes: 1, quantize: undefined, quantizeDraft: undefined, target };
  const of = { gpu, weights, kvDtype: "f32" } as const;
  const q8 = { ...weights, quantize: "q8" } as const;
  const units = (prompts: number) => ({ ...of, units: { matrices: 17, prompts } });
  const each = [
    of,
    { ...of, weights: q8 },
    { ...of, precision: "f32" },
    units(0),
    units(17),
  ] as const;
  const keys = each.map((one) => costsOf(models, one).model);
  assert.equal(new Set(keys).size, each.length);
  assert.equal(
    costsOf(models, units(0)).model,
    costsOf(models, { ...units(0), precision: "f16" }).model,
  );
});
