import assert from "node:assert/strict";
import { adjust, maskWords } from "../../shaders/choose/adjust.ts";
import { choose, NOT_A_TOKEN } from "../../shaders/choose/choose.ts";
import { partialArgmaxWords } from "../../shaders/choose/partial_argmax.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { maskOf, mostAllowed } from "../masks.ts";
import { choose as reference, masked } from "../reference/choose.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const PAD = 3;

/** What is chosen from of each row, and what is chosen; each row has a slot of its own. */
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
      ...{ logits: adjusted, rows, chosen, slots: device.words(packSlots(samplings)) },
      partials: device.filled(count * partialArgmaxWords(vocab)),
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
    // Without its mask a row is chosen for as ever.
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
