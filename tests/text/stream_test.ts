import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type StreamDecoder, textStream } from "../../src/text/stream.ts";
import type { Tokenizer } from "../../src/text/tokenizer.ts";
import { fledglingTokenizer, goldenCases, spacedTokenizer } from "./tokenizers.ts";

const FLEDGLING = fledglingTokenizer();
const BYTE_FALLBACK = spacedTokenizer("llama2");
const SPACED = [spacedTokenizer("metaspace"), BYTE_FALLBACK];
// size "max" below: by default fast-check makes lists of about 10, too few for the window to move.
const SEED = { seed: 20260305, numRuns: 300 };

/** The pieces of `ids`, from one push for each token and the end. */
function pieces(tokenizer: StreamDecoder, ids: readonly number[]): string[] {
  const stream = textStream(tokenizer);
  return [...ids.map((id) => stream.push([id])), stream.end()];
}

function assertSameText(tokenizer: Tokenizer, ids: readonly number[]): void {
  const all = tokenizer.decode(ids, { skipSpecialTokens: true });
  assert.equal(pieces(tokenizer, ids).join(""), all);
}

Deno.test("stream: pieces join to the decoded text for any ids", () => {
  for (const tokenizer of [FLEDGLING, ...SPACED]) {
    // Two ids are beyond the vocabulary, because a padded model may choose such ids.
    const id = fc.nat(tokenizer.vocabSize + 1);
    fc.assert(
      fc.property(
        fc.array(id, { maxLength: 80, size: "max" }),
        (ids) => assertSameText(tokenizer, ids),
      ),
      SEED,
    );
  }
});

Deno.test("stream: pieces join to the decoded text for runs of raw bytes", () => {
  // Bytes that begin, continue and break UTF-8 characters, with special tokens and text between them.
  const bytes = [0x80, 0x9f, 0x98, 0xf0, 0xe4, 0xc3, 0xa9, 0xff, 0xef, 0xbf, 0xbd, 0xbb, 0x20];
  for (const tokenizer of SPACED) {
    const id = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...bytes.map((byte) => byte + 3)) },
      { weight: 1, arbitrary: fc.constantFrom(0, 1, 2, 259, 260, 261, 264, 265) },
    );
    fc.assert(
      fc.property(
        fc.array(id, { maxLength: 120, size: "max" }),
        (ids) => assertSameText(tokenizer, ids),
      ),
      SEED,
    );
  }
});

Deno.test("stream: multi-byte text comes whole, character by character", () => {
  const text = fc.array(fc.constantFrom("😀", "👩‍👩‍👧", "你", "好", "é", "ا", "a", " ", "\n"), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(text, (characters) => {
      const all = characters.join("");
      const got = pieces(FLEDGLING, FLEDGLING.encode(all));
      assert.equal(got.join(""), all);
      assert.ok(got.every((piece) => piece.isWellFormed() && !piece.includes("\uFFFD")));
    }),
    SEED,
  );
});

Deno.test("stream: several ids a push give the same text", () => {
  for (const { greedy_ids, text } of goldenCases()) {
    const stream = textStream(FLEDGLING);
    let all = "";
    for (let at = 0; at < greedy_ids.length; at += 4) {
      all += stream.push(greedy_ids.slice(at, at + 4));
    }
    assert.equal(all + stream.end(), text);
  }
});

Deno.test("stream: bytes of a character stay together across many special tokens", () => {
  const [f0, x9f, x98, x80] = [0xf0, 0x9f, 0x98, 0x80].map((byte) => byte + 3);
  const ids = [f0, ...Array(40).fill(1), x9f, x98, ...Array(40).fill(2), x80] as number[];
  assert.equal(pieces(BYTE_FALLBACK, ids).join(""), "😀");
});

Deno.test("stream: an output that ends within a character shows U+FFFD, at the end only", () => {
  const ids = FLEDGLING.encode("a😀").slice(0, -1);
  const got = pieces(FLEDGLING, ids);
  assert.equal(got.slice(0, -1).join(""), "a");
  assert.equal(got.at(-1), "\uFFFD");
});

Deno.test("stream: text is not held back longer than one broken character", () => {
  const broken = Array<number>(100).fill(0x80 + 3);
  const stream = textStream(BYTE_FALLBACK);
  assert.equal(stream.push(broken).length, 99);
  assert.equal(stream.end(), "\uFFFD");
});

Deno.test("stream: never decodes more than a bounded window", () => {
  let longest = 0;
  const watched: StreamDecoder = {
    isSkipped: (id) => FLEDGLING.isSkipped(id),
    decode: (ids, options) => {
      longest = Math.max(longest, ids.length);
      return FLEDGLING.decode(ids, options);
    },
  };
  pieces(watched, FLEDGLING.encode("Far out at sea 你好 😀. ".repeat(50)));
  assert.ok(longest <= 16, `decoded ${longest} tokens at once`);
});
