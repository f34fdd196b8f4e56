import { SuffixAutomaton } from "./suffix_automaton.ts";

/** Token sequences of earlier requests, in bounded memory. */
export interface Corpus {
  /** Automata to look texts up in, the newer first. One that was removed does not come back. */
  readonly automata: readonly SuffixAutomaton[];
  /** Tokens of the longest text. */
  readonly longest: number;
  /** Returns the automaton for a text of this many tokens, until `begin` is called again. */
  begin(tokens: number): SuffixAutomaton;
}

/**
 * Two automata of half the tokens each. Tokens cannot be removed from an automaton, so when the newer one is
 * full, the older one is dropped and a new one is begun. At least the last quarter of `most` tokens is kept.
 *
 * @param most tokens.
 * @param deepest see SuffixAutomaton.
 */
export function openCorpus(most: number, deepest: number): Corpus {
  const half = Math.floor(most / 2);
  let automata = [new SuffixAutomaton(deepest)];
  return {
    longest: Math.floor(half / 2),
    get automata() {
      return automata;
    },
    begin(tokens) {
      let [newer] = automata as [SuffixAutomaton];
      if (newer.tokens + tokens > half) {
        newer = new SuffixAutomaton(deepest);
        automata = [newer, ...automata.slice(0, 1)];
      }
      newer.begin();
      return newer;
    },
  };
}
