// The draft leaves the GPU for KV pages and comes back: no text changes, and what it drafts is as good.
import assert from "node:assert/strict";
import { type GenerateRequest, resultOf } from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { openEngine, type OpenOptions } from "../../src/engine/open.ts";
import type { RoundSample } from "../../src/engine/schedule/scheduler.ts";
import type { Policy } from "../../src/speculate/policy.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";

/** Drafts 3 tokens in the rounds that are not within `off`. */
function offBetween(from: number, to: number): Policy<number> {
  return {
    tiers: chains([0, 3]),
    start: 0,
    pick: (round) => ({ tier: chain(round >= from && round < to ? 0 : 3) }),
    holds: () => 1,
    learn: (round) => ({ state: round + 1 }),
    report: () => ({ json: {}, rows: [] }),
  };
}

async function run(options: OpenOptions, count = 24) {
  const rounds: RoundSample[] = [];
  const pages: number[] = [];
  using engine = await openEngine({
    ...{ maxBatch: 8, maxKvTokens: 480, contextLength: 240, onRound: (one) => rounds.push(one) },
    ...options,
  });
  const requests = Array.from({ length: count }, (_, n): GenerateRequest => {
    const messages = [{ role: "user", content: generatedPrompt(n % 9) }] as const;
    return {
      promptIds: engine.encodePrompt({ messages }),
      sampling: { ...GREEDY, temperature: n % 3 === 2 ? 0.8 : 0, seed: n },
      ...{ maxTokens: 60, stop: [], ignoreEos: true },
    };
  });
  const results = await Promise.all(
    requests.map((each) =>
      resultOf(engine.generate(each), () => pages.push(engine.core.pool.total))
    ),
  );
  const { counts, core: { pool } } = engine;
  return { ids: results.map(({ outputIds }) => outputIds), rounds, counts, pages, pool };
}

const RESIDENCY = { shortShare: 0.5, shortSteps: 3, wantedSteps: 2, roomShare: 0.05 };

Deno.test("the draft leaves for KV pages and comes back: every text is that of plain decoding", async () => {
  const plain = await run({ speculate: statically(0) });
  const speculate = { policy: offBetween(12, 70) };
  const found = await run({ speculate, elasticDraft: true, residency: RESIDENCY });
  console.log(
    found.counts,
    found.rounds.length,
    plain.counts,
    plain.rounds.length,
    new Set(found.pages),
  );
  assert.deepEqual(found.ids, plain.ids);
});
