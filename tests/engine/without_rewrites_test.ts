// Exhaustive: an engine for each rewrite; tests/model/rewrites_test.ts compares the bits of the target's forwards.
//
// Rounds without each of the rewrites, those of the draft and of verify forwards among them: drafted text is plain
// text. With the adapter's own kernels: on a software adapter many rewrites change nothing.

import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { resultOf } from "../../src/engine/schedule/events.ts";
import { REWRITES } from "../../src/model/lower/rewrites.ts";
import { WITHOUT } from "../../src/model/lower/without.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openEngine } from "./open.ts";
import { goldenCases } from "./fledgling.ts";

const MAX = 40;
const { prompt_ids: promptIds } = goldenCases()[0] ?? assert.fail();

/** The text that the embedded model decodes without a rewrite, or with all; with the drafts of a head or plainly. */
async function idsOf(
  off: string | undefined,
  algorithm: "EAGLE3" | "EAGLE" | "NONE",
): Promise<readonly number[]> {
  if (off === undefined) Deno.env.delete(WITHOUT);
  else Deno.env.set(WITHOUT, off);
  try {
    using engine = await openEngine({
      model: { algorithm },
      hooks: { plan: statically(algorithm === "NONE" ? 0 : 3) },
      limits: { contextLength: 256 },
    });
    const request = { promptIds, sampling: GREEDY, maxTokens: MAX, stop: [], ignoreEos: true };
    const { outputIds, speculative } = await resultOf(engine.submit(request));
    assert.equal(speculative.rounds < MAX - 1, algorithm !== "NONE");
    return outputIds;
  } finally {
    Deno.env.delete(WITHOUT);
  }
}

const plain = await idsOf(undefined, "NONE");

for (const { name, changesBits } of [...REWRITES, { name: "all", changesBits: true }]) {
  Deno.test(`rounds without ${name} keep the text`, async () => {
    const expected = changesBits ? await idsOf(name, "NONE") : plain;
    assert.deepEqual(await idsOf(name, "EAGLE3"), expected);
    assert.deepEqual(await idsOf(name, "EAGLE"), expected);
  });
}
