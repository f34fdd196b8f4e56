import { ANY, both, type CodePoints, codePoints, except } from "./code_points.ts";
import { checkEbnfSize } from "./ebnf_size.ts";
import { GrammarError } from "./grammar.ts";
import { writtenSet } from "./rules.ts";

/** Comments, texts, and classes as they are, and as their inside; see ebnf_size.ts for those that are not closed. */
const PARTS = /#[^\r\n]*|"(?:\\.|[^"\\\r\n])*"?|\[(\^?)((?:\\.|[^\]\\\r\n])*)(\]?)/gsu;

const NAMED: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  f: "\f",
  v: "\v",
  a: "\x07",
  b: "\b",
  e: "\x1b",
  0: "\0",
};

/**
 * A user's EBNF with the classes that xgrammar 0.1.27 gets wrong written as bytes, see `writtenSet`.
 *
 * @param maxWide see `maxWidePlaces`.
 * @throws GrammarError for a class without a character, and for more than can be compiled.
 */
export function mendedEbnf(text: string, maxWide: number): string {
  checkEbnfSize(text, setOf, maxWide);
  return text.replaceAll(
    PARTS,
    (whole: string, negated?: string, inside?: string, end?: string) => {
      if (inside === undefined || end === "") return whole;
      const set = classOf(inside);
      // What is no class is left to the parser, which says where.
      if (set === undefined || (negated === "" && set.every(([, to]) => to < 0x80))) return whole;
      const meant = negated === "" ? both(set, ANY) : except(set);
      if (meant.length === 0) throw new GrammarError(`${whole} has no character`);
      return writtenSet(meant);
    },
  );
}

/** The characters of `[...]`; undefined for escapes that are not known. */
function setOf(written: string): CodePoints | undefined {
  const negated = written.startsWith("[^");
  const set = classOf(written.slice(negated ? 2 : 1, -1));
  return set && negated ? except(set) : set;
}

/** Undefined for escapes that are not known. */
function classOf(inside: string): CodePoints | undefined {
  const points: { readonly point: number | undefined; readonly dash: boolean }[] = inside
    .match(/\\x[0-9a-fA-F]{1,2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.|./gsu)
    ?.map((part) => ({ point: pointOf(part), dash: part === "-" })) ?? [];
  if (points.some(({ point }) => point === undefined)) return undefined;
  const ranges: [number, number][] = [];
  for (let i = 0; i < points.length; i++) {
    const from = points[i]?.point as number;
    const to = points[i + 1]?.dash ? points[i + 2]?.point : undefined;
    ranges.push([from, to ?? from]);
    if (to !== undefined) i += 2;
  }
  return ranges.some(([from, to]) => from > to) ? undefined : codePoints(ranges);
}

function pointOf(part: string): number | undefined {
  if (!part.startsWith("\\")) return part.codePointAt(0);
  if (/^\\[xuU]./.test(part)) return parseInt(part.slice(2), 16);
  const character = part.slice(1);
  if (/[A-Za-z0-9]/.test(character)) return NAMED[character]?.codePointAt(0);
  return character.codePointAt(0);
}
