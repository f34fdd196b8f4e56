// A grammar that is too large is refused before it is compiled, and the error names the limit.
import assert from "node:assert/strict";
import { checkGrammar, openGrammars } from "../../src/grammar/grammars.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { schemaRules } from "../../src/grammar/json/schema.ts";
import { timeLimited } from "../../src/grammar/rules/time_limit.ts";
import { accepts } from "./accepts.ts";

const regex = (pattern: string): Grammar => ({ kind: "regex", pattern });
const ebnf = (text: string): Grammar => ({ kind: "ebnf", text });
const json = (schema: unknown): Grammar => ({ kind: "json schema", schema });

function optional(count: number): Grammar {
  const entries = Array.from({ length: count }, (_, i) => [`property_${i}`, { type: "string" }]);
  return json({ type: "object", properties: Object.fromEntries(entries) });
}

/** Schemas in which every level refers twice to the level above. */
function doubled(levels: number): Grammar {
  const $defs: Record<string, unknown> = { a0: { type: "string" } };
  for (let i = 1; i <= levels; i++) {
    const part = { $ref: `#/$defs/a${i - 1}`, type: ["string", "array"], [`minLength`]: 0 };
    $defs[`a${i}`] = { anyOf: [{ allOf: [part] }, { allOf: [part, { maxLength: i }] }] };
  }
  return json({ $defs, allOf: [{ $ref: `#/$defs/a${levels}` }] });
}

/** A schema that is merged with another once for each reference to it. */
const merged = (schema: unknown, count = 20_000): Grammar =>
  json({
    $defs: { a: schema },
    anyOf: Array(count).fill({ $ref: "#/$defs/a" }),
    type: ["object", "string"],
  });

/** A call with a text as its argument. */
const textCall = (schema: Record<string, unknown>): Grammar => {
  const around = ["", "\n"] as const;
  const syntax = { between: "", key: around, text: around, value: around, ends: [], texts: ["a"] };
  return { kind: "forms", forms: [{ before: "", after: "", schema, syntax }] };
};

/** Texts that are read ten times as often at each level. */
const TEXTS: Grammar = textCall({
  properties: { a: { $ref: "#/$defs/a7" } },
  $defs: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [
    `a${i}`,
    i === 0 ? { type: "string" } : { anyOf: Array(10).fill({ $ref: `#/$defs/a${i - 1}` }) },
  ])),
});

const REFUSED: readonly (readonly [name: string, Grammar, why: RegExp])[] = [
  ["nested counts", regex("((a{1000}){1000}){1000}"), /it comes to \d+ characters/],
  ["nested counts in EBNF", ebnf('root ::= (("a"{1000}){1000}){1000}'), /comes to .* characters/],
  ["wide classes", regex("([^x]-){0,5000}"), /comes to \d+ characters that are chosen one by one/],
  ["a wide class in EBNF", ebnf("root ::= [^x]{5000}"), /that are chosen one by one/],
  ["properties", optional(3000), /comes to more than 4000 rules/],
  ["rules", ebnf(Array.from({ length: 5000 }, (_, i) => `r${i} ::= "a"`).join("\n")), /5000 rules/],
  ["schemas", json({ prefixItems: Array(60_000).fill({}) }), /more than \d+ schemas/],
  ["texts of a call", TEXTS, /more than \d+ schemas/],
  ["values", merged({ enum: Array.from({ length: 9999 }, (_, i) => `${i}`) }), /\d+ characters/],
  ["keys", merged({ properties: { ["x".repeat(99_999)]: {} } }), /more than \d+ characters/],
  ["pattern", json({ type: "string", pattern: ".".repeat(90_000) }), /10000 characters/],
  ["bounds", json({ type: "number", minimum: 1e-300 }), /50 digits behind the point/],
  ["items", json({ type: "array", items: { const: "x".repeat(999) }, minItems: 1e9 }), /billion/],
];

for (const [name, grammar, why] of REFUSED) {
  Deno.test(`refused before it is compiled: ${name}`, async () => {
    await assert.rejects(checkGrammar(grammar), { name: "UsageError", message: why });
  });
}

