import type { CodePoints } from "./code_points.ts";
import { checkPlaces, MAX_RULES, wideness } from "./size.ts";
import { GrammarError } from "./grammar.ts";

/**
 * Comments, texts, classes, counts, brackets, names with what defines them. A text or a class that is not closed ends
 * with its line: where it did not match, each of many would be looked for up to the end.
 */
const PARTS =
  /#[^\r\n]*|("(?:\\.|[^"\\\r\n])*"?)|(\[(?:\\.|[^\]\\\r\n])*\]?)|\{\s*(\d+)\s*(,\s*(\d*)\s*)?\}|([()])|([\w.-]+(?:\s*(::=))?)/gsu;

/**
 * Estimates the size of a user's EBNF, in which counted repetitions multiply what they repeat.
 *
 * @param setOf the characters of a class; undefined for one that is none.
 * @param maxWide see `maxWidePlaces`.
 * @throws GrammarError for more than can be compiled.
 */
export function checkEbnfSize(
  text: string,
  setOf: (written: string) => CodePoints | undefined,
  maxWide: number,
): void {
  let rules = 0;
  /** Sums of the open brackets. */
  const open = [{ places: 0, wide: 0 }];
  /** What a count behind it would repeat. */
  let last = { places: 0, wide: 0 };
  const add = (part: typeof last) => {
    const sum = open.at(-1) as typeof last;
    sum.places += part.places;
    sum.wide += part.wide;
    last = part;
  };
  for (
    const [whole, quoted, set, min, range, max, bracket, name, defines] of text.matchAll(PARTS)
  ) {
    if (quoted !== undefined) add({ places: whole.length, wide: 0 });
    else if (set !== undefined) add({ places: 1, wide: wideness(setOf(set) ?? []) });
    else if (min !== undefined) {
      const copies = Math.max(1, Number(min), range === undefined ? 0 : Number(max || 0));
      const part = last;
      add({ places: (copies - 1) * part.places, wide: (copies - 1) * part.wide });
      last = { places: copies * part.places, wide: copies * part.wide };
    } else if (bracket === "(") open.push({ places: 1, wide: 0 });
    else if (bracket === ")" && open.length > 1) add(open.pop() as typeof last);
    else if (defines !== undefined) rules++;
    else if (name !== undefined) add({ places: 1, wide: 0 });
  }
  if (rules > MAX_RULES) {
    throw new GrammarError(`it has ${rules} rules, of at most ${MAX_RULES}`);
  }
  checkPlaces({
    places: open.reduce((sum, { places }) => sum + places, 0),
    wide: open.reduce((sum, { wide }) => sum + wide, 0),
  }, maxWide);
}
