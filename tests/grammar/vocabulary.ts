/** The embedded model's vocabulary for grammars. */
import { embeddedFile } from "../../src/model/checkpoint/embedded_files.ts";
import { type TokenBytes, tokenBytes } from "../../src/text/token_bytes.ts";
import { loadTokenizer, type Tokenizer } from "../../src/text/tokenizer.ts";
import type { Vocabulary } from "../../src/grammar/grammars.ts";

export const VOCAB_SIZE = 2048;
export const EOS = 1;

export function embeddedJson(name: string): unknown {
  return JSON.parse(new TextDecoder().decode(embeddedFile(`target/${name}`)));
}

export function fledglingTokenizer(): Tokenizer {
  return loadTokenizer(
    "fledgling",
    embeddedJson("tokenizer.json"),
    embeddedJson("tokenizer_config.json"),
  );
}

export function fledglingBytes(): TokenBytes {
  const of = { name: "fledgling", vocabSize: VOCAB_SIZE, tokenizer: fledglingTokenizer() };
  return tokenBytes(embeddedJson("tokenizer.json"), of);
}

export function fledglingVocabulary(): Vocabulary {
  return { tokens: fledglingBytes, vocabSize: VOCAB_SIZE, eosTokenIds: [EOS] };
}
