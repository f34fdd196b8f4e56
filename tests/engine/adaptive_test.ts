import assert from "node:assert/strict";
import { batchBuckets } from "../../src/engine/programs.ts";
import { drawFrom } from "../../src/bench/draw.ts";
import { taskPrompt } from "../../src/bench/tasks.ts";
import { openEngine, statically } from "../../src/engine/open.ts";
import { presetConfig } from "../../src/engine/presets.ts";
import { adaptively } from "../../src/engine/speculation.ts";
import { unionSteps } from "../../src/speculate/adaptive_config.ts";
import { adaptive } from "../../src/speculate/policies/adaptive.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";

function speculating(preset: string, maxBatch: number) {
  const config = presetConfig(preset);
  const policy = adaptive(config, { initialSteps: 3, buckets: batchBuckets(maxBatch) });
  return () => ({ numSteps: 3, steps: unionSteps(config), speculation: adaptively(policy) });
}

/** Eight easy prompts, eight hard ones, and again. */
const PHASES = Array.from({ length: 4 }, (_, phase) =>
  Array.from({ length: 8 }, (_, n) => {
    const task = phase % 2 === 0 ? "count" : "random_numbers";
    return taskPrompt(task, drawFrom(7, 8 * phase + n));
  })).flat();

Deno.test("the tier falls in hard phases and rises in easy ones, and the text stays", async () => {
  const texts: string[][] = [];
  for (const speculate of [speculating("aggressive", 1), statically(0, [0])]) {
    using engine = await openEngine({ speculate });
    const told: string[] = [];
    for (const content of PHASES) {
      const promptIds = engine.encodePrompt({ messages: [{ role: "user", content }] });
      const request = {
        promptIds,
        sampling: GREEDY,
        maxTokens: 64,
        stop: [],
        ignoreEos: false,
        numSteps: engine.numSteps,
      };
      for await (const event of engine.generate(request)) {
        if (event.kind === "finish") told.push(event.result.text);
      }
    }
    texts.push(told);
    const { switches, policy, tier_ms, slots } = engine.speculation.report;
    if (policy === "static") continue;
    assert.ok(switches.some(({ from, to }) => to < from), JSON.stringify(switches));
    assert.ok(switches.some(({ from, to }) => to > from), JSON.stringify(switches));
    assert.ok(Object.keys(tier_ms).length > 1);
    assert.equal(slots.length, 4);
    assert.match(switches[0]?.reason ?? "", /^Adaptive spec params updated: steps \d -> \d/);
  }
  assert.deepEqual(texts[0], texts[1]);
});
