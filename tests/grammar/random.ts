/** Random JSON schemas and grammars, from a seed. */
import { type CodePoints } from "../../src/grammar/rules/code_points.ts";
import {
  choice,
  type Expression,
  oneOf,
  repeat,
  rule,
  sequence,
  text,
} from "../../src/grammar/rules/rules.ts";
import { hash32 } from "../../src/speculate/noise.ts";

/** Draws whole numbers below `below`. */
export type Draw = (below: number) => number;

export function drawFrom(seed: number): Draw {
  let drawn = 0;
  return (below) => hash32(seed, drawn++, 17) % below;
}

const NAMES = ["name", "id", "tags", "a", "ab", "is ok", "größe", 'say "hi"', "a/b", "x\\y", "n"];
const WORDS = ["red", "green", "it's", 'a "b"', "ü", "line\nend", ""];
const PATTERNS = [
  "^[A-Z]{2}-\\d{1,4}$",
  "(ab|c)+",
  "[^a-z]{0,3}",
  "\\w+@\\w+\\.de",
  '"?.\\\\',
  "é*[à-ü]?",
];
const FORMATS = [
  "date",
  "time",
  "date-time",
  "duration",
  "uuid",
  "ipv4",
  "ipv6",
  "hostname",
  "email",
  "uri",
];

function pick<T>(draw: Draw, list: readonly T[]): T {
  return list[draw(list.length)] as T;
}

/** A schema of supported keywords, at most `depth` deep. */
export function randomSchema(draw: Draw, depth = 3): Record<string, unknown> {
  const leaf = depth <= 0;
  const kinds: readonly (() => Record<string, unknown>)[] = [
    () => randomString(draw),
    () => randomNumber(draw),
    () => ({ type: pick(draw, ["boolean", "null"]) }),
    () => ({ enum: Array.from({ length: 1 + draw(4) }, () => randomValue(draw)) }),
    () => ({ const: randomValue(draw) }),
    () => ({ type: ["string", "null"], description: "or nothing" }),
    () => randomObject(draw, depth - 1),
    () => randomObject(draw, depth - 1),
    () => randomArray(draw, depth - 1),
    () => ({ anyOf: several(draw, depth - 1) }),
    () => ({ oneOf: [randomString(draw), randomNumber(draw), randomArray(draw, depth - 1)] }),
    () => ({ allOf: [randomObject(draw, depth - 1, 0), randomObject(draw, depth - 1, 1)] }),
  ];
  return pick(draw, leaf ? kinds.slice(0, 6) : kinds)();
}

function several(draw: Draw, depth: number): Record<string, unknown>[] {
  return Array.from({ length: 1 + draw(3) }, () => randomSchema(draw, depth));
}

function randomValue(draw: Draw): unknown {
  return pick<() => unknown>(draw, [
    () => pick(draw, WORDS),
    () => draw(2000) - 1000,
    () => draw(1000) / 8,
    () => pick(draw, [true, false, null]),
    () => ({ [pick(draw, NAMES)]: [pick(draw, WORDS)] }),
  ])();
}

function randomString(draw: Draw): Record<string, unknown> {
  const least = draw(4);
  return {
    type: "string",
    ...pick<Record<string, unknown>>(draw, [
      {},
      { minLength: least },
      { minLength: least, maxLength: least + draw(8) },
      { maxLength: draw(10) },
      { pattern: pick(draw, PATTERNS) },
      { format: pick(draw, FORMATS) },
    ]),
  };
}

export function randomNumber(
  draw: Draw,
  type: string = pick(draw, ["number", "integer"]),
): Record<string, unknown> {
  const low = (draw(4000) - 2000) / pick(draw, [1, 1, 10, 8, 1000]);
  // At least one whole number is between them.
  const high = low + 2 + draw(300) / pick(draw, [1, 10]);
  return {
    type,
    ...pick<Record<string, unknown>>(draw, [
      {},
      { minimum: low },
      { maximum: high },
      { minimum: low, maximum: high },
      { exclusiveMinimum: low },
      { exclusiveMaximum: high },
      { exclusiveMinimum: low, exclusiveMaximum: high },
      { minimum: low, exclusiveMinimum: low },
    ]),
  };
}

