// Rejection sampling: by exact enumeration, and the device's kernels by G-tests.
import assert from "node:assert/strict";
import { choose } from "../../kernels/sample/choose.ts";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import {
  DISTRIBUTION_WORDS,
  distributionsOf,
  reject,
  roundSlots,
} from "../../kernels/sample/reject.ts";
import { packProposal } from "../../src/engine/device/proposals.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { REJECTION_RULES, type RejectionRule } from "../../src/speculate/rejection_rule.ts";
import { SLOT_WORDS } from "../../src/model/device_layout.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { chainOf } from "../reference/trees.ts";
import { openDevice } from "../gpu/device.ts";
import { distribution } from "../reference/choose.ts";
import {
  continued,
  emittedByBlocks,
  emittedLaw,
  keptLaw,
  type Model,
} from "../reference/rejection.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";
import { gTest } from "../statistics.ts";
import { exponential } from "../reference/noise.ts";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const VOCAB = 5;
/** Logits of a made-up model after a prefix, of [0, 3). */
const logitsOf = (model: number) => (prefix: readonly number[]): number[] => {
  const place = prefix.reduce((sum, id) => sum * VOCAB + id + 1, 0);
  return Array.from({ length: VOCAB }, (_, id) => hash32(model, place, id) / 2 ** 32 * 3);
};
const lawOf = (model: number, sampling: Sampling): Model => (prefix) =>
  distribution(logitsOf(model)(prefix), sampling);
/** The draft of the kernels' tests has no logit of the last token. */
const DRAFT_VOCAB = VOCAB - 1;
const draftLogits = (prefix: readonly number[]) => logitsOf(1)(prefix).slice(0, DRAFT_VOCAB);
const draftLaw = (sampling: Sampling): Model => (prefix) =>
  distribution(draftLogits(prefix), sampling);

const SAMPLED: Sampling = { ...GREEDY, temperature: 1 };
const FILTERED: Sampling = { ...GREEDY, temperature: 0.8, topK: 4, topP: 0.9, minP: 0.05 };

const LAWS = { token: emittedLaw, block: emittedByBlocks } as const;

Deno.test("rejection sampling emits what the target alone would, by exact enumeration", () => {
  for (const rule of REJECTION_RULES) {
    for (let n = 0; n < (EXHAUSTIVE ? 25 : 8); n++) {
      const sampling = n % 2 ? FILTERED : SAMPLED;
      const [p, q] = [lawOf(2 * n, sampling), lawOf(2 * n + 1, sampling)];
      for (const depth of [1, 2, 3]) {
        const law = continued(p, LAWS[rule](p, q, depth), depth + 1);
        let whole = 0;
        for (const [key, probability] of law) {
          const ids = key.split(",").map(Number);
          const alone = ids.reduce((product, id, i) => product * p(ids.slice(0, i))[id]!, 1);
          assert.ok(Math.abs(probability - alone) < 1e-12, `${key}: ${probability}, not ${alone}`);
          whole += probability;
        }
        assert.ok(Math.abs(whole - 1) < 1e-9);
      }
    }
  }
});

const DEPTH = 2;
const ROWS = DEPTH + 1;
const LANES = 16;
const POSITION = 10;
const STRIDE = VOCAB + 3;

