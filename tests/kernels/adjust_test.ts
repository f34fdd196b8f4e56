import assert from "node:assert/strict";
import { adjust, maskWords, PROMPT } from "../../kernels/sample/adjust.ts";
import { countTokens } from "../../kernels/sample/count_tokens.ts";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { choose } from "../../kernels/sample/choose.ts";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { maskOf, mostAllowed } from "../masks.ts";
import { choose as reference, isAllowed, masked, penalized } from "../reference/choose.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const PAD = 3;

/** The adjusted logits of each row and the token chosen from them; each row has a slot of its own. */
async function maskedChoices(
  logits: readonly ArrayLike<number>[],
  masks: readonly Uint32Array[],
  { samplings, lanes }: { readonly samplings: readonly Sampling[]; readonly lanes: number },
) {
  const vocab = logits[0]?.length ?? 0;
  const count = logits.length;
  const stride = vocab + PAD;
  const whole = new Float32Array(count * stride).fill(1e30);
  logits.forEach((row, i) => whole.set(Array.from(row), i * stride));
  const rows = device.words(packRows(logits.map((_, slot) => ({ slot, position: 4 }))));
  const [adjusted, chosen] = [device.filled(count * stride), device.filled(count)];
  const shape = { count, perSlot: 1, vocab, stride, lanes };
  await device.run([
    adjust(
      {
        logits: device.floats(whole),
        adjusted,
        rows,
        masks: device.words(masks.flatMap((mask) => [...mask])),
      },
      shape,
    ),
    ...choose({
      logits: adjusted,
      rows,
      chosen,
      slots: device.words(packSlots(samplings)),
      partials: device.filled(count * slicePartialWords(vocab)),
    }, shape),
  ]);
  const all = await device.readFloats(adjusted);
  return {
    adjusted: logits.map((_, i) => [...all.subarray(i * stride, i * stride + vocab)]),
    chosen: [...await device.readWords(chosen)],
  };
}

// Vocabularies: no whole word, and more than a slice.
for (const [vocab, lanes] of [[301, 16], [2500, 16], [2500, 512]] as const) {
  Deno.test(`masks: chosen among the allowed tokens alone, ${vocab} tokens, ${lanes} lanes`, async () => {
    const filters = [{}, { topK: 3 }, { topP: 0.4 }, { minP: 0.5, temperature: 0.7 }];
    const samplings = [0, 1].flatMap((temperature) =>
      filters.map((filter, seed) => ({ ...GREEDY, temperature, seed, ...filter }))
    );
    const logits = samplings.map((_, i) => numbers(vocab, i).map((x) => x * 4));
    const masks = samplings.map((_, i) =>
      i % 4 === 3 ? maskOf(vocab, (token) => token === vocab - 1) : mostAllowed(vocab, [i], 2)
    );
    const found = await maskedChoices(logits, masks, { samplings, lanes });
    const expected = logits.map((row, i) => masked(row, masks[i] ?? []));
    assert.deepEqual(found.adjusted, expected);
    assert.deepEqual(
      found.chosen,
      expected.map((row, i) => reference(row, samplings[i] as Sampling, 5)),
    );
    assert.ok(found.chosen.filter((token) => token === vocab - 1).length >= 2);
    // With a mask that allows every token, a row's choice is that without a mask.
    const all = masks.map(() => new Uint32Array(maskWords(vocab)).fill(0xffffffff));
    const free = await maskedChoices(logits, all, { samplings, lanes });
    assert.deepEqual(free.adjusted, logits.map((row) => [...row]));
  });
}

Deno.test("masks: broken logits stay broken where they are forbidden; nothing allowed is no token", async () => {
  const [ones, none] = [maskOf(300, () => true), maskOf(300, () => false)];
  const broken = [NaN, Infinity].map((x) => Array.from({ length: 300 }, (_, i) => i === 7 ? x : 0));
  const even = maskOf(300, (token) => token % 2 === 0);
  const logits = [...broken, Array(300).fill(1), [-Infinity, ...Array(299).fill(1)]];
  const samplings = logits.map(() => GREEDY);
  const { chosen } = await maskedChoices(logits, [even, even, none, ones], {
    samplings,
    lanes: 16,
  });
  assert.deepEqual(chosen, [NOT_A_TOKEN, NOT_A_TOKEN, NOT_A_TOKEN, 1]);
});

const TOKENS = 2100;
const PROMPT_IDS = [5, 9, 9, 2099];
const OUTPUT_IDS = [5, 7, 7, 7, 1000];
const PENALTIES = {
  repetitionPenalty: 1.3,
  frequencyPenalty: 0.25,
  presencePenalty: 0.5,
  logitBias: { 7: 1.5, 11: -2, 2098: 3 },
};

/** A row's place, and the drafts that it has read: its own and those above it. */
interface TreeRow {
  readonly row: Parameters<typeof packRows>[0][number];
  readonly drafts: readonly number[];
}

