import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { checkGrammar } from "../../src/grammar/grammars.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { accepts } from "./accepts.ts";

/** The same name stands for different things in the two. */
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
      schema: { $defs: { it: { type: "string" } }, $ref: "#/$defs/it" },
      after: "",
    },
  ],
};

Deno.test("forms of calls: texts around JSON that is valid for each one's own schema", async () => {
  const good = ['{"name": "f", "arguments": {"a": 1}}', 'g[ARGS]"x"'];
  const bad = ['{"name": "f", "arguments": {"a": "x"}}', "g[ARGS]1", "g[ARGS]", '"x"', '{"a": 1}'];
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
