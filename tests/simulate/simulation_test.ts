import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { geometric, isRight, spreadOut } from "../../src/simulate/acceptance/model.ts";
import { tablePricing } from "../../src/simulate/costs/pricing.ts";
import { simulate, type SimulatedPolicy } from "../../src/simulate/run/simulation.ts";
import { batchSource, closedSource } from "../../src/simulate/run/source.ts";
import type { SimulatedSample } from "../../src/simulate/run/tally.ts";
import type { Decision, Policy, RoundContext, RoundOutcome } from "../../src/speculate/policy.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { COSTS, MACHINE, policyOf, simulationOf, statically } from "./worlds.ts";

/** A policy that makes the given choices, round by round, and records the contexts and outcomes that it saw. */
function scripted(choices: readonly Decision[], depths: readonly number[] = [0, 1, 2, 3]) {
  const contexts: RoundContext[] = [];
  const outcomes: RoundOutcome[] = [];
  const policy: Policy<number> = {
    tiers: chains(depths),
    start: 0,
    confident: true,
    packed: true,
    pick: (state) => choices[Math.min(state, choices.length - 1)] as Decision,
    holds: () => 1,
    learn(state, outcome) {
      outcomes.push(outcome);
      return { state: state + 1 };
    },
    report: () => ({ json: {}, rows: [] }),
  };
  const watched: Policy<number> = {
    ...policy,
    pick(state, context) {
      contexts.push({ ...context, sequences: context.sequences });
      return policy.pick(state, context);
    },
  };
  const simulated: SimulatedPolicy = { name: "scripted", open: () => watched as Policy };
  return { simulated, contexts, outcomes };
}

Deno.test("one request without drafts, by hand", () => {
  const { ms, rounds, tokens, finished, throughput } = simulate(simulationOf([{}]));
  // The prefill of 10 prompt tokens gives the first token; four rounds of one row give the others.
  assert.deepEqual({ ms, rounds, tokens }, { ms: 5 + 4 * 11, rounds: 4, tokens: 5 });
  assert.equal(throughput, 1000 * 5 / 49);
  const times = { ttftMs: 5, e2eMs: 49, tpotMs: 11 };
  assert.deepEqual(finished, [{ atMs: 0, promptTokens: 10, outputTokens: 5, ...times }]);
});

Deno.test("one request with two drafts that are always right, by hand", () => {
  const found = simulate(simulationOf([{}], { policy: statically(2) }));
  // Two rounds of up to three tokens. Each takes 2 ms for the second level, 13 for three rows and 3 for extend.
  assert.deepEqual([found.ms, found.rounds, found.tokens], [5 + 2 * (2 + 13 + 3), 2, 5]);
  assert.deepEqual([found.meanDepth, found.meanAcceptLength], [2, 3]);
});

Deno.test("a prompt is stored in chunks, and others decode between them", () => {
  const samples: SimulatedSample[] = [];
  const found = simulate(simulationOf(
    [{ outputTokens: 9 }, { atMs: 20, promptTokens: 600 }],
    { onRound: (sample) => samples.push(sample) },
  ));
  // The second request comes in the second round. Its chunks of 256, 256 and 88 tokens each run before a round.
  assert.deepEqual(samples.map(({ batch }) => batch), [1, 1, 1, 1, 2, 2, 2, 2]);
  const ends = [16, 27, 27 + 128 + 11, 166 + 128 + 11, 305 + 44 + 12];
  assert.deepEqual(samples.slice(0, 5).map(({ tMs }) => tMs), ends);
  assert.equal(found.finished[1]?.ttftMs, 305 + 44 - 20);
});

