import assert from "node:assert/strict";
import { openSpeculation, type Speculation } from "../../src/engine/schedule/speculation.ts";
import { policyPlan, staticPlan } from "../../src/engine/schedule/speculation_choice.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { policyRandom } from "../../src/speculate/noise.ts";
import { ema } from "../../src/speculate/policies/ema.ts";
import { POLICIES, policyNamed } from "../../src/speculate/policies/registry.ts";
import { fixed } from "../../src/speculate/policies/static.ts";
import type { Decision, Policy, RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../speculate/rounds.ts";
import { slotsOf } from "./slots.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";

/** What each request of a round asked for. */
type Asked = readonly (number | undefined)[];

/** Decides on every second round, by that round alone; batches of 4 and more have a slot of their own. */
function controller() {
  const slot = { candidate_steps: [1, 3, 7] };
  const fields = { ema_alpha: 1, warmup_batches: 0, update_interval: 2 };
  const config = parseAdaptiveConfig({ "1": slot, "4": slot, ...fields });
  return openSpeculation("ema", ema(config, { initialSteps: 3 }));
}

function asking(...asked: Asked): RoundContext {
  return contextOf(asked.length, { asked });
}

/** A round launched with `batchSize` requests, which brought tokens for those in `asked`. */
function launched(
  batchSize: number,
  accepted: readonly number[],
  { numSteps, asked, ms }: { numSteps: number; asked: Asked; ms: number },
): RoundOutcome {
  const outcome = outcomeOf({ batchSize, numSteps, accepted });
  const sequences = outcome.sequences.map((each, i) => ({ ...each, asked: asked[i] }));
  return { ...outcome, sequences, ms: { ...outcome.ms, round: ms } };
}

const SILENT: Asked = [undefined, undefined];

Deno.test("static: a round is as deep as the deepest of its requests, 3 where one is silent", () => {
  const { speculation } = staticPlan(chain(3));
  const picks = ([[undefined], [0], [0, undefined], [5, undefined], [1, 0]] as Asked[])
    .map((asked) => speculation.pick(asking(...asked)).tier.depth);
  assert.deepEqual(picks, [3, 0, 3, 5, 1]);
  assert.equal(speculation.holds(asking(undefined)), Infinity);
});

Deno.test("adaptive: a round has at most the steps that the deepest of its requests asks for", () => {
  const speculation = controller();
  const rounds = ([SILENT, [0, 0], [0, undefined], [0, 1], [2, 1], [7, 7], [1]] as Asked[])
    .map((asked) => asking(...asked));
  const picks = rounds.map((context) => speculation.pick(context).tier.depth);
  // Of 1, 3 and 7 steps, requests that ask for 2 have 1.
  assert.deepEqual(picks, [3, 0, 3, 1, 1, 3, 1]);
  const holds = rounds.map((context) => speculation.holds(context));
  assert.deepEqual(holds, [2, Infinity, 2, 2, 2, 2, 2]);
});

Deno.test("adaptive: every round is counted, its own rounds alone are learned", () => {
  const speculation = controller();
  const { own } = speculation.report;
  speculation.learn(launched(2, [0, 0], { numSteps: 0, ms: 5, asked: [0, 0] }));
  speculation.learn(launched(2, [7, 7], { numSteps: 7, ms: 5, asked: SILENT }));
  // The request that drafts has ended, the other goes on in the same group.
  speculation.learn(launched(2, [3], { numSteps: 3, ms: 5, asked: [0] }));
  const { rounds, tier_ms, active_num_steps, ...report } = speculation.report;
  assert.deepEqual([rounds, tier_ms, active_num_steps], [3, { 0: 5, 7: 5, 3: 5 }, 3]);
  assert.deepEqual([report.own, report.switches], [own, []]);
  assert.equal(speculation.holds(asking(...SILENT)), 2);
});

Deno.test("adaptive: of a mixed round those that leave the choice are learned", () => {
  const speculation = controller();
  const asked = [0, undefined, 2];
  speculation.learn(launched(3, [0, 3, 2], { numSteps: 3, ms: 1, asked }));
  assert.equal(slotsOf(speculation.report)[0]?.ema_accept_len, 2.5);
  assert.equal(speculation.holds(asking(...asked)), 1);
  speculation.learn(launched(3, [0, 3, 3], { numSteps: 3, ms: 1, asked }));
  assert.deepEqual(speculation.report.switches.map(({ round, from, to }) => [round, from, to]), [
    [2, 3, 7],
  ]);
  assert.equal(speculation.pick(asking(...asked)).tier.depth, 7);
});

Deno.test("every change of the tier is counted, and the latest are kept", () => {
  let to = 0;
  const speculation = openSpeculation("own", {
    ...fixed(chain(3)),
    learn: (state) => ({ state, change: { from: to, to: ++to, reason: "" } }),
  });
  for (let round = 0; round < 1200; round++) {
    speculation.learn(launched(1, [0], { numSteps: 3, ms: 1, asked: [undefined] }));
  }
  const { switch_count, switches } = speculation.report;
  assert.deepEqual([switch_count, switches.length, switches.at(-1)?.to], [1200, 1000, 1200]);
});

Deno.test("adaptive: a round is learned for the batch it was launched with", () => {
  const speculation = controller();
  // Three of four have ended meanwhile.
  for (let round = 0; round < 2; round++) {
    speculation.learn(launched(4, [0], { numSteps: 3, ms: 1, asked: [undefined] }));
  }
  assert.deepEqual(slotsOf(speculation.report).map(({ num_steps }) => num_steps), [3, 1]);
});

Deno.test("where each request has its own depth, it has at most the steps that it asked for", () => {
  const choice = { tier: chain(3), depths: [2, 3, 3] };
  const speculation = openSpeculation("own", { ...fixed(chain(3)), pick: () => choice });
  const picks = ([[undefined, 0, 2], [1, 0, 2], [3, 4, 3]] as Asked[])
    .map((asked) => speculation.pick(asking(...asked)));
  assert.deepEqual(picks, [
    { tier: chain(3), depths: [2, 0, 2] },
    { tier: chain(2), depths: [1, 0, 2] },
    choice,
  ]);
});

Deno.test("every registered policy obeys the steps that a request asked for", () => {
  for (const name of Object.keys(POLICIES)) {
    const policy = policyNamed(name, {}, { buckets: [1, 2, 4], random: policyRandom(1) });
    const speculation = openSpeculation(name, policy, { onWarning: assert.fail });
    for (let round = 0; round < 60; round++) {
      const { tier } = speculation.pick(asking(2, 1));
      assert(tier.depth <= 2, `${name} chose ${tier.depth} steps`);
      const all = [tier.depth, tier.depth];
      speculation.learn(launched(2, all, { numSteps: tier.depth, ms: 5, asked: [2, 1] }));
    }
  }
});

Deno.test("a policy learns rounds whose requests ask for few steps", () => {
  const policy = policyNamed("hybrid", {}, { buckets: [1, 2], random: policyRandom(1) });
  const speculation = openSpeculation("hybrid", policy);
  assert(speculation.pick(asking(undefined)).tier.depth > 1);
  for (let round = 0; round < 60; round++) {
    const { depth } = speculation.pick(asking(1)).tier;
    speculation.learn(launched(1, [0], { numSteps: depth, ms: 5 + depth, asked: [1] }));
  }
  assert.equal(speculation.pick(asking(1)).tier.depth, 0);
});

Deno.test("a tree becomes the chain that all requests of a round ask for", () => {
  const tree = { depth: 4, width: 2, rows: 8 };
  const { speculation } = policyPlan({ policy: { ...fixed(tree), pick: () => ({ tier: tree }) } }, {
    ...PLAN,
    onWarning: assert.fail,
  });
  const picks = ([[2, 1], [2, undefined], [4]] as Asked[])
    .map((asked) => speculation.pick(asking(...asked)).tier);
  assert.deepEqual(picks, [chain(2), tree, tree]);
});

Deno.test("behind rounds that are not learned a choice holds for fewer, unless the policy may lag", () => {
  const held = (part: Partial<Policy<null>>) => {
    const speculation = openSpeculation("own", { ...fixed(chain(3)), holds: () => 4, ...part });
    return [0, 1, 4, 9, Infinity].map((unlearned) => speculation.holds(asking(3), unlearned));
  };
  assert.deepEqual(held({}), [4, 3, 0, 0, 0]);
  assert.deepEqual(held({ mayLag: () => false }), [4, 3, 0, 0, 0]);
  assert.deepEqual(held({ mayLag: () => true }), [4, 4, 4, 4, 4]);
  assert.deepEqual(held({ holds: () => Infinity }), Array(5).fill(Infinity));
});

/** How a policy fares that differs from static 3 in this, and what was said of it. */
function failing(
  part: Partial<Policy<null>>,
  tier = chain(1),
): { readonly speculation: Speculation; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const onWarning = (line: string) => void warnings.push(line);
  const policy = { ...fixed(chain(3)), ...part };
  return { speculation: openSpeculation("odd", policy, { tier, onWarning }), warnings };
}

function throws(): never {
  throw new Error("no idea");
}

const FAILED = 'policy "odd" failed and is not asked again, rounds go on with 1 steps: ';

Deno.test("a policy that throws is told of once and static steps go on", () => {
  const outcome = launched(1, [1], { numSteps: 3, asked: [undefined], ms: 1 });
  const use: [Partial<Policy<null>>, (of: Speculation) => unknown][] = [
    [{ pick: throws }, ({ pick }) => pick(contextOf(1))],
    [{ holds: throws }, ({ holds }) => holds(contextOf(1))],
    [{ learn: throws }, ({ learn }) => learn(outcome)],
    [{ report: throws }, (of) => of.report],
  ];
  for (const [part, first] of use) {
    const { speculation, warnings } = failing(part);
    first(speculation);
    for (let round = 0; round < 3; round++) {
      assert.deepEqual(speculation.pick(contextOf(2)), { tier: chain(1) });
      assert.equal(speculation.holds(contextOf(2)), Infinity);
      speculation.learn(outcome);
    }
    assert.deepEqual(speculation.pick(asking(0)), { tier: chain(0) });
    const { policy, own, switches } = speculation.report;
    const failed = { json: { failed: "no idea" }, rows: [["failed", "no idea"]] };
    assert.deepEqual([policy, own, switches], ["odd", failed, []]);
    assert.deepEqual(warnings, [`${FAILED}no idea`]);
  }
  const { speculation, warnings } = failing({});
  speculation.learn(outcome);
  assert.deepEqual([speculation.pick(contextOf(1)), warnings], [{ tier: chain(3) }, []]);
});

Deno.test("what no round can have is no choice: as a policy that throws", () => {
  const choosing = (choice: Decision, rounds = 1) => {
    const { speculation, warnings } = failing({ pick: () => choice, holds: () => rounds });
    const picked = speculation.pick(contextOf(2));
    speculation.holds(contextOf(2));
    return { picked, why: warnings.map((line) => line.replace(FAILED, "")) };
  };
  const tier = chain(3);
  assert.deepEqual(choosing({ tier, depths: [0, 3] }).picked, { tier, depths: [0, 3] });
  assert.deepEqual(choosing({ tier: chain(2) }), { picked: { tier: chain(2) }, why: [] });
  const tree = { depth: 3, width: 2, rows: 8 };
  const odd: [Decision, RegExp][] = [
    ...[[0], [0, 1, 2], [0, 4], [-1, 0], [0.5, 1], [NaN, 1]]
      .map((depths): [Decision, RegExp] => [{ tier, depths }, /^it gave depths .* to 2 sequences/]),
    [{ tier: tree, depths: [1, 2] }, /^it chose 3:2:8 steps, its tiers are 3$/],
    [{ tier: chain(4) }, /^it chose 4 steps, its tiers are 3$/],
  ];
  for (const [choice, why] of odd) {
    const found = choosing(choice);
    assert.deepEqual(found.picked, { tier: chain(1) });
    assert.match(found.why.join("; "), why);
  }
  for (const rounds of [0, NaN, -1]) {
    assert.match(choosing({ tier }, rounds).why.join("; "), /^its choice is valid for .* rounds$/);
  }
});

Deno.test("a budget that no round can have is a bug of the policy; who asked for no drafts has none of it", () => {
  const tier = chain(3);
  const budget = { drafts: 4, slope: 1, intercepts: [0, 0, 0], minConfidence: 0 };
  const why: string[] = [];
  const choosing = (choice: Decision, context: Partial<RoundContext> = {}) => {
    const own = { ...fixed(tier), pick: () => choice };
    const onWarning = (line: string) => void why.push(line);
    const of = contextOf(2, { ranks: true, ...context });
    return openSpeculation("odd", own, { tier, onWarning }).pick(of);
  };
  const refused = (choice: Decision, context?: Partial<RoundContext>) => {
    assert.deepEqual(choosing(choice, context), { tier });
    return why.pop() ?? "";
  };
  const choice = { tier, verify: budget };
  assert.deepEqual(choosing(choice), choice);
  const mixed = choosing(choice, { asked: [undefined, 0] });
  assert.deepEqual(mixed, { ...choice, depths: [3, 0] });
  assert.deepEqual(choosing(choice, { asked: [1, 1] }), {
    tier: chain(1),
    depths: [1, 1],
    verify: { ...budget, drafts: 2, intercepts: [0] },
  });
  const wrong: Partial<typeof budget>[] = [
    ...[{ drafts: 7 }, { drafts: -1 }, { drafts: 1.5 }, { slope: NaN }, {
      minConfidence: Infinity,
    }],
    ...[{ intercepts: [0, 0] }, { intercepts: [0, NaN, 0] }],
  ];
  for (const of of wrong) {
    const odd = { tier, verify: { ...budget, ...of } };
    assert.match(refused(odd), /: it gave the budget /, JSON.stringify(of));
  }
  assert.match(refused(choice, { ranks: false }), /: it gave the budget /);
  assert.match(refused({ ...choice, depths: [1, 2] }), /: it gave the budget /);
  // No tier of the policy's.
  const tree = { depth: 3, width: 2, rows: 8 };
  assert.match(refused({ tier: tree, verify: budget }), /: it chose /);
});

const PLAN = { algorithm: "EAGLE3", architecture: "LlamaForCausalLM", maxBatch: 4 } as const;

function planned(
  ...[asked, of = PLAN]: [
    Parameters<typeof policyPlan>[0],
    Omit<Parameters<typeof policyPlan>[1], "onWarning">?,
  ]
) {
  const warnings: string[] = [];
  const plan = policyPlan(asked, { ...of, onWarning: (line) => warnings.push(line) });
  const { speculation, ...steps } = plan;
  return { ...steps, name: speculation.report.policy, warnings };
}

Deno.test("a plan says whether its policy needs the draft's confidences, or packed rounds", () => {
  const needs = (of: Partial<Policy>) => {
    const { confident, packed } = planned({ policy: { ...fixed(chain(3)), ...of } as Policy });
    return { confident, packed };
  };
  assert.deepEqual(needs({}), { confident: undefined, packed: undefined });
  assert.deepEqual(needs({ confident: true }), { confident: true, packed: undefined });
  assert.deepEqual(needs({ packed: true }), { confident: undefined, packed: true });
});

Deno.test("a plan by a policy's name builds the policy's tiers", () => {
  const options = { "1": { candidate_steps: [0, 1, 3] }, "8": { candidate_steps: [5] } };
  const tiers = chains([0, 1, 3, 5]);
  const built = { tiers, warmed: tiers, name: "ema", warnings: [] };
  assert.deepEqual(planned({ policy: "ema", options }), { tier: chain(5), ...built });
  assert.deepEqual(planned({ policy: "ema", options, numSteps: 1 }), { tier: chain(1), ...built });
  const plan = planned({ policy: "static", options: { num_steps: 2 } });
  assert.deepEqual([plan.tiers, plan.tier], [[chain(2)], chain(2)]);
});

Deno.test("a plan by a policy's name: what cannot be used is a usage error", () => {
  const fails = (asked: Parameters<typeof planned>[0], message: string | RegExp) =>
    assert.throws(() => planned(asked), { name: "UsageError", message });
  fails({ policy: "best" }, /^Cannot use policy "best": there are static, off, ema/);
  fails(
    { policy: "static", options: { num_steps: 17 } },
    'Cannot use policy "static": it has 17 steps, at most 16 are supported',
  );
  fails(
    { policy: "ema", options: { "1": { candidate_steps: [1, 3] } }, numSteps: 2 },
    'Cannot use policy "ema": it has 1, 3 steps, not 2 to begin with',
  );
});

Deno.test("a policy of the caller's own; nothing is drafted without a draft", () => {
  const policy: Policy = { ...fixed(chain(3)), tiers: chains([1, 3]) };
  const expected = {
    tier: chain(3),
    tiers: chains([1, 3]),
    warmed: chains([1, 3]),
    name: "own",
    warnings: [],
  };
  assert.deepEqual(planned({ policy }), expected);
  const none = planned({ policy, name: "mine" }, { ...PLAN, algorithm: "NONE" });
  assert.deepEqual(none, {
    tier: chain(0),
    tiers: [chain(0)],
    name: "static",
    warnings: ['policy "mine" is not used: there is no draft'],
  });
  assert.deepEqual(planned({ policy: "off" }, { ...PLAN, algorithm: "NONE" }).warnings, []);
});
