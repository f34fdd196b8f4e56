import { deepEqual, equal, ok } from "node:assert/strict";
import { callStream, type ToolPiece } from "../../src/serve/tools/call_stream.ts";
import { DEEPSEEK } from "../../src/serve/tools/deepseek.ts";
import { toolFamily } from "../../src/serve/tools/families.ts";
import type { ToolFamily } from "../../src/serve/tools/family.ts";
import { GLM } from "../../src/serve/tools/glm.ts";
import { HERMES } from "../../src/serve/tools/hermes.ts";
import { LFM2 } from "../../src/serve/tools/lfm2.ts";
import { LLAMA3 } from "../../src/serve/tools/llama3.ts";
import { MISTRAL } from "../../src/serve/tools/mistral.ts";
import { nativeForms, taggedSyntax } from "../../src/serve/tools/native_forms.ts";
import { excludesObjects } from "../../src/serve/tools/objects.ts";
import { SEED_OSS } from "../../src/serve/tools/seed_oss.ts";
import { wholeCalls } from "../../src/serve/tools/whole_calls.ts";
import { scanned } from "../scanned.ts";
import { readCalls } from "./read_calls.ts";

/** An output, and the text and the calls in it. */
type Case = readonly [output: string, text: string, calls: readonly [string, unknown][]];

