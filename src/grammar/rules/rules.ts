import { ANY, both, type CodePoints, utf8Ranges } from "./code_points.ts";
import { checkTime } from "./time_limit.ts";

/** What a rule stands for: a set of texts. */
export type Expression =
  | { readonly kind: "text"; readonly text: string }
  /** One character. */
  | { readonly kind: "one of"; readonly set: CodePoints }
  | { readonly kind: "sequence"; readonly parts: readonly Expression[] }
  | { readonly kind: "choice"; readonly parts: readonly Expression[] }
  /** `max` undefined: any number. */
  | {
    readonly kind: "repeat";
    readonly part: Expression;
    readonly min: number;
    readonly max: number | undefined;
  }
  | { readonly kind: "rule"; readonly name: string }
  /**
   * A string of JSON in quotes, of `min` to `max` characters of which an escape is one. The rule
   * `of` has the same strings of any length: that is what is compiled, and counts.ts counts.
   */
  | {
    readonly kind: "counted string";
    readonly of: string;
    readonly min: number;
    readonly max: number | undefined;
  };

/** The rules of a grammar by name; it begins with "root". */
export type Rules = ReadonlyMap<string, Expression>;

export const text = (text: string): Expression => ({ kind: "text", text });
/** Without the surrogates, which UTF-8 cannot encode. */
export const oneOf = (set: CodePoints): Expression => ({ kind: "one of", set: both(set, ANY) });
export const rule = (name: string): Expression => ({ kind: "rule", name });
export const sequence = (...parts: Expression[]): Expression => ({ kind: "sequence", parts });
export const choice = (...parts: Expression[]): Expression => ({ kind: "choice", parts });
/** No text at all. */
export const NOTHING: Expression = choice();

export function repeat(part: Expression, min: number, max?: number): Expression {
  return { kind: "repeat", part, min, max };
}

/** The rules in xgrammar's EBNF, with the sets as it understands them or otherwise. */
export function ebnf(rules: Rules, ofSet: (set: CodePoints) => string = writtenSet): string {
  return [...rules].map(([name, body]) => `${name} ::= ${written(body, ofSet)}\n`).join("");
}

function written(expression: Expression, ofSet: (set: CodePoints) => string): string {
  const inner = (part: Expression) => written(part, ofSet);
  switch (expression.kind) {
    case "text":
      return `"${[...expression.text].map(escaped).join("")}"`;
    case "one of":
      return ofSet(expression.set);
    case "sequence":
      if (expression.parts.length === 1) return inner(expression.parts[0] as Expression);
      return expression.parts.length === 0 ? '""' : `(${expression.parts.map(inner).join(" ")})`;
    case "choice":
      if (expression.parts.length === 1) return inner(expression.parts[0] as Expression);
      return `(${expression.parts.map(inner).join(" | ")})`;
    case "repeat": {
      const { part, min, max } = expression;
      if (max === 0) return '""';
      if (max === undefined && min === 0) {
        const one = inner(part);
        return one.startsWith("[") && one.endsWith("]") ? `${one}*` : `(${one})*`;
      }
      if (max === undefined) return `(${inner(part)}){${min},}`;
      // In one, {3,200} is beyond the memory of xgrammar 0.1.27.
      const rest = max > min ? `(${inner(part)}){0,${max - min}}` : "";
      return min === 0 ? rest : `(${inner(part)}){${min}} ${rest}`.trim();
    }
    case "rule":
      return expression.name;
    case "counted string":
      return expression.of;
  }
}

/** Letters and digits are themselves. */
function escaped(character: string): string {
  if (/^[\w ]$/.test(character)) return character;
  const point = character.codePointAt(0) as number;
  return `\\U${point.toString(16).padStart(8, "0")}`;
}

/**
 * Writes a set as the UTF-8 bytes of its characters. xgrammar 0.1.27 takes [é] as the byte E9 and [^é] as any
 * character, and its [^a] allows bytes that are not UTF-8. So a class of code points below 256 is used for
 * exactly one byte. A class with a single code point would become a text, unless the code point is listed twice.
 */
export function writtenSet(set: CodePoints): string {
  const ways = utf8Ranges(set).map((ranges) => ranges.map((range) => [range]));
  const ascii = ways.filter(({ length }) => length === 1).flatMap(([only]) => only ?? []);
  const all = [...ascii.length > 0 ? [[ascii]] : [], ...ways.filter(({ length }) => length > 1)];
  const written = all.map((places) => places.map(byteClass).join(" "));
  // xgrammar 0.1.27 repeats a bare class directly, but a class in parentheses as a rule that it enters each time.
  return all.length === 1 && all[0]?.length === 1 ? written.join() : `(${written.join(" | ")})`;
}

function byteClass(ranges: CodePoints): string {
  const byte = (value: number) => `\\x${value.toString(16).padStart(2, "0")}`;
  const parts = ranges.map(([from, to]) => `${byte(from)}${from === to ? "" : "-"}${byte(to)}`);
  return `[${parts.join("")}]`;
}

/** The rules without parts that have no finite text; undefined if "root" has none. */
export function productive(rules: Rules): Rules | undefined {
  const known = new Set<string>();
  const has = (expression: Expression): boolean => {
    switch (expression.kind) {
      case "text":
      case "counted string":
        return true;
      case "one of":
        return expression.set.length > 0;
      case "sequence":
        return expression.parts.every(has);
      case "choice":
        return expression.parts.some(has);
      case "repeat":
        return expression.min === 0 || has(expression.part);
      case "rule":
        return known.has(expression.name);
    }
  };
  let before = -1;
  while (known.size > before) {
    checkTime();
    before = known.size;
    for (const [name, body] of rules) if (has(body)) known.add(name);
  }
  const without = (expression: Expression): Expression => {
    switch (expression.kind) {
      case "sequence":
        return sequence(...expression.parts.map(without));
      case "choice":
        return choice(...expression.parts.filter(has).map(without));
      case "repeat":
        if (!has(expression.part)) return text("");
        return { ...expression, part: without(expression.part) };
      default:
        return expression;
    }
  };
  if (!known.has("root")) return undefined;
  return new Map(
    [...rules].filter(([name]) => known.has(name)).map(([name, body]) => [name, without(body)]),
  );
}

/** Whether any of the rules contains a counted string. */
export function countsStrings(rules: Rules): boolean {
  const has = (expression: Expression): boolean => {
    switch (expression.kind) {
      case "counted string":
        return true;
      case "sequence":
      case "choice":
        return expression.parts.some(has);
      case "repeat":
        return has(expression.part);
      default:
        return false;
    }
  };
  return [...rules.values()].some(has);
}