Deno.test("after rounds without it the draft catches up on what it missed, once", () => {
  const { simulated, contexts, outcomes } = scripted([
    ...[{ tier: chain(0) }, { tier: chain(0) }],
    { tier: chain(1) },
  ]);
  const found = simulate(simulationOf([{ outputTokens: 9 }], { policy: simulated }));
  assert.deepEqual(contexts.map(({ sequences }) => sequences[0]?.lag), [0, 1, 2, 0, 0]);
  assert.deepEqual(outcomes.map(({ ms }) => ms.catchUp), [0, 0, 0.5, 0, 0]);
  assert.deepEqual([found.catchUps, found.catchUpMs, found.switches], [1, 0.5, 1]);
  // 2 plain rounds and 3 rounds of two tokens. Catching up does not count as part of a round.
  assert.equal(found.ms, 5 + 2 * 11 + 0.5 + 3 * (12 + 3));
  assert.deepEqual(outcomes.map(({ ms }) => ms.round), [11, 11, 15, 15, 15]);
});

Deno.test("each sequence has its own depth, and rows for it alone", () => {
  const { simulated, outcomes } = scripted([{ tier: chain(3), depths: [3, 0] }]);
  const found = simulate(simulationOf([{ outputTokens: 100 }, { outputTokens: 100 }], {
    policy: simulated,
    source: batchSource(() => 2, { seed: 1, promptTokens: 4, outputTokens: 100 }),
    until: { rounds: 3 },
  }));
  assert.deepEqual(outcomes[0]?.sequences.map(({ depth, accepted }) => [depth, accepted]), [
    [3, 3],
    [0, 0],
  ]);
  // A round has two further levels, five rows (which run in the program for six rows) and an extend.
  assert.equal(found.ms, 3 * (4 + 16 + 3));
  assert.equal(found.tokens, 2 + 3 * 5);
});

Deno.test("a budget verifies the drafts of whom the draft is sure, a plain rule of all chains", () => {
  const verify = { drafts: 4, slope: 1, intercepts: [0, 0, 0], minConfidence: 0 };
  const { simulated, contexts, outcomes } = scripted([{ tier: chain(3) }, {
    tier: chain(3),
    verify,
  }]);
  const acceptance = {
    name: "by request",
    open: (seed: number) => ({ chance: () => seed === 0 ? 0.9 : 0.2 }),
  };
  simulate(simulationOf([{ outputTokens: 50 }, { outputTokens: 50, atMs: 1 }], {
    policy: simulated,
    acceptance,
    until: { rounds: 8 },
    machine: { ...MACHINE, confidenceNoise: 0 },
  }));
  const both = outcomes.find(({ sequences }) => sequences.length === 2);
  // One sequence alone has at most 3 drafts, so the first round verifies all. With both sequences the largest survivals
  // are 0.9, 0.81, 0.73 and 0.2.
  assert.deepEqual(both?.sequences.map(({ depth }) => depth), [3, 1]);
  assert.ok(contexts.every(({ ranks }) => ranks));
  assert.ok(Math.abs((both?.sequences[1]?.confidences[0] ?? 0) - 0.2) < 1e-9);
});

Deno.test("what is accepted does not depend on who drafts: positions decide", () => {
  const acceptance = spreadOut(geometric(0.6), { requests: 0.5, tokens: 1 });
  const now = { ms: 0, tokens: 0 };
  const models = new Map<number, ReturnType<typeof acceptance.open>>();
  const runs = (seed: number, position: number, depth: number) => {
    const model = models.get(seed) ?? acceptance.open(seed, 11);
    models.set(seed, model);
    let count = 0;
    while (
      count < depth &&
      isRight(seed, position + 1 + count, model.chance(position + 1 + count, count, now))
    ) count++;
    return count;
  };
  const ema = { "1": { candidate_steps: [1, 3, 5] } };
  for (const policy of [statically(1), statically(4), policyOf("ema", ema)]) {
    const inner = policy.open({ now, request: () => assert.fail() });
    const checked: Policy = {
      ...inner,
      learn(state, outcome) {
        for (const { id, accepted, position, depth } of outcome.sequences) {
          assert.equal(accepted, runs(id, position, depth));
        }
        return inner.learn(state, outcome);
      },
    };
    const found = simulate(simulationOf(Array.from({ length: 9 }, () => ({ outputTokens: 60 })), {
      acceptance,
      policy: { name: "checked", open: () => checked },
    }));
    assert.equal(found.tokens, 9 * 60);
  }
});