const CASES: readonly (readonly [ToolFamily, readonly Case[]])[] = [
  [HERMES, [
    ["Hello.\n", "Hello.\n", []],
    ['<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', "", [["f", { a: 1 }]]],
    [
      'I look.\n\n<tool_call>\n{"name": "f", "arguments": {"a": "}\\"{"}}\n</tool_call>\n' +
      '<tool_call>\n{"arguments": {"b": [1, {"c": null}]}, "name": "g"}\n</tool_call>',
      "I look.",
      [["f", { a: '}"{' }], ["g", { b: [1, { c: null }] }]],
    ],
    ['<tool_call>{"name": "f"}</tool_call> Done.', "Done.", [["f", {}]]],
    // The arguments are a text, as some fine-tunes write them.
    ['<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>', "", [["f", { a: 1 }]]],
    // Control characters within strings.
    [
      '<tool_call>\n{"name": "f",\n\t"arguments": {\n"a\t": "b\r\n\tc\u0001\\\n\\\\\n"}}\n</tool_call>',
      "",
      [["f", { "a\t": "b\r\n\tc\u0001\n\\\n" }]],
    ],
    ['<tool_call>{"name": "f", "arguments": "{\\"a\\": \\"1\n2\\"}"}', "", [["f", { a: "1\n2" }]]],
    // What was returned of the arguments cannot be taken back.
    [
      '<tool_call>{"name": "f", "arguments": {"a": 1}, "parameters": {"b": 2}, "arguments": 3}</tool_call>',
      "",
      [["f", { a: 1 }]],
    ],
    // Text that is not a call stays text.
    ["<tool_call>soon</tool_call>", "<tool_call>soon", []],
    ["a <tool b", "a <tool b", []],
    // It is a call only if its arguments are an object.
    [
      '<tool_call>{"name": "f", "arguments": [1]}',
      '<tool_call>{"name": "f", "arguments": [1]}',
      [],
    ],
    [
      '<tool_call>{"name": "f", "arguments": "x"}',
      '<tool_call>{"name": "f", "arguments": "x"}',
      [],
    ],
    [
      '<tool_call>{"name": "f", "arguments": nul}',
      '<tool_call>{"name": "f", "arguments": nul}',
      [],
    ],
    ['<tool_call>{"name": "f", "arguments": null}</tool_call>', "", [["f", {}]]],
    // The last brace is missing, or there is another one.
    ['<tool_call>\n{"name": "f", "arguments": {"a": 1}\n</tool_call>.', ".", [["f", { a: 1 }]]],
    ['<tool_call>{"arguments": {}, "name": "f"</tool_call>', "", [["f", {}]]],
    ['<tool_call>\n{"name": "f", "arguments": {"a": 1}}}\n</tool_call>\n.', ".", [["f", { a: 1 }]]],
    ['<tool_call>{"name": "f"</tool_call>', '<tool_call>{"name": "f"</tool_call>', []],
    // The mark is there twice.
    ['<tool_call>\n<tool_call>\n{"name": "f"}\n</tool_call>', "", [["f", {}]]],
    ["<tool_call>\n<tool_callable>", "<tool_call>\n<tool_callable>", []],
    // A list.
    [
      '<tool_call>\n[{"name": "f", "arguments": {}},\n{"name": "g", "arguments": {"a": 1}}]\n</tool_call>',
      "",
      [["f", {}], ["g", { a: 1 }]],
    ],
    ['<tool_call>{"name": "f"}</tool_call>\n{"a": 1}', '{"a": 1}', [["f", {}]]],
    // A call that is cut off before its arguments is neither text nor a call.
    ['So: <tool_call>{"name": "f", "argu', "So:", []],
    ['<tool_call>{"id": 7, "name": "f", "arguments": {}}</tool_call>', "", [["f", {}]]],
  ]],
  [LLAMA3, [
    ['{"name": "f", "parameters": {"a": 1}}', "", [["f", { a: 1 }]]],
    ['<|python_tag|>{"name": "f", "parameters": {}}', "", [["f", {}]]],
    [
      '{"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}',
      "",
      [["f", { a: 1 }], ["g", {}]],
    ],
    ['{"answer": 42}', '{"answer": 42}', []],
    ['{"name": "Ann", "age', '{"name": "Ann", "age', []],
    ['{"name": "Alice", "age": 30}', '{"name": "Alice", "age": 30}', []],
    ['\n{"name": "Alice", "age": 30}', '\n{"name": "Alice", "age": 30}', []],
    ['<|python_tag|>{"name": "f"}', "", [["f", {}]]],
    [
      'The JSON is {"name": "f", "parameters": {}}',
      'The JSON is {"name": "f", "parameters": {}}',
      [],
    ],
  ]],
  [MISTRAL, [
    ['[TOOL_CALLS][{"name": "f", "arguments": {"a": [1, 2]}}]', "", [["f", { a: [1, 2] }]]],
    [
      '[TOOL_CALLS] [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"b": "]"}}]',
      "",
      [["f", {}], ["g", { b: "]" }]],
    ],
    ['Text[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}', "Text", [["f", { a: 1 }], ["g", {}]]],
    ['[TOOL_CALLS]f[ARGS]{"a": "1\n\t2"}', "", [["f", { a: "1\n\t2" }]]],
    ["[TOOL_CALLS]f[ARGS][TOOL_CALLS]g[ARGS] {}", "", [["f", {}], ["g", {}]]],
    ["[TOOL", "[TOOL", []],
  ]],
  [DEEPSEEK, [
    [
      "Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n" +
      '{"a": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n' +
      "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "Yes.",
      [["f", { a: 1 }], ["g", {}]],
    ],
    [
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "x"}<｜tool▁call▁end｜>' +
      "<｜tool▁calls▁end｜>",
      "",
      [["f", { a: "x" }]],
    ],
  ]],
];

for (const [family, cases] of CASES) {
  Deno.test(`calls of ${family.name}: whole, letter by letter and cut in two anywhere`, () => {
    for (const [output, text, calls] of cases) {
      const expected = { text, calls };
      deepEqual(readCalls(family, [output]), expected, output);
      deepEqual(readCalls(family, [...output]), expected, output);
      for (let at = 1; at < output.length; at++) {
        deepEqual(readCalls(family, [output.slice(0, at), output.slice(at)]), expected, output);
      }
    }
  });
}

