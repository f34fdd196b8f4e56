// Any input given as a grammar either can be used or gives a one-line user error.
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../../src/errors.ts";
import { checkGrammar } from "../../src/grammar/grammars.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { GRAMMARS } from "./accepts.ts";
import { VOCAB_SIZE } from "./vocabulary.ts";

async function check(grammar: Grammar): Promise<void> {
  try {
    await checkGrammar(grammar);
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error));
    assert.ok(!error.message.includes("\n"), error.message);
  }
}

const KEYWORDS = [
  ...["type", "enum", "const", "properties", "required", "additionalProperties", "items"],
  ...["prefixItems", "minItems", "maxLength", "pattern", "format", "minimum", "exclusiveMaximum"],
  ...["anyOf", "oneOf", "allOf", "$ref", "$defs", "title"],
];

const schema = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<unknown>(
      "object",
      "string",
      "integer",
      "#",
      "#/properties/a",
      "a",
      1,
      -2.5,
      true,
    ),
    fc.constantFrom<unknown>(false, null, 1e300, [], ["a"], ["string", "null"]),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYWORDS, "a"), tie("value"), { maxKeys: 4 }),
  ),
})).value;

const pieces = (texts: readonly string[]) =>
  fc.array(fc.oneof(fc.constantFrom(...texts), fc.string({ unit: "grapheme", maxLength: 2 })), {
    maxLength: 12,
  }).map((list) => list.join(""));

const ebnf = pieces([
  "root ::= ",
  "a ::= ",
  "a",
  '"x"',
  "[a-z]",
  "[^é]",
  "|",
  "(",
  ")",
  "*",
  "{2,3}",
  "\n",
  "\\",
  "#",
]);
const regex = pieces([
  "a",
  "\\d",
  "[a-z]",
  "[^é]",
  "|",
  "(",
  ")",
  "*",
  "{2,3}",
  "^",
  "$",
  "\\",
  ".",
  "?",
]);

Deno.test("any JSON as a schema", async () => {
  await fc.assert(
    fc.asyncProperty(schema, (schema) => check({ kind: "json schema", schema })),
    { numRuns: 300 },
  );
});

Deno.test("any JSON value as a schema, with any text as a reference in it", async () => {
  const text = fc.string({ unit: "binary", maxLength: 8 });
  const anything = fc.oneof(
    fc.jsonValue({ noUnicodeString: false }),
    fc.record({ $ref: fc.oneof(text, text.map((rest) => `#/${rest}`)) }),
    fc.record({ required: fc.jsonValue(), anyOf: fc.array(fc.jsonValue()), items: fc.jsonValue() }),
  );
  await fc.assert(
    fc.asyncProperty(anything, (schema) => check({ kind: "json schema", schema })),
    { numRuns: 200 },
  );
});

Deno.test("a reference with a bad percent escape", async () => {
  for (const $ref of ["#/%zz", "#/$defs/%", "#/%ff"]) {
    await assert.rejects(checkGrammar({ kind: "json schema", schema: { $ref } }), {
      name: "UsageError",
      message:
        `Cannot constrain the output: JSON schema, at "#": "$ref" "${$ref}" has a "%" that ` +
        "begins no character",
    });
  }
  const schema = { $ref: "#/$defs/a%25%20~1b", $defs: { "a% /b": { const: 1 } } };
  await checkGrammar({ kind: "json schema", schema });
});

Deno.test("what the user wrote is shown in one line, and not at any length", async () => {
  const pattern = `\n\x1b[31m${"x".repeat(5000)}(`;
  await assert.rejects(checkGrammar({ kind: "regex", pattern }), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /^Cannot .*" \\u001b\[31mx{300,}\.\.\.$/);
    assert.ok(error.message.length < 500);
    return true;
  });
});

Deno.test("what is thrown by accident is the user's error too", async () => {
  // An object that cannot become a property's name, which causes a TypeError inside.
  const odd = { toString: 1 };
  const part = { type: "object", properties: {}, required: [odd] };
  await assert.rejects(
    checkGrammar({ kind: "json schema", schema: { oneOf: [part, { ...part }] } }),
    UsageError,
  );
});

Deno.test("any text as EBNF or as a regular expression", async () => {
  await fc.assert(fc.asyncProperty(ebnf, (text) => check({ kind: "ebnf", text })), { numRuns: 60 });
  await fc.assert(fc.asyncProperty(regex, (pattern) => check({ kind: "regex", pattern })), {
    numRuns: 200,
  });
});

Deno.test("whatever is opened and followed, by tokens that it may not allow", async () => {
  const grammar = fc.oneof(
    schema.map((schema): Grammar => ({ kind: "json schema", schema })),
    schema.map((schema): Grammar => ({
      kind: "forms",
      forms: [{ before: "f(", schema, after: "" }],
    })),
    ebnf.map((text): Grammar => ({ kind: "ebnf", text })),
    regex.map((pattern): Grammar => ({ kind: "regex", pattern })),
  );
  const tokens = fc.array(fc.nat({ max: VOCAB_SIZE - 1 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(grammar, tokens, fc.boolean(), async (grammar, tokens, ignoreEos) => {
      try {
        const constraint = await GRAMMARS.open(grammar, { ignoreEos });
        const parents = tokens.map((_, i) => i);
        constraint.fill({ tokens, parents }, new Uint32Array(7 * VOCAB_SIZE / 32));
        constraint.pruned({ tokens, parents });
        constraint.forced(5);
        for (const token of tokens) constraint.take(token);
      } catch (error) {
        assert.ok(error instanceof UsageError, String(error));
      }
    }),
    { numRuns: 100 },
  );
});

Deno.test("a grammar that is nested too deep", async () => {
  const deep = `root ::= ${"(".repeat(30_000)}"a"${")".repeat(30_000)}`;
  await assert.rejects(checkGrammar({ kind: "ebnf", text: deep }), UsageError);
});
