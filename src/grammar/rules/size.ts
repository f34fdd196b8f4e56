import type { CodePoints } from "./code_points.ts";
import { GrammarError } from "./grammar.ts";
import type { Expression, Rules } from "./rules.ts";

/**
 * What xgrammar gets. It cannot be stopped, and what it does for each rule takes time that grows with
 * their number: 4,000 rules take some seconds.
 */
export const MOST_RULES = 4000;

/** Places at which a token may begin, each with a table that is made when it is compiled. */
export const MOST_PLACES = 100_000;

/**
 * Of these, places at which about any token may begin: with 150,000 tokens each takes some 50 ms. A
 * place where only some characters may follow counts as its part of the printable ASCII characters.
 */
export const MOST_WIDE_PLACES = 400;

/** Characters of a grammar in EBNF. */
export const MOST_TEXT = 4_000_000;

interface Size {
  readonly places: number;
  readonly wide: number;
}

/** @throws GrammarError for rules that would take too long to compile. */
export function checkSize(rules: Rules): void {
  if (rules.size > MOST_RULES) {
    throw new GrammarError(`it comes to ${rules.size} rules, of at most ${MOST_RULES}`);
  }
  const sizes = [...rules.values()].map(sizeOf);
  const total = (of: (size: Size) => number) => sizes.reduce((sum, size) => sum + of(size), 0);
  checkPlaces(total(({ places }) => places), total(({ wide }) => wide));
}

/** @throws GrammarError for more than can be compiled. */
export function checkPlaces(places: number, wide: number): void {
  const over = wide > MOST_WIDE_PLACES
    ? `${amount(wide)} characters that are chosen one by one, of at most ${MOST_WIDE_PLACES}`
    : places > MOST_PLACES
    ? `${amount(places)} characters, of at most ${MOST_PLACES}`
    : undefined;
  if (over === undefined) return;
  throw new GrammarError(`written out, its repetitions come to ${over}; smaller bounds take less`);
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
      const { least, most = least } = expression;
      const { places, wide } = sizeOf(expression.part);
      const copies = Math.max(1, least, most);
      return { places: copies * places, wide: copies * wide };
    }
    case "rule":
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