Deno.test("groups of rounds go on past the end of one, and share the host's time", () => {
  const pricing = tablePricing({ ...COSTS, host: 8 });
  const machine = { ...MACHINE, roundsPerSync: 4 };
  const found = simulate(simulationOf([{ outputTokens: 5 }], { pricing, machine }));
  // One group of four rounds.
  assert.equal(found.ms, 5 + 4 * (11 + 2));
  const two = simulate(simulationOf([{ outputTokens: 2 }, { outputTokens: 6 }], {
    pricing,
    machine,
    source: batchSource(() => 2, { seed: 1, promptTokens: 1, outputTokens: 4 }),
    until: { ms: 1 },
  }));
  assert.equal(two.rounds, 3, "nobody wants more than three tokens after the first");
});

Deno.test("a closed loop keeps its number in flight, a batch over time the number it says", () => {
  const batches: number[] = [];
  const arrivals = Array.from({ length: 7 }, (_, seed) => ({ atMs: 0, seed }));
  const closed = simulate(simulationOf([], {
    source: closedSource(arrivals, 2, { promptTokens: 1, outputTokens: 4 }),
    onRound: ({ batch }) => batches.push(batch),
  }));
  assert.equal(closed.finished.length, 7);
  assert.equal(Math.max(...batches), 2);
  batches.length = 0;
  simulate(simulationOf([], {
    source: batchSource((ms) => ms < 40 ? 3 : 1, { seed: 1, promptTokens: 1, outputTokens: 1000 }),
    onRound: ({ batch }) => batches.push(batch),
    until: { rounds: 6 },
  }));
  // Four padded rows take 14 ms.
  assert.deepEqual(batches, [3, 3, 3, 1, 1, 1]);
});

Deno.test("a request that the pages cannot hold is refused", () => {
  const machine = { ...MACHINE, kvTokens: 64 };
  assert.throws(
    () => simulate(simulationOf([{ promptTokens: 60 }], { machine })),
    /Cannot simulate a request of 60 and 5 tokens: --max-kv-tokens is 64/,
  );
});

Deno.test("every token is counted once, nothing leaks, and the same seed is the same run", () => {
  const requests = fc.array(
    fc.record({
      atMs: fc.integer({ min: 0, max: 400 }),
      promptTokens: fc.integer({ min: 1, max: 90 }),
      outputTokens: fc.integer({ min: 1, max: 60 }),
    }),
    { minLength: 1, maxLength: 12 },
  );
  let preempted = 0;
  fc.assert(
    fc.property(
      requests,
      fc.integer({ min: 0, max: 4 }),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom(192, 256, 512, Infinity),
      fc.constantFrom(1, 3, "auto" as const),
      (coming, steps, maxBatch, kvTokens, roundsPerSync) => {
        const sorted = coming.toSorted((a, b) => a.atMs - b.atMs);
        const run = () => {
          let taken = 0;
          const found = simulate(simulationOf(sorted, {
            acceptance: spreadOut(geometric(0.6), { requests: 0.5, tokens: 1 }),
            policy: statically(steps),
            machine: { ...MACHINE, maxBatch, kvTokens, roundsPerSync, chunkRows: 32, noise: 0.1 },
            onRound: ({ tokens }) => void (taken += tokens),
          }));
          return { found, taken };
        };
        const { found, taken } = run();
        const wanted = sorted.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
        assert.equal(found.tokens, wanted);
        // A prompt gives a token, and so does a prompt that is stored again.
        assert.ok(
          taken <= wanted - sorted.length && taken >= wanted - sorted.length - found.preemptions,
        );
        assert.equal(found.finished.length, sorted.length);
        for (const { ttftMs, e2eMs } of found.finished) assert.ok(ttftMs > 0 && e2eMs >= ttftMs);
        const byDepth = found.depths.reduce((sum, { rounds }) => sum + rounds, 0);
        assert.equal(byDepth, found.rounds);
        assert.ok(found.meanBatch <= maxBatch);
        assert.deepEqual(run().found, found);
        preempted += found.preemptions;
      },
    ),
    { seed: 20261122, numRuns: 300 },
  );
  assert.ok(preempted > 20, `${preempted} preemptions`);
});