/** Drafts and outcome of one round of each of `count` sequences; lane is slot and seed. */
async function rounds(
  sampling: Sampling,
  { count, verified, rule }: {
    readonly count: number;
    readonly verified: number;
    readonly rule: RejectionRule;
  },
) {
  const slots = device.words(
    packSlots(Array.from({ length: count }, (_, seed) => ({ ...sampling, seed }))),
  );
  const distributions = device.filled((ROWS + DEPTH) * count * DISTRIBUTION_WORDS);
  const draftStep = count * STRIDE;
  const drafted: number[][] = Array.from({ length: count }, () => []);
  const drawn = new Float32Array(DEPTH * draftStep).fill(1e30);
  const shape = { vocab: VOCAB, stride: STRIDE, lanes: LANES };
  const draw = async (
    rows: readonly { readonly slot: number; readonly position: number }[],
    logits: Operand,
    place: { readonly first: number; readonly bySlot: boolean },
    vocab = VOCAB,
  ) => {
    const chosen = device.filled(rows.length);
    const partials = device.filled(rows.length * slicePartialWords(VOCAB));
    const packed = device.words(packRows(rows));
    const of = { ...shape, vocab, count: rows.length };
    await device.run([
      ...choose({ logits, partials, rows: packed, slots, chosen }, of),
      distributionsOf({ logits, partials, rows: packed, slots, distributions }, {
        ...of,
        ...place,
      }),
    ]);
    return { chosen, rows: packed };
  };
  for (let step = 0; step < DEPTH; step++) {
    const logits = new Float32Array(count * STRIDE).fill(1e30);
    drafted.forEach((ids, lane) => logits.set(draftLogits(ids), lane * STRIDE));
    drawn.set(logits, step * draftStep);
    const rows = drafted.map((_, slot) => ({ slot, position: POSITION + step }));
    const first = ROWS * count + step * count;
    const place = { first, bySlot: true };
    const { chosen } = await draw(rows, device.floats(logits), place, DRAFT_VOCAB);
    [...await device.readWords(chosen)].forEach((id, lane) => drafted[lane]!.push(id));
  }
  const logits = new Float32Array(ROWS * count * STRIDE).fill(1e30);
  const rows = drafted.flatMap((ids, slot) =>
    Array.from({ length: ROWS }, (_, j) => {
      logits.set(logitsOf(2)(ids.slice(0, j)), (slot * ROWS + j) * STRIDE);
      return { slot, position: POSITION + j, live: Number(j <= verified) };
    })
  );
  const target = device.floats(logits);
  const verify = await draw(rows, target, { first: 0, bySlot: false });
  const drafts = device.words(
    drafted.flatMap((ids) => [...packProposal(chainOf(ids.slice(0, verified)), ROWS)]),
  );
  const buffers = { ...verify, slots, drafts, logits: target, distributions };
  await device.run([
    reject({
      ...buffers,
      drawn: {
        logits: device.floats(drawn),
        vocab: DRAFT_VOCAB,
        stride: STRIDE,
        step: draftStep,
        slots: count,
        first: ROWS * count,
      },
    }, { ...shape, rule, batch: count, rows: ROWS, maxRows: ROWS }),
  ]);
  const chosen = [...await device.readWords(verify.chosen)];
  return drafted.map((ids, lane) => {
    const found = chosen.slice(lane * ROWS, (lane + 1) * ROWS);
    let accepted = 0;
    while (accepted < verified && found[accepted] === ids[accepted]) accepted++;
    return { ids, accepted, emitted: found.slice(0, accepted + 1) };
  });
}

const COUNT = EXHAUSTIVE ? 4000 : 1600;

/** Of texts of two tokens; shorter ones are continued by the law itself. */
function pairs(emitted: readonly (readonly number[])[], p: Model): number[] {
  const counts = Array<number>(VOCAB * VOCAB).fill(0);
  emitted.forEach(([a = 0, b], lane) => {
    let second = b;
    if (second === undefined) {
      let u = hash32(77, lane, 5) / 2 ** 32;
      second = p([a]).findIndex((share) => (u -= share) < 0);
    }
    counts[a * VOCAB + second]!++;
  });
  return counts;
}

for (const [name, sampling] of [["all tokens", SAMPLED], ["filtered", FILTERED]] as const) {
  for (const [rule, verified] of [["token", 1], ["token", 2], ["block", 2]] as const) {
    // Filtered, too little is left of the rule for blocks for a wrong one to be seen.
    const always = name === (rule === "block" ? "all tokens" : "filtered");
    const { test } = verified === 2 && always ? Deno : drawn;
    test(`reject: the target's law, by ${rule}, ${name}, ${verified} of 2 drafts verified`, async () => {
      const found = await rounds(sampling, { count: COUNT, verified, rule });
      const [p, q] = [lawOf(2, sampling), draftLaw(sampling)];
      const joint = (model: Model) =>
        Array.from({ length: VOCAB ** 2 }, (_, i) => {
          const [a, b] = [Math.floor(i / VOCAB), i % VOCAB];
          return (model([])[a] ?? 0) * (model([a])[b] ?? 0);
        });
      const counts = pairs(found.map(({ emitted }) => emitted), p);
      const fit = gTest(counts, joint(p));
      assert.ok(fit.p > 1e-4, JSON.stringify(fit));
      // Drafts have another law, and the test would see it.
      assert.ok(gTest(pairs(found.map(({ ids }) => ids), p), joint(q)).p > 1e-4);
      assert.ok(gTest(pairs(found.map(({ ids }) => ids), p), joint(p)).p < 1e-6);
      const kept = Array<number>(verified + 1).fill(0);
      for (const { accepted } of found) kept[accepted]!++;
      const keeps = gTest(kept, keptLaw(LAWS[rule](p, q, verified), verified));
      assert.ok(keeps.p > 1e-4, JSON.stringify({ kept, ...keeps }));
    });
  }
}

