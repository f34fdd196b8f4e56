import { type LocalGrammars, openGrammars } from "../../src/grammar/grammars.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { allows } from "../../src/grammar/matcher.ts";
import type { TokenBytes } from "../../src/text/token_bytes.ts";
import { EOS, fledglingBytes, fledglingVocabulary } from "./vocabulary.ts";

export const TOKENS: TokenBytes = fledglingBytes();
export const GRAMMARS: LocalGrammars = openGrammars(fledglingVocabulary());

/** The token of each byte. */
const BYTES: readonly number[] = Array.from(
  { length: 256 },
  (_, byte) => TOKENS.bytes.findIndex(({ length, 0: first }) => length === 1 && first === byte),
);

/** Whether the grammar accepts the whole text, byte by byte. */
export async function accepts(grammar: Grammar, text: string): Promise<boolean> {
  const constraint = await GRAMMARS.open(grammar, { ignoreEos: false });
  try {
    for (const byte of new TextEncoder().encode(text)) {
      const token = BYTES[byte] as number;
      if (!allows(constraint.mask, token)) return false;
      constraint.take(token);
    }
    return allows(constraint.mask, EOS);
  } finally {
    constraint.close();
  }
}
