import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { checkGrammar } from "../../src/grammar/grammars.ts";
import { formRules } from "../../src/grammar/json/forms.ts";
import type { ArgumentSyntax, CallForm, Grammar } from "../../src/grammar/rules/grammar.ts";
import { productive } from "../../src/grammar/rules/rules.ts";
import { checkSize, maxWidePlaces } from "../../src/grammar/rules/size.ts";
import { accepts } from "./accepts.ts";

/** Two schemas in which the same name means different things. */
const FORMS: Grammar = {
  kind: "forms",
  forms: [
    {
      before: '{"name": "f", "arguments": ',
      schema: {
        $defs: { it: { type: "integer" } },
        type: "object",
        properties: { a: { $ref: "#/$defs/it" } },
        required: ["a"],
      },
      after: "}",
    },
    {
      before: "g[ARGS]",
      schema: { $defs: { it: { const: { a: "x" } } }, $ref: "#/$defs/it" },
      after: "",
    },
  ],
};

Deno.test("forms of calls: texts around JSON that is valid for each one's own schema", async () => {
  const good = ['{"name": "f", "arguments": {"a": 1}}', 'g[ARGS]{"a":"x"}'];
  const bad = [
    '{"name": "f", "arguments": {"a": "x"}}',
    "g[ARGS]1",
    'g[ARGS]{"a": 1}',
    '"x"',
    '{"a": 1}',
  ];
  for (const text of good) assert.ok(await accepts(FORMS, text), text);
  for (const text of bad) assert.ok(!await accepts(FORMS, text), text);
});

Deno.test("a form whose schema cannot be used is told", async () => {
  const forms = [{ before: "", schema: { type: "no" }, after: "" }];
  await assert.rejects(checkGrammar({ kind: "forms", forms }), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /^Cannot constrain the output: JSON schema/);
    return true;
  });
});

Deno.test("a hundred tools with texts, lists and numbers are not too much for a vocabulary of 150,000", () => {
  const form = (i: number, syntax?: ArgumentSyntax): CallForm => ({
    before: `f${i}(`,
    schema: {
      type: "object",
      properties: {
        [`text${i}`]: { type: "string" },
        list: { type: "array", items: { type: "string" } },
        count: { type: "integer" },
        [`part${i}`]: { type: "number" },
        any: { type: "object" },
      },
    },
    after: ")",
    ...syntax ? { syntax: { ...syntax, texts: [`text${i}`] } } : {},
  });
  const tags: ArgumentSyntax = {
    between: "",
    key: ["<", ">"],
    text: ["", "</parameter>"],
    value: ["", "</parameter>"],
    ends: ["</parameter>", "</function>\n"],
    texts: [],
  };
  const some = (syntax?: ArgumentSyntax) => Array.from({ length: 100 }, (_, i) => form(i, syntax));
  for (const forms of [some(), some(tags), [...some().slice(50), ...some(tags).slice(0, 50)]]) {
    const rules = productive(formRules(forms));
    assert.ok(rules);
    checkSize(rules, maxWidePlaces(150_000));
  }
});

const call = (schema: unknown): Grammar => ({
  kind: "forms",
  forms: [{ before: "f(", schema, after: ")" }, { before: "g(", schema: {}, after: ")" }],
});

const NESTED = { type: ["object", "null"], properties: { next: { $ref: "#" } } };

const OBJECTS: readonly (readonly [schema: unknown, good: string[], bad: string[]])[] = [
  [{}, ["{}", '{"a": [1, null]}'], ['"prose"', "1", "[]", "null"]],
  [true, ["{}"], ['"prose"', "true"]],
  [{ description: "anything" }, ["{}"], ['"prose"']],
  [{ anyOf: [{ type: "string" }, { type: "object", properties: { a: { const: 1 } } }] }, [
    "{}",
    '{"a": 1}',
  ], ['"prose"', '{"a": 2}']],
  [{ type: ["object", "null"], properties: { a: { type: "null" } } }, ["{}", '{"a": null}'], [
    "null",
  ]],
  [NESTED, ["{}", '{"next": null}', '{"next": {"next": null}}'], ["null"]],
  [{ $ref: "#/$defs/a", $defs: { a: { type: ["string", "object"] } } }, ["{}"], ['"prose"']],
  [{ enum: ["a", { a: 1 }, 3] }, ['{"a":1}'], ['"a"', "3"]],
  [{ oneOf: [{ type: "integer" }, { type: "object" }] }, ["{}"], ["1"]],
];

for (const [schema, good, bad] of OBJECTS) {
  Deno.test(`arguments of a call are an object: ${JSON.stringify(schema)}`, async () => {
    for (const text of good) assert.ok(await accepts(call(schema), `f(${text})`), text);
    for (const text of bad) assert.ok(!await accepts(call(schema), `f(${text})`), text);
  });
}

Deno.test("arguments that cannot be an object, also of one function among others", async () => {
  for (
    const schema of [{ type: "string" }, { const: 1 }, false, {
      anyOf: [{ type: "string" }, { type: "null" }],
    }, { type: ["array", "null"] }]
  ) {
    await assert.rejects(checkGrammar(call(schema)), {
      name: "UsageError",
      message:
        "Cannot constrain the output: JSON schema of the arguments of the call that begins " +
        'with "f(": no object satisfies it',
    });
  }
});

Deno.test("a text that two schemas of oneOf would take is refused", async () => {
  const around = ["", "\n"] as const;
  const syntax = { between: "", key: around, text: around, value: around, ends: [], texts: ["a"] };
  const of = (a: unknown): Grammar => ({
    kind: "forms",
    forms: [{ before: "", after: "", schema: { properties: { a } }, syntax }],
  });
  await checkGrammar(of({ oneOf: [{ const: "x" }, { const: "y" }] }));
  await assert.rejects(checkGrammar(of({ oneOf: [{ type: "string" }, { const: "x" }] })), {
    name: "UsageError",
    message: /"oneOf" is supported where its schemas exclude each other/,
  });
});
