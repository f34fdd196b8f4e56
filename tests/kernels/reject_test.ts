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
    }, { ...shape, rule, batch: count, rows: ROWS, mostRows: ROWS }),
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
