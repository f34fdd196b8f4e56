// Relaxed acceptance between choose and accept: SGLang's golden, a float64 reference, its law.
import assert from "node:assert/strict";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { choose } from "../../kernels/sample/choose.ts";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import { KEPT_MASS_WORDS, relax } from "../../kernels/sample/relax.ts";
import { packProposal } from "../../src/engine/device/proposals.ts";
import type { AcceptThresholds } from "../../src/speculate/accept_thresholds.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { depthsOf, type Proposal } from "../../src/speculate/trees.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { distribution } from "../reference/choose.ts";
import { acceptanceLaw, relaxed } from "../reference/relaxed.ts";
import { acceptTree, chainOf } from "../reference/trees.ts";
import { gTest } from "../statistics.ts";
import { packRows, packSlots } from "./rows.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const PAD = 3;
const MAX_ROWS = 10;
const EXACT: AcceptThresholds = { single: 1, acc: 1 };

interface Lane {
  readonly proposal: Proposal;
  /** [rows, vocabulary]; rows beyond the proposal's are padding. */
  readonly logits: readonly ArrayLike<number>[];
  readonly sampling: Sampling;
  /** Of the root. */
  readonly length: number;
}

/** Choices of each lane before and after relaxed acceptance, [lanes, rows]. */
async function relaxedOnDevice(
  lanes: readonly Lane[],
  { thresholds, depth, kind = "tree", wide = 16 }: {
    readonly thresholds: AcceptThresholds;
    readonly depth: number;
    readonly kind?: "chain" | "tree";
    readonly wide?: number;
  },
): Promise<{ readonly before: number[][]; readonly after: number[][] }> {
  const rows = Math.max(...lanes.map(({ logits }) => logits.length));
  const vocab = lanes[0]?.logits[0]?.length ?? 0;
  const [stride, count] = [vocab + PAD, lanes.length * rows];
  const logits = new Float32Array(count * stride).fill(1e30);
  lanes.forEach((lane, b) =>
    lane.logits.forEach((row, r) => logits.set(Array.from(row), (b * rows + r) * stride))
  );
  const order = lanes.flatMap(({ proposal, length }, slot) => {
    const depths = depthsOf(proposal);
    return Array.from({ length: rows }, (_, r) => (
      { slot, position: length + (depths[r] ?? 0), live: Number(r < depths.length) }
    ));
  });
  const buffers = {
    logits: device.floats(logits),
    partials: device.filled(count * slicePartialWords(vocab)),
    rows: device.words(packRows(order)),
    slots: device.words(packSlots(lanes.map(({ sampling }) => sampling))),
    drafts: device.words(lanes.flatMap(({ proposal }) => [...packProposal(proposal, MAX_ROWS)])),
    chosen: device.filled(count),
    kept: device.filled(count * KEPT_MASS_WORDS, NaN),
  };
  const shape = { vocab, stride, lanes: wide };
  const read = async () => {
    const chosen = [...await device.readWords(buffers.chosen)];
    return lanes.map((_, b) => chosen.slice(b * rows, (b + 1) * rows));
  };
  await device.run(choose(buffers, { ...shape, count }));
  const before = await read();
  const of = { batch: lanes.length, rows, depth, maxRows: MAX_ROWS, kind, thresholds };
  await device.run(relax(buffers, { ...shape, ...of }));
  return { before, after: await read() };
}

const sampled = (fields: Partial<Sampling>): Sampling => ({ ...GREEDY, temperature: 1, ...fields });

/**
 * SGLang's test of tree_speculative_sampling_target_only: the target's favourites, all others 18. The
 * second request's first child is row 4 there; rows are numbered here in the order of their siblings,
 * as all trees are that SGLang builds, and `rows` are its numbers.
 */
const GOLDEN = [
  {
    proposal: { tokens: [1, 2, 3, 4, 5], parents: [0, 1, 0, 3, 4] },
    rows: [0, 1, 2, 3, 4, 5],
    favourites: { 0: 3, 3: 4, 4: 5 },
    exact: { ids: [3, 4, 5, 18], rows: [0, 3, 4, 5] },
    loose: { ids: [1, 2, 18], rows: [0, 1, 2] },
  },
  {
    proposal: { tokens: [11, 12, 8, 9, 10], parents: [0, 1, 0, 3, 4] },
    rows: [0, 4, 5, 1, 2, 3],
    favourites: { 0: 11, 4: 12 },
    exact: { ids: [11, 12, 18], rows: [0, 4, 5] },
    loose: { ids: [11, 12, 18], rows: [0, 4, 5] },
  },
] as const;

for (
  const [name, thresholds] of [
    ["exact", EXACT],
    ["loose", { single: 0, acc: 0 }],
  ] as const
) {
  Deno.test(`relax: SGLang's golden, thresholds ${Object.values(thresholds)}`, async () => {
    const lanes = GOLDEN.map(({ proposal, rows, favourites }, seed): Lane => ({
      proposal,
      logits: rows.map((row) => {
        const favourite = new Map<string, number>(Object.entries(favourites)).get(`${row}`) ?? 18;
        return Array.from({ length: 20 }, (_, token) => token === favourite ? 10 : 1);
      }),
      sampling: sampled({ temperature: 0.01, seed }),
      length: 9,
    }));
    const { after } = await relaxedOnDevice(lanes, { thresholds, depth: 3 });
    for (const [i, golden] of GOLDEN.entries()) {
      const walked = acceptTree(golden.proposal, after[i] as number[]);
      assert.deepEqual(walked.ids, golden[name].ids);
      assert.deepEqual(walked.rows.map((row) => golden.rows[row]), golden[name].rows);
    }
  });
}

