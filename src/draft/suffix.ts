import { type Corpus, openCorpus } from "./corpus.ts";
import { expectedTokens, type Guess, type Guesser, MIN_REACHED, NO_GUESS } from "./guess.ts";
import { ROOT, SuffixAutomaton } from "./suffix_automaton.ts";

/** Longest context that is looked up. */
const DEEPEST = 32;
/** Tokens of finished requests that are remembered: about 16 MB. */
const REMEMBERED = 131_072;
/** Tokens added while the device works on one group; takes less than a millisecond. */
const MEANWHILE = 512;

/**
 * Work to do while the device is busy. Each call does a part: how many tokens it took in, and whether it was the last.
 */
type Chore = () => { readonly tokens: number; readonly done: boolean };

/** A suffix of a text that the automaton contains: its state and its length in tokens. */
export interface Match {
  readonly state: number;
  readonly length: number;
}

/**
 * SuffixDecoding (Oliaro et al. 2024, arXiv 2411.04975): the text's last tokens are looked up in the
 * text itself and in the answers of earlier requests, at every match length. Each match gives a guess from
 * the most frequent continuation, and the guess with the most tokens expected to be accepted is returned.
 */
export function suffixGuesser(corpus: Corpus = openCorpus(REMEMBERED, DEEPEST)): Guesser {
  const chores = new Set<Chore>();
  return {
    open(promptIds) {
      const own = new SuffixAutomaton(DEEPEST);
      const others = new Map<SuffixAutomaton, { match: Match; seen: number }>();
      const takeIn = (ids: readonly number[], to: number) => {
        while (own.tokens < to) own.push(ids[own.tokens] as number);
      };
      const prepare = () => {
        const before = own.tokens;
        takeIn(promptIds, Math.min(promptIds.length, before + MEANWHILE));
        return { tokens: own.tokens - before, done: own.tokens >= promptIds.length };
      };
      chores.add(prepare);
      /** The longest suffix of the text that occurs in the answers of earlier requests. */
      const elsewhere = (automaton: SuffixAutomaton, ids: readonly number[]): Match => {
        const known = others.get(automaton);
        let match = known?.match ?? { state: ROOT, length: 0 };
        const from = known?.seen ?? Math.max(0, ids.length - DEEPEST);
        for (let at = from; at < ids.length; at++) {
          match = followed(automaton, match, ids[at] as number);
        }
        others.set(automaton, { match, seen: ids.length });
        return match;
      };
      return {
        guess(ids, most) {
          chores.delete(prepare);
          takeIn(ids, ids.length);
          for (const gone of others.keys()) {
            if (!corpus.automata.includes(gone)) others.delete(gone);
          }
          const state = own.repeated();
          const length = Math.min(own.lengthOf(state), DEEPEST);
          return best([
            suffixGuess(own, { state, length }, most),
            ...corpus.automata.map((each) => suffixGuess(each, elsewhere(each, ids), most)),
          ]);
        },
        close(ids) {
          chores.delete(prepare);
          chores.add(remembering(corpus, ids.slice(promptIds.length)));
        },
      };
    },
    meanwhile() {
      // Several short answers may end in one group: as many as are taken in as fast as one long one.
      for (let left = MEANWHILE; left > 0;) {
        const [chore] = chores;
        if (chore === undefined) return;
        const { tokens, done } = chore();
        left -= Math.max(1, tokens);
        if (done) chores.delete(chore);
      }
    },
  };
}

/** Returns a chore that adds a finished answer to the corpus part by part. */
function remembering(corpus: Corpus, text: readonly number[]): Chore {
  const kept = text.slice(-corpus.longest);
  let automaton: SuffixAutomaton | undefined;
  let taken = 0;
  return () => {
    automaton ??= corpus.begin(kept.length);
    const part = kept.slice(taken, taken += MEANWHILE);
    for (const token of part) automaton.push(token);
    return { tokens: part.length, done: taken >= kept.length };
  };
}

/** The longest match after the text has grown by one token. */
function followed(automaton: SuffixAutomaton, { state, length }: Match, token: number): Match {
  // The automaton may have split the state since the match was made.
  let at = automaton.shortened(state, length);
  let matched = length;
  let next = automaton.next(at, token);
  while (next < 0 && at !== ROOT) {
    at = automaton.link(at);
    matched = automaton.lengthOf(at);
    next = automaton.next(at, token);
  }
  if (next < 0) return { state: ROOT, length: 0 };
  const longer = Math.min(matched + 1, automaton.deepest);
  return { state: automaton.shortened(next, longer), length: longer };
}

/** The best guess of the match and all shorter ones. */
function suffixGuess(automaton: SuffixAutomaton, match: Match, most: number): Guess {
  const guesses: Guess[] = [];
  let state = automaton.shortened(match.state, match.length);
  let { length } = match;
  while (state !== ROOT) {
    guesses.push(likeliest(automaton, { state, length }, most));
    state = automaton.link(state);
    length = automaton.lengthOf(state);
  }
  return best(guesses);
}

/** The guess with the most tokens expected, of equals the first. */
function best(guesses: readonly Guess[]): Guess {
  let [found, most] = [NO_GUESS, 0];
  for (const guess of guesses) {
    const { sum } = expectedTokens(guess.chances);
    if (sum > most) [found, most] = [guess, sum];
  }
  return found;
}

/**
 * Follows the most frequent next token at each step. If it followed c of the n occurrences of a match of l tokens
 * that any token followed, it is taken to be right with probability c / (n + 1 / l): after a short match something
 * new is likelier.
 */
function likeliest(automaton: SuffixAutomaton, match: Match, most: number): Guess {
  const tokens: number[] = [];
  const chances: number[] = [];
  let { state, length } = match;
  for (let reached = 1; tokens.length < most;) {
    // Where nothing follows a match (the end of a text) a shorter match may continue, as in a periodic text.
    while (state !== ROOT && automaton.continued(state) === 0) {
      state = automaton.link(state);
      length = automaton.lengthOf(state);
    }
    if (state === ROOT) break;
    const token = automaton.follower(state);
    const next = automaton.next(state, token);
    const chance = automaton.occurrences(next) / (automaton.continued(state) + 1 / length);
    reached *= chance;
    if (reached < MIN_REACHED) break;
    tokens.push(token);
    chances.push(chance);
    length = Math.min(length + 1, automaton.deepest);
    state = automaton.shortened(next, length);
  }
  return { tokens, chances };
}
