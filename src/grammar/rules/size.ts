import type { CodePoints } from "./code_points.ts";
import { GrammarError } from "./grammar.ts";
import type { Expression, Rules } from "./rules.ts";

/**
 * The most rules that xgrammar is given. It cannot be stopped, and its time for each rule grows with the number
 * of rules: 4,000 rules take some seconds.
 */
export const MAX_RULES = 4000;

/** Places at which a token may begin, each with a table that is made when it is compiled. */
const MAX_PLACES = 100_000;

/**
 * The most tokens that are examined for those tables. A place where any character may follow examines about the
 * whole vocabulary, which takes 50 ms and more with 150,000 tokens. A place where only some characters may
 * follow counts as their share of the printable ASCII characters.
 */
const MAX_LOOKS = 40_000_000;

/** The most such places, even if the vocabulary is small or not known. */
const MAX_WIDE = 1000;

/** How many places of any character a grammar may have. */
export function maxWidePlaces(vocabSize: number): number {
  return Math.min(MAX_WIDE, Math.floor(MAX_LOOKS / vocabSize));
}

/** Characters of a grammar in EBNF. */
export const MAX_TEXT = 4_000_000;

/** Places of a part, see above. */
export interface Size {
  readonly places: number;
  readonly wide: number;
}

/**
 * @param maxWide see `maxWidePlaces`.
 * @throws GrammarError for rules that would take too long to compile.
 */
export function checkSize(rules: Rules, maxWide: number): void {
  if (rules.size > MAX_RULES) {
    throw new GrammarError(`it comes to ${rules.size} rules, of at most ${MAX_RULES}`);
  }
  const sizes = [...rules.values()].map(sizeOf);
  const total = (of: (size: Size) => number) => sizes.reduce((sum, size) => sum + of(size), 0);
  checkPlaces({ places: total(({ places }) => places), wide: total(({ wide }) => wide) }, maxWide);
}

/** @throws GrammarError for more than can be compiled. */
export function checkPlaces({ places, wide }: Size, maxWide: number): void {
  const over = wide > maxWide
    ? `${amount(wide)} characters that are chosen one by one, of at most ${maxWide} with the ` +
      "model's vocabulary"
    : places > MAX_PLACES
    ? `${amount(places)} characters, of at most ${MAX_PLACES}`
    : undefined;
  if (over === undefined) return;
  throw new GrammarError(
    `written out, it comes to ${over}; smaller bounds or fewer values take less`,
  );
}

function amount(count: number): string {
  return count < 1e9 ? String(Math.round(count)) : "more than a billion";
}

function sizeOf(expression: Expression): Size {
  switch (expression.kind) {
    case "text":
      return { places: expression.text.length, wide: 0 };
    case "one of":
      return { places: 1, wide: wideness(expression.set) };
    case "sequence":
    case "choice": {
      const parts = expression.parts.map(sizeOf);
      return {
        places: parts.reduce((sum, { places }) => sum + places, 1),
        wide: parts.reduce((sum, { wide }) => sum + wide, 0),
      };
    }
    case "repeat": {
      const { min, max = min } = expression;
      const { places, wide } = sizeOf(expression.part);
      const copies = Math.max(1, min, max);
      return { places: copies * places, wide: copies * wide };
    }
    case "rule":
    case "counted string":
      return { places: 1, wide: 0 };
  }
}

/** The part of the printable ASCII characters that are in the set. */
export function wideness(set: CodePoints): number {
  const printable = set.reduce(
    (sum, [from, to]) => sum + Math.max(0, Math.min(to, 0x7e) - Math.max(from, 0x20) + 1),
    0,
  );
  return printable / 95;
}
