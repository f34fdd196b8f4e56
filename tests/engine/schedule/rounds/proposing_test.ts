import assert from "node:assert/strict";
import { openProposalGain } from "../../../../src/engine/schedule/rounds/proposal_gain.ts";
import { deviceSteps, proposedRound } from "../../../../src/engine/schedule/rounds/proposing.ts";
import { roundsWorth } from "../../../../src/engine/schedule/sync_interval.ts";
import { chain, chains } from "../../../../src/speculate/round_shape.ts";
import { GREEDY } from "../../../../src/speculate/sampling.ts";
import { NO_PROPOSAL } from "../../../../src/speculate/trees.ts";
import { chainOf } from "../../../reference/trees.ts";

const CHAINS = { shapes: chains([1, 3, 7]) };
const TREES = { shapes: [{ depth: 3, width: 2, rows: 8 }] };

Deno.test("a round has the first shape that holds all, and the device drafts for the others", () => {
  const drafts = [
    { proposal: chainOf([5, 6]), device: 2 },
    { proposal: NO_PROPOSAL, device: 2 },
    { proposal: NO_PROPOSAL, device: 0 },
  ];
  assert.deepEqual(proposedRound(CHAINS, drafts), {
    shape: chain(3),
    count: 1,
    proposals: [chainOf([5, 6]), undefined, undefined],
    depths: [0, 2, 0],
    deviceDepth: 2,
  });
  const one = { proposal: chainOf([5]), device: 7 };
  assert.deepEqual(proposedRound(CHAINS, [one]).shape, chain(1));
  const deep = proposedRound({ shapes: chains([1, 2]) }, [one, { ...one, proposal: NO_PROPOSAL }]);
  assert.deepEqual([deep.shape, deep.depths, deep.deviceDepth], [chain(2), [0, 2], 2]);
});

Deno.test("beside trees the device drafts nothing: its chains have other rows", () => {
  const tree = { tokens: [1, 2, 3], parents: [0, 0, 1] };
  const drafts = [{ proposal: tree, device: 3 }, { proposal: NO_PROPOSAL, device: 3 }];
  const { shape, depths, deviceDepth } = proposedRound(TREES, drafts);
  assert.deepEqual([shape, depths, deviceDepth], [TREES.shapes[0], [0, 0], 0]);
});

Deno.test("the device drafts as the policy says, and nothing for who asked for none", () => {
  const states = [{}, { numSteps: 0 }, { numSteps: 2 }]
    .map((asked) => ({
      constraint: undefined,
      request: {
        ...asked,
        promptIds: [1],
        maxTokens: 1,
        stop: [],
        ignoreEos: false,
        sampling: GREEDY,
      },
    }));
  assert.deepEqual(deviceSteps({ tier: chain(3) }, states), [3, 0, 2]);
  assert.deepEqual(deviceSteps({ tier: chain(3), depths: [1, 0, 2] }, states), [1, 0, 2]);
});

Deno.test("asking is worth the chance of a proposal times what it brings more", () => {
  const gain = openProposalGain();
  assert.equal(gain.rounds, 1);
  gain.brought(2, false);
  gain.brought(6, true);
  assert.equal(gain.rounds, 2);
  for (let i = 0; i < 100; i++) gain.asked(4, false);
  assert.ok(gain.rounds < 0.001);
  for (let i = 0; i < 100; i++) gain.asked(1, true);
  assert.ok(gain.rounds > 1.99);
});

Deno.test("rounds without a proposal go several a sync where little is missed by it", () => {
  const times = { hostMs: 1, roundMs: 4 };
  assert.equal(roundsWorth(times), 8);
  assert.equal(roundsWorth(times, { gain: 0 }), 8);
  // n = sqrt(2 host / (gain round))
  assert.equal(roundsWorth(times, { gain: 0.02 }), 5);
  assert.equal(roundsWorth(times, { gain: 0.1 }), 2);
  assert.equal(roundsWorth(times, { gain: 2 }), 1);
});
