// Sampling over large vocabularies, where the tokens that decide are gathered first: the choice is that of
// tests/reference/choose.ts, whether they decide or all logits must be looked through.

import assert from "node:assert/strict";
import { choose } from "../../kernels/sample/choose.ts";
import { gatheredWords } from "../../kernels/sample/gather.ts";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { choose as reference } from "../reference/choose.ts";
import { EXHAUSTIVE } from "../exhaustive.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const VOCAB = 100_003; // 49 slices, the last not full
const STRIDE = VOCAB + 5;
const LANES = 256;

interface Row {
  readonly logits: Float32Array;
  readonly sampling: Sampling;
  readonly position: number;
}

/** @param largestOnly whether the last kernel sees only the largest logit of each row. */
async function chosen(rows: readonly Row[], largestOnly = false): Promise<number[]> {
  const put = (of: (logits: Float32Array) => ArrayLike<number>) => {
    const all = new Float32Array(rows.length * STRIDE).fill(1e30);
    rows.forEach(({ logits }, i) => all.set(Float32Array.from(of(logits)), i * STRIDE));
    return device.floats(all);
  };
  const logits = put((logits) => logits);
  const out = device.filled(rows.length);
  const plan = choose({
    logits,
    chosen: out,
    partials: device.filled(rows.length * slicePartialWords(VOCAB)),
    rows: device.words(
      packRows(rows.map(({ position }, slot) => ({ slot, position: position - 1 }))),
    ),
    slots: device.words(packSlots(rows.map(({ sampling }) => sampling))),
    gathered: device.filled(rows.length * gatheredWords(VOCAB, LANES)),
  }, { count: rows.length, vocab: VOCAB, stride: STRIDE, lanes: LANES });
  const last = plan.at(-1);
  assert.ok(last && plan.length === 3);
  const masked = (logits: Float32Array) => {
    const most = logits.reduce((a, b) => Math.max(a, b));
    return logits.map((logit) => logit === most ? logit : -1e30);
  };
  const seen = largestOnly ? { ...last, buffers: { ...last.buffers, logits: put(masked) } } : last;
  await device.run([...plan.slice(0, -1), seen]);
  return [...await device.readWords(out)];
}

/** Few tokens have most of the probability. */
const peaked = (seed: number) => numbers(VOCAB, seed).map((value) => value ** 99 * 40);
/** The largest logits are neighbours: more than are kept of a slice. */
const crowded = (seed: number) =>
  peaked(seed).map((value, i) => i >= 5000 && i < 5200 ? 40 + i % 7 : value);

/** Rows of each setting. */
const SEEDS = EXHAUSTIVE ? [1, 2, 3] : [1];

const DECIDED: readonly Partial<Sampling>[] = [
  { temperature: 0.8 },
  { temperature: 1.3, minP: 0.05 },
  { temperature: 0.8, topK: 1 },
  { temperature: 0.8, topK: 20 },
  { temperature: 0.8, topK: 41, topP: 0.95 },
  { temperature: 0.5, topP: 0.6 },
  { temperature: 1, topK: 30, topP: 0.8, minP: 0.02 },
  { temperature: 0.8, topK: 10, topP: 1e-30 },
];
const UNDECIDED: readonly Partial<Sampling>[] = [
  { temperature: 0.8, topK: 5000 },
  { temperature: 50, topP: 0.95 },
];

function rowsOf(
  settings: readonly Partial<Sampling>[],
  logits: (seed: number) => Float32Array,
): Row[] {
  return settings.flatMap((setting, s) =>
    SEEDS.map((i) => ({
      logits: logits(i),
      sampling: { ...GREEDY, ...setting, seed: hash32(7, s, i) },
      position: 1 + 37 * i,
    }))
  );
}

function expected(rows: readonly Row[]): number[] {
  return rows.map(({ logits, sampling, position }) => reference(logits, sampling, position));
}

Deno.test("choose gathered: what the gathered tokens decide", async () => {
  const rows = rowsOf(DECIDED, peaked);
  const tokens = expected(rows);
  assert.deepEqual(await chosen(rows), tokens);
  assert.deepEqual(await chosen(rows, true), tokens, "decided without a look at the other logits");
  assert.ok(new Set(tokens).size > 2 * SEEDS.length);
});

Deno.test("choose gathered: where they do not decide, all logits are looked through", async () => {
  const rows = [...rowsOf(UNDECIDED, peaked), ...rowsOf(DECIDED.slice(3, 5), crowded)];
  const tokens = expected(rows);
  assert.deepEqual(await chosen(rows), tokens);
  assert.notDeepEqual(await chosen(rows, true), tokens);
});

Deno.test("choose gathered: few tokens that are not ruled out, ties and extreme settings", async () => {
  const only = (keeps: (token: number) => boolean) => (seed: number) =>
    peaked(seed).map((value, token) => keeps(token) ? value : -Infinity);
  const kinds: readonly ((seed: number) => Float32Array)[] = [
    only((token) => token === VOCAB - 1), // one token, in the last slice
    only((token) => token % 33_000 === 7), // fewer than top-k
    only((token) => token % 2048 === 5), // one of each slice
    only((token) => token < 2048), // one slice
    (seed) => peaked(seed).map(Math.round), // ties, at the k-th too
    () => new Float32Array(VOCAB).fill(-3), // nothing but ties
  ];
  const settings = [
    { temperature: 0.01, topK: 3 },
    { temperature: 100, topK: 3, topP: 0.5 },
    { temperature: 1, minP: 1 },
    { temperature: 1, topP: 0.3 },
    { temperature: 1, topK: VOCAB },
  ];
  const rows = kinds.flatMap((kind, k) => rowsOf(settings, (seed) => kind(seed + 3 * k)));
  assert.deepEqual(await chosen(rows), expected(rows));
});

Deno.test("choose gathered: greedy rows and rows of a broken model beside others", async () => {
  const broken = peaked(1);
  broken[77_777] = NaN;
  const sampling = { ...GREEDY, temperature: 0.8, topK: 5 };
  const rows = [
    { logits: peaked(2), sampling: GREEDY, position: 3 },
    { logits: broken, sampling, position: 3 },
    { logits: peaked(2), sampling, position: 3 },
  ];
  const tokens = expected([rows[0] as Row, rows[2] as Row]);
  assert.deepEqual(await chosen(rows), [tokens[0], 0xffffffff, tokens[1]]);
});

Deno.test("choose gathered: few tokens and few lanes gather nothing", () => {
  assert.equal(gatheredWords(32_000, LANES), 0);
  assert.equal(gatheredWords(VOCAB, 16), 0);
});
