// A policy that nobody registered: a depth for each sequence, another one every round.
import assert from "node:assert/strict";
import { type GenerateRequest, resultOf } from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalOptions, openEngine } from "./open.ts";
import type { Policy, RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { policyRandom } from "../../src/speculate/noise.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { policyContract } from "../speculate/policy_contract.ts";
import { drawn } from "../exhaustive.ts";

/** What was told to a policy, and what it chose. */
interface Heard {
  readonly picks: { readonly context: RoundContext; readonly depths: readonly number[] }[];
  readonly outcomes: RoundOutcome[];
}

const DEPTHS = [0, 1, 2, 3, 4, 5];

/** Its state counts rounds: the depths of a batch are drawn anew for each. */
function scattered(seed: number, heard?: Heard): Policy<number> {
  const random = policyRandom(seed);
  return {
    tiers: [chain(5)],
    start: 0,
    packed: true,
    pick(round, context) {
      const depths = context.sequences.map(({ id }) => random(round, id) % DEPTHS.length);
      heard?.picks.push({ context: structuredClone(context), depths });
      return { tier: chain(5), depths };
    },
    holds: () => 1,
    learn(round, outcome) {
      heard?.outcomes.push(structuredClone(outcome));
      return { state: round + 1 };
    },
    report: (round) => ({ json: { drawn: round }, rows: [["drawn", `${round} times`]] }),
  };
}

policyContract("scattered", scattered);

/** Prompts side by side; some are sampled, one wants no drafts, the last ones wait for a place. */
async function texts(options: LocalOptions, count = 14) {
  using engine = await openEngine({ ...options, limits: { maxBatch: 4, ...options.limits } });
  const requests = Array.from({ length: count }, (_, n): GenerateRequest => {
    const messages = [{ role: "user", content: generatedPrompt(n) }] as const;
    return {
      promptIds: engine.text.encodePrompt({ messages }),
      sampling: { ...GREEDY, temperature: n % 3 === 2 ? 0.8 : 0, seed: n },
      maxTokens: 60,
      stop: [],
      ignoreEos: false,
      ...n === 3 ? { numSteps: 0 } : {},
    };
  });
  const results = await Promise.all(requests.map((each) => resultOf(engine.submit(each))));
  return { texts: results.map(({ text }) => text), results, report: engine.speculation.report };
}

/** Requests where how a policy is asked is not looked at. */
const FEW = 10;

const plain = await texts({ hooks: { plan: statically(0) } });

drawn.test("a policy with a depth for each sequence: every text is that of plain decoding", async () => {
  for (const profile of [false, true]) {
    const heard: Heard = { picks: [], outcomes: [] };
    const policy = scattered(7, heard);
    const found = await texts({
      hooks: { plan: { policy, name: "scattered" } },
      device: { profile },
    });
    assert.deepEqual(found.texts, plain.texts);
    assert.equal(found.report.policy, "scattered");
    assert.deepEqual(found.report.own.json, { drawn: heard.outcomes.length });
    assertHeard(heard);
    assert.ok(heard.outcomes.every(({ ms }) => ms.round > 0));
  }
});

/** Depths differ within rounds and from round to round, and what ran is what was chosen. */
function assertHeard({ picks, outcomes }: Heard): void {
  assert.equal(picks.length, outcomes.length);
  assert.ok(picks.length > 40, `${picks.length} rounds`);
  assert.ok(picks.filter(({ depths }) => new Set(depths).size > 1).length > 20);
  assert.deepEqual(
    DEPTHS.filter((depth) => !picks.some(({ depths }) => depths.includes(depth))),
    [],
  );
  assert.ok(Math.max(...picks.map(({ context }) => context.batchSize)) === 4);
  for (const [round, { context, depths }] of picks.entries()) {
    const { sequences, batchSize, asked } = context;
    assert.deepEqual([sequences.length, asked.length], [batchSize, batchSize]);
    const chosen = new Map(sequences.map((each, i) => [each.id, { ...each, depth: depths[i] }]));
    for (const { id, depth, accepted, position, asked } of outcomes[round]?.sequences ?? []) {
      assert.notEqual(asked, 0, "nothing is learned from a request without drafts");
      const of = chosen.get(id);
      assert.deepEqual([depth, position], [of?.depth, of?.position]);
      assert.ok(accepted <= depth, `${accepted} of ${depth}`);
      const next = picks[round + 1]?.context.sequences.find((each) => each.id === id);
      if (next === undefined) continue;
      assert.deepEqual([next.position, next.depth], [position + accepted + 1, depth]);
      assert.equal(next.accepted.at(-1), accepted);
      assert.ok(next.accepted.length <= 8);
    }
  }
  assert.ok(
    picks.some(({ context }) => context.sequences.some((each) => each.accepted.length === 8)),
  );
}

Deno.test("a registered policy is asked for by its name", async () => {
  const options = { "1": { candidate_steps: [1, 3] }, warmup_batches: 0, update_interval: 2 };
  const found = await texts({
    speculation: { speculate: { policy: "ema", options, numSteps: 1 } },
  }, FEW);
  assert.deepEqual(found.texts, plain.texts.slice(0, FEW));
  const { policy, rounds, tier_ms } = found.report;
  assert.equal(policy, "ema");
  assert.ok(rounds > 20 && (tier_ms[1] ?? 0) > 0);
  await assert.rejects(openEngine({ speculation: { speculate: { policy: "no such" } } }), {
    name: "UsageError",
    message: /^Cannot use policy "no such": there are static, off, ema/,
  });
});

Deno.test("a policy that throws: the engine goes on, every text is that of plain decoding", async () => {
  const warnings: string[] = [];
  const policy: Policy<number> = {
    ...scattered(3),
    learn(round) {
      if (round === 9) throw new Error("nine is too much");
      return { state: round + 1 };
    },
  };
  const found = await texts({
    hooks: { plan: { policy, name: "nine" }, onWarning: (line) => warnings.push(line) },
  }, FEW);
  assert.deepEqual(found.texts, plain.texts.slice(0, FEW));
  const { rounds, own, active_num_steps } = found.report;
  assert.deepEqual(own.json, { failed: "nine is too much" });
  assert.ok(rounds > 20 && active_num_steps === 5, `${rounds} rounds, ${active_num_steps} steps`);
  assert.deepEqual(warnings, [
    'policy "nine" failed and is not asked again, rounds go on with 5 steps: nine is too much',
  ]);
});
