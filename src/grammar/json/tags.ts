/** Values between tags: raw texts, which end at a tag, and JSON strings that contain no tag. */
import { both, charactersOf, type CodePoints, except } from "../rules/code_points.ts";
import { choice, type Expression, oneOf, repeat, sequence, text } from "../rules/rules.ts";
import { ESCAPES, PLAIN, quoted } from "./text.ts";

const OPEN = "<";
const OPENS: Expression = repeat(oneOf(charactersOf(OPEN)), 0);
/** Characters of a text: tabs and line ends, no other control characters. */
const TEXT: CodePoints = except([[0, 8], [0xb, 0xc], [0xe, 0x1f], [0x7f, 0x7f]]);
const ASCII: CodePoints = [[0, 0x7f]];
/** All other characters, split so that each part is a single pattern of byte ranges in UTF-8. */
const BEYOND: readonly CodePoints[] = [
  ...[[[0x80, 0x7ff]], [[0x800, 0xfff]], [[0x1000, 0xcfff]], [[0xd000, 0xd7ff]]] as const,
  ...[[[0xe000, 0xffff]], [[0x10000, 0x3ffff]], [[0x40000, 0xfffff]]] as const,
  [[0x100000, 0x10ffff]],
];

/**
 * Texts that contain none of the marks. Each mark begins with "<" and contains no other "<":
 *
 *     text ::= ([^<] | "<"* begun other)* "<"*
 *
 * where `begun` is a proper prefix of a mark and `other` a character that neither continues a mark nor is "<". This
 * excludes texts that end with a prefix longer than "<", or in which such a prefix is followed by "<" or a non-ASCII
 * character. Sequences contain no choice: it would become a rule, at whose end xgrammar tries every token.
 */
export function textWithout(marks: readonly string[]): Expression {
  const wrong = marks.find((mark) => mark.lastIndexOf(OPEN) !== 0 || mark.length < 2);
  if (wrong !== undefined) throw new Error(`"${wrong}" does not begin with its only "<"`);
  const begun = new Set(
    marks.flatMap((mark) =>
      Array.from({ length: mark.length - 1 }, (_, i) => mark.slice(0, i + 1))
    ),
  );
  const failed = [...begun].flatMap((begin) => {
    const next = marks.filter((mark) => mark.startsWith(begin)).map((mark) => mark[begin.length]);
    const other = both(both(TEXT, ASCII), except(charactersOf(`${OPEN}${next.join("")}`)));
    const sets = begin === OPEN ? [other, ...BEYOND] : [other];
    return sets.map((set) => sequence(OPENS, text(begin), oneOf(set)));
  });
  const plain = oneOf(marks.length === 0 ? TEXT : both(TEXT, except(charactersOf(OPEN))));
  return sequence(repeat(choice(plain, ...failed), 0), OPENS);
}

/** Strings of JSON in which no slash follows "<", unless it is escaped. */
export function stringWithoutTags(): Expression {
  const plain = (but: string) => oneOf(both(PLAIN, except(charactersOf(but))));
  const behind = [plain(`${OPEN}/`), ...ESCAPES].map((each) => sequence(OPENS, text(OPEN), each));
  return quoted(sequence(repeat(choice(plain(OPEN), ...ESCAPES, ...behind), 0), OPENS));
}
