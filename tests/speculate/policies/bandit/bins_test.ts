import assert from "node:assert/strict";
import {
  binSize,
  exploreChance,
  FIRST_BIN,
  nextBin,
  nextRound,
} from "../../../../src/speculate/policies/bandit/bins.ts";

Deno.test("bins: blocks have floor(sqrt(H)) squared rounds", () => {
  const rounds: number[] = [];
  for (let clock = FIRST_BIN; clock.block <= 13; clock = nextRound(clock)) {
    rounds[clock.block - 1] = (rounds[clock.block - 1] ?? 0) + 1;
  }
  assert.deepEqual(rounds, [1, 1, 4, 4, 16, 25, 64, 121, 256, 484, 1024, 2025, 4096]);
});

Deno.test("bins: whole bins pass blocks as their rounds do", () => {
  let byRound = FIRST_BIN;
  let byBin = FIRST_BIN;
  for (let bin = 0; bin < 200; bin++) {
    for (let rounds = binSize(byRound); rounds > 0; rounds--) byRound = nextRound(byRound);
    byBin = nextBin(byBin);
    assert.deepEqual(byBin, byRound);
  }
});

Deno.test("bins: blocks of the most bins follow each other", () => {
  const blocks: number[] = [];
  let clock = FIRST_BIN;
  for (let bin = 0; bin < 40; bin++) {
    if (clock.bin === 1) blocks.push(bin);
    clock = nextBin(clock, 5);
  }
  assert.deepEqual(blocks, [0, 1, 2, 4, 6, 10, 15, 20, 25, 30, 35]);
});

Deno.test("bins: share of exploring rounds that the laws come to", () => {
  const share = (rounds: number, exploration: "inverse" | "inverse-sqrt") => {
    let [clock, sum] = [FIRST_BIN, 0];
    for (let round = 0; round < rounds; round++, clock = nextRound(clock)) {
      sum += exploreChance(clock, exploration);
    }
    return (sum / rounds).toFixed(2);
  };
  // Of the paper's two versions.
  assert.deepEqual([50, 500, 5000].map((n) => share(n, "inverse-sqrt")), ["0.71", "0.49", "0.34"]);
  assert.deepEqual([50, 500, 5000].map((n) => share(n, "inverse")), ["0.55", "0.29", "0.15"]);
});
