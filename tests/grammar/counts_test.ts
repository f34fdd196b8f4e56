// Counted strings must give the same masks as a grammar that has a place for each character.
import assert from "node:assert/strict";
import { type Constraint, openConstraint } from "../../src/grammar/constraint.ts";
import { openGrammars } from "../../src/grammar/grammars.ts";
import { schemaRules } from "../../src/grammar/json/schema.ts";
import { type Matcher, openMatcher, tokensOf } from "../../src/grammar/matcher.ts";
import { openPositions, type Position } from "../../src/grammar/positions.ts";
import {
  ebnf,
  type Expression,
  productive,
  rule,
  type Rules,
} from "../../src/grammar/rules/rules.ts";
import { openXGrammar } from "../../src/grammar/xgrammar.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { drawFrom, randomSchema } from "./random.ts";

const PIECES = [
  ...[
    '"',
    '", "',
    '": "',
    '{"',
    '"}',
    "a",
    "bc",
    " ",
    "é",
    "中",
    "😀",
    "\\",
    "\\n",
    '\\"',
    "1",
    "]",
  ],
  ...["[", ", ", "true", "null", 'a": ', "{"],
];

/** All bytes, and tokens that begin and end strings in every way. */
const BYTES: readonly Uint8Array[] = (() => {
  const texts = new Set<string>();
  for (let i = 0; texts.size < 900; i++) {
    const pieces = Array.from(
      { length: 2 + i % 3 },
      (_, k) => PIECES[hash32(i, k, 5) % PIECES.length],
    );
    texts.add(pieces.join(""));
  }
  const whole = [...texts].map((text) => new TextEncoder().encode(text));
  // Halves of characters.
  const cut = whole.slice(0, 100).map((text) => text.subarray(0, text.length - 1));
  return [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...whole,
    ...cut.filter(({ length }) => length > 0),
    new Uint8Array(),
  ];
})();
const EOS = BYTES.length - 1;
const OF = { bytes: BYTES, eosTokenIds: [EOS], ignoreEos: false };

const counted = openGrammars({
  tokens: () => ({ bytes: BYTES, stripsSpace: false }),
  vocabSize: BYTES.length,
  eosTokenIds: [EOS],
}, { from: { max: Infinity, wide: 0, tokens: 0 } });
const xgrammar = await openXGrammar();
const compiler = xgrammar.attempt((binding) =>
  new binding.GrammarCompiler(
    new binding.TokenizerInfo(
      binding.vecStringFromJSArray(BYTES),
      "RAW",
      BYTES.length,
      binding.vecIntFromJSArray([EOS]),
      false,
    ),
    1,
    false,
  )
);

/** The rules with counted strings written out. */
function writtenOut(rules: Rules): Rules {
  const within = (of: Expression): Expression => {
    switch (of.kind) {
      case "sequence":
      case "choice":
        return { ...of, parts: of.parts.map(within) };
      case "repeat":
        return { ...of, part: within(of.part) };
      case "counted string": {
        const any = rules.get(of.of);
        assert.ok(any?.kind === "sequence");
        const { min, max } = of;
        if (max !== undefined && max < min) assert.fail("nothing");
        const parts = any.parts.map((part) =>
          part.kind === "repeat" ? { ...part, min, max } : part
        );
        return { kind: "sequence", parts };
      }
      default:
        return of;
    }
  };
  return new Map([...rules].map(([name, body]) => [name, within(body)]));
}

function openWrittenOut(schema: unknown): { matcher: Matcher; constraint: Constraint } {
  const text = ebnf(writtenOut(productive(schemaRules(schema)) ?? assert.fail()));
  const compiled = xgrammar.attempt(({ Grammar }) =>
    compiler.CompileGrammar(Grammar.FromEBNF(text, "root"))
  );
  const matcher = openMatcher(xgrammar, compiled, BYTES.length);
  return { matcher, constraint: openConstraint(matcher, OF) };
}

/** Tests a token byte by byte, because xgrammar's masks sometimes lack one (`"}"}` after `{"a": ` of a circle). */
function takes(matcher: Matcher, token: number): boolean {
  const bytes = [...BYTES[token] as Uint8Array];
  const refused = bytes.findIndex((byte) => !matcher.accept(byte));
  matcher.rollback(refused < 0 ? bytes.length : refused);
  return refused < 0;
}

