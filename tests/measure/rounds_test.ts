import { deepEqual, equal } from "node:assert/strict";
import {
  acceptanceOf,
  meanRoundsPerSync,
  roundMs,
  tierShare,
  timelineOf,
  verifyCostRatio,
} from "../../src/measure/rounds.ts";
import type { CellResult, RoundSample } from "../../src/measure/runner.ts";

function round(numSteps: number, accepted: readonly number[], times: Partial<RoundSample> = {}) {
  const parts = { draftMs: 1, verifyMs: 4, extendMs: 2, hostMs: 1, ms: 8, tMs: 0, together: 1 };
  const drafts = accepted.map(() => numSteps);
  return { numSteps, batch: accepted.length, drafts, accepted, ...parts, ...times };
}

Deno.test("acceptanceOf counts each sequence of each round", () => {
  // 4 sequence-rounds, 3 + 1 + 0 + 2 accepted of 12
  deepEqual(acceptanceOf([round(3, [3, 1]), round(3, [0, 2])]), {
    meanAcceptLength: 2.5,
    draftAcceptanceRate: 0.5,
    perPosition: [3 / 4, 2 / 4, 1 / 4],
  });
});

Deno.test("acceptanceOf: a position counts where it was verified; plain rounds draft none", () => {
  deepEqual(acceptanceOf([round(1, [1]), round(3, [2]), round(0, [0]), round(3, [0])]), {
    meanAcceptLength: 1.75,
    draftAcceptanceRate: 3 / 7,
    perPosition: [2 / 3, 1 / 2, 0],
  });
  deepEqual(acceptanceOf([round(0, [0, 0])]), {
    meanAcceptLength: 1,
    draftAcceptanceRate: null,
    perPosition: [],
  });
  deepEqual(acceptanceOf([]), {
    meanAcceptLength: null,
    draftAcceptanceRate: null,
    perPosition: [],
  });
});

Deno.test("acceptanceOf: drafts that were not verified are not counted as rejected", () => {
  deepEqual(acceptanceOf([round(3, [1, 0, 2], { drafts: [1, 0, 3] })]), {
    meanAcceptLength: 2,
    draftAcceptanceRate: 3 / 4,
    perPosition: [1, 1, 0],
  });
  // A tree of 2 levels.
  deepEqual(acceptanceOf([round(2, [1], { drafts: [9] })]).perPosition, [1, 0]);
});

Deno.test("roundMs is the mean of each part", () => {
  const rounds = [round(1, [0]), round(1, [0], { draftMs: 3, ms: 12 })];
  deepEqual(roundMs(rounds), { draft: 2, verify: 4, extend: 2, host: 1, total: 10 });
});

Deno.test("meanRoundsPerSync counts syncs, not rounds", () => {
  const group = (together: number) => Array(together).fill(round(1, [0], { together }));
  equal(meanRoundsPerSync([...group(1), ...group(4), ...group(4)]), 3);
  equal(meanRoundsPerSync([...group(8), ...group(8)]), 8);
  equal(meanRoundsPerSync([]), null);
});

Deno.test("verifyCostRatio compares medians of whole batches", () => {
  const at = (verifyMs: number, sequences: number) =>
    round(3, Array(sequences).fill(0), { verifyMs });
  const own = [at(6, 2), at(6, 2), at(90, 2), at(1, 1), at(1, 1), at(1, 1), at(1, 1)];
  equal(verifyCostRatio(own, [at(4, 2), at(4, 2), at(2, 1)], 2), 1.5);
  // No round had the whole batch: all count.
  equal(verifyCostRatio([at(3, 1)], [at(2, 1)], 2), 1.5);
  equal(verifyCostRatio([at(3, 1)], [], 2), null);
  equal(verifyCostRatio([at(3, 1)], [at(0, 1)], 1), null);
});

Deno.test("tierShare weighs blocks by their time", () => {
  const block = (seconds: number, shares: Record<number, number>): CellResult => ({
    tokens: 1,
    seconds,
    rounds: [],
    prefills: { tokens: 0, ms: 0 },
    requests: [],
    switches: [],
    switchCount: 0,
    tierShare: shares,
  });
  deepEqual(tierShare([block(1, { 1: 1 }), block(3, { 1: 0.5, 3: 0.5 })]), { 1: 0.625, 3: 0.375 });
});

Deno.test("timelineOf: the tier as steps, accept length in stretches", () => {
  const rounds = [
    round(1, [1], { tMs: 0 }),
    round(1, [0], { tMs: 8 }),
    round(3, [3], { tMs: 16 }),
  ];
  deepEqual(timelineOf(rounds), {
    accept: [{ t_ms: 4, length: 2 }, { t_ms: 12, length: 1 }, { t_ms: 20, length: 4 }],
    steps: [
      { t_ms: 0, num_steps: 1 },
      { t_ms: 16, num_steps: 3 },
      { t_ms: 24, num_steps: 3 },
    ],
  });
  const long = timelineOf(Array.from({ length: 1000 }, (_, at) => round(1, [at % 2])));
  equal(long.accept.length, 59);
  equal(long.accept[0]?.length, 1 + 8 / 17);
  deepEqual(timelineOf([]), { accept: [], steps: [] });
});