const VOCAB = 41;
const SETTINGS: readonly Partial<Sampling>[] = [
  {},
  { temperature: 0.5 },
  { topK: 5 },
  { topP: 0.8, temperature: 1.5 },
  { minP: 0.05 },
  { topK: 20, topP: 0.9, minP: 0.02, temperature: 0.8 },
  { temperature: 0 },
];
const THRESHOLDS = [EXACT, { single: 0.3, acc: 1 }, { single: 1, acc: 0.4 }, { single: 0, acc: 0 }];

/** Drafts that are often likely, siblings that may be equal, some tokens ruled out. */
function randomLane(n: number, kind: "chain" | "tree"): Lane {
  const count = n % MAX_ROWS;
  const logits = Array.from(
    { length: count + 1 },
    (_, r) =>
      numbers(VOCAB, n * 64 + r).map((x, token) =>
        hash32(n, r, token) % 9 === 0 ? -Infinity : 4 * x
      ),
  );
  const parents = Array.from(
    { length: count },
    (_, i) => kind === "chain" ? i : Math.max(0, i - hash32(n, i, 1) % 3),
  );
  const tokens = parents.map((parent, i) => {
    const row = Array.from(logits[parent] as ArrayLike<number>);
    const likely = [...row.keys()].toSorted((a, b) => (row[b] as number) - (row[a] as number));
    return likely[hash32(n, i, 2) % 6] ?? 0;
  });
  if (count > 3) {
    const row = Array.from(logits[parents[3] as number] as ArrayLike<number>);
    tokens[3] = Math.max(0, row.indexOf(-Infinity));
  }
  const sampling = sampled({ ...SETTINGS[n % SETTINGS.length], seed: hash32(n, 0, 3) });
  return { proposal: { tokens, parents }, logits, sampling, length: 5 + n };
}

for (const [kind, wide] of [["tree", 16], ["chain", 16], ["tree", 128]] as const) {
  const { test } = wide === 16 ? Deno : drawn;
  test(`relax: ${kind}s as tests/reference/relaxed.ts, ${wide} lanes`, async () => {
    const lanes = Array.from({ length: wide > 16 ? 40 : 280 }, (_, n) => randomLane(n, kind));
    const depth = kind === "chain" ? MAX_ROWS - 1 : 3;
    for (const thresholds of THRESHOLDS) {
      const { before, after } = await relaxedOnDevice(lanes, { thresholds, depth, kind, wide });
      let [sure, changed] = [0, 0];
      lanes.forEach((lane, b) => {
        const { proposal: { tokens: { length } } } = lane;
        const choices = (before[b] as number[]).slice(0, length + 1);
        const expected = relaxed(lane.proposal, { ...lane, depth, thresholds, choices });
        if (expected.margin < 1e-4) return;
        sure++;
        changed += Number(String(expected.choices) !== String(choices));
        assert.deepEqual(after[b]?.slice(0, length + 1), expected.choices, `lane ${b}`);
        assert.deepEqual(after[b]?.slice(length + 1), before[b]?.slice(length + 1));
      });
      assert.ok(sure > 0.9 * lanes.length && changed > lanes.length / 9, `${sure} ${changed}`);
    }
  });
}

drawn.test("relax: a rejected winner's place over 128,256 tokens", async () => {
  const vocab = 128_256;
  const rows = [1, 2].map((seed) => numbers(vocab, seed).map((x) => x * 12));
  const lane = (seed: number, token: number): Lane => ({
    proposal: chainOf([token]),
    logits: rows,
    length: 3,
    sampling: sampled({ topP: 0.9, seed }),
  });
  const shape = { thresholds: EXACT, depth: 1, kind: "chain" } as const;
  const seeds = [1, 2, 3, 4];
  const { before } = await relaxedOnDevice(seeds.map((seed) => lane(seed, 0)), shape);
  // Each has drafted what wins its race: a flat law rejects it.
  const lanes = seeds.map((seed, b) => lane(seed, before[b]?.[0] as number));
  const { after } = await relaxedOnDevice(lanes, shape);
  for (const [b, { proposal, ...of }] of lanes.entries()) {
    const choices = before[b] as number[];
    const expected = relaxed(proposal, { ...of, depth: 1, thresholds: EXACT, choices });
    assert.ok(expected.margin > 1e-4);
    assert.notEqual(expected.choices[0], choices[0]);
    assert.deepEqual(after[b], expected.choices);
  }
});

