// Exhaustive: more rows and formats of what tests/lossless/array_hardware_test.ts draws a part of in each run.
// Text is the same at every number of rows with the kernels of hardware too, whose matmuls change their
// kind with it: one row, few, 7 and more, several tiles.

import assert from "node:assert/strict";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { QuantizeChoice } from "../../src/model/config/quantize_choice.ts";
import { openGpu } from "../gpu/shared.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { decode, goldenCases, openFledgling, openWhole } from "./fledgling.ts";

const PROMPTS = goldenCases().slice(0, 3).map(({ prompt_ids }) => prompt_ids);

/** Sequences side by side and draft steps: rows of the verify forward are `lanes * (steps + 1)`. */
const SETTINGS = [
  { lanes: 1, steps: 3 },
  { lanes: 1, steps: 6 },
  { lanes: 1, steps: 7 },
  { lanes: 3, steps: 0 },
  { lanes: 3, steps: 3 },
  { lanes: 3, steps: 7 },
] as const;

type Stored = QuantizeChoice & { readonly kvDtype?: KvDtype };

const STORED: Readonly<Record<string, Stored>> = {
  bf16: {},
  "bf16, keys and values too": { kvDtype: "bf16" },
  "q8, f16 keys and values": { quantize: "q8", quantizeDraft: true, kvDtype: "f16" },
  q4: { quantize: "q4" },
};

for (const [name, stored] of Object.entries(STORED)) {
  Deno.test(`hardware kernels, ${name}: greedy text is the same at 1 to 24 rows`, async () => {
    const gpu = await openGpu();
    const hardware = { ...gpu, info: { ...gpu.info, software: false } };
    const runner = await openFledgling("eagle3", PROMPTS.length, hardware, stored);
    using stack = new DisposableStack();
    const sequences = PROMPTS.map(() => stack.use(openWhole(runner)));
    const texts = async (first: number, { lanes, steps }: { lanes: number; steps: number }) => {
      const of = { numSteps: steps, most: 16, sampling: [GREEDY] };
      const end = first + lanes;
      const found = await decode(
        runner,
        sequences.slice(first, end),
        PROMPTS.slice(first, end),
        of,
      );
      return found.map(({ ids }) => ids);
    };
    const plain: number[][] = [];
    for (const i of PROMPTS.keys()) plain.push(...await texts(i, { lanes: 1, steps: 0 }));
    for (const setting of SETTINGS) {
      const found = await texts(0, setting);
      assert.deepEqual(found, plain.slice(0, setting.lanes), JSON.stringify(setting));
    }
    gpu[Symbol.dispose]();
  });
}
