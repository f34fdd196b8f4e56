// Exhaustive: an engine for each rewrite; tests/model/rewrites_test.ts compares the bits of the target's forwards.
//
// Rounds without each of the rewrites, those of the draft and of verify forwards among them: drafted text is plain text.

import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { resultOf } from "../../src/engine/schedule/events.ts";
import { REWRITES } from "../../src/model/lower/rewrites.ts";
import { WITHOUT } from "../../src/model/lower/without.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openEngine } from "./open.ts";
import { goldenCases } from "./fledgling.ts";

const MOST = 40;
const { prompt_ids: promptIds } = goldenCases()[0] ?? assert.fail();

/** The text that the embedded model decodes without a rewrite, or with all; with its head's drafts or plainly. */
async function idsOf(off: string | undefined, draft: "own" | "none"): Promise<readonly number[]> {
  if (off === undefined) Deno.env.delete(WITHOUT);
  else Deno.env.set(WITHOUT, off);
  try {
    using engine = await openEngine({
      model: draft === "none" ? { draft } : {},
      hooks: { plan: statically(draft === "none" ? 0 : 3) },
      limits: { contextLength: 256 },
    });
    const request = { promptIds, sampling: GREEDY, maxTokens: MOST, stop: [], ignoreEos: true };
    const { outputIds, speculative } = await resultOf(engine.submit(request));
    assert.equal(speculative.rounds < MOST - 1, draft === "own");
    return outputIds;
  } finally {
    Deno.env.delete(WITHOUT);
  }
}

const plain = await idsOf(undefined, "none");

for (const { name, changesBits } of [...REWRITES, { name: "all", changesBits: true }]) {
  Deno.test(`rounds without ${name} keep the text`, async () => {
    const expected = changesBits ? await idsOf(name, "none") : plain;
    assert.deepEqual(await idsOf(name, "own"), expected);
  });
}
