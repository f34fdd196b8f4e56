import assert from "node:assert/strict";
import { type Vocabulary, vocabularyMisfit } from "../../src/text/vocabulary.ts";

const TOKENS = { a: 0, b: 1, c: 2, d: 3 };

function vocabulary(
  vocab: unknown,
  { added = [{ id: 4, content: "<s>" }], vocabSize = 5 }: {
    readonly added?: readonly unknown[];
    readonly vocabSize?: number;
  } = {},
): Vocabulary {
  return { vocabSize, tokenizerJson: { added_tokens: added, model: { vocab } } };
}

Deno.test("vocabularies: the same tokens fit, however listed and padded", () => {
  const target = vocabulary(TOKENS);
  assert.equal(vocabularyMisfit(target, vocabulary(TOKENS)), undefined);
  assert.equal(vocabularyMisfit(target, vocabulary(TOKENS, { vocabSize: 64 })), undefined);
  assert.equal(vocabularyMisfit(vocabulary(TOKENS, { vocabSize: 64 }), target), undefined);
  const unigram = Object.keys(TOKENS).map((token) => [token, -1]);
  assert.equal(vocabularyMisfit(target, vocabulary(unigram)), undefined);
  // A token that the target has no embedding for is plain text to it.
  const beyond = [{ id: 4, content: "<s>" }, { id: 5, content: "<pad>" }];
  assert.equal(vocabularyMisfit(vocabulary(TOKENS, { added: beyond }), target), undefined);
});

Deno.test("vocabularies: the first differences are told, special tokens among them", () => {
  const target = vocabulary(TOKENS);
  assert.equal(
    vocabularyMisfit(target, vocabulary({ ...TOKENS, b: 2, c: 1 })),
    `its tokens are others: 1 is "c", the target's "b"; 2 is "b", the target's "c"`,
  );
  assert.equal(
    vocabularyMisfit(target, vocabulary(TOKENS, { added: [{ id: 4, content: "</s>" }] })),
    `its tokens are others: 4 is "</s>", the target's "<s>"`,
  );
  // The draft has fewer embeddings than the target has tokens.
  assert.equal(
    vocabularyMisfit(target, vocabulary(TOKENS, { vocabSize: 4 })),
    `its tokens are others: 4 is none, the target's "<s>"`,
  );
  assert.equal(
    vocabularyMisfit(target, vocabulary({ w: 0, x: 1, y: 2, z: 3 })),
    `its tokens are others: 0 is "w", the target's "a"; 1 is "x", the target's "b"; ` +
      `2 is "y", the target's "c" (4 differ)`,
  );
});

Deno.test("vocabularies: without a list of tokens there is nothing to compare", () => {
  const target = vocabulary(TOKENS);
  const none = { vocabSize: 5, tokenizerJson: undefined };
  const why = "has no tokenizer.json that lists its tokens";
  assert.equal(vocabularyMisfit(target, none), `the draft ${why}`);
  assert.equal(vocabularyMisfit(none, target), `the target ${why}`);
  assert.equal(
    vocabularyMisfit(target, { ...none, tokenizerJson: { model: [] } }),
    `the draft ${why}`,
  );
});
