import assert from "node:assert/strict";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { choose } from "../../kernels/sample/choose.ts";
import { gatheredWords } from "../../kernels/sample/gather.ts";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { allowed, choose as reference } from "../reference/choose.ts";
import { exponential } from "../reference/noise.ts";
import { packRows, packSlots } from "./rows.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const PAD = 3;

interface Row {
  readonly logits: ArrayLike<number>;
  readonly sampling: Sampling;
  /** Position of the token to be chosen: one past the row's. */
  readonly position: number;
}

/** The device's choice at each row; each has a slot of its own, and a huge logit in its padding. */
async function chosen(rows: readonly Row[], lanes: number): Promise<number[]> {
  const vocab = rows[0]?.logits.length ?? 0;
  const stride = vocab + PAD;
  const logits = new Float32Array(rows.length * stride).fill(1e30);
  rows.forEach((row, i) => logits.set(Array.from(row.logits), i * stride));
  const out = device.filled(rows.length);
  const gathered = gatheredWords(vocab, lanes);
  const order = rows.map(({ position }, slot) => ({ slot, position: position - 1 }));
  const buffers = {
    logits: device.floats(logits),
    partials: device.filled(rows.length * slicePartialWords(vocab)),
    rows: device.words(packRows(order)),
    slots: device.words(packSlots(rows.map(({ sampling }) => sampling))),
    chosen: out,
    ...gathered > 0 ? { gathered: device.filled(rows.length * gathered) } : {},
  };
  await device.run(choose(buffers, { count: rows.length, vocab, stride, lanes }));
  return [...await device.readWords(out)];
}

const greedy = (logits: readonly number[]): Row => ({ logits, sampling: GREEDY, position: 1 });
const at = (vocab: number, values: Readonly<Record<number, number>>, rest: number) =>
  Array.from({ length: vocab }, (_, i) => values[i] ?? rest);

for (const lanes of [16, 256]) {
  Deno.test(`choose: greedy takes the largest, the lowest id on a tie, ${lanes} lanes`, async () => {
    const rows = [
      greedy(at(300, { 299: 1 }, 0)),
      greedy(at(300, { 0: -1 }, -2)),
      greedy(at(300, { 17: 5, 33: 5, 290: 5 }, 0)), // 17 and 33 share a lane of 16
      greedy(at(300, { 250: 5, 31: 5 }, 0)), // the lower id in a higher lane
      greedy(at(300, {}, 0)),
      greedy(at(300, { 40: -1e30 }, -Infinity)),
      greedy([...numbers(300, 9)]),
    ];
    const expected = rows.map(({ logits }) => reference(logits, GREEDY, 1));
    assert.deepEqual(await chosen(rows, lanes), expected);
    assert.deepEqual(expected.slice(0, 6), [299, 0, 17, 31, 0, 40]);
  });

  Deno.test(`choose: a broken model gives no token, ${lanes} lanes`, async () => {
    const broken = [
      at(300, { 7: NaN }, 0),
      at(300, { 7: -NaN, 8: 9 }, 0),
      at(300, { 299: Infinity }, 0),
      at(300, {}, -Infinity),
      at(300, {}, NaN),
    ];
    for (const temperature of [0, 1]) {
      const sampling = { ...GREEDY, temperature, topK: 5, topP: 0.9 };
      const rows = broken.map((logits) => ({ logits, sampling, position: 1 }));
      assert.deepEqual(await chosen(rows, lanes), broken.map(() => NOT_A_TOKEN));
    }
  });
}

const VOCAB = 301;
const SETTINGS: readonly Partial<Sampling>[] = [
  {},
  { temperature: 0.05 },
  { temperature: 3 },
  { topK: 1 },
  { topK: 20 },
  { topK: 500 },
  { topP: 0.5 },
  { topP: 0.95, temperature: 0.7 },
  { topP: 1e-30 },
  { minP: 0.1 },
  { minP: 1 },
  { topK: 40, topP: 0.9, minP: 0.02, temperature: 1.3 },
];

/** Logits of different shapes: flat, peaked, with ties, with tokens ruled out. */
function logitsOf(kind: number, seed: number): Float32Array {
  const flat = numbers(VOCAB, seed);
  return flat.map((value, i) =>
    [
      value,
      value * 12,
      Math.round(value * 6), // many ties, at the k-th value too
      i % 3 === 0 ? -Infinity : value * 5,
    ][kind] ?? NaN
  );
}

/**
 * Whether rounding cannot change the choice: the race is won by more than 1e-4, and a top-p or
 * min-p that is off by 1e-5 keeps the winner the same.
 */
