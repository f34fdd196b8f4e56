import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { policyRandom } from "../../../src/speculate/noise.ts";
import { parseAdaptiveConfig } from "../../../src/speculate/adaptive_config.ts";
import { changeText, EMA, ema, type EmaState } from "../../../src/speculate/policies/ema.ts";
import type { Policy } from "../../../src/speculate/policy.ts";
import { bucketsForStep } from "../../reference/router.ts";
import { policyContract } from "../policy_contract.ts";
import { contextOf, outcomeOf } from "../rounds.ts";
import { SGLANG_DEFAULT } from "../sglang_default.ts";

/** Acts on every round, and the average is the last round alone. */
const AT_ONCE = { ema_alpha: 1, warmup_batches: 0, update_interval: 1 };
const BUCKETS = [1, 2, 4, 8];

function policyOf(json: unknown, initialSteps: number, buckets?: readonly number[]) {
  const config = parseAdaptiveConfig(json);
  return ema(config, buckets ? { initialSteps, buckets } : { initialSteps });
}

/** The steps of a batch's next round. */
function picked(policy: Policy<EmaState>, state: EmaState, batchSize: number): number {
  return policy.pick(state, contextOf(batchSize)).tier.depth;
}

policyContract("ema, SGLang's default", () => policyOf(SGLANG_DEFAULT, 3));
policyContract(
  "ema, at once",
  () => policyOf({ ...AT_ONCE, ...SGLANG_DEFAULT }, 0, BUCKETS),
);
policyContract(
  "ema, every third round",
  () => policyOf({ ...SGLANG_DEFAULT, warmup_batches: 2, update_interval: 3 }, 0, BUCKETS),
);
policyContract(
  "ema, flat",
  () => policyOf({ candidate_steps: [1, 3, 7], ...AT_ONCE, up_hysteresis: -1.5 }, 2),
);

Deno.test("ema policy: any config picks among the candidates of the batch's slot", () => {
  const hysteresis = fc.double({ min: -3, max: 3, noNaN: true });
  const slot = fc.record({
    candidate_steps: fc.array(fc.integer({ min: 0, max: 7 }), { minLength: 1, maxLength: 5 }),
    ema_alpha: fc.double({ min: 0, max: 1, noNaN: true }),
    update_interval: fc.integer({ min: 1, max: 3 }),
    warmup_batches: fc.integer({ min: 0, max: 3 }),
    down_hysteresis: hysteresis,
    up_hysteresis: hysteresis,
    ceiling_coeff: fc.double({ min: 0, max: 4, noNaN: true }),
  });
  const accepted = fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 4 });
  fc.assert(
    fc.property(
      fc.record({ "1": slot, "8": slot }),
      fc.array(fc.tuple(fc.integer({ min: 1, max: 16 }), accepted), { maxLength: 60, size: "max" }),
      fc.integer({ min: 0, max: 7 }),
      (json, rounds, initialSteps) => {
        const policy = policyOf(json, initialSteps);
        let state = policy.start;
        for (const [batchSize, accepted] of rounds) {
          const own = json[batchSize < 8 ? "1" : "8"].candidate_steps;
          const numSteps = picked(policy, state, batchSize);
          assert(own.includes(numSteps));
          state = policy.learn(state, outcomeOf({ batchSize, numSteps, accepted })).state;
        }
      },
    ),
    { seed: 20260712, numRuns: 1000 },
  );
});

Deno.test("ema policy: every change is told, and rounds of other steps teach nothing", () => {
  const round = fc.record({
    batchSize: fc.integer({ min: 0, max: 40 }),
    accepted: fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 6 }),
    off: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -7, max: 7 })),
  });
  let changes = 0;
  fc.assert(
    fc.property(fc.array(round, { maxLength: 80, size: "max" }), (rounds) => {
      const policy = policyOf({ ...AT_ONCE, ...SGLANG_DEFAULT }, 0, BUCKETS);
      let state = policy.start;
      for (const { batchSize, accepted, off } of rounds) {
        const before = picked(policy, state, batchSize);
        const outcome = outcomeOf({ batchSize, accepted, numSteps: before + off });
        const learned = policy.learn(state, outcome);
        if (off !== 0) assert.deepEqual(learned, { state });
        const after = picked(policy, learned.state, batchSize);
        const told = learned.change && [learned.change.from, learned.change.to];
        assert.deepEqual(told, before === after ? undefined : [before, after]);
        if (told) changes++;
        state = learned.state;
      }
    }),
    { seed: 20260712, numRuns: 300 },
  );
  assert(changes > 1000, `${changes}`);
});

