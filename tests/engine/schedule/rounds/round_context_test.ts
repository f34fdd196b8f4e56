import assert from "node:assert/strict";
import type { RequestState } from "../../../../src/engine/schedule/request_state.ts";
import {
  roundContext,
  roundOutcome,
} from "../../../../src/engine/schedule/rounds/round_context.ts";
import { takeGroup } from "../../../../src/engine/schedule/rounds/group_results.ts";
import { openProposalGain } from "../../../../src/engine/schedule/rounds/proposal_gain.ts";
import { openSpeculation } from "../../../../src/engine/schedule/speculation.ts";
import { fixed } from "../../../../src/speculate/policies/static.ts";
import { newSequence } from "../../../../src/engine/device/sequence.ts";
import { openOutput } from "../../../../src/engine/schedule/output.ts";
import { RECENT_ROUNDS } from "../../../../src/speculate/policy.ts";
import { chain } from "../../../../src/speculate/round_shape.ts";
import { GREEDY } from "../../../../src/speculate/sampling.ts";

const SURROUNDINGS = { roundsPerSync: 3, costs: undefined, ranks: false };
const ROUND = { tier: chain(3), batchSize: 4, ms: { round: 5, catchUp: 0 } };
const RESULT = { accepted: 2, ids: [7, 8, 9], drafts: [7, 8, 1] };

/** A request with a prompt of five tokens, after its prefill. */
function running(id: number, numSteps?: number): RequestState {
  const request = {
    promptIds: [1, 2, 3, 4, 5],
    sampling: GREEDY,
    maxTokens: 90,
    stop: [],
    ignoreEos: true,
    ...numSteps === undefined ? {} : { numSteps },
  };
  const tokenizer = {
    vocabSize: 99,
    bosToken: undefined,
    eosToken: undefined,
    idOf: () => undefined,
    encode: () => [],
    decode: () => "",
    isSkipped: () => true,
  };
  const output = openOutput({
    tokenizer,
    name: "fake",
    vocabSize: 99,
    eosTokenIds: [],
    algorithm: "EAGLE3" as const,
    contextLength: 100,
    tier: chain(3),
  }, request);
  output.take({ ids: [6], accepted: 0, drafts: [], tier: undefined });
  const sequence = newSequence([1, 2, 3, 4, 5, 6]);
  sequence.stored = 5;
  return {
    id,
    request,
    sequence,
    output,
    onEvent: () => {},
    started: 0,
    admitted: 0,
    prefilled: 0,
    compileMs: 0,
    cached: 0,
    decoding: true,
    cancelled: false,
    awaitsGrammar: false,
    failure: undefined,
    done: false,
    constraint: undefined,
    draftHistory: { depth: undefined, accepted: [] },
    drafter: undefined,
  };
}

Deno.test("context: sequences as they are, and what surrounds them", () => {
  const [first, second] = [running(4), running(6, 0)];
  second.sequence.draftStored = 3;
  assert.deepEqual(structuredClone(roundContext([first, second], SURROUNDINGS)), {
    ...SURROUNDINGS,
    batchSize: 2,
    asked: [undefined, 0],
    sequences: [
      { id: 4, position: 5, depth: undefined, accepted: [], lag: 5 },
      { id: 6, position: 5, depth: undefined, accepted: [], lag: 2 },
    ],
  });
});

Deno.test("context: nothing of a sequence is gathered until it is read, and then once", () => {
  const state = running(0);
  let reads = 0;
  const watched = Object.defineProperty({ ...state }, "sequence", {
    get: () => (reads++, state.sequence),
  });
  const context = roundContext([watched], SURROUNDINGS);
  assert.deepEqual([context.batchSize, context.asked, reads], [1, [undefined], 0]);
  assert.equal(context.sequences, context.sequences);
  assert.equal(reads, 1);
});

Deno.test("context: the last rounds of a sequence, and no view of what comes later", () => {
  const state = running(0);
  roundOutcome(ROUND, [{ state, result: RESULT }]);
  const { sequences: [before] } = roundContext([state], SURROUNDINGS);
  assert.deepEqual([before?.depth, before?.accepted], [3, [2]]);
  for (let accepted = 0; accepted < RECENT_ROUNDS + 2; accepted++) {
    roundOutcome(ROUND, [{ state, result: { ...RESULT, accepted, drafts: [1] } }]);
  }
  const { sequences: [after] } = roundContext([state], SURROUNDINGS);
  assert.deepEqual([after?.depth, after?.accepted], [1, [2, 3, 4, 5, 6, 7, 8, 9]]);
  assert.deepEqual([before?.depth, before?.accepted], [3, [2]]);
});

Deno.test("outcome: positions go on within a group of rounds", () => {
  const state = running(3, 2);
  const positions = [0, 1].map(() => {
    const { sequences: [one] } = roundOutcome(ROUND, [{ state, result: RESULT }]);
    state.output.take({ ...RESULT, tier: chain(3) });
    return one;
  });
  const same = { id: 3, asked: 2, depth: 3, accepted: 2, confidences: [] };
  assert.deepEqual(positions, [{ ...same, position: 5 }, { ...same, position: 8 }]);
});

Deno.test("context: rounds that the policy did not choose are not in a sequence's history", () => {
  const state = running(0);
  const take = (chosen: boolean) =>
    takeGroup({
      requests: {
        take: ({ output }, round) => void output.take(round),
        attempt: (_, action) => action(),
      },
      speculation: openSpeculation("static", fixed(chain(3))),
      proposalGain: openProposalGain(),
      onRound: () => {},
    }, {
      states: [state],
      round: { shape: chain(3), count: 1 },
      chosen,
      rounds: [{ draftMs: 1, verifyMs: 1, extendMs: 1, sequences: [RESULT] }],
      began: 0,
      ended: 3,
      catchUpMs: 0,
    });
  const history = () => roundContext([state], SURROUNDINGS).sequences[0];
  take(false);
  assert.deepEqual([history()?.depth, history()?.accepted], [undefined, []]);
  take(true);
  assert.deepEqual([history()?.depth, history()?.accepted], [3, [2]]);
});