/** Grammars for a vocabulary of the 256 bytes and empty tokens. */
function paddedTo(vocabSize: number): ReturnType<typeof openGrammars> {
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  const padded = Array.from({ length: vocabSize }, (_, i) => bytes[i] ?? new Uint8Array());
  const tokens = () => ({ bytes: padded, stripsSpace: false });
  return openGrammars({ tokens, vocabSize, eosTokenIds: [256] });
}

Deno.test("a schema that takes too long to convert is refused: no other thread can stop it", () => {
  // Each value, schema or list of properties is compared with, or copied into, all others.
  const count = 40_000;
  const list = Array.from({ length: count }, (_, i) => i);
  const slow = [
    { allOf: [{ enum: list }, { enum: list.map((value) => value + count) }] },
    { oneOf: list.map((value) => ({ const: value })) },
    { oneOf: [{ enum: list }, { enum: list.map((value) => value + count) }] },
    { allOf: list.map((value) => ({ properties: { [`a${value}`]: true } })) },
  ];
  for (const schema of slow) {
    const message = "its grammar takes too long to convert to rules";
    assert.throws(() => timeLimited(() => schemaRules(schema), 50), { message });
  }
});

Deno.test("EBNF with a hundred thousand brackets that are not closed is read once", async () => {
  const text = `root ::= ${"[".repeat(900_000)}`;
  await assert.rejects(checkGrammar(ebnf(text)), /Unterminated character class/);
});

Deno.test("the larger the vocabulary, the fewer characters are chosen one by one", async () => {
  const large = paddedTo(100_000);
  await checkGrammar(regex("([^x]-){500}"));
  await assert.rejects(large.open(regex("([^x]-){500}"), { ignoreEos: false }), {
    name: "UsageError",
    message: /of at most 400 with the model's vocabulary/,
  });
  const schema = { type: "array", items: { type: "string", maxLength: 9999 }, maxItems: 999 };
  (await large.open(json(schema), { ignoreEos: false })).close();
});

Deno.test("numbers with exclusive bounds are not refused for a large vocabulary", async () => {
  const large = paddedTo(262_144);
  const price = { type: "number", exclusiveMinimum: 0 };
  const share = { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 };
  for (const [number, count] of [[price, 8], [share, 4]] as const) {
    const entries = Array.from({ length: count }, (_, i) => [`number_${i}`, number]);
    const properties = Object.fromEntries(entries);
    const grammar = json({ type: "object", properties, required: Object.keys(properties) });
    (await large.open(grammar, { ignoreEos: false })).close();
  }
});

Deno.test("what people use is not refused", async () => {
  for (
    const grammar of [
      optional(1000),
      doubled(24),
      regex("\\d{1,300}"),
      json({ type: "array", items: { type: "number" }, maxItems: 1000 }),
      ebnf('root ::= ("a" [0-9]{1,3} # [^x]{9999}\n){1,50} "{9999}"'),
      ...["email", "uri", "date-time", "hostname"].map((format) =>
        json({ type: "string", format })
      ),
    ]
  ) await checkGrammar(grammar);
});

Deno.test("optional and required members: exactly the lists in their order, with one comma between", async () => {
  const names = ["a", "b", "c", "d"];
  for (const required of [[], ["b"], ["a", "d"], ["d"]]) {
    for (const more of [false, { const: 0 }]) {
      const properties = Object.fromEntries(names.map((name) => [name, { const: 1 }]));
      const grammar = json({ type: "object", properties, required, additionalProperties: more });
      for (let bits = 0; bits < 32; bits++) {
        const there = [...names, "x"].filter((_, i) => bits >> i & 1);
        const text = `{${there.map((name) => `"${name}": ${name === "x" ? 0 : 1}`).join(", ")}}`;
        const fits = required.every((name) => there.includes(name)) &&
          (more !== false || !there.includes("x"));
        assert.equal(await accepts(grammar, text), fits, `${text} ${required} ${more}`);
      }
    }
  }
  const two = json({ type: "object", properties: { a: { const: 1 }, b: { const: 1 } } });
  for (const text of ['{, "a": 1}', '{"a": 1, }', '{"b": 1, "a": 1}', '{"a": 1, , "b": 1}']) {
    assert.ok(!await accepts(two, text), text);
  }
});
