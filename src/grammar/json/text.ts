/** Texts of JSON: one line, as Python's json.dumps writes it. */
import { both, charactersOf, type CodePoints, except } from "../rules/code_points.ts";
import { choice, type Expression, oneOf, repeat, rule, sequence, text } from "../rules/rules.ts";

export const COMMA: Expression = text(", ");

/** Characters that a string contains as they are. */
export const PLAIN: CodePoints = except([[0, 0x1f], [0x22, 0x22], [0x5c, 0x5c]]);

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

const HEX: CodePoints = charactersOf("0123456789abcdefABCDEF");

/** One character of the set within a string. */
export function stringCharacter(set: CodePoints): Expression {
  const escapes = both(set, except(PLAIN)).flatMap(([from, to]) =>
    Array.from({ length: to - from + 1 }, (_, i) => String.fromCodePoint(from + i))
  ).map((character) => text(SHORT[character] ?? JSON.stringify(character).slice(1, -1)));
  const plain = both(set, PLAIN);
  return choice(...plain.length > 0 ? [oneOf(plain)] : [], ...escapes);
}

/**
 * A character of a string. It is inlined wherever it is used: within a rule xgrammar decides a token from its
 * tables, but at the end of a rule it has to try the token, and each character would be the end of a rule.
 */
const CHARACTERS = [oneOf(PLAIN), sequence(text("\\"), oneOf(charactersOf('"/\\bfnrt')))];

/** Four-digit escapes that are not half of a surrogate pair. They contain no choice, see CHARACTERS. */
const UNICODE_ESCAPES = [
  sequence(text("\\u"), oneOf(both(HEX, except(charactersOf("dD")))), ...Array(3).fill(oneOf(HEX))),
  sequence(
    ...[text("\\u"), oneOf(charactersOf("dD")), oneOf(charactersOf("01234567"))],
    ...[oneOf(HEX), oneOf(HEX)],
  ),
];

/** All escape sequences of a string. */
export const ESCAPES: readonly Expression[] = [...CHARACTERS.slice(1), ...UNICODE_ESCAPES];

/** The rule of strings without escapes of four digits. */
const PLAIN_STRING = "plain_string";

/** A string of so many characters, of which an escape is one. */
export function stringOf(min: number, max: number | undefined): Expression {
  return { kind: "counted string", of: PLAIN_STRING, min, max };
}

export function quoted(inside: Expression): Expression {
  return sequence(text('"'), inside, text('"'));
}

/** Entries with commas between them. */
export function list(entry: Expression, min: number, max?: number): Expression {
  if (max === 0) return text("");
  const more = repeat(
    sequence(COMMA, entry),
    Math.max(0, min - 1),
    max === undefined ? undefined : max - 1,
  );
  const some = sequence(entry, more);
  return min > 0 ? some : choice(some, text(""));
}

/**
 * A key that is none of the names. It contains no escapes, so it cannot spell a name in another way.
 *
 * @param add names a rule.
 */
export function otherKey(
  names: readonly string[],
  add: (body: Expression) => Expression,
): Expression {
  const rest = add(sequence(repeat(oneOf(PLAIN), 0), text('"')));
  const after = (ends: readonly string[]): Expression => {
    const firsts = new Map<string, string[]>();
    for (const end of ends) {
      const [first] = end;
      if (first !== undefined) {
        firsts.getOrInsertComputed(first, () => []).push(end.slice(first.length));
      }
    }
    const others = except([...firsts.keys()].map((key): [number, number] => {
      const point = key.codePointAt(0) as number;
      return [point, point];
    }));
    return choice(
      ...ends.includes("") ? [] : [text('"')],
      sequence(oneOf(both(others, PLAIN)), rest),
      ...[...firsts].map(([first, ends]) => sequence(text(first), add(after(ends)))),
    );
  };
  const plain = names.filter((name) => JSON.stringify(name) === `"${name}"`);
  return sequence(text('"'), add(after(plain)));
}

/** What every grammar of JSON may refer to. */
export function jsonRules(): [name: string, body: Expression][] {
  const [value, string] = [rule("value"), rule("string")];
  const member = sequence(string, text(": "), value);
  return [
    ["string", quoted(repeat(choice(...CHARACTERS, ...UNICODE_ESCAPES), 0))],
    [PLAIN_STRING, quoted(repeat(choice(...CHARACTERS), 0))],
    [
      "value",
      choice(
        ...[rule("object"), rule("array"), string, rule("number")],
        ...["true", "false", "null"].map(text),
      ),
    ],
    ["object", sequence(text("{"), list(member, 0), text("}"))],
    ["array", sequence(text("["), list(value, 0), text("]"))],
  ];
}
