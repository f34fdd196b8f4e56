import assert from "node:assert/strict";
import { generateResult, type RoundRecord } from "../../../src/engine/schedule/result.ts";
import { chain } from "../../../src/speculate/round_shape.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";

/** What the statistics say of the drafter: its name, steps and rows. */
function told(
  algorithm: string,
  { numSteps, rounds = [] }: {
    readonly numSteps?: number;
    readonly rounds?: readonly number[];
  } = {},
): readonly (string | number)[] {
  const records = rounds.map((depth): RoundRecord => (
    { drafts: Array(depth).fill(5), accepted: 0, emitted: 1, tier: chain(depth) }
  ));
  const { speculative } = generateResult({ algorithm, tier: chain(3) }, {
    promptIds: [1],
    sampling: GREEDY,
    maxTokens: 9,
    stop: [],
    ignoreEos: false,
    ...numSteps === undefined ? {} : { numSteps },
  }, {
    finishReason: "length",
    text: "",
    ids: [],
    rounds: records,
    started: 0,
    admitted: 0,
    prefilled: 1,
    compileMs: 0,
    ended: 2,
    cached: 0,
    reasoningTokens: 0,
  });
  return [speculative.algorithm, speculative.num_steps, speculative.num_draft_tokens];
}

Deno.test("the setting told is the deepest that a round ran with", () => {
  assert.deepEqual(told("EAGLE3", { rounds: [0, 2, 1] }), ["EAGLE3", 2, 3]);
  assert.deepEqual(told("EAGLE3", { rounds: [0, 0] }), ["NONE", 0, 0]);
  assert.deepEqual(told("HYBRID", { rounds: [3, 11, 0] }), ["HYBRID", 11, 12]);
});

Deno.test("a drafter on the host that proposed nothing is named, unless no drafts were asked for", () => {
  assert.deepEqual(told("SUFFIX", { rounds: [0, 0] }), ["SUFFIX", 0, 0]);
  assert.deepEqual(told("NGRAM", { rounds: [0, 0], numSteps: 0 }), ["NONE", 0, 0]);
});

Deno.test("the wait for admission and the time of compiling kernels are no part of the prompt's", () => {
  const { timing } = generateResult({ algorithm: "EAGLE3", tier: chain(3) }, {
    promptIds: [1],
    sampling: GREEDY,
    maxTokens: 9,
    stop: [],
    ignoreEos: false,
  }, {
    finishReason: "length",
    text: "",
    ids: [1, 2],
    rounds: [],
    started: 100,
    admitted: 1100,
    prefilled: 6100,
    compileMs: 4800,
    ended: 6200,
    cached: 0,
    reasoningTokens: 0,
  });
  assert.deepEqual(timing, {
    queuedMs: 1000,
    prefillMs: 200,
    compileMs: 4800,
    decodeMs: 100,
    timeToFirstTokenMs: 6000,
    tokensPerSecond: 10,
  });
});
