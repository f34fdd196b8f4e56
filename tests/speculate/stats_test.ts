import assert from "node:assert/strict";
import { speculativeStats } from "../../src/speculate/stats.ts";

Deno.test("stats: counts, rates and positions of a few rounds", () => {
  const setting = {
    algorithm: "EAGLE3",
    num_steps: 3,
    eagle_topk: 1,
    num_draft_tokens: 4,
  } as const;
  // The last round met the end of the output at its third draft: no bonus.
  const rounds = [[3, 4], [0, 1], [1, 2], [3, 3]]
    .map(([accepted = 0, emitted = 0]) => ({ drafted: 3, depth: 3, accepted, emitted }));
  assert.deepEqual(speculativeStats(setting, rounds), {
    ...setting,
    rounds: 4,
    draft_tokens: 12,
    accepted_tokens: 7,
    mean_accept_length: 10 / 4,
    draft_acceptance_rate: 7 / 12,
    acceptance_per_position: [3 / 4, 2 / 4, 2 / 4],
    accepted_per_round: [3, 0, 1, 3],
  });
});

Deno.test("stats: plain decoding and no round at all give zeros, never NaN", () => {
  const setting = { algorithm: "NONE", num_steps: 0, eagle_topk: 1, num_draft_tokens: 1 } as const;
  const none = speculativeStats(setting, []);
  assert.deepEqual([none.mean_accept_length, none.draft_acceptance_rate], [0, 0]);
  assert.deepEqual(none.acceptance_per_position, []);
  const plain = speculativeStats(setting, [{ drafted: 0, depth: 0, accepted: 0, emitted: 1 }]);
  assert.deepEqual([plain.mean_accept_length, plain.draft_acceptance_rate], [1, 0]);
});

Deno.test("stats: a position counts only the rounds that verified a draft there", () => {
  const setting = { algorithm: "NGRAM", num_steps: 2, eagle_topk: 1, num_draft_tokens: 3 } as const;
  const rounds = [[0, 0], [1, 1], [2, 1], [2, 2]]
    .map(([depth = 0, accepted = 0]) => (
      { drafted: depth, depth, accepted, emitted: accepted + 1 }
    ));
  const { acceptance_per_position } = speculativeStats(setting, rounds);
  assert.deepEqual(acceptance_per_position, [3 / 3, 1 / 2]);
});
