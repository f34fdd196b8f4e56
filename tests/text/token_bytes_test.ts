import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../../src/errors.ts";
import { tokenBytes } from "../../src/text/token_bytes.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import {
  embeddedJson,
  fledglingBytes,
  fledglingTokenizer,
  VOCAB_SIZE,
} from "../grammar/vocabulary.ts";

/** SentencePiece as Llama-2 has it. */
const LLAMA2 = {
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  model: {
    type: "BPE",
    byte_fallback: true,
    unk_token: "<unk>",
    merges: [],
    vocab: {
      "<unk>": 0,
      "</s>": 1,
      "▁": 2,
      "a": 3,
      "▁a": 4,
      "ä": 5,
      "▁▁": 6,
      "<0xF0>": 7,
      "<0x9F>": 8,
      "<0x98>": 9,
      "<0x80>": 10,
      "<0x0A>": 11,
      "a▁b": 12,
    },
  },
  added_tokens: [
    { id: 0, content: "<unk>", special: true },
    { id: 1, content: "</s>", special: true },
    { id: 13, content: "<tool>", special: false },
  ],
  decoder: {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  },
};

function joined(bytes: readonly Uint8Array[], ids: readonly number[]): string {
  return new TextDecoder().decode(
    Uint8Array.from(ids.flatMap((id) => [...bytes[id] as Uint8Array])),
  );
}

Deno.test("byte-level tokens: their bytes are what they decode to", () => {
  const tokenizer = fledglingTokenizer();
  const { bytes, stripsSpace } = fledglingBytes();
  assert.equal(stripsSpace, false);
  assert.ok(bytes.length === VOCAB_SIZE && bytes[0]?.length === 0);
  const ids = fc.array(fc.integer({ min: 0, max: VOCAB_SIZE - 1 }), { maxLength: 12 });
  fc.assert(fc.property(ids, (ids) => {
    assert.equal(joined(bytes, ids), tokenizer.decode(ids, { skipSpecialTokens: true }));
  }));
});

Deno.test("SentencePiece: spaces, bytes, added tokens, and the first space that is dropped", () => {
  const tokenizer = loadTokenizer("llama2", LLAMA2, {});
  const { bytes, stripsSpace } = tokenBytes(LLAMA2, { name: "llama2", vocabSize: 16, tokenizer });
  assert.equal(stripsSpace, true);
  assert.deepEqual([0, 1, 14, 15].map((id) => bytes[id]?.length), [0, 0, 0, 0]);
  const lists = [[4, 3, 5], [3, 4, 12], [7, 8, 9, 10, 11], [2, 6, 13], [6, 3], [13, 4]];
  for (const ids of lists) {
    const whole = tokenizer.decode(ids, { skipSpecialTokens: true });
    assert.equal(joined(bytes, ids).replace(/^ /, ""), whole);
  }
});

Deno.test("decoders that look at other tokens are refused", () => {
  const tokenizer = fledglingTokenizer();
  for (
    const [decoder, why] of [[{ type: "WordPiece" }, '"WordPiece"'], [undefined, "no decoder"]]
  ) {
    const json = { ...embeddedJson("tokenizer.json") as object, decoder };
    assert.throws(
      () => tokenBytes(json, { name: "bert", vocabSize: VOCAB_SIZE, tokenizer }),
      (error) => error instanceof UsageError && error.message.includes(`decodes with ${why}`),
    );
  }
});