Deno.test("ema policy: counts that are none do not spoil the average", () => {
  const policy = policyOf({ ...AT_ONCE, "1": { candidate_steps: [1, 3] } }, 3);
  const accepted = [NaN, Infinity, -3, 0.5];
  const nothing = policy.learn(policy.start, outcomeOf({ batchSize: 4, numSteps: 3, accepted }));
  assert.deepEqual(nothing, { state: policy.start });
  const some = [...accepted, 2];
  const { state } = policy.learn(
    policy.start,
    outcomeOf({ batchSize: 5, numSteps: 3, accepted: some }),
  );
  assert.equal(state[0]?.ema, 2);
});

Deno.test("ema policy: the report tells each slot", () => {
  const policy = policyOf({
    ...AT_ONCE,
    "4": { candidate_steps: [1, 3] },
    "1": { candidate_steps: [0] },
  }, 3);
  const { state } = policy.learn(
    policy.start,
    outcomeOf({ batchSize: 4, numSteps: 3, accepted: [1, 2] }),
  );
  assert.deepEqual(policy.report(state), {
    json: {
      slots: [
        { batch_size: 1, num_steps: 0, ema_accept_len: -1 },
        { batch_size: 4, num_steps: 3, ema_accept_len: 1.5 },
      ],
    },
    rows: [["slots", "from batch 1: 0 steps, ema -1.00; from batch 4: 3 steps, ema 1.50"]],
  });
});

Deno.test("ema policy: each slot starts at the initial steps where it has them", () => {
  const first = policyOf({
    "1": { candidate_steps: [1, 5], up_hysteresis: 0.3 },
    "32": { candidate_steps: [1, 2] },
  }, 5);
  assert.equal(first.start[0]?.current, 5);
  assert.equal(first.start[0]?.slot.upHysteresis, 0.3);
  const second = policyOf(
    { "1": { candidate_steps: [1, 5] }, "8": { candidate_steps: [1, 3, 7] } },
    7,
  );
  assert.deepEqual(second.start.map(({ current }) => current), [5, 7]);
});

Deno.test("ema policy: batches of one size tell nothing about another size", () => {
  const policy = policyOf(SGLANG_DEFAULT, 1);
  let state = policy.start;
  for (let round = 0; round < 40; round++) {
    const numSteps = picked(policy, state, 1);
    state = policy.learn(state, outcomeOf({ batchSize: 1, numSteps, accepted: [7, 7, 7] })).state;
  }
  assert(picked(policy, state, 1) > 1);
  assert.equal(picked(policy, state, 32), 1);
  assert.deepEqual(state[2], policy.start[2]);
});

Deno.test("ema policy: a flat config takes the initial steps in", () => {
  const policy = policyOf({ candidate_steps: [1, 3, 7] }, 2);
  assert.deepEqual(policy.tiers.map(({ depth }) => depth), [1, 2, 3, 7]);
  const [slot] = policy.start;
  assert.deepEqual([slot?.slot.candidateSteps, slot?.current, slot?.ema], [[1, 2, 3, 7], 2, 1]);
});

Deno.test("ema policy: options without batch sizes are a generation's", () => {
  const setup = { buckets: BUCKETS, random: policyRandom(0) };
  const main = EMA.check({});
  assert.deepEqual(main, parseAdaptiveConfig(SGLANG_DEFAULT));
  assert.deepEqual(EMA.check({ generation: "main" }), main);
  const doc = EMA.check({ generation: "doc", ema_alpha: 0.5 });
  const steps = doc.slots.map(({ batchSize, candidateSteps, emaAlpha, downHysteresis }) => [
    ...[batchSize, candidateSteps, emaAlpha, downHysteresis],
  ]);
  assert.deepEqual(steps, [[1, [1, 3, 7], 0.5, -0.25], [8, [1, 3], 0.5, 0], [32, [1], 0.5, 0]]);
  const { tiers } = EMA.open({ generation: "doc" }, setup);
  assert.deepEqual(tiers.map(({ depth }) => depth), [1, 3, 7]);
});