function isSure({ logits, sampling, position }: Row): boolean {
  const kept = allowed(logits, sampling);
  const races = Array.from(logits, (logit, token) => {
    const noise = exponential(hash32(sampling.seed, position, token));
    return kept[token] ? logit / sampling.temperature - Math.log(noise) : -Infinity;
  }).sort((a, b) => b - a);
  const [first = NaN, second = NaN] = races;
  const choices = [1 - 1e-5, 1, 1 + 1e-5].map((scale) => {
    const topP = sampling.topP < 1 ? sampling.topP * scale : 1;
    const minP = Math.min(1, sampling.minP * scale);
    return reference(logits, { ...sampling, topP, minP }, position);
  });
  return !(first - second <= 1e-4) && new Set(choices).size === 1;
}

// A software adapter folds 256 lanes slowly, so they get fewer rows.
for (const [lanes, draws] of [[16, 256], [256, 24]] as const) {
  Deno.test(`choose: sampling is that of tests/reference/choose.ts, ${lanes} lanes`, async () => {
    const rows = SETTINGS.flatMap((setting, s) =>
      Array.from({ length: draws }, (_, i) => ({
        logits: logitsOf(i % 4, i % 16),
        sampling: { ...GREEDY, temperature: 1, ...setting, seed: hash32(lanes, s, i) },
        position: 1 + i * 37,
      }))
    );
    const actual = await chosen(rows, lanes);
    const wrong = rows.filter((row, i) =>
      actual[i] !== reference(row.logits, row.sampling, row.position)
    );
    assert.deepEqual(wrong.filter(isSure).map(({ sampling }) => sampling), []);
    assert.ok(wrong.length <= rows.length / 1000, `${wrong.length} of ${rows.length} differ`);
  });
}

Deno.test("choose: the noise is keyed by seed and position, not by row or slot", async () => {
  const logits = logitsOf(0, 1);
  const row = (seed: number, position: number) => {
    return { logits, sampling: { ...GREEDY, temperature: 1, seed }, position };
  };
  const rows = [row(1, 5), row(1, 6), row(2, 5), row(1, 5), row(0xffffffff, 5), row(2, 5)];
  const actual = await chosen(rows, 16);
  assert.equal(actual[0], actual[3]);
  assert.equal(actual[2], actual[5]);
  assert.ok(new Set(actual).size >= 3);
});

Deno.test("choose: settings below what f32 holds still give the likeliest token", async () => {
  const logits = at(300, { 33: 2, 250: 1 }, 0);
  const extremes = [
    { temperature: 1, topP: 1e-50 },
    { temperature: 1e-37 },
    { temperature: 1e-39 },
    { temperature: 1e-50 },
  ];
  const rows = extremes.map((extreme) => {
    return { logits, sampling: { ...GREEDY, ...extreme }, position: 1 };
  });
  assert.deepEqual(await chosen(rows, 16), [33, 33, 33, 33]);
});

// Slices: exactly one, one more column, and real vocabularies, the last slice not full.
for (const vocab of [2048, 2049, 128_256, 151_936]) {
  const { test } = vocab < 128_256 ? Deno : drawn;
  test(`choose: greedy over ${vocab} tokens, rows 1 to 17 of the same`, async () => {
    const places = [0, 2047, vocab - 1, Math.floor(vocab / 2)];
    const peaked = (r: number) => {
      const logits = numbers(vocab, 1);
      logits[places[r % 4] ?? 0] = 2;
      logits[vocab - 1] = 2; // a tie: the lower id is chosen
      return { logits, sampling: GREEDY, position: 1 };
    };
    const count = vocab > 100_000 ? 5 : 17;
    const all = Array.from({ length: count }, (_, r) => peaked(r));
    const expected = all.map((_, r) => places[r % 4]);
    assert.deepEqual(await chosen(all, 16), expected);
    assert.deepEqual(await chosen(all.slice(3, 4), 256), expected.slice(3, 4));
  });
}

Deno.test("choose: minus zero is zero", async () => {
  const rows = [greedy(at(300, { 8: -0, 9: 0 }, -1)), greedy(at(300, { 8: 0, 9: -0 }, -1))];
  assert.deepEqual(await chosen(rows, 16), [8, 8]);
});

drawn.test("choose: sampling 128,256 tokens with everything on", async () => {
  const vocab = 128_256;
  const sampling = { ...GREEDY, temperature: 0.8, topK: 60, topP: 0.9, minP: 0.01 };
  const rows = [1, 2, 3].map((seed) => ({
    logits: numbers(vocab, seed).map((value) => value * 30),
    sampling: { ...sampling, seed },
    position: 9,
  }));
  const expected = rows.map((row) => reference(row.logits, row.sampling, row.position));
  for (const lanes of [16, 512]) assert.deepEqual(await chosen(rows, lanes), expected);
});
