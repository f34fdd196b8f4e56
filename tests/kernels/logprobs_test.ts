import assert from "node:assert/strict";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { type KeptRows, logprobs, logprobWords } from "../../kernels/sample/logprobs.ts";
import { readLogprobs, type TokenLogprobs } from "../../src/engine/device/choice/logprobs.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { logprobs as reference } from "../reference/choose.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const PAD = 3;
const TOKENS = 3;
const RESULT = 8;

/** What is told of the tokens that each sequence emitted. */
async function told(
  logits: readonly Float32Array[],
  emitted: readonly (readonly number[])[],
  { most, lanes, kept }: { readonly most: number; readonly lanes: number; readonly kept: KeptRows },
): Promise<TokenLogprobs[][]> {
  const vocab = logits[0]?.length ?? 0;
  const stride = vocab + PAD;
  const rows = new Float32Array(logits.length * stride).fill(1e30);
  logits.forEach((row, i) => rows.set(row, i * stride));
  const results = new Uint32Array(emitted.length * RESULT);
  emitted.forEach((ids, b) => results.set([ids.length, ...ids], b * RESULT));
  const size = TOKENS * logprobWords(most);
  const out = device.filled(emitted.length * size);
  const buffers = { logits: device.floats(rows), results: device.words(results), logprobs: out };
  const of = { batch: emitted.length, tokens: TOKENS, resultWords: RESULT, most, vocab, stride };
  await device.run([logprobs(buffers, { ...of, kept, lanes })]);
  const words = await device.readWords(out);
  return emitted.map((ids, b) => readLogprobs(words.subarray(b * size), ids, most) ?? []);
}

/** Ids from the likeliest to the least likely, the lower first on a tie. */
function order(logits: Float32Array): number[] {
  return [...logits.keys()].toSorted((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0) || a - b);
}

function assertTold(found: TokenLogprobs, logits: Float32Array, id: number, most: number): void {
  const exact = reference(logits);
  const close = (value: number, at: number) =>
    assert.ok(Math.abs(value - (exact[at] ?? NaN)) < 2e-5 * (1 + Math.abs(exact[at] ?? 0)));
  assert.equal(found.id, id);
  close(found.logprob, id);
  assert.deepEqual(found.top.map(({ id }) => id), order(logits).slice(0, most));
  for (const { id, logprob } of found.top) close(logprob, id);
}

for (
  const [vocab, lanes, most] of [[301, 16, 20], [2500, 256, 5], [301, 16, 0], [7, 16, 20]] as const
) {
  Deno.test(`logprobs: log softmax and the ${most} likeliest of ${vocab} tokens, ${lanes} lanes`, async () => {
    // Rounded: with ties.
    const logits = Array.from(
      { length: 6 },
      (_, i) => numbers(vocab, i).map((x) => i % 2 ? x * 8 : Math.round(x * 9)),
    );
    const chains = [[5, 0, vocab - 1], [6]];
    const kept: KeptRows = { kind: "chain", rows: 3 };
    const found = await told(logits, chains, { most, lanes, kept });
    for (const [b, ids] of chains.entries()) {
      assert.equal(found[b]?.length, ids.length);
      for (const [j, id] of ids.entries()) {
        assertTold(found[b]?.[j] as TokenLogprobs, logits[b * 3 + j] as Float32Array, id, most);
      }
    }
    // The rows that a tree kept: bits as those of the chain, whatever else is in the batch.
    const last = device.words([9, 9, 5, 3, 4, 0, 1, 2, NOT_A_TOKEN]);
    const trees = [[5, 0], [5, 0, vocab - 1]];
    const tree: KeptRows = { kind: "tree", last, kept: 2 };
    const again = await told(logits, trees, { most, lanes, kept: tree });
    assertTold(again[0]?.[0] as TokenLogprobs, logits[5] as Float32Array, 5, most);
    assertTold(again[0]?.[1] as TokenLogprobs, logits[3] as Float32Array, 0, most);
    assert.deepEqual(again[1]?.slice(0, 2), found[0]?.slice(0, 2));
  });
}

Deno.test("logprobs: a token's bits do not depend on how many likeliest ones are asked for", async () => {
  const [vocab, sequences] = [600, 64];
  const logits = Array.from(
    { length: sequences * 3 },
    (_, i) => numbers(vocab, i).map((x) => x * 8),
  );
  const emitted = Array.from({ length: sequences }, (_, b) => [b, 99 + b, 599 - b]);
  const kept: KeptRows = { kind: "chain", rows: 3 };
  const found = await Promise.all(
    [0, 1, 5, 20].map((most) => told(logits, emitted, { most, lanes: 64, kept })),
  );
  const own = found.map((rows) => rows.map((tokens) => tokens.map(({ logprob }) => logprob)));
  for (const other of own) assert.deepEqual(other, own[0]);
});

Deno.test("logprobs: a token that is none has no log-probability, and the others have theirs", async () => {
  const logits = [0, 1, 2].map((i) => numbers(300, i));
  (logits[1] as Float32Array)[7] = NaN;
  const kept: KeptRows = { kind: "chain", rows: 3 };
  const [found = []] = await told(logits, [[4, NOT_A_TOKEN]], { most: 1, lanes: 16, kept });
  assertTold(found[0] as TokenLogprobs, logits[0] as Float32Array, 4, 1);
  assert.equal(found[1]?.logprob, 0);
});

Deno.test("logprobs: that of a certain token is 0 and never -0", () => {
  const words = Uint32Array.of(0x80000000, 7, 0x80000000);
  assert.deepEqual(readLogprobs(words, [7], 1), [
    { id: 7, logprob: 0, top: [{ id: 7, logprob: 0 }] },
  ]);
});
