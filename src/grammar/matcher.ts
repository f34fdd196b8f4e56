import type { CompiledGrammar, XGrammar } from "./xgrammar.ts";

/** Where an output is in its grammar. All of it throws a GrammarError where xgrammar fails. */
export interface Matcher {
  /** Goes on by a token; false, and nothing has changed, where the grammar does not allow it. */
  accept(token: number): boolean;
  /** Goes back by so many tokens, at most those accepted. */
  rollback(count: number): void;
  /**
   * The tokens that may follow, u32 [ceil(vocabSize / 32)]: bit t % 32 of word t / 32 is 1 where token
   * t may. Those that end the output are among them where the grammar may end.
   */
  mask(): Uint32Array;
  close(): void;
}

/** @param vocabSize of the target. */
export function openMatcher(
  { binding, attempt }: XGrammar,
  compiled: CompiledGrammar,
  vocabSize: number,
): Matcher {
  const inner = new binding.GrammarMatcher(compiled, undefined, false, -1);
  const words = Math.ceil(vocabSize / 32);
  /** Bits of the last word that are tokens; the others may be anything. */
  const last = vocabSize % 32 === 0 ? -1 : 2 ** (vocabSize % 32) - 1;
  return {
    accept: (token) => attempt(() => inner.AcceptToken(token, false)),
    rollback: (count) => attempt(() => inner.Rollback(count)),
    mask: () =>
      attempt(() => {
        const vector = inner.GetNextTokenBitmask(vocabSize);
        const mask = new Uint32Array(binding.vecIntToView(vector));
        vector.delete();
        mask[words - 1] = (mask[words - 1] as number) & last;
        return mask;
      }),
    close: () => attempt(() => inner.delete()),
  };
}

export function allows(mask: Uint32Array, token: number): boolean {
  return (((mask[token >>> 5] ?? 0) >>> (token & 31)) & 1) === 1;
}

/** The tokens of a mask, rising; undefined where there are more than `max`. */
export function tokensOf(mask: Uint32Array, max: number): number[] | undefined {
  const tokens: number[] = [];
  for (const [at, word] of mask.entries()) {
    for (let left = word; left !== 0; left &= left - 1) {
      if (tokens.length === max) return undefined;
      tokens.push(at * 32 + 31 - Math.clz32(left & -left));
    }
  }
  return tokens;
}
