import assert from "node:assert/strict";
import { roundMs } from "../../../../src/speculate/costs/lookup.ts";
import { policyRandom } from "../../../../src/speculate/noise.ts";
import { policyNamed } from "../../../../src/speculate/policies/registry.ts";
import type { Policy } from "../../../../src/speculate/policy.ts";
import { contextOf, outcomeOf } from "../../rounds.ts";
import { runWorld } from "../../small_world.ts";
import { type Played, playWorld, throughput, WORLD_SETUP } from "../../world.ts";
import { drafting, partOfBest, speed, steady } from "./behaviour.ts";
import { EXHAUSTIVE } from "../../../exhaustive.ts";
import { BUCKETS, costsOf } from "./costs.ts";

const SETUP = { buckets: BUCKETS, random: policyRandom(1) };

function hybrid(options?: unknown, numSteps?: number): Policy {
  return policyNamed(
    "hybrid",
    options ?? {},
    numSteps === undefined ? SETUP : { ...SETUP, numSteps },
  );
}

/** The fraction of the best static depth's speed that a run of a few seeds may fall short by. */
const NOISE = 0.02;

Deno.test("hybrid policy: as fast as the best depth where nothing changes, at any batch", () => {
  for (const batch of [1, 8, 64]) {
    for (const row of [0.002, 0.05]) {
      for (const ranks of EXHAUSTIVE ? [false, true] : [row < 0.01]) {
        const world = steady({ batch: () => batch, costs: costsOf({ row }), ranks });
        const part = partOfBest({ ...world, told: world.costs }, hybrid);
        assert(part > 1 - NOISE, `batch ${batch}, ${row} a row: ${part}`);
      }
    }
  }
});

Deno.test("hybrid policy: as fast without a cost table, once it has timed a few rounds", () => {
  for (const batch of [1, 8]) {
    const world = steady({ batch: () => batch, told: undefined });
    const part = partOfBest(world, hybrid);
    assert(part > 1 - 2 * NOISE, `batch ${batch}: ${part}`);
  }
});

Deno.test("hybrid policy: faster than any depth where acceptance comes and goes", () => {
  const alpha = (ms: number) => Math.floor(ms / 300) % 2 === 0 ? 0.35 : 0.85;
  for (const ranks of [false, true]) {
    const part = partOfBest(steady({ alpha, ranks, batch: () => 1 }), hybrid);
    assert(part > 1.01, `${part}`);
  }
});

Deno.test("hybrid policy: faster than any depth where the batch comes and goes", () => {
  const batch = (ms: number) => Math.floor(ms / 1000) % 2 === 0 ? 1 : 64;
  const part = partOfBest(steady({ batch, costs: costsOf({ row: 0.05 }), lasts: 12_000 }), hybrid);
  assert(part > 1.01, `${part}`);
});

Deno.test("hybrid policy: 0 steps are left when drafts become worth it, and kept until then", () => {
  // At 0.1 ms a row, 8 requests gain from drafts only if acceptance is high.
  const costs = costsOf({ row: 0.1 });
  for (const ranks of [false, true]) {
    const world = steady({ costs, told: costs, batch: () => 8, ranks, lasts: 6000 });
    const bad = { ...world, alpha: () => 0.2 };
    assert(drafting(bad, hybrid(), 1000) < 0.05, `${drafting(bad, hybrid(), 1000)}`);
    const better = { ...world, alpha: (ms: number) => ms < 2000 ? 0.2 : 0.95 };
    // The longest wait between probes, 1024 rounds, is about 2 seconds.
    assert(drafting(better, hybrid(), 4500) > 0.9, `${drafting(better, hybrid(), 4500)}`);
  }
});

/** A policy in a world of requests that do not end, where nothing pays before round `bad`. */
function afterBad(batch: number, bad: number, policy: Policy): Played[] {
  const alpha = (round: number) => round < bad ? 0.05 : 0.9;
  return playWorld(policy, { rounds: bad + 4000, batch: () => batch, alpha });
}

Deno.test("hybrid policy: 0 steps are left although the catch-up grows faster than what probes may cost", () => {
  const bad = 500;
  const named = (name: string, options: unknown) =>
    policyNamed(name, options, { ...WORLD_SETUP, random: policyRandom(1) });
  for (const batch of [8, 32]) {
    const part = throughput(afterBad(batch, bad, named("hybrid", {})), bad) /
      throughput(afterBad(batch, bad, named("static", { num_steps: 5 })), bad);
    assert(part > 0.85, `batch ${batch}: ${part}`);
  }
});