Deno.test("relax: broken rows stay, a ruled-out draft is never accepted", async () => {
  const flat = [0, 0, 0, 0];
  const lanes: Lane[] = [
    { logits: [[0, NaN, 0, 0], flat, flat] },
    { logits: [flat, [Infinity, 0, 0, 0], flat] },
    { logits: [[0, -Infinity, 0, 0], flat, flat] },
    { logits: [[-Infinity, 0, -Infinity, -Infinity], flat, flat] },
  ].map((lane) => ({ ...lane, proposal: chainOf([1, 2]), sampling: sampled({}), length: 1 }));
  for (const kind of ["chain", "tree"] as const) {
    const thresholds = { single: 0, acc: 0 };
    const { before, after } = await relaxedOnDevice(lanes, { thresholds, depth: 2, kind });
    assert.deepEqual(after[0], before[0]);
    assert.equal(after[0]?.[0], NOT_A_TOKEN);
    assert.deepEqual(after[1]?.slice(0, 2), [1, NOT_A_TOKEN]);
    assert.deepEqual(after[2], before[2]);
    assert.notEqual(after[2]?.[0], 1);
    assert.deepEqual(after[3]?.slice(0, 2), [1, 2]);
  }
});

/** A root with three children, the first of which has two. */
const TREE: Proposal = { tokens: [2, 0, 4, 1, 3], parents: [0, 0, 0, 1, 1] };
const LOGITS = [
  [1, -0.5, 1.5, 0.2, 0.8, 0],
  [0.3, 0.9, -1, 1.1, 0, 0.4],
  ...Array.from({ length: 4 }, () => [0, 0, 0, 0, 0, 0]),
];
const NUCLEUS = sampled({ topP: 0.93 });

Deno.test("relaxed acceptance, enumerated: exact at 1 and 1, drafts more often below", () => {
  const tokens = TREE.tokens.slice(0, 3);
  const law = distribution(LOGITS[0] as number[], NUCLEUS);
  const odds = tokens.map((token) => law[token] as number);
  const left = law.map((p, token) => tokens.includes(token) ? 0 : p);
  const rest = left.reduce((sum, p) => sum + p, 0);
  const drawn = (thresholds: AcceptThresholds) => {
    const accepted = acceptanceLaw(odds, thresholds);
    return law.map((_, token) =>
      tokens.includes(token)
        ? accepted[tokens.indexOf(token)] as number
        : (accepted.at(-1) as number) * (left[token] as number) / rest
    );
  };
  drawn(EXACT).forEach((p, token) => assert.ok(Math.abs(p - (law[token] as number)) < 1e-12));
  for (const thresholds of [{ single: 0.25, acc: 1 }, { single: 1, acc: 0.8 }]) {
    const share = (law: readonly number[]) => tokens.reduce((sum, t) => sum + (law[t] ?? 0), 0);
    assert.ok(share(drawn(thresholds)) > share(law) + 0.05);
  }
});

Deno.test("relax: at 1 and 1 each token comes as often as the target has it, below it does not", async () => {
  const tests = async (thresholds: AcceptThresholds, count: number) => {
    const lanes = Array.from({ length: count }, (_, seed): Lane => (
      { proposal: TREE, logits: LOGITS, sampling: { ...NUCLEUS, seed }, length: 7 }
    ));
    const { after } = await relaxedOnDevice(lanes, { thresholds, depth: 2 });
    const ids = after.map((choices) => acceptTree(TREE, choices).ids);
    return [
      { drawn: ids, row: 0 },
      { drawn: ids.filter(([first]) => first === TREE.tokens[0]), row: 1 },
    ].map(({ drawn, row }) => {
      const counts = Array<number>(6).fill(0);
      for (const path of drawn) counts[path[row] as number]! += 1;
      return gTest(counts, distribution(LOGITS[row] as number[], NUCLEUS)).p;
    });
  };
  for (const p of await tests(EXACT, 2000)) assert.ok(p > 1e-4, `p = ${p}`);
  for (const thresholds of [{ single: 0.25, acc: 1 }, { single: 1, acc: 0.7 }]) {
    for (const p of await tests(thresholds, 600)) assert.ok(p < 1e-4, `p = ${p}`);
  }
});

Deno.test("relax: a token that a proposal has twice among the children of a row counts once", async () => {
  const proposal: Proposal = { tokens: [2, 2, 4, 2], parents: [0, 0, 0, 0] };
  const [row] = LOGITS as [number[]];
  const logits = Array.from({ length: 5 }, () => row);
  const lanes = Array.from({ length: 600 }, (_, seed): Lane => (
    { proposal, logits, sampling: { ...NUCLEUS, seed }, length: 7 }
  ));
  const { before, after } = await relaxedOnDevice(lanes, { thresholds: EXACT, depth: 1 });
  const counts = Array<number>(row.length).fill(0);
  for (const [b, { proposal, ...of }] of lanes.entries()) {
    counts[after[b]![0]!]!++;
    const expected = relaxed(proposal, { ...of, depth: 1, thresholds: EXACT, choices: before[b]! });
    if (expected.margin > 1e-4) assert.deepEqual(after[b], expected.choices);
  }
  const fit = gTest(counts, distribution(row, NUCLEUS));
  assert.ok(fit.p > 1e-4, JSON.stringify({ counts, ...fit }));
});
