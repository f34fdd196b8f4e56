import assert from "node:assert/strict";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { allowed, choose, distribution } from "../reference/choose.ts";
import { gTest } from "../statistics.ts";

const PLAIN: Sampling = { ...GREEDY, temperature: 1 };
const LN = (probabilities: readonly number[]) => probabilities.map(Math.log);
const keeps = (logits: readonly number[], sampling: Partial<Sampling>) =>
  allowed(logits, { ...PLAIN, ...sampling }).flatMap((kept, token) => kept ? [token] : []);

Deno.test("choose: temperature 0 takes the largest logit, the lowest id on a tie", () => {
  assert.equal(choose([1, 3, 2, 3], GREEDY, 0), 1);
  assert.equal(choose([-Infinity, -5, -Infinity], GREEDY, 0), 1);
  assert.deepEqual(distribution([1, 3, 2, 3], GREEDY), [0, 1, 0, 0]);
});

Deno.test("choose: what is not a law is an error", () => {
  for (const logits of [[0, NaN], [0, Infinity], [-Infinity, -Infinity], []]) {
    assert.throws(() => choose(logits, GREEDY, 0), /Cannot choose from "logits"/);
    assert.throws(() => choose(logits, PLAIN, 0), /Cannot choose from "logits"/);
  }
});

Deno.test("choose: top-k keeps k tokens and the ties with the k-th", () => {
  const logits = [0, 5, 3, 3, 4, -Infinity];
  assert.deepEqual(keeps(logits, { topK: 1 }), [1]);
  assert.deepEqual(keeps(logits, { topK: 2 }), [1, 4]);
  assert.deepEqual(keeps(logits, { topK: 3 }), [1, 2, 3, 4]);
  assert.deepEqual(keeps(logits, { topK: 99 }), [0, 1, 2, 3, 4]);
  assert.deepEqual(keeps(logits, { topK: 0 }), [0, 1, 2, 3, 4]);
});

Deno.test("choose: top-p keeps a token while what lies above it is less than p", () => {
  const logits = LN([0.1, 0.5, 0.2, 0.2]);
  assert.deepEqual(keeps(logits, { topP: 0.4 }), [1]);
  assert.deepEqual(keeps(logits, { topP: 0.51 }), [1, 2, 3]);
  assert.deepEqual(keeps(logits, { topP: 0.6 }), [1, 2, 3]);
  assert.deepEqual(keeps(logits, { topP: 0.95 }), [0, 1, 2, 3]);
  assert.deepEqual(keeps([2, 2, 2], { topP: 0.1 }), [0, 1, 2]);
  assert.deepEqual(keeps(logits, { topP: 1e-300 }), [1]);
});

Deno.test("choose: top-p counts what top-k left, scaled to 1", () => {
  // Of the two that top-k keeps, 0.5 is 5/8 of the sum: enough for 0.6, not for 0.7.
  const logits = LN([0.5, 0.3, 0.2]);
  assert.deepEqual(keeps(logits, { topK: 2, topP: 0.6 }), [0]);
  assert.deepEqual(keeps(logits, { topK: 2, topP: 0.7 }), [0, 1]);
  assert.deepEqual(keeps(logits, { topP: 0.6 }), [0, 1]);
});

Deno.test("choose: min-p compares with the largest probability, after the temperature", () => {
  const logits = LN([0.6, 0.2, 0.15, 0.05]);
  assert.deepEqual(keeps(logits, { minP: 0.3 }), [0, 1]);
  assert.deepEqual(keeps(logits, { minP: 0.2 }), [0, 1, 2]);
  assert.deepEqual(keeps(logits, { minP: 1 }), [0]);
  // At temperature 2 the ratio 0.05 / 0.6 becomes its root, 0.29.
  assert.deepEqual(keeps(logits, { minP: 0.28, temperature: 2 }), [0, 1, 2, 3]);
});

Deno.test("choose: distribution is the softmax of what is kept", () => {
  const law = distribution(LN([0.5, 0.3, 0.2]), { ...PLAIN, topK: 2 });
  assert.ok(Math.abs((law[0] ?? 0) - 0.625) < 1e-12);
  assert.ok(Math.abs((law[1] ?? 0) - 0.375) < 1e-12);
  assert.equal(law[2], 0);
});

Deno.test("choose: the same seed and position give the same token, a shift of logits too", () => {
  const logits = [0.1, 0.4, 0.2, 0.3];
  for (let position = 0; position < 50; position++) {
    const token = choose(logits, { ...PLAIN, seed: 7 }, position);
    assert.equal(
      choose(logits.map((logit) => logit + 100), { ...PLAIN, seed: 7 }, position),
      token,
    );
  }
});

const LOGITS = Array.from({ length: 24 }, (_, token) => 3 * Math.sin(token * 1.7));
const DRAWS = 8000;

Deno.test("choose: tokens over many positions follow the distribution", () => {
  const settings: readonly Partial<Sampling>[] = [
    {},
    { temperature: 0.5, seed: 1 },
    { temperature: 1.5, seed: 2 ** 32 - 1 },
    { topK: 5, seed: 3 },
    { topP: 0.8, seed: 4 },
    { minP: 0.1, seed: 5 },
    { temperature: 0.7, topK: 12, topP: 0.9, minP: 0.05, seed: 6 },
  ];
  for (const setting of settings) {
    const sampling = { ...PLAIN, ...setting };
    const counts = LOGITS.map(() => 0);
    for (let position = 0; position < DRAWS; position++) {
      const token = choose(LOGITS, sampling, position);
      counts[token] = (counts[token] ?? 0) + 1;
    }
    const { p } = gTest(counts, distribution(LOGITS, sampling));
    assert.ok(p > 1e-4, `${JSON.stringify(setting)}: p = ${p}`);
  }
});

Deno.test("choose: neighbouring positions and neighbouring seeds are independent", () => {
  const logits = LN([0.4, 0.3, 0.2, 0.1]);
  const law = distribution(logits, PLAIN);
  const joint = law.flatMap((first) => law.map((second) => first * second));
  const pairs: readonly ((n: number) => readonly [number, number])[] = [
    (n) => [choose(logits, PLAIN, 2 * n), choose(logits, PLAIN, 2 * n + 1)],
    (n) => [choose(logits, PLAIN, n), choose(logits, { ...PLAIN, seed: 1 }, n)],
    (n) => [choose(logits, { ...PLAIN, seed: n }, 1), choose(logits, { ...PLAIN, seed: n }, 2)],
  ];
  for (const pair of pairs) {
    const counts = joint.map(() => 0);
    for (let n = 0; n < DRAWS; n++) {
      const [first, second] = pair(n);
      counts[4 * first + second] = (counts[4 * first + second] ?? 0) + 1;
    }
    assert.ok(gTest(counts, joint).p > 1e-4);
  }
});