Deno.test("Llama 3: without a mark only an object that names a tool of the request is a call", () => {
  const tools = [{ name: "f" }];
  const of = (output: string) => {
    const read = readCalls(LLAMA3, [output], tools);
    deepEqual(readCalls(LLAMA3, [...output], tools), read, output);
    return read;
  };
  const call = '{"name": "f", "parameters": {"a": 1}}';
  deepEqual(of(call), { text: "", calls: [["f", { a: 1 }]] });
  deepEqual(of('{"type": "function", "name": "f"}'), { text: "", calls: [["f", {}]] });
  for (
    const answer of [
      '{"name": "Alice", "parameters": {"a": 1}}',
      '{"parameters": {"a": 1}, "name": "Alice"}',
      '{"name": "f", "age": 30}',
    ]
  ) {
    deepEqual(of(answer), { text: answer, calls: [] });
    deepEqual(of(`${call}; ${answer}`).calls, [["f", { a: 1 }]]);
  }
});

/** Outputs up to a place where a model may write much, and what it writes there. */
const LONG: readonly (readonly [string, ToolFamily, string, string])[] = [
  ["arguments in JSON", HERMES, '<tool_call>{"name": "f", "arguments": {"a": "', "x"],
  ["arguments in a text of JSON", HERMES, '<tool_call>{"name": "f", "arguments": "', "x"],
  ["arguments in Python", LFM2, '<|tool_call_start|>[f(a="', "x"],
  ["empty lines before a text", HERMES, "", "\n"],
  ["empty lines in a text", HERMES, "a", "\n"],
  ["empty lines before a call's arguments", GLM, "<tool_call>f<arg_key>a</arg_key>", "\n"],
  ["empty lines between arguments", SEED_OSS, "<seed:tool_call><function=f>", "\n"],
];

for (const [what, { format }, before, piece] of LONG) {
  Deno.test(`an output is split into calls in linear time: ${what}`, () => {
    const count = (pieces: number) =>
      scanned(() => {
        const stream = callStream(format);
        stream.push(before);
        for (let n = 0; n < pieces; n++) stream.push(piece);
        stream.end(true);
      });
    const [few, many] = [count(2000), count(4000)];
    ok(many < 2.5 * few, `${few}, then ${many} characters`);
  });
}

Deno.test("a call's name and arguments come before its end", () => {
  const stream = callStream(HERMES.format);
  const pieces = stream.push('<tool_call>{"name": "f", "arguments": {"long": "text');
  deepEqual(pieces, [
    { kind: "call", index: 0, name: "f" },
    { kind: "arguments", index: 0, text: '{"long": "text' },
  ]);
  deepEqual(stream.push(' more"}'), [{ kind: "arguments", index: 0, text: ' more"}' }]);
});

Deno.test("whole calls: pieces in one, without those that are cut or no object", () => {
  const of = (...pieces: ToolPiece[]) => {
    const whole = wholeCalls<ToolPiece>();
    return pieces.flatMap(whole);
  };
  const call = (index: number, name: string) => ({ kind: "call", index, name } as const);
  const args = (index: number, text: string) => ({ kind: "arguments", index, text } as const);
  const called = (index: number) => ({ kind: "called", index } as const);
  const text = { kind: "text", text: "Hm." } as const;
  deepEqual(of(text, call(0, "f"), args(0, '{"a"'), args(0, ": 1}"), called(0), call(1, "g")), [
    text,
    call(0, "f"),
    args(0, '{"a": 1}'),
    called(0),
  ]);
  const broken = { ...called(0), broken: true } as const;
  deepEqual(of(call(0, "f"), args(0, "{}"), broken), [{ kind: "text", text: "f{}" }]);
  deepEqual(of(call(0, "f"), args(0, "{'a': 1}"), called(0)), [{
    kind: "text",
    text: "f{'a': 1}",
  }]);
});

