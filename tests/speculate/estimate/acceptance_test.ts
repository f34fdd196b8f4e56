import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { rateOf, tested } from "../../../src/speculate/estimate/counts.ts";
import { breakEven } from "../../../src/speculate/break_even.ts";
import { acceptedMoments } from "../../../src/speculate/policies/goodput/evidence.ts";
import {
  countPositions,
  meanRate,
  noPositions,
  positionRates,
} from "../../../src/speculate/estimate/positions.ts";
import { countRequests, oddsRatio, shifted } from "../../../src/speculate/estimate/requests.ts";
import { policyRandom } from "../../../src/speculate/noise.ts";

/** Chains that are accepted with these chances, position by position. */
function chains(rates: readonly number[], count: number, depth: number) {
  const random = policyRandom(7);
  return Array.from({ length: count }, (_, n) => {
    let accepted = 0;
    while (accepted < depth && random(n, accepted) / 2 ** 32 < (rates[accepted] ?? 0)) accepted++;
    return { depth, accepted };
  });
}

Deno.test("acceptance: only what was reached is tested", () => {
  assert.deepEqual(tested({ depth: 3, accepted: 0 }), { hits: 0, misses: 1 });
  assert.deepEqual(tested({ depth: 3, accepted: 2 }), { hits: 2, misses: 1 });
  assert.deepEqual(tested({ depth: 3, accepted: 3 }), { hits: 3, misses: 0 }, "censored");
  for (const accepted of [NaN, -1, 0.5, Infinity]) {
    assert.equal(tested({ depth: 3, accepted }), undefined);
  }
  assert.equal(tested({ depth: 0, accepted: 0 }), undefined);
});

Deno.test("acceptance: hits / tested is the chance, accepted / drafted is not", () => {
  const all = chains([0.6, 0.6, 0.6, 0.6, 0.6], 20_000, 5);
  const hits = all.reduce((sum, chain) => sum + (tested(chain)?.hits ?? 0), 0);
  const misses = all.reduce((sum, chain) => sum + (tested(chain)?.misses ?? 0), 0);
  assert(Math.abs(hits / (hits + misses) - 0.6) < 0.01, `${hits} ${misses}`);
  const drafted = all.reduce((sum, { accepted }) => sum + accepted, 0) / (5 * all.length);
  assert(drafted < 0.3, `${drafted}`);
});

Deno.test("acceptance: each position has its own chance, found from chains of any depth", () => {
  const truth = [0.9, 0.5, 0.8, 0.7];
  let counts = noPositions(6);
  for (const [n, chain] of chains(truth, 6000, 4).entries()) {
    const depth = 1 + n % 4;
    const cut = { depth, accepted: Math.min(depth, chain.accepted) };
    counts = countPositions(counts, [cut], { fade: 1, minKept: 0.8 });
  }
  const rates = positionRates(counts);
  truth.forEach((rate, k) => assert(Math.abs((rates[k] ?? 0) - rate) < 0.03, `${rates}`));
  assert.equal(rates[4], rates[3], "as the deepest that was verified");
  assert.equal(rates[5], rates[3]);
});

Deno.test("acceptance: what a position had before is forgotten while it is not reached", () => {
  let counts = countPositions(noPositions(2), Array(50).fill({ depth: 2, accepted: 1 }));
  const before = positionRates(counts)[1] ?? 1;
  for (let round = 0; round < 300; round++) {
    counts = countPositions(counts, [{ depth: 1, accepted: 1 }]);
  }
  assert(before < 0.1, `${before}`);
  assert((positionRates(counts)[1] ?? 0) > 0.9);
  assert(meanRate(counts) > 0.9);
});

Deno.test("acceptance: expected tokens", () => {
  const expectedTokens = (rates: readonly number[], depth: number) =>
    1 + acceptedMoments(rates, depth).mean;
  const { tokens } = breakEven();
  assert.equal(expectedTokens([0.5, 0.5], 0), 1);
  assert.equal(expectedTokens([0.5, 0.25], 2), 1 + 0.5 + 0.125);
  // SmartSpec's example.
  assert(Math.abs(tokens(0.6, 4) - 2.3056) < 1e-9);
  const rate = fc.double({ min: 0, max: 0.99, noNaN: true });
  fc.assert(fc.property(rate, fc.integer({ min: 0, max: 16 }), (alpha, depth) => {
    assert(Math.abs(expectedTokens([alpha], depth) - tokens(alpha, depth)) < 1e-9);
  }));
});

Deno.test("acceptance: moments of the number of accepted drafts, against all outcomes", () => {
  const rates = [0.8, 0.3, 0.9];
  const chance = (accepted: number) =>
    rates.slice(0, accepted).reduce((product, rate) => product * rate, 1) *
    (accepted < 3 ? 1 - (rates[accepted] ?? 0) : 1);
  const mean = [0, 1, 2, 3].reduce((sum, n) => sum + n * chance(n), 0);
  const variance = [0, 1, 2, 3].reduce((sum, n) => sum + (n - mean) ** 2 * chance(n), 0);
  const found = acceptedMoments(rates, 3);
  assert(Math.abs(found.mean - mean) < 1e-12 && Math.abs(found.variance - variance) < 1e-12);
});

Deno.test("acceptance: requests differ by odds, unknown ones do not, gone ones are forgotten", () => {
  let requests = countRequests([], [], 0);
  for (let round = 1; round <= 60; round++) {
    requests = countRequests(requests, [
      { id: 1, depth: 3, accepted: 3 },
      { id: 2, depth: 3, accepted: 0 },
    ], round);
  }
  const ratio = (id: number) => oddsRatio(requests.find((each) => each.id === id), 0.6);
  assert(ratio(1) > 3 && ratio(2) < 1 / 3, `${ratio(1)} ${ratio(2)}`);
  assert.equal(ratio(3), 1);
  assert(Math.abs(shifted(0.6, ratio(2)) - rateOf({ hits: 0, misses: 35.1 }, 0.6, 8)) < 0.02);
  assert.equal(shifted(1, 5), 1);
  // 0.98 a tested draft: a request's counts weigh at most 50 drafts.
  for (const { hits, misses } of requests) assert(hits + misses < 51);
  const later = countRequests(requests, [{ id: 1, depth: 1, accepted: 1 }], 200);
  assert.deepEqual(later.map(({ id }) => id), [1]);
});

Deno.test("acceptance: rateOf is the mean of the Beta distribution", () => {
  assert.equal(rateOf({ hits: 0, misses: 0 }, 0.7, 2), 0.7);
  assert.equal(rateOf({ hits: 3, misses: 1 }, 0.5, 4), 5 / 8);
  assert.equal(rateOf({ hits: 0, misses: 0 }, 0.7, 0), 0.7);
});