Deno.test("reject: at temperature 0 the target's choices stay", async () => {
  const asked = { count: 32, verified: 2 };
  const found = await Promise.all(
    REJECTION_RULES.map((rule) => rounds(GREEDY, { ...asked, rule })),
  );
  for (const { ids, emitted } of found.flat()) {
    const best = (prefix: readonly number[]) => {
      const logits = logitsOf(2)(prefix);
      return logits.indexOf(Math.max(...logits));
    };
    emitted.forEach((id, j) => assert.equal(id, best(ids.slice(0, j))));
  }
});

Deno.test("block verification keeps at least as many drafts, and at times more", () => {
  const mean = (law: readonly number[]) => law.reduce((sum, each, kept) => sum + each * kept, 0);
  let more = 0;
  for (let n = 0; n < 25; n++) {
    const [p, q] = [lawOf(2 * n, SAMPLED), lawOf(2 * n + 1, SAMPLED)];
    const [token, block] = REJECTION_RULES.map((rule) => mean(keptLaw(LAWS[rule](p, q, 3), 3)));
    assert.ok(block! > token! - 1e-12);
    more += Number(block! > token! + 1e-3);
  }
  assert.ok(more > 5, String(more));
});

/** One round of one sequence of made-up logits: [rows][vocabulary] and [drafts][draft vocabulary]. */
interface Round {
  readonly target: readonly (readonly number[])[];
  readonly draft: readonly (readonly number[])[];
  readonly drafts: readonly number[];
  readonly sampling: Sampling;
}

/** Constants of reject.wgsl. */
const [COIN, RESIDUAL] = [0xacce98, 0x5bd1e995];

/**
 * What reject.wgsl makes of a round, in float64, as far as it decides; undefined where a difference of rounding could
 * decide otherwise.
 */
function decided(
  { target, draft, drafts, sampling }: Round,
  rule: RejectionRule,
): { readonly accepted: number; readonly token: number | undefined } | undefined {
  const lawOf = (logits: readonly number[]) =>
    logits.some((x) => Number.isNaN(x))
      ? logits.map(() => 0)
      : distribution(logits.map(Math.fround), sampling);
  const [p, q] = [target.map(lawOf), draft.map(lawOf)];
  const hash = (row: number, token: number, seed = sampling.seed) =>
    hash32(seed >>> 0, POSITION + row + 1, token);
  const coin = (row: number) => (hash(row, COIN) >>> 8) / 2 ** 24;
  const qOf = (row: number, token: number) => q[row]?.[token] ?? 0;
  const restOf = (row: number, share: number) =>
    p[row]!.map((each, token) => {
      const left = share * each - qOf(row, token);
      return left > 1e-6 * each ? left : 0; // else rounding
    });
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  let [accepted, share, kept] = [0, 1, 1];
  for (const [j, x] of drafts.entries()) {
    const before = share;
    share = qOf(j, x) === 0
      ? 0
      : Math.min(1, (rule === "token" ? 1 : share) * p[j]![x]! / qOf(j, x));
    if (rule === "block" && before === 1 && share < 1 && share > 1 - 1e-5) return undefined;
    const rest = rule === "block" && j + 1 < drafts.length && share < 1
      ? sum(restOf(j + 1, share))
      : undefined;
    const keep = rest === undefined ? share : rest / (rest + 1 - share);
    if (keep < 1 && Math.abs(coin(j) - keep) < 1e-5) return undefined;
    if (coin(j) < keep) [accepted, kept] = [j + 1, share];
    else if (rule === "token") break;
  }
  if (accepted === drafts.length) return { accepted, token: undefined };
  const races = restOf(accepted, rule === "token" ? 1 : kept).map((left, token) =>
    left > 0
      ? Math.log(left) -
        Math.log(exponential(hash(accepted, token, sampling.seed ^ RESIDUAL)))
      : -Infinity
  );
  const [first = NaN, second = NaN] = races.toSorted((a, b) => b - a);
  if (first === -Infinity) return { accepted, token: undefined };
  return first - second > 1e-3 ? { accepted, token: races.indexOf(first) } : undefined;
}

