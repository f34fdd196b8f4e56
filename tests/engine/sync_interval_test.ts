import { equal } from "node:assert/strict";
import {
  openSyncInterval,
  roundsToCome,
  roundsUseful,
  roundsWorth,
} from "../../src/engine/schedule/sync_interval.ts";
import { MAX_ROUNDS } from "../../src/engine/device/submit/submit.ts";
import { chain } from "../../src/speculate/round_shape.ts";

Deno.test("roundsWorth: the fewest rounds with the host below 2 %, within 50 ms and MAX_ROUNDS", () => {
  const cases: [hostMs: number, roundMs: number, rounds: number][] = [
    [0, 5, 1],
    [0.1, 5, 1], // 0.1 / 5.1 = 1.96 %
    [0.11, 5, 2],
    [0.2, 5, 2], // 0.2 / 10.2 = 1.96 %
    [0.5, 5, 5],
    [0.05, 0.54, 5],
    [100, 0.5, 8], // it is not known that the text goes on
    [100, 12, 4], // 48 ms
    [100, 26, 1],
    [100, 400, 1],
  ];
  for (const [hostMs, roundMs, rounds] of cases) {
    equal(roundsWorth({ hostMs, roundMs }), rounds, `host ${hostMs}, round ${roundMs}`);
    const share = (n: number) => hostMs / (hostMs + n * roundMs);
    if (rounds > 1) equal(share(rounds - 1) > 0.02, true);
  }
});

Deno.test("roundsWorth: more than 8 where the text goes on for so long that few are for nothing", () => {
  const cases: [hostMs: number, roundMs: number, toCome: number, rounds: number][] = [
    [0.4, 0.16, 12, 8], // 7.7
    [0.4, 0.16, 64, 17], // sqrt(2 * 0.4 / 0.16 * 64) = 17.9
    [0.4, 0.16, 127, 25],
    [0.4, 0.16, 1000, MAX_ROUNDS],
    [0.4, 0.9, 127, 10],
    [0.4, 0.9, 1000, 22], // 0.4 / 20.2 = 1.98 %
    [0.4, 4, 1000, 5], // 0.4 / 20.4 = 1.96 %
    [4, 4, 1000, 12], // 48 ms
  ];
  for (const [hostMs, roundMs, toCome, rounds] of cases) {
    equal(roundsWorth({ hostMs, roundMs }, { toCome }), rounds, `${hostMs} ${roundMs} ${toCome}`);
    // Neither more nor fewer rounds than the best cost less.
    const cost = (n: number) => toCome / n * hostMs + n / 2 * roundMs;
    if (rounds === 17 || rounds === 25) {
      equal(cost(rounds) < Math.min(cost(rounds - 2), cost(rounds + 2)), true);
    }
  }
});

Deno.test("roundsWorth: few where the next group is begun meanwhile, and where requests wait", () => {
  const overlapped = { overlapped: true };
  equal(roundsWorth({ hostMs: 0.5, roundMs: 5 }, overlapped), 1);
  equal(roundsWorth({ hostMs: 0.5, roundMs: 0.4 }, overlapped), 3); // 1.2 ms hide 0.5
  equal(roundsWorth({ hostMs: 100, roundMs: 6 }, { awaited: true }), 3); // 18 ms
  equal(roundsWorth({ hostMs: 100, roundMs: 30 }, { awaited: true }), 1);
  equal(roundsWorth({ hostMs: 3, roundMs: 6 }, { longestMs: 27 }), 4);
  equal(roundsWorth({ hostMs: 3, roundMs: 6 }, { longestMs: 8 }), 1);
});

Deno.test("roundsToCome: as long as the text is, where a token may end it", () => {
  equal(roundsToCome([{ tokens: 0, left: 500, ends: true }], 0), 16);
  equal(roundsToCome([{ tokens: 0, left: 5, ends: true }], 0), 5);
  equal(roundsToCome([{ tokens: 90, left: 500, ends: true }], 0), 90);
  equal(roundsToCome([{ tokens: 90, left: 500, ends: true }], 3), 23);
  equal(roundsToCome([{ tokens: 90, left: 500, ends: false }], 0), 500);
  const two = [{ tokens: 90, left: 500, ends: true }, { tokens: 1, left: 200, ends: false }];
  equal(roundsToCome(two, 0), 200);
  equal(roundsToCome([], 0), 0);
});

Deno.test("roundsUseful: none that surely does nothing, one while a prompt is stored", () => {
  const calm = { numSteps: 0, prefilling: false, waiting: false, short: false };
  equal(roundsUseful({ ...calm, left: [1] }), 1);
  equal(roundsUseful({ ...calm, left: [7] }), 7);
  equal(roundsUseful({ ...calm, left: [7], numSteps: 3 }), 2); // 4 tokens a round at most
  equal(roundsUseful({ ...calm, left: [8], numSteps: 3 }), 2);
  equal(roundsUseful({ ...calm, left: [9], numSteps: 3 }), 3);
  equal(roundsUseful({ ...calm, left: [2, 40, 11] }), 40);
  equal(roundsUseful({ ...calm, left: [2, 40, 11], waiting: true }), 2);
  equal(roundsUseful({ ...calm, left: [2, 40, 11], prefilling: true }), 1);
  equal(roundsUseful({ ...calm, left: [2, 40, 11], waiting: true, short: true }), 1);
});

