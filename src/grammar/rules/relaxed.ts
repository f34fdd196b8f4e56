/** Rules for xgrammar in which large counted repeats of characters have any length. */
import { wideness } from "./size.ts";
import { type Expression, repeat, type Rules } from "./rules.ts";

type Repeat = Extract<Expression, { kind: "repeat" }>;

/** Where counting beside the compiled grammar pays. */
export interface CountedFrom {
  /** Repeats with a smaller upper bound stay with xgrammar, whose own tables are faster for them. */
  readonly max: number;
  /** Places of any character, as rules/size.ts counts them, that the repeat would come to. */
  readonly wide: number;
  /** In masks of at most so many tokens each token is tried, without the tables of token_classes.ts. */
  readonly tokens: number;
}

export const COUNTED_FROM: CountedFrom = { max: 16, wide: 4, tokens: 2000 };

/**
 * Lower bound of a character's wideness, used for characters whose xgrammar tables cost little: a share of the
 * printable ASCII characters.
 */
const MIN_WIDENESS = 1 / 20;

/**
 * Nested repeats may be at several counts at once, at most the product of their bounds, and counts.ts follows each
 * as a place. If there could be more places than this, the repeat is left to xgrammar.
 */
const MAX_NESTED = 10_000;

/** The most copies of a relaxed repeat in one text; xgrammar takes long to follow more. */
const MAX_COPIES = 4;

/**
 * The rules with each such repeat relaxed to `*`, so they allow at least the texts of the original. Returns
 * `rules` itself if there is no such repeat.
 */
export function relaxed(rules: Rules, from: CountedFrom = COUNTED_FROM): Rules {
  let found = false;

  /** @param copies how often repeats around it write the expression out. */
  function within(expression: Expression, copies: number): Expression {
    switch (expression.kind) {
      case "sequence":
      case "choice":
        return { ...expression, parts: expression.parts.map((part) => within(part, copies)) };
      case "repeat": {
        const { part, min, max = min } = expression;
        if (isRelaxed(expression, copies, from)) {
          found = true;
          return repeat(part, 0);
        }
        return { ...expression, part: within(part, copies * Math.max(1, min, max)) };
      }
      default:
        return expression;
    }
  }

  const made = new Map([...rules].map(([name, body]) => [name, within(body, 1)]));
  return found ? made : rules;
}

function isRelaxed({ part, min, max = min }: Repeat, copies: number, from: CountedFrom) {
  const wide = widenessOf(part);
  if (wide === undefined || max < from.max) return false;
  if (copies * max * Math.max(wide, MIN_WIDENESS) < from.wide) return false;
  return copies === 1 || (copies <= MAX_COPIES && copies * max <= MAX_NESTED);
}

/** Wideness of a part that is one character, also if it can be written in another way; else undefined. */
function widenessOf(part: Expression): number | undefined {
  switch (part.kind) {
    case "one of":
      return wideness(part.set);
    case "text":
      return part.text === "" ? undefined : 0;
    case "sequence":
      return part.parts.length === 1 ? widenessOf(part.parts[0] as Expression) : undefined;
    case "choice":
      return part.parts.reduce<number | undefined>((sum, each) => {
        const wide = widenessOf(each);
        return sum === undefined || wide === undefined ? undefined : sum + wide;
      }, 0);
    default:
      return undefined;
  }
}
