// Rows as one f16 on matrix units: the text is plain decoding's at every setting, and nothing else has it.
// EYRIE_WEBGPU=dawn has units, if any.

import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { resultOf } from "../../src/engine/schedule/events.ts";
import { openEngine as openAlone } from "../../src/engine/open.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openGpu } from "../gpu/shared.ts";
import { openEngine } from "./open.ts";

const gpu = await openGpu();
const ignore = gpu.matrixUnit === undefined;
const MESSAGES = { messages: [{ role: "user", content: "Count from 3 to 20." }] } as const;
const REQUEST = { sampling: GREEDY, maxTokens: 20, stop: [], ignoreEos: true };

async function answers(
  steps: number,
  prompts: number,
  precision: "f32" | "f16" = "f16",
): Promise<(readonly number[])[]> {
  using engine = await openEngine({
    device: { precision },
    limits: { maxBatch: prompts, contextLength: 128 },
    hooks: { plan: statically(steps) },
  });
  assert.equal(engine.info.units?.precision, precision);
  const promptIds = engine.text.encodePrompt(MESSAGES);
  return await Promise.all(Array.from({ length: prompts }, async (_, i) => {
    const own = promptIds.slice(0, promptIds.length - i);
    return (await resultOf(engine.submit({ ...REQUEST, promptIds: own }))).outputIds;
  }));
}

Deno.test({
  name: "precision f16: drafts and a batch leave plain decoding's text",
  ignore,
  async fn() {
    const [plain] = await answers(0, 1);
    const [drafted, other] = await answers(3, 2);
    assert.deepEqual(drafted, plain);
    assert.notDeepEqual(other, plain);
  },
});

Deno.test({
  name: "precision f16 is refused in one line where there are no matrix units",
  ignore: !ignore,
  async fn() {
    await assert.rejects(
      openAlone({ model: { draft: "none" }, device: { precision: "f16" } }),
      /^UsageError: Cannot use --precision f16: it is for matrix units, /,
    );
  },
});