Deno.test("schemas that exclude objects are known", () => {
  const excluded: readonly unknown[] = [
    false,
    { type: "string" },
    { type: ["string", "null"] },
    { const: 1 },
    { enum: ["a", null] },
    { anyOf: [{ type: "string" }, { type: "array" }] },
    { oneOf: [{ type: "null" }] },
    { allOf: [{ type: "object" }, { type: "string" }] },
    { $ref: "#/$defs/a", $defs: { a: { type: "integer" } } },
  ];
  for (const schema of excluded) ok(excludesObjects(schema), JSON.stringify(schema));
  const allowed: readonly unknown[] = [
    undefined,
    true,
    {},
    { type: "object" },
    { type: ["object", "null"] },
    { properties: {} },
    { anyOf: [{ type: "string" }, { type: "object" }] },
    { enum: [{ a: 1 }, "b"] },
    { $ref: "#/$defs/a", $defs: { a: { type: "object" } } },
    { $ref: "#/$defs/b" },
    { $ref: "#/%zz" },
    { $ref: "#" },
  ];
  for (const schema of allowed) equal(excludesObjects(schema), false, JSON.stringify(schema));
});

/** References that lead to the same schemas in more ways than can be followed. */
const MAZES: readonly Record<string, unknown>[] = [
  { allOf: Array(20).fill({ $ref: "#" }) },
  {
    properties: { a: { $ref: "#/$defs/a0" } },
    $defs: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [
      `a${i}`,
      i === 7 ? { type: "string" } : { anyOf: Array(30).fill({ $ref: `#/$defs/a${i + 1}` }) },
    ])),
  },
];

const TAGGED = taggedSyntax(
  {
    name: { open: "<f=" },
    key: { open: "<", close: ">" },
    value: { open: "", close: "</p>" },
    end: "</f>",
  } as Parameters<typeof taggedSyntax>[0],
);

function syntaxOf(parameters: Record<string, unknown>) {
  const tool = { name: "f", parameters };
  const [form] = nativeForms([tool], TAGGED, () => ({ before: "", schema: {}, after: "" }));
  return form?.syntax;
}

Deno.test("schemas are looked at once, however many references lead to them", () => {
  for (const maze of MAZES) equal(excludesObjects(maze), false);
  for (const maze of MAZES) syntaxOf(maze);
});

Deno.test("a text that two keywords restrict, or one of too many arguments, is written in JSON", () => {
  const text = { type: "string" };
  deepEqual(syntaxOf({ properties: { a: { anyOf: [text] } } })?.texts, ["a"]);
  const wrong = [{ anyOf: [text], oneOf: [text] }, { const: "a", enum: ["a", "b"] }];
  for (const a of wrong) equal(syntaxOf({ properties: { a } }), undefined, JSON.stringify(a));
  const many = (count: number) => Array.from({ length: count }, (_, i) => [`a${i}`, text]);
  equal(syntaxOf({ properties: Object.fromEntries(many(100)) })?.texts.length, 100);
  equal(syntaxOf({ properties: Object.fromEntries(many(101)) }), undefined);
});

Deno.test("a family is known by the template; templates without tools get the generic one", () => {
  const of = (chatTemplate: string | undefined) => toolFamily({ chatTemplate }).name;
  equal(of("{{ tools }}<tool_call>"), "hermes");
  equal(of("{% if tools %}[TOOL_CALLS]"), "mistral");
  equal(of("{{ tools }}<｜tool▁calls▁begin｜>"), "deepseek");
  equal(of('{{ tools }}<|start_header_id|>"parameters"'), "llama3");
  equal(of("{{ tools }}"), "generic");
  equal(of("<tool_call>"), "generic");
  equal(of(undefined), "generic");
});

Deno.test("a forced call is read from what begins it and what the grammar writes", () => {
  const tools = [{ name: "f", parameters: { type: "object" } }, { name: "g" }];
  const templates = { hermes: "", llama3: "", mistral: "", deepseek: "```json" };
  for (const family of [HERMES, LLAMA3, MISTRAL, DEEPSEEK]) {
    for (const template of [templates[family.name as keyof typeof templates], "[ARGS]"]) {
      for (const some of [tools, tools.slice(0, 1)]) {
        const { begin, forms } = family.forced(some, template);
        equal(forms.length, some.length);
        const form = forms.at(-1);
        const output = `${begin}${form?.before}{"a": 1}${form?.after}`;
        const expected = { text: "", calls: [[some.at(-1)?.name, { a: 1 }]] };
        deepEqual(readCalls(family, [output]), expected, output);
      }
    }
  }
});