Deno.test("hybrid policy: probes with a dear catch-up become rarer while none is worth it", () => {
  const bad = 12_000;
  const policy = policyNamed("hybrid", {}, { ...WORLD_SETUP, random: policyRandom(1) });
  const played = afterBad(32, bad, policy).slice(0, bad);
  const probes = [...played.entries()]
    .filter(([i, { depth }]) => depth > 0 && played[i - 1]?.depth === 0)
    .map(([i]) => i);
  const waits = probes.map((at, i) => at - (probes[i - 1] ?? 0));
  assert(waits.length >= 4 && waits.length <= 6, `${waits}`);
  assert.deepEqual(waits, waits.toSorted((a, b) => a - b));
});

Deno.test("hybrid policy: no round takes longer than requests should wait, if the shallowest does not", () => {
  const policy = hybrid({ steps: [1, 3, 7] });
  const costs = costsOf({ row: 0.1 });
  let state = policy.start;
  for (let round = 0; round < 40; round++) {
    const outcome = outcomeOf({ batchSize: 2, numSteps: 7, accepted: [7, 7] });
    const ms = { ...outcome.ms, round: roundMs(costs, { batch: 2, steps: 7, cells: 40 }) };
    state = policy.learn(state, { ...outcome, ms }).state;
  }
  const depth = (maxMs: number | undefined) =>
    policy.pick(state, contextOf(2, { costs, maxMs })).tier.depth;
  const took = (steps: number) => roundMs(costs, { batch: 2, steps, cells: 40 });
  assert.deepEqual(
    [undefined, took(7) + 0.1, took(7) - 0.1, took(3) - 0.1, 0].map(depth),
    [7, 7, 3, 1, 1],
  );
});

Deno.test("hybrid policy: after a rest it tries drafts again, although the catch-up exceeds what requests should wait", () => {
  const policy = hybrid({ steps: [0, 1, 3] });
  const costs = { ...costsOf({ row: 0.1 }), catchUp: [{ at: 1, ms: 50 }] };
  const took = (steps: number) => roundMs(costs, { batch: 8, steps, cells: 160 });
  const lags = contextOf(8).sequences.map((each) => ({ ...each, lag: 60 }));
  let state = policy.start;
  const learn = (steps: number, accepted: number) => {
    const all = Array<number>(8).fill(accepted);
    const outcome = outcomeOf({ batchSize: 8, numSteps: steps, accepted: all });
    state = policy.learn(state, { ...outcome, ms: { ...outcome.ms, round: took(steps) } }).state;
  };
  for (let round = 0; round < 40; round++) learn(3, 0);
  const depth = () =>
    policy.pick(state, contextOf(8, { costs, maxMs: took(3) + 0.1, sequences: lags })).tier.depth;
  assert.equal(depth(), 0);
  let rounds = 0;
  while (depth() === 0 && rounds < 20_000) {
    learn(0, 0);
    rounds++;
  }
  assert.ok(rounds > 0 && rounds < 20_000, String(rounds));
});

Deno.test("hybrid policy: probes of drafting cost a small part of the time while none is worth it", () => {
  const costs = costsOf({ row: 0.2 });
  const world = steady({ costs, told: costs, batch: () => 16, alpha: () => 0.3, lasts: 6000 });
  const off = runWorld(
    world,
    policyNamed("static", { num_steps: 0 }, {
      buckets: BUCKETS,
      random: policyRandom(1),
    }),
  );
  const part = speed(runWorld(world, hybrid())) / speed(off);
  assert(part > 0.98, `${part}`);
});

Deno.test("hybrid policy: a probe is priced by the tokens of all its drafts, not by those of a round that is cut", () => {
  // Each row costs as much as a token is worth, so the best round of 8 requests verifies one draft of the 8.
  const costs = costsOf({ row: 1 });
  const policy = hybrid({ steps: [0, 1] });
  const context = contextOf(8, { costs });
  let state = policy.start;
  const learn = (steps: number, round: number) => {
    const accepted = Array.from({ length: 8 }, (_, i) => (i + round) % 16 > 0 ? steps : 0);
    const outcome = outcomeOf({ batchSize: 8, numSteps: steps, accepted });
    const ms = { ...outcome.ms, round: roundMs(costs, { batch: 8, steps, cells: 160 }) };
    state = policy.learn(state, { ...outcome, ms }).state;
  };
  for (let round = 0; round < 64; round++) learn(1, round);
  const depth = () => policy.pick(state, context).tier.depth;
  assert.equal(depth(), 0);
  let rounds = 0;
  for (; depth() === 0 && rounds < 1000; rounds++) learn(0, rounds);
  // Two rounds of a probe lose about 1.5 ms of 8 ms rounds, which 1 % of the time pays after the shortest wait.
  assert(rounds < 50, `${rounds}`);
});