Deno.test("openSyncInterval: a number is taken as it is", () => {
  const syncInterval = openSyncInterval(3);
  equal(syncInterval.pick(1, chain(0)), 3);
  syncInterval.learn(1, chain(0), { count: 3, ended: 10 });
  syncInterval.learn(1, chain(0), { count: 3, ended: 20 });
  equal(syncInterval.pick(1, chain(0)), 3);
});

Deno.test("openSyncInterval auto: learns from groups of one and of two that follow each other", () => {
  const syncInterval = openSyncInterval("auto");
  equal(syncInterval.pick(1, chain(0)), 1, "nothing is known");
  syncInterval.learn(1, chain(0), { count: 1, ended: 100 });
  equal(syncInterval.pick(1, chain(0)), 1, "what came before is not known");
  syncInterval.learn(1, chain(0), { count: 1, ended: 105.5 });
  equal(syncInterval.pick(1, chain(0)), 2, "a round and the host are not known apart");
  syncInterval.learn(1, chain(0), { count: 2, ended: 116 }); // 10.5: a round takes 5, the host 0.5
  equal(syncInterval.pick(1, chain(0)), 5);
  // A batch or shape not seen yet is taken to cost the host's 0.5 ms, and 5 ms for each row.
  equal(syncInterval.pick(2, chain(0)), 3);
  equal(syncInterval.pick(1, chain(3)), 2);
  equal(syncInterval.pick(1, { depth: 0, width: 2, rows: 3 }), 2);
  syncInterval.pause();
  syncInterval.learn(1, chain(0), { count: 5, ended: 5000 });
  equal(syncInterval.pick(1, chain(0)), 5, "an idle second is not the host's");
  for (let i = 1; i < 40; i++) syncInterval.learn(1, chain(0), { count: 5, ended: 5000 + 29 * i });
  equal(syncInterval.pick(1, chain(0)), 1, "rounds of 5.9: the mean follows");
  syncInterval.learn(1, chain(0), { count: 1, ended: 7000 });
  syncInterval.pause();
  equal(syncInterval.pick(1, chain(0)) > 1, true, "a longer lone round shows more of the host");
});

Deno.test("openSyncInterval auto: no group of several rounds lasts longer than it may", () => {
  const interval = openSyncInterval("auto");
  let now = 0;
  // The host takes 3 ms a group and the device 4 ms a round.
  const run = (count: number) => {
    now += 3 + 4 * count;
    interval.learn(1, chain(0), { count, ended: now });
  };
  interval.learn(1, chain(0), { count: 1, ended: now });
  run(1);
  // Groups of one size do not show what a round takes: two rounds are tried where the limit allows twice the time.
  equal(interval.pick(1, chain(0), { longestMs: 13 }), 1);
  equal(interval.pick(1, chain(0), { longestMs: 15 }), 2);
  for (const count of [2, 1, 2, 1, 2]) run(count);
  equal(interval.pick(1, chain(0)), 8);
  equal(interval.pick(1, chain(0), { longestMs: 21 }), 4);
  equal(interval.pick(1, chain(0), { longestMs: 2 }), 1);
});

Deno.test("openSyncInterval auto: another tier is known from its first group on", () => {
  const syncInterval = openSyncInterval("auto");
  let ended = 0;
  const learn = (depth: number, count: number, ms: number) =>
    syncInterval.learn(1, chain(depth), { count, ended: ended += ms });
  for (const count of [1, 1, 2]) learn(0, count, 0.5 + 5 * count);
  learn(1, 2, 8.5); // the host's 0.5 and two rounds of 4
  equal(syncInterval.pick(1, chain(1)), 7);
  learn(2, 1, 25.5); // the host's 0.5 and a round of 25
  equal(syncInterval.pick(1, chain(2)), 1);
  learn(7, 1, 0.6);
  const ahead = { toCome: 10_000 };
  equal(
    syncInterval.pick(1, chain(7), ahead),
    MAX_ROUNDS,
    "half of a short group is the round's at least",
  );
});

Deno.test("openSyncInterval auto: first groups that took long are forgotten", () => {
  const syncInterval = openSyncInterval("auto");
  let ended = 0;
  const learn = (count: number, ms: number) =>
    syncInterval.learn(1, chain(0), { count, ended: ended += ms });
  const ahead = { toCome: 1000 };
  for (const count of [1, 1, 2]) learn(count, 10 + 3 * count);
  equal(
    syncInterval.pick(1, chain(0), ahead),
    10,
    "the host seems to take most of the time: 50 ms",
  );
  for (let i = 0; i < 60; i++) learn(4 + i % 5, 0.1 + 3 * (4 + i % 5));
  equal(syncInterval.pick(1, chain(0), ahead) <= 3, true, "0.1 / 6.1 = 1.6 %");
});

Deno.test("openSyncInterval auto: rounds of a short time go together whatever the host seems to take", () => {
  const syncInterval = openSyncInterval("auto");
  let ended = 0;
  const learn = (count: number, ms: number) =>
    syncInterval.learn(1, chain(0), { count, ended: ended += ms });
  learn(1, 1);
  learn(1, 0.4);
  learn(2, 0.9); // the host seems to take nothing
  equal(syncInterval.pick(1, chain(0)), 4, "2 ms");
  learn(4, 1);
  equal(syncInterval.pick(1, chain(0)) > 4, true);
  equal(syncInterval.pick(1, chain(0), { gain: 100 }), 1, "but not where the host may draft");
});
