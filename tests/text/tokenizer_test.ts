import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import { fledglingText, fledglingTokenizer, goldenCases, spacedTokenizer } from "./tokenizers.ts";

Deno.test("tokenizer: decodes every golden output to its text", () => {
  const tokenizer = fledglingTokenizer();
  const cases = goldenCases();
  assert.equal(cases.length, 22);
  for (const { greedy_ids, text } of cases) {
    assert.equal(tokenizer.decode(greedy_ids, { skipSpecialTokens: true }), text);
  }
});

Deno.test("tokenizer: special tokens spelt out in a text become their ids", () => {
  const tokenizer = fledglingTokenizer();
  const ids = tokenizer.encode("<|im_start|>user\nHi<|im_end|>", { addSpecialTokens: false });
  assert.equal(ids[0], tokenizer.idOf("<|im_start|>"));
  assert.equal(ids.at(-1), 1);
  assert.equal(tokenizer.decode(ids), "<|im_start|>user\nHi<|im_end|>");
  assert.equal(tokenizer.decode(ids, { skipSpecialTokens: true }), "user\nHi");
});

Deno.test("tokenizer: any text survives encoding and decoding", () => {
  const tokenizer = fledglingTokenizer();
  for (const text of ["", " ", "a  b\n", "你好，世界", "👩‍👩‍👧 naïve", "it 's . fine !"]) {
    assert.equal(tokenizer.decode(tokenizer.encode(text)), text);
  }
});

Deno.test("tokenizer: names its special tokens, from strings and from objects", () => {
  const fledgling = fledglingTokenizer();
  assert.equal(fledgling.bosToken, undefined);
  assert.equal(fledgling.eosToken, "<|im_end|>");
  assert.equal(fledgling.idOf("no such token"), undefined);
  const spaced = spacedTokenizer("llama2");
  assert.equal(spaced.bosToken, "<s>");
  assert.equal(spaced.eosToken, "</s>");
  assert.equal(spaced.idOf("</s>"), 1);
});

Deno.test("tokenizer: ids outside of the vocabulary are no text", () => {
  for (const tokenizer of [fledglingTokenizer(), spacedTokenizer("metaspace")]) {
    const outside = tokenizer.vocabSize;
    const ids = tokenizer.encode("b", { addSpecialTokens: false });
    assert.equal(tokenizer.decode([outside, ...ids, outside + 7]), "b");
    assert.equal(tokenizer.decode([outside]), "");
    assert.deepEqual([tokenizer.isSkipped(outside), tokenizer.isSkipped(0)], [true, true]);
    assert.ok(!tokenizer.isSkipped(outside - 1));
  }
});

Deno.test("tokenizer: the model has every token, and may have more", () => {
  const [json, config] = ["tokenizer.json", "tokenizer_config.json"]
    .map((file): unknown => JSON.parse(fledglingText(file)));
  const { added_tokens: added, ...rest } = json as { readonly added_tokens: readonly object[] };
  /** With a further token, as Llama-2's `<pad>`. */
  const padded = (id: number) => ({
    ...rest,
    added_tokens: [...added, { id, content: "<pad>", special: true }],
  });
  for (const modelVocab of [2048, 2049, 4096]) {
    assert.equal(loadTokenizer("x", json, config, modelVocab).vocabSize, 2048);
  }
  assert.equal(loadTokenizer("x", padded(2048), config, 2049).idOf("<pad>"), 2048);
  for (const [id, modelVocab] of [[2048, 2048], [5000, 2048], [5000, 5000]] as const) {
    const why = `token "<pad>" has id ${id}, the model's vocab_size is ${modelVocab}`;
    assert.throws(
      () => loadTokenizer("x", padded(id), config, modelVocab),
      new UsageError(`Cannot load the tokenizer of "x": ${why}`),
    );
  }
});

Deno.test("tokenizer: a missing or unusable file is the user's to mend", () => {
  const refuses = (json: unknown, config: unknown, message: RegExp) =>
    assert.throws(
      () => loadTokenizer("models/x", json, config),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  refuses(
    undefined,
    {},
    /^Cannot load the tokenizer of "models\/x": no tokenizer\.json; where there is a tokenizer\.model or tekken\.json,/,
  );
  refuses([], {}, /"models\/x": tokenizer\.json is not a JSON object/);
  refuses({}, "text", /"models\/x": tokenizer_config\.json is not a JSON object/);
  refuses({ model: null }, {}, /"models\/x": tokenizer\.json is not usable/);
  refuses(
    {
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: "Unheard" },
      post_processor: null,
      decoder: null,
      model: { type: "BPE", vocab: {}, merges: [] },
    },
    undefined,
    /Unheard/,
  );
});