/** What the device makes of rounds of as many drafts each; rows whose choice it leaves have `LEFT`. */
async function rejected(cases: readonly Round[], rule: RejectionRule) {
  const count = cases.length;
  const { drafts: { length: depth }, target: [{ length: vocab } = []], draft: [own = []] } =
    cases[0]!;
  const [rows, stride] = [depth + 1, vocab + 3];
  const shape = { vocab, stride, lanes: LANES };
  const slots = device.words(packSlots(cases.map(({ sampling }) => sampling)));
  const distributions = device.filled((rows + depth) * count * DISTRIBUTION_WORDS);
  const padded = (all: readonly (readonly number[])[]) => {
    const whole = new Float32Array(all.length * stride).fill(1e30);
    all.forEach((logits, i) => whole.set(logits, i * stride));
    return device.floats(whole);
  };
  const chosen = device.filled(rows * count);
  const drawn = padded(
    Array.from({ length: depth }, (_, step) => cases.map(({ draft }) => draft[step]!)).flat(),
  );
  const weigh = async (
    logits: Operand,
    places: readonly { readonly slot: number; readonly position: number }[],
    place: { readonly first: number; readonly bySlot: boolean; readonly vocab: number },
    into: Operand,
  ) => {
    const partials = device.filled(places.length * slicePartialWords(vocab));
    const packed = device.words(packRows(places));
    const of = { ...shape, ...place, count: places.length };
    await device.run([
      ...choose({ logits, partials, rows: packed, slots, chosen: into }, of),
      distributionsOf({ logits, partials, rows: packed, slots, distributions }, of),
    ]);
    return packed;
  };
  for (let step = 0; step < depth; step++) {
    const places = cases.map((_, slot) => ({ slot, position: POSITION + step }));
    const of = { first: rows * count + step * count, bySlot: true, vocab: own.length };
    await weigh(padded(cases.map(({ draft }) => draft[step]!)), places, of, device.filled(count));
  }
  const target = padded(cases.flatMap((each) => each.target));
  const places = cases.flatMap((_, slot) =>
    Array.from({ length: rows }, (_, j) => ({ slot, position: POSITION + j }))
  );
  const packed = await weigh(target, places, { first: 0, bySlot: false, vocab }, chosen);
  const before = await device.readWords(chosen);
  await device.run([
    reject({
      rows: packed,
      slots,
      drafts: device.words(cases.flatMap(({ drafts }) => [...packProposal(chainOf(drafts), rows)])),
      logits: target,
      distributions,
      chosen,
      drawn: {
        logits: drawn,
        vocab: own.length,
        stride,
        step: count * stride,
        slots: count,
        first: rows * count,
      },
    }, { ...shape, rule, batch: count, rows, maxRows: rows }),
  ]);
  const after = await device.readWords(chosen);
  return cases.map((_, i) => ({
    before: [...before.slice(i * rows, (i + 1) * rows)],
    after: [...after.slice(i * rows, (i + 1) * rows)],
  }));
}

/** Logits of random laws: flat, peaked, with tokens ruled out, with ties, of one token. */
function randomLogits(kind: number, vocab: number, seed: number): number[] {
  return Array.from({ length: vocab }, (_, id) => {
    const u = hash32(seed, id, 3) / 2 ** 32;
    return [
      u,
      u * 12,
      hash32(seed, id, 4) % 3 === 0 ? u * 4 : -Infinity,
      Math.floor(u * 4),
      id === seed % vocab ? 0 : -Infinity,
    ][kind] ?? NaN;
  }).map((x, id) => id === seed % vocab ? Math.max(x, 1) : x);
}

const FILTERS: readonly Partial<Sampling>[] = [
  {},
  { temperature: 0.01 },
  { temperature: 100 },
  { topK: 1 },
  { topK: 1_000_000 },
  { topP: 1e-30 },
  { minP: 1 },
  { topK: 9, topP: 0.8, minP: 0.03, temperature: 0.7 },
];