// A tree of five rows after 10 tokens, and padding: the third hangs off the root, with two levels below.
const TREE: readonly TreeRow[] = [
  { row: { token: 1000, position: 10, cell: 10, base: 11 }, drafts: [] },
  { row: { token: 7, position: 11, cell: 11, base: 12 }, drafts: [7] },
  { row: { token: 8, position: 11, cell: 12, base: 11, path: [1] }, drafts: [8] },
  { row: { token: 9, position: 12, cell: 13, base: 11, path: [1, 2] }, drafts: [8, 9] },
  { row: { token: 8, position: 13, cell: 14, base: 11, path: [1, 2, 3] }, drafts: [8, 9, 8] },
  { row: { live: 0 }, drafts: [] },
];

for (const lanes of [16, 256]) {
  Deno.test(`penalties: of the text and of a row's own drafts, beside a slot without, ${lanes} lanes`, async () => {
    const rows = [0, 1].flatMap((slot) => TREE.map(({ row }) => ({ ...row, slot })));
    const count = rows.length;
    const logits = rows.map((_, i) => numbers(TOKENS, i).map((x) => x * 5));
    const counts = new Uint32Array(2 * TOKENS).fill(3);
    counts.fill(0, TOKENS);
    for (const id of PROMPT_IDS) counts[TOKENS + id] = PROMPT;
    for (const id of OUTPUT_IDS) counts[TOKENS + id] = (counts[TOKENS + id] ?? 0) + 1;
    const bias = new Float32Array(2 * TOKENS).fill(4);
    bias.fill(0, TOKENS);
    for (const [id, value] of Object.entries(PENALTIES.logitBias)) {
      bias[TOKENS + Number(id)] = value;
    }
    const settings = new Float32Array(8);
    settings.set([1.3, 0.25, 0.5], 4);
    const words = new Uint32Array(settings.buffer);
    words[7] = 1;
    const masks = logits.map((_, i) => mostAllowed(TOKENS, [i], 7));
    const adjusted = device.filled(count * TOKENS);
    const penalties = {
      penalties: device.words(words),
      counts: device.words(counts),
      bias: device.floats(bias),
    };
    await device.run([adjust({
      logits: device.floats(logits.flatMap((row) => [...row])),
      adjusted,
      penalties,
      rows: device.words(packRows(rows)),
      masks: device.words(masks.flatMap((mask) => [...mask])),
    }, { count, perSlot: TREE.length, vocab: TOKENS, stride: TOKENS, lanes })]);
    const all = await device.readFloats(adjusted);
    for (const [i, row] of logits.entries()) {
      const found = all.subarray(i * TOKENS, (i + 1) * TOKENS);
      const { drafts } = TREE[i % TREE.length] as TreeRow;
      const text = { prompt: PROMPT_IDS, output: [...OUTPUT_IDS, ...drafts] };
      const wanted = i < TREE.length ? [...row] : penalized(row, PENALTIES, text);
      for (const [token, value] of found.entries()) {
        const exact = wanted[token] ?? NaN;
        if (!isAllowed(masks[i] ?? [], token)) assert.equal(value, -Infinity);
        else {assert.ok(
            Math.abs(value - exact) <= 1e-6 * (1 + Math.abs(exact)),
            `row ${i}, ${token}`,
          );}
      }
    }
  });
}

Deno.test("penalties: settings below what f32 holds give no infinity, and the likeliest repeated token", async () => {
  const settings = [1e-38, 1e-42, 1e-300];
  const logits = settings.map(() => [3, 20, 30, -4, 0]);
  const words = new Uint32Array(Float32Array.from(settings.flatMap((x) => [x, 2, -2, 0])).buffer);
  settings.forEach((_, slot) => words[4 * slot + 3] = 1);
  const [count, vocab] = [settings.length, 5];
  const [adjusted, chosen] = [device.filled(count * vocab), device.filled(count)];
  const rows = device.words(packRows(settings.map((_, slot) => ({ slot, position: 4, base: 5 }))));
  const shape = { count, perSlot: 1, vocab, stride: vocab, lanes: 16 };
  await device.run([
    adjust({
      logits: device.floats(logits.flat()),
      adjusted,
      rows,
      penalties: {
        penalties: device.words(words),
        counts: device.words(logits.flatMap(() => [PROMPT, 7, 0, 1, PROMPT])),
        bias: device.floats(logits.flatMap(() => [-100, 100, 100, -100, 0])),
      },
    }, shape),
    ...choose({
      logits: adjusted,
      rows,
      chosen,
      slots: device.words(packSlots(settings.map(() => GREEDY))),
      partials: device.filled(count * slicePartialWords(vocab)),
    }, shape),
  ]);
  assert.ok((await device.readFloats(adjusted)).every(Number.isFinite));
  assert.deepEqual([...await device.readWords(chosen)], settings.map(() => 1));
});

Deno.test("penalties: what a round emits is counted once for each time", async () => {
  const counts = device.words([PROMPT, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
  const results = device.words([3, 0, 2, 2, 9, 1, NOT_A_TOKEN, 3, 9, 9, 2, 3, 3, 9, 9]);
  const batchSlots = device.words([0, 2, NOT_A_TOKEN]);
  await device.run([
    countTokens({ batchSlots, results, counts }, { batch: 3, resultWords: 5, vocab: 4 }),
  ]);
  assert.deepEqual([...await device.readWords(counts)], [
    PROMPT + 1,
    0,
    2,
    0,
    5,
    ...Array(7).fill(0),
  ]);
});
