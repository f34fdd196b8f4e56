import assert from "node:assert/strict";
import { parseBatchLine } from "../../src/cli/generate/batch_line.ts";
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { requestReport } from "../../src/cli/generate/repeat.ts";
import { UsageError } from "../../src/errors.ts";
import type { Grammar } from "../../src/grammar/rules/grammar.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { fakeEngine, fakeIo } from "./fake.ts";

async function run(flags: readonly string[]) {
  const engine = fakeEngine();
  const invocation = parseArguments(["generate", ...flags, "hello"]);
  assert.ok(invocation.command === "generate");
  const io = fakeIo({ stdin: "" });
  await runGenerate(invocation, { open: engine.open, io });
  return engine;
}

async function withFile<T>(text: string, action: (file: string) => Promise<T>): Promise<T> {
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, text);
    return await action(file);
  } finally {
    await Deno.remove(file);
  }
}

Deno.test("an answer that a grammar covers begins at once: reasoning is closed", async () => {
  assert.deepEqual((await run(["--json-schema", "object"])).begins, [""]);
  assert.deepEqual((await run([])).begins, [undefined]);
});

Deno.test("flags: schema as text or file, object, grammar, regular expression", async () => {
  const schema = { type: "string", maxLength: 3 };
  const text = JSON.stringify(schema);
  const grammars = [
    await run(["--json-schema", ` ${text}`]),
    await withFile(text, (file) => run(["--json-schema", file])),
    await run(["--json-schema", "object"]),
    await withFile('root ::= "a"', (file) => run(["--grammar", file])),
    await run(["--regex", "a+"]),
    await run([]),
  ].map((
    { requests: [request], opened: [options] },
  ) => [request?.grammar, options?.limits?.constrained]);
  assert.deepEqual(grammars, [
    [{ kind: "json schema", schema }, true],
    [{ kind: "json schema", schema }, true],
    [{ kind: "json object" }, true],
    [{ kind: "ebnf", text: 'root ::= "a"' }, true],
    [{ kind: "regex", pattern: "a+" }, true],
    [undefined, undefined],
  ]);
});

const MISTAKES: readonly (readonly [flags: readonly string[], message: string])[] = [
  [["--json-schema", "nowhere.json"], 'Cannot open "nowhere.json": no such file'],
  [["--grammar", "nowhere.ebnf"], 'Cannot open "nowhere.ebnf": no such file'],
  [
    ["--json-schema", '{"not": {}}'],
    'Cannot constrain the output: JSON schema, at "#": "not" is not supported',
  ],
  [
    ["--regex", "a("],
    'Cannot constrain the output: regular expression "a(": Unterminated group',
  ],
];

Deno.test("mistakes are told before a model is loaded", async () => {
  for (const [flags, message] of MISTAKES) {
    const engine = fakeEngine();
    const invocation = parseArguments(["generate", ...flags, "hello"]);
    assert.ok(invocation.command === "generate");
    const io = fakeIo({ stdin: "" });
    await assert.rejects(runGenerate(invocation, { open: engine.open, io }), (error) => {
      assert.ok(error instanceof UsageError);
      assert.equal(error.message, message);
      return true;
    });
    assert.deepEqual(engine.opened, []);
  }
  await assert.rejects(
    run(["--json-schema", '{"a"']),
    /^UsageError: Cannot use the JSON schema: it is not JSON/,
  );
  await withFile("{", async (file) => {
    await assert.rejects(
      run(["--json-schema", file]),
      /Cannot use the JSON schema ".*": it is not JSON/,
    );
  });
});

Deno.test("--json: a request's grammar as the batch line that asks for the same", () => {
  const grammars: readonly Grammar[] = [
    { kind: "json schema", schema: { type: "null" } },
    { kind: "json object" },
    { kind: "ebnf", text: 'root ::= "a"' },
    { kind: "regex", pattern: "a+" },
  ];
  const rest = { promptIds: [1], sampling: GREEDY, maxTokens: 5, stop: [], ignoreEos: false };
  for (const grammar of grammars) {
    const line = requestReport({ raw: "hello" }, { ...rest, grammar });
    assert.deepEqual(parseBatchLine(JSON.stringify(line), 1).grammar, grammar);
  }
});