Deno.test("hybrid policy: rounds after a probe wait for its result, and plain rounds in flight before it do not shorten it", () => {
  const policy = hybrid({ steps: [0, 3] });
  const context = contextOf(1, { costs: costsOf({ row: 0.3 }) });
  const depth = (state: unknown) => policy.pick(state, context).tier.depth;
  const learned = (state: unknown, numSteps: number) => {
    const outcome = outcomeOf({ batchSize: 1, numSteps, accepted: [0] });
    const ms = { ...outcome.ms, round: 2 + numSteps / 2 };
    return policy.learn(state, { ...outcome, ms }).state;
  };
  let state = policy.start;
  let rounds = 0;
  // The policy stops drafting if nothing is accepted, and later tries drafts again.
  while (depth(state) > 0) state = learned(state, 3);
  assert.equal(policy.mayLag?.(state, context), true);
  while (depth(state) === 0 && rounds++ < 10_000) state = learned(state, 0);
  assert.equal(policy.mayLag?.(state, context), false);
  const lengthOf = (probing: unknown) => {
    let length = 0;
    for (let state = probing; depth(state) > 0 && length < 100; length++) state = learned(state, 3);
    return length;
  };
  assert.equal(policy.holds(state, context), 8);
  assert.equal(lengthOf(state), 8);
  let late = state;
  for (let round = 0; round < 7; round++) late = learned(late, 0);
  assert.equal(lengthOf(late), 8);
});

Deno.test("hybrid policy: a table that is wrong is corrected by the times of rounds", () => {
  // The policy is told that drafts and rows are nearly free. They are not, and no depth pays.
  const told = costsOf({ row: 0.001, level: 0.01 });
  const costs = costsOf({ row: 0.1, level: 0.5 });
  const world = steady({ costs, told, alpha: () => 0.5, lasts: 6000 });
  const [first, , last = 0] = [7, 5, 2].map((depth) =>
    speed(runWorld(world, policyNamed("static", { num_steps: depth }, SETUP)))
  );
  const found = speed(runWorld(world, hybrid()));
  assert(found > 2 * (first ?? Infinity) && found > 0.95 * last, `${first} ${found} ${last}`);
});

Deno.test("hybrid policy: catching up is paid before drafts come back", () => {
  const lag = 400;
  const depthAt = (catchUp: number) => {
    const costs = costsOf({ row: 0.01, catchUp });
    const policy = hybrid();
    const { sequences } = contextOf(2);
    const behind = sequences.map((each) => ({ ...each, lag }));
    return policy.pick(policy.start, contextOf(2, { costs, sequences: behind })).tier.depth;
  };
  assert(depthAt(0.1) > 0);
  assert.equal(depthAt(1000), 0);
});

Deno.test("hybrid policy: verifies the requests that are guessed well, where drafts have no rank", () => {
  const costs = costsOf({ row: 0.15, level: 0.01 });
  const policy = hybrid();
  let state = policy.start;
  for (let round = 0; round < 60; round++) {
    const { tier: { depth }, depths } = policy.pick(state, contextOf(4, { costs }));
    const outcome = outcomeOf({ batchSize: 4, numSteps: depth, accepted: [0, 0, 0, 0] });
    const sequences = outcome.sequences.map((each, i) => {
      const own = depths?.[i] ?? depth;
      return { ...each, depth: own, accepted: i < 2 ? own : 0 };
    });
    state = policy.learn(state, { ...outcome, sequences }).state;
  }
  const { tier, depths } = policy.pick(state, contextOf(4, { costs }));
  assert(tier.depth > 1, `${tier.depth}`);
  const [a = 0, b = 0, c = 9, d = 9] = depths ?? [];
  assert(a > 1 && b > 1 && c === 0 && d === 0, `${depths}`);
});

Deno.test("hybrid policy: gives the device a budget and what confidences are worth", () => {
  const costs = costsOf({ row: 0.1, level: 0.01 });
  const world = steady({ costs, told: costs, ranks: true, batch: () => 16, tokenSpread: 1.5 });
  const policy = hybrid();
  const budgets: number[] = [];
  runWorld(world, {
    ...policy,
    pick(state, context) {
      const choice = policy.pick(state, context);
      if (choice.verify) budgets.push(choice.verify.drafts / 16 / choice.tier.depth);
      assert.equal(choice.depths, undefined);
      return choice;
    },
  });
  assert(budgets.length > 50, `${budgets.length}`);
  assert(budgets.every((part) => part > 0 && part < 1));
});

Deno.test("hybrid policy: begins at the steps that were asked for", () => {
  const policy = hybrid({}, 5);
  assert.equal(policy.pick(policy.start, contextOf(1)).tier.depth, 5);
});

Deno.test("hybrid policy: reports rounds by depth and acceptance", () => {
  const policy = hybrid({ steps: [0, 2] });
  const { state } = policy.learn(
    policy.start,
    outcomeOf({ batchSize: 1, numSteps: 2, accepted: [2] }),
  );
  const { json, rows } = policy.report(state);
  assert.deepEqual(json.rounds, { "2": 1 });
  assert.deepEqual(rows.at(-1), ["rounds", "1 of 2"]);
  assert.equal(rows[0]?.[0], "acceptance");
});
