/**
 * Counts characters in place of xgrammar. For a rule that counts characters, xgrammar would need a place for
 * each character and a table of all tokens for each place. So the compiled grammar allows counted strings, and
 * counted repeats of characters (rules/relaxed.ts), of any length. This file tracks the position of an output
 * in the original rules, with its characters counted, and removes the tokens that the rules do not allow from
 * the masks. The result is exact: the possible texts are those of the rules.
 *
 * Tokens that consist only of characters counted at a position (positions.ts) are decided by their number of
 * characters, others byte by byte.
 */
import { tokensOf } from "./matcher.ts";
import { INSIDE, openPositions, type Position } from "./positions.ts";
import type { CodePoints } from "./rules/code_points.ts";
import { type Expression, rule, type Rules } from "./rules/rules.ts";
import { STRING, type TokenClasses } from "./token_classes.ts";

/** Follows outputs of one grammar. */
export interface Counter {
  readonly start: Position;
  /** @throws GrammarError where the rules are too ambiguous to follow. */
  after(position: Position, text: Uint8Array): Position;
  /** The mask without the tokens that no text of the rules has at the position. */
  restricted(mask: Uint32Array, position: Position): Uint32Array;
}

/**
 * @param rules each must have a text, as `productive` ensures.
 * @param of.few in masks of at most so many tokens, each token is tried by itself.
 */
export function openCounter(
  rules: Rules,
  { texts, starts, eosTokenIds, addUpTo }: TokenClasses,
  { stripsSpace, few }: { readonly stripsSpace: boolean; readonly few: number },
): Counter {
  const root = rule("root");
  const { start, current, behind } = openPositions(
    rules,
    stripsSpace ? { kind: "sequence", parts: [{ kind: "text", text: " " }, root] } : root,
  );

  function after(position: Position, text: Uint8Array): Position {
    let at = current(position);
    for (const byte of text) at = behind(at, byte);
    return at;
  }

  function isPossible(position: Position, token: number): boolean {
    let at = position;
    const end = starts[token + 1] as number;
    for (let i = starts[token] as number; i < end; i++) {
      if (at.places.length === 0) return false;
      at = behind(at, texts[i] as number);
    }
    return at.places.length > 0 || at.ended;
  }

  /** Tokens that consist only of characters which a repeat or string at this position still allows so many of. */
  function surelyPossible(position: Position, words: number): Uint32Array {
    const max = new Map<CodePoints | typeof STRING, number>();
    const may = (of: CodePoints | typeof STRING, count: number) =>
      max.set(of, Math.max(count, max.get(of) ?? 0));
    for (const { of, at, part, next } of position.places) {
      if (of.kind === "counted string" && part === INSIDE) may(STRING, (of.max ?? Infinity) - at);
      if (of.kind !== "one of" || at > 0 || next?.of.kind !== "repeat") continue;
      // `next.at` counts the character that this place reads.
      if (isOneOf(of, next.of.part)) may(of.set, (next.of.max ?? Infinity) - next.at + 1);
    }
    const made = new Uint32Array(words);
    for (const [of, count] of max) if (count > 0) addUpTo(made, of, count);
    return made;
  }

  return {
    start,
    after,
    restricted(mask, at) {
      const position = current(at);
      const known = tokensOf(mask, few) ? undefined : surelyPossible(position, mask.length);
      const rest = known ? mask.map((word, at) => word & ~(known[at] as number)) : mask;
      const ends = position.ended ? [] : eosTokenIds;
      return without(mask, [
        ...ends,
        ...(tokensOf(rest, Infinity) ?? []).filter((token) =>
          !eosTokenIds.includes(token) && !isPossible(position, token)
        ),
      ]);
    },
  };
}

function without(mask: Uint32Array, tokens: readonly number[]): Uint32Array {
  const made = mask.slice();
  for (const token of tokens) {
    made[token >>> 5] = (made[token >>> 5] as number) & ~(1 << (token & 31));
  }
  return made;
}

/** Whether the part is `of` itself, or a choice with `of` among its alternatives. */
function isOneOf(of: Expression, part: Expression): boolean {
  switch (part.kind) {
    case "choice":
      return part.parts.some((each) => isOneOf(of, each));
    case "sequence":
      return part.parts.length === 1 && isOneOf(of, part.parts[0] as Expression);
    default:
      return part === of;
  }
}
