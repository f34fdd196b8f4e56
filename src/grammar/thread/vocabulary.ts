import type { Vocabulary } from "../grammars.ts";
import type { SharedVocabulary } from "./messages.ts";

/** Copies a vocabulary into memory that all threads share. */
export function sharedVocabulary(
  { tokens, vocabSize, eosTokenIds }: Vocabulary,
): SharedVocabulary {
  const { bytes: texts, stripsSpace } = tokens();
  const bytes = new SharedArrayBuffer(texts.reduce((sum, { length }) => sum + length, 0));
  const lengths = new SharedArrayBuffer(4 * texts.length);
  new Uint32Array(lengths).set(texts.map(({ length }) => length));
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const text of texts) {
    all.set(text, at);
    at += text.length;
  }
  return { bytes, lengths, stripsSpace, vocabSize, eosTokenIds };
}

/** The vocabulary in another thread. */
export function vocabularyOf(
  { bytes, lengths, stripsSpace, vocabSize, eosTokenIds }: SharedVocabulary,
): Vocabulary {
  const all = new Uint8Array(bytes);
  let at = 0;
  const texts = Array.from(
    new Uint32Array(lengths),
    (length) => all.subarray(at, at += length),
  );
  return { tokens: () => ({ bytes: texts, stripsSpace }), vocabSize, eosTokenIds };
}