for (const rule of REJECTION_RULES) {
  Deno.test(`reject: as in float64, coin by coin, by ${rule}, laws of all kinds`, async () => {
    const [vocab, depth] = [37, 3];
    const cases = Array.from({ length: EXHAUSTIVE ? 4000 : 800 }, (_, n): Round => {
      const sampling = { ...SAMPLED, ...FILTERS[n % FILTERS.length], seed: hash32(n, 1, 1) };
      const target = Array.from({ length: depth + 1 }, (_, j) => {
        return randomLogits(hash32(n, j, 5) % 5, vocab, hash32(n, j, 6));
      });
      const draft = Array.from({ length: depth }, (_, j) => {
        const own = hash32(n, j, 7) % 4;
        // The target's own law, one close to it, or another.
        if (own === 0) return target[j]!;
        if (own === 1) return target[j]!.map((x, id) => x + hash32(n, id, 8) / 2 ** 32);
        return randomLogits(hash32(n, j, 9) % 5, vocab, hash32(n, j, 10));
      });
      const drafts = draft.map((logits, j) => {
        const law = distribution(logits.map(Math.fround), sampling);
        let u = hash32(n, j, 11) / 2 ** 32;
        const id = law.findIndex((share) => (u -= share) < 0);
        return id < 0 ? law.indexOf(Math.max(...law)) : id;
      });
      return { target, draft, drafts, sampling };
    });
    const found = await rejected(cases, rule);
    const seen = { accepted: 0, drawn: 0, left: 0, unsure: 0 };
    for (const [n, each] of cases.entries()) {
      const outcome = decided(each, rule);
      if (outcome === undefined) {
        seen.unsure++;
        continue;
      }
      const { accepted, token } = outcome;
      const { before, after } = found[n]!;
      const expected = [...each.drafts.slice(0, accepted), token ?? before[accepted]];
      assert.deepEqual(after.slice(0, accepted + 1), expected, JSON.stringify({ n, each }));
      seen.accepted += accepted;
      if (token !== undefined) seen.drawn++;
      else seen.left++;
    }
    assert.ok(
      Math.min(seen.accepted, seen.drawn, seen.left) > cases.length / 10,
      JSON.stringify(seen),
    );
    assert.ok(seen.unsure < cases.length / 50, JSON.stringify(seen));
  });

  Deno.test(`reject: behind broken logits of the draft the target's own law, by ${rule}`, async () => {
    // put_drafts.wgsl drafts token 0 where the draft's logits are no numbers; it is the target's likeliest here.
    const target = [[2, 0, 0, 0], [0, 0, 0, 0]];
    const cases = Array.from({ length: 400 }, (_, n): Round => {
      const sampling = { ...SAMPLED, seed: hash32(n, 2, 2) };
      return { target, draft: [[NaN, 0, 0, 0]], drafts: [0], sampling };
    });
    const found = await rejected(cases, rule);
    const counts = [0, 0, 0, 0];
    for (const [n, { after: [id = NOT_A_TOKEN] }] of found.entries()) {
      counts[id]!++;
      const token = decided(cases[n]!, rule)?.token;
      if (token !== undefined) assert.equal(id, token);
    }
    const fit = gTest(counts, distribution(target[0]!, SAMPLED));
    assert.ok(fit.p > 1e-4, JSON.stringify({ counts, ...fit }));
  });
}

Deno.test("round_slots: another seed for each round and slot, all else is the slot's", async () => {
  const fields = [{ seed: 5, temperature: 0.7, limit: 32 }, { seed: 6, limit: 16 }, { seed: 5 }];
  const slots = device.words(packSlots(fields));
  const untouched = packSlots(fields.map((each) => ({ ...each, seed: 4242 })));
  const seeds = async (positions: readonly number[]) => {
    const out = device.words(untouched);
    const rows = positions.map((position, slot) => ({ position, slot, live: Number(slot < 2) }));
    await device.run([
      roundSlots({ rows: device.words(packRows(rows)), slots, roundSlots: out }, 3),
    ]);
    const words = await device.readWords(out);
    const found = fields.map((_, slot) => words[slot * SLOT_WORDS + 2] as number);
    const expected = packSlots(
      fields.map((each, slot) => ({ ...each, seed: found[slot] as number })),
    );
    assert.deepEqual([...words], [...expected]);
    return found;
  };
  const [a, b, padding] = await seeds([10, 10, 10]);
  const [c, d] = await seeds([11, 10, 10]);
  assert.equal(new Set([5, 6, a, b, c]).size, 5);
  assert.deepEqual([d, padding], [b, 4242]);
});