/** Walks both grammars along the same tokens. Returns how many masks were compared. */
async function compare(schema: unknown, seed: number): Promise<number> {
  const ours = await counted.open({ kind: "json schema", schema }, { ignoreEos: false });
  const { matcher, constraint: theirs } = openWrittenOut(schema);
  let at = 0;
  const walked: string[] = [];
  for (; at < 25; at++) {
    const shown = () => `${JSON.stringify(schema)} after ${JSON.stringify(walked)}`;
    const [mine, other] = [ours, theirs].map(({ mask }) => tokensOf(mask, Infinity) ?? []);
    const differ = new Set(mine).symmetricDifference(new Set(other));
    for (const token of differ) {
      const text = JSON.stringify(new TextDecoder().decode(BYTES[token]));
      assert.equal(mine?.includes(token), takes(matcher, token), `${text} ${shown()}`);
    }
    const token = mine?.[hash32(seed, at, 9) % mine.length];
    if (token === undefined || token === EOS || mine?.length === 0) break;
    walked.push(new TextDecoder().decode(BYTES[token]));
    ours.take(token);
    theirs.take(token);
  }
  ours.close();
  theirs.close();
  return at;
}

const SCHEMAS: readonly unknown[] = [
  { type: "string", maxLength: 0 },
  { type: "string", minLength: 1, maxLength: 1 },
  { type: "string", minLength: 3 },
  { type: "string", minLength: 2, maxLength: 4 },
  { type: "array", items: { type: "string", minLength: 1, maxLength: 2 } },
  { anyOf: [{ type: "string", maxLength: 2 }, { type: "string", minLength: 5, maxLength: 6 }] },
  { anyOf: [{ type: "string", maxLength: 2 }, { enum: ["abcbcbc", 1] }] },
  { anyOf: [{ type: "string", minLength: 4 }, { type: "string", pattern: "(a|bc){0,2}" }] },
  {
    type: "object",
    properties: { a: { type: "string", maxLength: 3 }, "é": { type: "string", minLength: 2 } },
    additionalProperties: { type: "array", items: { type: "string", maxLength: 1 } },
  },
  { type: ["object", "string"], maxLength: 5, properties: { a: { $ref: "#" } } },
];

for (const schema of SCHEMAS) {
  Deno.test(`counted: ${JSON.stringify(schema)}`, async () => {
    let compared = 0;
    for (let seed = 0; seed < 12; seed++) compared += await compare(schema, seed);
    assert.ok(compared > 12);
  });
}

Deno.test("counted: random schemas", async () => {
  for (let seed = 0; seed < 25; seed++) {
    const schema = randomSchema(drawFrom(900 + seed));
    await compare({ type: "array", items: schema, maxItems: 3 }, seed);
  }
});

Deno.test("counted: schemas with other bounds are compiled once", async () => {
  const open = (maxLength: number) =>
    counted.open({ kind: "json schema", schema: { type: "string", maxLength } }, {
      ignoreEos: false,
    });
  const constraints = await Promise.all([2, 3].map(open));
  const quoted = BYTES.findIndex((text) => new TextDecoder().decode(text) === "bc");
  for (const constraint of constraints) constraint.take(0x22);
  for (const constraint of constraints) constraint.take(0x61);
  const allowed = constraints.map(({ mask }) => tokensOf(mask, Infinity)?.includes(quoted));
  assert.deepEqual(quoted >= 0 ? allowed : [false, true], [false, true]);
  for (const constraint of constraints) constraint.close();
});

Deno.test("positions are dropped where they are too many, and those of an output go on", () => {
  const schema = {
    anyOf: [
      { type: "array", items: { $ref: "#" } },
      { type: "string", pattern: "a{20,5000}b?" },
      { type: "string", minLength: 3 },
    ],
  };
  const rules = productive(schemaRules(schema));
  assert.ok(rules);
  const all = openPositions(rules, rule("root"));
  const few = openPositions(rules, rule("root"), 500);
  let [expected, position] = [all.start, few.start];
  const string = `"${"a".repeat(1500)}b"`;
  const pools = new Set();
  for (const byte of new TextEncoder().encode(`[[${string}, ${string}], ${string}, [`)) {
    expected = all.behind(expected, byte);
    position = few.behind(few.current(position), byte);
    pools.add(position.pool);
    assert.ok(position.pool.kept < 600, `${position.pool.kept}`);
    const shown = ({ places, ended }: Position) => [
      ended,
      places.map(({ of, at, part }) => [of, at, part]),
    ];
    assert.deepEqual(shown(position), shown(expected));
  }
  assert.ok(pools.size > 10);
  assert.equal(few.start.next.filter((next) => next && next.pool !== few.start.pool).length, 0);
});