Deno.test("ema policy: a generation that cannot be used", () => {
  const faults: [unknown, RegExp][] = [
    [{ generation: "new" }, /^generation must be one of main, doc, got "new"$/],
    [{ generation: "doc", "1": { candidate_steps: [1] } }, /^a generation has its own batch sizes/],
    [{ generation: "doc", candidate_steps: [1, 3] }, /^a generation has its own batch sizes/],
    [{ generation: "doc", alpha: 1 }, /unknown key "alpha"/],
    [{ alpha: 1 }, /unknown key "alpha"/],
    [[], /^it must be a JSON object/],
  ];
  for (const [options, message] of faults) assert.throws(() => EMA.check(options), { message });
});

// SGLang's controller tests: 1 step for batches of 8 and more, else 3.
const BY_SIZE = { "1": { candidate_steps: [3] }, "8": { candidate_steps: [1] } };

Deno.test("ema policy: each tier is built for the buckets that can pick it", () => {
  const { slots } = parseAdaptiveConfig(BY_SIZE);
  const { tiers } = policyOf(BY_SIZE, 3);
  const built = tiers.map(({ depth }) => [
    depth,
    bucketsForStep({ slots, buckets: BUCKETS }, depth),
  ]);
  assert.deepEqual(built, [[1, [8]], [3, [1, 2, 4]]]);
});

Deno.test("ema policy: the batch size decides, and picking changes nothing", () => {
  const policy = policyOf(BY_SIZE, 3);
  const picks = [1, 8, 8, 1].map((batchSize) => picked(policy, policy.start, batchSize));
  assert.deepEqual(picks, [3, 1, 1, 3]);
});

Deno.test("ema policy: a decision holds from the next round, and says why", () => {
  const policy = policyOf({ ...AT_ONCE, "4": { candidate_steps: [1, 3, 7] } }, 3);
  const outcome = outcomeOf({ batchSize: 5, numSteps: 3, accepted: [3, 3] });
  const { state, change } = policy.learn(policy.start, outcome);
  assert.equal(picked(policy, policy.start, 5), 3);
  assert.equal(picked(policy, state, 5), 7);
  assert.deepEqual(change, {
    from: 3,
    to: 7,
    slot: 4,
    reason: "Adaptive spec params updated: steps 3 -> 7 (ema_accept_len=3.00)",
  });
  assert.equal(
    changeText({ from: 3, to: 7, ema: 2.819 }),
    "Adaptive spec params updated: steps 3 -> 7 (ema_accept_len=2.82)",
  );
  const again = outcomeOf({ batchSize: 5, numSteps: 7, accepted: [5] });
  assert.equal(policy.learn(state, again).change, undefined);
});

Deno.test("ema policy: padding decides the slot that learns, too", () => {
  const json = {
    ...AT_ONCE,
    "1": { candidate_steps: [1, 3] },
    "8": { candidate_steps: [1, 3] },
  };
  const policy = policyOf(json, 3, [4, 8]);
  const { state, change } = policy.learn(
    policy.start,
    outcomeOf({
      batchSize: 5,
      numSteps: 3,
      accepted: [0],
    }),
  );
  assert.equal(change?.slot, 8);
  assert.deepEqual(state.map(({ current }) => current), [3, 1]);
});

Deno.test("ema policy: no slot at all", () => {
  assert.throws(() => ema({ slots: [] }, { initialSteps: 3 }), {
    name: "AdaptiveConfigError",
    message: "an adaptive config needs at least one batch size",
  });
});

Deno.test("ema policy: a pick holds until the slot's next decision", () => {
  const slot = { candidate_steps: [0, 1], warmup_batches: 4, update_interval: 3 };
  const policy = policyOf({ "1": slot, "8": { ...slot, candidate_steps: [1] } }, 0);
  const found: number[][] = [];
  let state = policy.start;
  for (let round = 0; round < 12; round++) {
    const numSteps = picked(policy, state, 1);
    found.push([policy.holds(state, contextOf(1)), numSteps]);
    state = policy.learn(state, outcomeOf({ batchSize: 1, numSteps, accepted: [0] })).state;
  }
  // Nothing is accepted, so that every decision changes the steps.
  const at = (numSteps: number, ...holds: number[]) => holds.map((each) => [each, numSteps]);
  assert.deepEqual(found, [...at(0, 7, 6, 5, 4, 3, 2, 1), ...at(1, 3, 2, 1), ...at(0, 3, 2)]);
  assert.equal(policy.holds(state, contextOf(8)), Infinity, "one candidate");
  assert.equal(policy.holds(state, contextOf(1)), 1, "other slots learn by themselves");
});