/** A number without an exponent, often a short way from `near`. */
export function randomDecimal(draw: Draw, near: number): string {
  const places = draw(6);
  const value = near + (draw(2001) - 1000) / pick(draw, [1, 1000, 1e5]);
  return value.toFixed(places);
}

function randomObject(draw: Draw, depth: number, half?: number): Record<string, unknown> {
  const own = half === undefined ? NAMES : NAMES.filter((_, i) => i % 2 === half);
  const names = [...new Set(Array.from({ length: draw(4) }, () => pick(draw, own)))];
  const properties = Object.fromEntries(names.map((name) => [name, randomSchema(draw, depth)]));
  const required = names.filter(() => draw(2) === 0);
  if (half === undefined && draw(6) === 0) required.push("more");
  const additional = required.includes("more") || half !== undefined
    ? {}
    : pick<Record<string, unknown>>(draw, [
      {},
      { additionalProperties: false },
      { additionalProperties: true },
      { additionalProperties: randomSchema(draw, 0) },
    ]);
  return { type: "object", properties, required, ...additional };
}

function randomArray(draw: Draw, depth: number): Record<string, unknown> {
  const least = draw(3);
  const counts = pick<Record<string, unknown>>(draw, [
    {},
    { minItems: least },
    { maxItems: least },
    { minItems: least, maxItems: least + draw(3) },
  ]);
  const items = pick<() => Record<string, unknown>>(draw, [
    () => ({ items: randomSchema(draw, depth) }),
    () => ({ items: randomSchema(draw, depth) }),
    () => ({ prefixItems: several(draw, depth), items: randomSchema(draw, 0) }),
    () => ({ prefixItems: several(draw, depth) }),
  ]);
  return { type: "array", ...items(), ...counts };
}

/** A regular expression that has the same meaning in JavaScript and here. */
export function randomRegex(draw: Draw, depth = 3): string {
  const atoms = [
    "a",
    "b",
    "xyz",
    "\\d",
    "\\w",
    "[a-f]",
    "[^a-z\\s]",
    "é",
    "[à-ü]",
    "\\.",
    "\\u{1F600}",
  ];
  const inner = () => randomRegex(draw, depth - 1);
  if (depth <= 0) return pick(draw, atoms);
  return pick<() => string>(draw, [
    () => pick(draw, atoms),
    () => `${inner()}${inner()}`,
    () => `${inner()}${inner()}`,
    () => `(${inner()}|${inner()})`,
    () => `(?:${inner()})${pick(draw, ["?", "*", "+", "{2}", "{0,3}", "{1,2}", "{2,}"])}`,
  ])();
}

const SETS: readonly CodePoints[] = [
  [[0x61, 0x64]],
  [[0x30, 0x39], [0x41, 0x5a]],
  [[0xe4, 0xe4], [0x3b1, 0x3c9]],
  [[0x4e00, 0x9fff], [0x1f600, 0x1f64f]],
];

/** A grammar of some rules. The last rules are not recursive, so that a text can always end. */
export function randomRules(draw: Draw): Map<string, Expression> {
  const names = ["root", "a", "b", "c"];
  const of = (at: number, depth: number): Expression => {
    const inner = () => of(at, depth - 1);
    const below = names.slice(at + 1);
    return pick<() => Expression>(draw, [
      () => text(pick(draw, ["x", "yes", "no", '"', "ß", " "])),
      () => oneOf(pick(draw, SETS)),
      ...below.length > 0 ? [() => rule(pick(draw, below)), () => rule(pick(draw, below))] : [],
      ...depth <= 0 ? [] : [
        () => sequence(inner(), inner()),
        () => choice(inner(), inner()),
        () => repeat(inner(), draw(2), pick(draw, [2, 3, undefined])),
        // Recursion with something on both sides.
        () => choice(sequence(text("("), rule(names[at] as string), text(")")), inner()),
      ],
    ])();
  };
  return new Map(names.map((name, at) => [name, of(at, 3)]));
}
