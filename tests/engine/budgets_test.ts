// A policy that leaves depths to the device by budgets drawn anew, beside depths, trees and no drafts.
import assert from "node:assert/strict";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type GenerateRequest, type GenerateResult } from "../../src/engine/schedule/events.ts";
import { allowedSteps } from "../../src/speculate/asked_steps.ts";
import type { Decision, Policy, RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";
import { policyRandom } from "../../src/speculate/noise.ts";
import { chain, type DraftShape, isChain } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { generatedPrompt } from "../prompts.ts";
import { policyContract } from "../speculate/policy_contract.ts";
import { resultsOf } from "./held.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

/** Rounds that a choice holds for. */
const HELD = 3;
const CHAINS = [chain(0), chain(2), chain(5)];
const TREES = [chain(2), treeNamed("3:2:6"), chain(5)];

interface Heard {
  readonly picks: { readonly choice: Decision; readonly context: RoundContext }[];
  readonly outcomes: { readonly outcome: RoundOutcome; readonly choice: Decision }[];
}

function drawing(seed: number, tiers: readonly DraftShape[], heard?: Heard): Policy<number> {
  const random = policyRandom(seed);
  const choose = (
    round: number,
    { asked, batchSize, ranks, sequences }: RoundContext,
  ): Decision => {
    const own = tiers.slice(0, allowedSteps(tiers.map(({ depth }) => depth), asked).length);
    const turn = Math.floor(round / HELD);
    const drawn = (purpose: number, most: number) => random(turn, purpose) % (most + 1);
    const tier = own[drawn(1, 2 * own.length)] ?? own.at(-1) as DraftShape;
    const { depth } = tier;
    const how = drawn(2, 7);
    if (!isChain(tier) || how === 0) return { tier };
    if (how === 1 || !ranks) {
      return { tier, depths: sequences.map(({ id }) => random(turn, 100 + id) % (depth + 1)) };
    }
    const intercepts = Array.from({ length: depth }, (_, k) => drawn(20 + k, 4) / 4 - 0.5);
    const drafts = drawn(3, batchSize * depth);
    const [slope, minConfidence] = [0.25 + drawn(4, 4) / 4, drawn(5, 2) / 5];
    return { tier, verify: { drafts, slope, intercepts, minConfidence } };
  };
  return {
    tiers,
    start: 0,
    confident: true,
    packed: true,
    pick(round, context) {
      const choice = choose(round, context);
      heard?.picks.push({ choice, context: structuredClone(context) });
      return choice;
    },
    holds: (round) => HELD - round % HELD,
    learn(round, outcome) {
      const choice = heard?.picks.at(-1)?.choice;
      if (choice) heard.outcomes.push({ outcome: structuredClone(outcome), choice });
      return { state: round + 1 };
    },
    report: () => ({ json: {}, rows: [] }),
  };
}

policyContract("drawing budgets", (seed) => drawing(seed, CHAINS));

const SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

/** Sampled and greedy; `all` of them are not alike in more than that. */
function request(engine: LocalEngine, n: number, all: boolean): GenerateRequest {
  const messages = [{ role: "user", content: generatedPrompt(n) }] as const;
  const sampled = { ...GREEDY, temperature: 0.8, seed: n, topK: n % 2 ? 40 : 0 };
  const sampling = n % 3 === 1 ? sampled : GREEDY;
  return {
    promptIds: engine.text.encodePrompt({ messages }),
    sampling: all && n % 5 === 2 ? { ...sampling, repetitionPenalty: 1.3 } : sampling,
    maxTokens: [40, 23, 50, 9][n % 4] ?? 1,
    stop: [],
    ignoreEos: n % 4 === 3,
    ...n % 6 === 5 ? { numSteps: 0 } : {},
    ...all && n % 7 === 3 ? { grammar: { kind: "json schema", schema: SCHEMA } as const } : {},
    ...all && n % 7 === 5 ? { logprobs: 2 } : {},
  };
}

async function together(options: LocalOptions, count: number, all: boolean) {
  using engine = await openEngine(options);
  const requests = Array.from({ length: count }, (_, n) => request(engine, n, all));
  const results = await resultsOf(engine, requests);
  return { results, counts: { ...engine.counts }, ranks: engine.runner.ranks };
}

const outputs = (results: readonly GenerateResult[]) =>
  results.map(({ outputIds, logprobs }) => ({ ids: outputIds.join(), logprobs }));

interface Case {
  readonly name: string;
  readonly options: LocalOptions;
  readonly tiers?: readonly DraftShape[];
  readonly requests?: number;
  /** Grammars, penalties and log-probabilities among the requests. */
  readonly all?: boolean;
}

const CASES: readonly Case[] = [
  { name: "EAGLE3, one at a time", options: { model: { algorithm: "EAGLE3" } }, requests: 5 },
  {
    name: "EAGLE3, 8 at once, three rounds a sync",
    options: { model: { algorithm: "EAGLE3" }, limits: { maxBatch: 8, roundsPerSync: 3 } },
  },
  {
    name: "EAGLE, preempted, bf16 keys and values",
    options: {
      model: { algorithm: "EAGLE" },
      limits: { maxBatch: 4, kvDtype: "bf16", maxKvTokens: 192 },
    },
  },
  {
    name: "EAGLE3, grammars, penalties and log-probabilities beside",
    options: { model: { algorithm: "EAGLE3" }, limits: { maxBatch: 5, constrained: true } },
    all: true,
  },
  {
    name: "EAGLE, trees beside",
    options: { model: { algorithm: "EAGLE" }, limits: { maxBatch: 3 } },
    tiers: TREES,
  },
  {
    name: "HYBRID",
    options: { model: { algorithm: "HYBRID" }, limits: { maxBatch: 4, roundsPerSync: 2 } },
  },
];

const plains = new Map<string, Promise<GenerateResult[]>>();

/** Plain decoding of the first requests; with the same keys and values and masks, made once. */
async function plain(options: LocalOptions, count: number, all: boolean) {
  const { kvDtype = "f32", constrained = false } = options.limits ?? {};
  const results = await plains.getOrInsertComputed(
    JSON.stringify([kvDtype, constrained, all]),
    async () => {
      const speculate = statically(0);
      return (await together(
        { limits: { kvDtype, constrained, maxBatch: 8 }, hooks: { plan: speculate } },
        8,
        all,
      )).results;
    },
  );
  return results.slice(0, count);
}

for (const { name, options, tiers = CHAINS, requests = 8, all = false } of CASES) {
  const { test } = requests < 8 ? drawn : exhaustive;
  test(`budgets, ${name}: every text is that of plain decoding`, async () => {
    const expected = await plain(options, requests, all);
    const heard: Heard = { picks: [], outcomes: [] };
    const policy = drawing(11, tiers, heard);
    const found = await together(
      { ...options, hooks: { ...options.hooks, plan: { policy } } },
      requests,
      all,
    );
    assert.deepEqual(outputs(found.results), outputs(expected));
    assert.ok(found.ranks);
    assert.equal(found.counts.preemptions > 0, options.limits?.maxKvTokens !== undefined);
    assertHeard(heard, all);
  });
}

/** Asserts that each round stayed within what the policy picked for it. */
function assertHeard({ picks, outcomes }: Heard, all: boolean): void {
  assert.ok(picks.every(({ context }) => context.ranks));
  const budgets = outcomes.filter(({ choice }) => choice.verify !== undefined);
  assert.ok(budgets.length > 8, `${budgets.length} rounds by budgets`);
  for (const { outcome: { tier, sequences }, choice } of outcomes) {
    for (const { depth, accepted, confidences } of sequences) {
      assert.ok(accepted <= depth && depth <= tier.depth);
      const told = isChain(tier) && tier.depth > 0;
      assert.equal(confidences.length, told ? tier.depth : 0);
      assert.ok(confidences.every((c) => c > 0 && c <= 1));
    }
    // Where some requests need more than logits, all of a round's drafts are verified.
    if (all || choice.verify === undefined) continue;
    const verified = sequences.reduce((sum, { depth }) => sum + depth, 0);
    assert.ok(verified <= choice.verify.drafts, `${verified} of ${choice.verify.drafts}`);
  }
  const depths = new Set(
    outcomes.flatMap(({ outcome: { sequences } }) => sequences.map(({ depth }) => depth)),
  );
  assert.ok(depths.size > 3, `depths ${[...depths]}`);
  const seen = outcomes.filter(({ outcome }) =>
    outcome.sequences.some(({ confidences }) => confidences.length > 0)
  );
  assert.ok(seen.length > 0, "rounds report the confidences");
}
