import { deepEqual, equal } from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { callStream } from "../../src/serve/tools/call_stream.ts";
import type { ToolFamily } from "../../src/serve/tools/family.ts";
import type { Tool } from "../../src/serve/tools/tool.ts";
import { toolFamily } from "../../src/serve/tools/families.ts";
import { GEMMA4 } from "../../src/serve/tools/gemma4.ts";
import { GLIMMER } from "../../src/serve/tools/glimmer.ts";
import { GLM } from "../../src/serve/tools/glm.ts";
import { GRANITE } from "../../src/serve/tools/granite.ts";
import { HARMONY } from "../../src/serve/tools/harmony.ts";
import { HERMES } from "../../src/serve/tools/hermes.ts";
import { LFM2 } from "../../src/serve/tools/lfm2.ts";
import { MISTRAL } from "../../src/serve/tools/mistral.ts";
import { OLMO3 } from "../../src/serve/tools/olmo3.ts";
import { QWEN_CODER } from "../../src/serve/tools/qwen_coder.ts";
import { SEED_OSS } from "../../src/serve/tools/seed_oss.ts";
import { argumentTypes, jsonOfText } from "../../src/serve/tools/values.ts";
import { readCalls } from "./read_calls.ts";

/** An output, and the text and the calls in it. */
type Case = readonly [output: string, text: string, calls: readonly [string, unknown][]];

const WEATHER: Tool = {
  name: "get_weather",
  parameters: {
    type: "object",
    properties: {
      location: { type: "string" },
      days: { type: "integer" },
      wind: { type: "boolean" },
      of: { type: ["string", "null"] },
      at: { anyOf: [{ $ref: "#/$defs/point" }, { type: "null" }] },
      list: { type: "array" },
      any: { description: "of any type" },
    },
    $defs: { point: { type: "object" } },
  },
};
const TOOLS: readonly Tool[] = [WEATHER, { name: "read" }, { name: "f" }];

const qwen = (name: string, ...parameters: readonly (readonly [string, string])[]) =>
  `<tool_call>\n<function=${name}>\n` +
  parameters.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join("") +
  "</function>\n</tool_call>";
const glm = (name: string, ...parameters: readonly (readonly [string, string])[]) =>
  `<tool_call>${name}` +
  parameters.map(([key, value]) => `<arg_key>${key}</arg_key><arg_value>${value}</arg_value>`)
    .join("") +
  "</tool_call>";
const atem = (name: string, ...parameters: readonly (readonly [string, string])[]) =>
  `<atem:invoke name="${name}">\n` +
  parameters.map(([key, value]) => `<atem:parameter name="${key}">${value}</atem:parameter>\n`)
    .join("") +
  "</atem:invoke>\n";

const ALL_TYPES: readonly (readonly [string, string])[] = [
  ["location", "5"],
  ["days", "5"],
  ["wind", "True"],
  ["of", "null"],
  ["at", '{"x": [1, "a"]}'],
  ["list", "['a', None, (1, 2.50)]"],
  ["any", "5"],
  ["unknown", "5"],
];
const ALL_VALUES = {
  location: "5",
  days: 5,
  wind: true,
  of: null,
  at: { x: [1, "a"] },
  list: ["a", null, [1, 2.5]],
  any: 5,
  unknown: "5",
};

const CASES: readonly (readonly [ToolFamily, readonly Case[]])[] = [
  [QWEN_CODER, [
    ["Hello.\n", "Hello.\n", []],
    [
      `I look.\n\n${qwen("get_weather", ["location", "San Francisco"], ["days", "3"])}\n` +
      qwen("f"),
      "I look.",
      [["get_weather", { location: "San Francisco", days: 3 }], ["f", {}]],
    ],
    [qwen("get_weather", ...ALL_TYPES), "", [["get_weather", ALL_VALUES]]],
    // Values keep their inner lines, quotes and tags; one line end at each side is the tags'.
    [
      qwen("f", ["code", '\nif a < "b":\n\treturn </p> \\ \n'], ["empty", ""]),
      "",
      [["f", { code: '\nif a < "b":\n\treturn </p> \\ \n', empty: "" }]],
    ],
    ["<tool_call>\n<function=f>\n<parameter=a>x</parameter>\n</function>", "", [["f", { a: "x" }]]],
    ["<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>", "", [["f", {
      a: "x",
    }]]],
    ['<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', "", [["f", { a: 1 }]]],
    [`${qwen("f")}\nDone.`, "Done.", [["f", {}]]],
    [`<tool_call>\n${qwen("f")}`, "", [["f", {}]]],
    // The last value is not closed.
    [
      "<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>",
      "",
      [["f", { a: "x" }]],
    ],
    [
      "<tool_call>\n<function=f>\n<parameter=a>\nx</function></tool_call>",
      "",
      [["f", { a: "x" }]],
    ],
    [
      "<tool_call>\n<function=get_weather>\n<parameter=days>\n5\n</parameter>\n</tool_call>",
      "",
      [["get_weather", { days: 5 }]],
    ],
    // A value before another of the tool's arguments is not closed; other keys are a part of the value.
    [
      "<tool_call>\n<function=get_weather>\n<parameter=location>\nx\n<parameter=y>\n<parameter=days>\n" +
      "[\n<parameter=any>\nz\n</parameter>\n</function>\n</tool_call>",
      "",
      [["get_weather", { location: "x\n<parameter=y>", days: "[", any: "z" }]],
    ],
    [
      "<tool_call>\n<function=get_weather>\n<parameter=location>\nx\n<parameter=location>\n" +
      "</parameter>\n</function>\n</tool_call>",
      "",
      [["get_weather", { location: "x\n<parameter=location>" }]],
    ],
    // A value contains its own closing tag.
    [
      qwen("f", ["a", "\n</parameter> and </parameter></parameter>"], [
        "b",
        "</parameter>\n</para",
      ]),
      "",
      [["f", { a: "\n</parameter> and </parameter></parameter>", b: "</parameter>\n</para" }]],
    ],
    [
      qwen("get_weather", ["any", '"</parameter>"'], ["list", '["</parameter>", "\\n"]']),
      "",
      [["get_weather", { any: '"</parameter>"', list: ["</parameter>", "\n"] }]],
    ],
    // Text that is not a call stays text.
    ["<tool_call>soon</tool_call>", "<tool_call>soon", []],
    ["<tool_call>\n<function=a b>\n", "<tool_call>\n<function=a b>\n", []],
    ["a <tool_ca", "a <tool_ca", []],
    ["a <function", "a <function", []],
    ["So: <tool_call>\n<function=f", "So:", []],
  ]],
  [SEED_OSS, [
    [
      "So.\n<seed:tool_call>\n<function=get_weather>\n<parameter=location>a\nb</parameter>\n" +
      "<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
      "So.",
      [["get_weather", { location: "a\nb", days: 2 }]],
    ],
    [
      "<seed:tool_call>\n<function=f>\n</function>\n<function=read>\n</function>\n</seed:tool_call>.",
      ".",
      [["f", {}], ["read", {}]],
    ],
    [
      "<seed:tool_call>\n<function=f>\n<parameter=a>x </parameter> y</parameter>\n</function>\n" +
      "</seed:tool_call>",
      "",
      [["f", { a: "x </parameter> y" }]],
    ],
    ["<seed:tool_call>\nno call", "<seed:tool_call>\nno call", []],
  ]],
  [GLM, [
    [glm("get_weather", ["location", "Paris"]), "", [["get_weather", { location: "Paris" }]]],
    [glm("get_weather", ...ALL_TYPES), "", [["get_weather", ALL_VALUES]]],
    [`Both.${glm("f")}${glm("read", ["a", " b\n"])}`, "Both.", [["f", {}], ["read", {
      a: " b\n",
    }]]],
    // GLM-4.5 and 4.6 write lines.
    [
      "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
      "",
      [["f", { a: "1" }]],
    ],
    [`<tool_call>\n${glm("f")}`, "", [["f", {}]]],
    [glm("f", ["a", "x</arg_value>"]), "", [["f", { a: "x</arg_value>" }]]],
    ["<tool_call>a b</tool_call>", "<tool_call>a b</tool_call>", []],
  ]],
  [GLIMMER, [
    [
      `<|message|><atem:function_calls>\n${
        atem("get_weather", ...ALL_TYPES)
      }</atem:function_calls>`,
      "",
      [["get_weather", ALL_VALUES]],
    ],
    [
      `<|message|><atem:function_calls>\n${atem("f", ["a", " x\n"])}${
        atem("read")
      }</atem:function_calls>`,
      "",
      [["f", { a: " x\n" }], ["read", {}]],
    ],
    // A name space, and a header's end in the name.
    [
      `<|message|><atem:function_calls>\n${atem("read.read<|message|>")}</atem:function_calls>`,
      "",
      [["read", {}]],
    ],
    ["<|message|><atem:function_calls>\nno", "<|message|><atem:function_calls>\nno", []],
    // An answer about calls.
    [
      `Write <atem:function_calls>\n${atem("f")}</atem:function_calls>.`,
      `Write <atem:function_calls>\n${atem("f")}</atem:function_calls>.`,
      [],
    ],
    [
      '<|message|><atem:function_calls>\n<atem:invoke name="f<|message|><atem:parameter name="a">' +
      "x</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
      "",
      [["f", { a: "x" }]],
    ],
    [
      `<|message|><atem:function_calls>\n${atem("a.read")}</atem:function_calls>`,
      "",
      [["a.read", {}]],
    ],
  ]],
  [HARMONY, [
    [
      '<|channel|>commentary to=functions.f<|message|>{"a": "}"}<|call|>',
      "",
      [["f", { a: "}" }]],
    ],
    [
      'Plan.\n\n<|channel|>commentary to=functions.f<|message|>{"a":1}<|call|>',
      "Plan.",
      [["f", { a: 1 }]],
    ],
    [
      "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}",
      "",
      [["f", {}]],
    ],
    [
      "<|channel|>commentary to=functions.f<|message|>none<|call|>",
      "<|channel|>commentary to=functions.f<|message|>none<|call|>",
      [],
    ],
  ]],
  [GEMMA4, [
    [
      '<|tool_call>call:get_weather{location:<|"|>Paris<|"|>,days:2}<tool_call|>',
      "",
      [["get_weather", { location: "Paris", days: 2 }]],
    ],
    [
      'Yes.<|tool_call>call:f{a:{b:true,c:<|"|>x "y", {z}\n<|"|>},d:[<|"|>e<|"|>,-1.5,null],g:[],h:{}}' +
      "<tool_call|><|tool_call>call:read{}<tool_call|><|tool_response>",
      "Yes.",
      [
        ["f", { a: { b: true, c: 'x "y", {z}\n' }, d: ["e", -1.5, null], g: [], h: {} }],
        ["read", {}],
      ],
    ],
    ['<|tool_call>call:f{<|"|>a<|"|>:<|"|>C:\\b<|"|>}<tool_call|>', "", [["f", { a: "C:\\b" }]]],
    // Output that a grammar forces, and a text without quotes.
    ['<|tool_call>call:f{"a": "b\\"}", "c": [1, {"d": "e"}]}<tool_call|>', "", [["f", {
      a: 'b"}',
      c: [1, { d: "e" }],
    }]]],
    ['<|tool_call>call:f{a: "b\n\tc"}<tool_call|>', "", [["f", { a: "b\n\tc" }]]],
    ["<|tool_call>call:f{a:New York}<tool_call|>", "", [["f", { a: "New York" }]]],
    ["<|tool_call>call:f{a}<tool_call|>", "<|tool_call>call:f{a}", []],
    // The second mark of a text is missing: it is none within the arguments.
    [
      '<|tool_call>call:f{x:1,y:2<|"|>,s:<|"|>}<tool_call|>',
      '<|tool_call>call:f{x:1,y:2<|"|>,s:<|"|>}',
      [],
    ],
    ["<|tool_call>soon<tool_call|>", "<|tool_call>soon<tool_call|>", []],
  ]],
  [LFM2, [
    [
      'I\'ll check.<|tool_call_start|>[get_weather(location="Paris")]<|tool_call_end|>',
      "I'll check.",
      [["get_weather", { location: "Paris" }]],
    ],
    [
      "<|tool_call_start|>[f(items=['a','b'], of={'on': True, 'by': 0.95}), read()]" +
      "<|tool_call_end|>Done (soon).",
      "Done (soon).",
      [["f", { items: ["a", "b"], of: { on: true, by: 0.95 } }], ["read", {}]],
    ],
    [
      '<|tool_call_start|>[{"name": "f", "arguments": {"a": 1}}, {"name": "read", "arguments": {}}]' +
      "<|tool_call_end|>",
      "",
      [["f", { a: 1 }], ["read", {}]],
    ],
    [
      "<|tool_call_start|>[f(a='it\\'s \\u00e9)', b=-1, c=None, d=(), e=+.5)]<|tool_call_end|>",
      "",
      [["f", { a: "it's é)", b: -1, c: null, d: [], e: 0.5 }]],
    ],
    // Strings in three quotes, side by side, raw and empty.
    [
      `<|tool_call_start|>[f(a="""x)\n"y" ""z""", b='', c="", d="""""", e=''''f')''')]<|tool_call_end|>`,
      "",
      [["f", { a: 'x)\n"y" ""z', b: "", c: "", d: "", e: "'f')" }]],
    ],
    [
      String.raw`<|tool_call_start|>[f(a="""\"""", b=['a' "b)"
'c'], d={u'e': r'\d\''}, g=-1_000.5, h=1_0, i='' 'j')]<|tool_call_end|>`,
      "",
      [["f", { a: '"', b: ["ab)c"], d: { e: "\\d\\'" }, g: -1000.5, h: 10, i: "j" }]],
    ],
    ["<|tool_call_start|>[f(1)]<|tool_call_end|>", "<|tool_call_start|>[f(1)]", []],
    ["<|tool_call_start|>[f(a=b)]", "<|tool_call_start|>[f(a=b)]", []],
  ]],
  [OLMO3, [
    [
      'So.<function_calls>\nget_weather(location="San Francisco", days=2)\n' +
      'f(a={"b": [true, null]})\n</function_calls>',
      "So.",
      [["get_weather", { location: "San Francisco", days: 2 }], ["f", { a: { b: [true, null] } }]],
    ],
    ["<function_calls>f()</function_calls>read it", "read it", [["f", {}]]],
    ["<function_calls>f(</function_calls>", "", []],
    ["<function_calls>)", "<function_calls>)", []],
  ]],
  [GRANITE, [
    [
      '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}, {"name": "read", "arguments": {}}]',
      "",
      [["f", { a: 1 }], ["read", {}]],
    ],
  ]],
  [MISTRAL, [
    // Version 11 has an id between name and arguments.
    [
      '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": 1}[TOOL_CALLS]read[CALL_ID]123456789[ARGS]{}',
      "",
      [["f", { a: 1 }], ["read", {}]],
    ],
  ]],
];

for (const [family, cases] of CASES) {
  Deno.test(`calls as ${family.name} writes them: whole, by letters and cut in two anywhere`, () => {
    for (const [output, text, calls] of cases) {
      const expected = { text, calls };
      deepEqual(readCalls(family, [output], TOOLS), expected, output);
      deepEqual(readCalls(family, [...output], TOOLS), expected, output);
      for (let at = 1; at < output.length; at++) {
        deepEqual(
          readCalls(family, [output.slice(0, at), output.slice(at)], TOOLS),
          expected,
          output,
        );
      }
    }
  });

  Deno.test(`a forced call of ${family.name} by a JSON object is read from what the grammar writes`, () => {
    // Their arguments are unknown.
    for (const some of [TOOLS.slice(1), TOOLS.slice(2)]) {
      const { begin, forms } = family.forced(some, "[ARGS]");
      equal(forms.length, some.length);
      const form = forms.at(-1);
      equal(form?.syntax, undefined);
      // The header is not read, because it is part of the prompt.
      const output = `${begin}${form?.before}{"a": 1}${form?.after}`.replace(
        /^ to=\w+/,
        "",
      );
      deepEqual(readCalls(family, [output], TOOLS), {
        text: "",
        calls: [[some.at(-1)?.name, { a: 1 }]],
      });
    }
  });
}

/** Outputs that the model ends itself within a call. */
const ENDED: readonly (readonly [ToolFamily, ...Case])[] = [
  [HARMONY, "<|channel|>commentary to=functions.f<|message|>", "", [["f", {}]]],
  [HARMONY, "<|channel|>commentary to=functions.f<|message|> <|call|>Done.", "Done.", [["f", {}]]],
  [MISTRAL, "Now.[TOOL_CALLS]f[ARGS]", "Now.", [["f", {}]]],
  [MISTRAL, "[TOOL_CALLS]f[CALL_ID]123456789[ARGS]\n", "", [["f", {}]]],
  [QWEN_CODER, "<function=f>\n<parameter=a>\nx\n</parameter>\n", "", [["f", { a: "x" }]]],
  [HERMES, '<tool_call>\n{"name": "f", "arguments": {"a": 1}\n', "", [["f", { a: 1 }]]],
  // What cannot be read is text.
  [MISTRAL, "A [TOOL_CALLS]f", "A [TOOL_CALLS]f", []],
  [
    LFM2,
    "So: <|tool_call_start|>[f(a='it's')]<|tool_call_end|>",
    "So: <|tool_call_start|>[f(a='it's')]<|tool_call_end|>",
    [],
  ],
  [
    GEMMA4,
    '<|tool_call>call:f{a:<|"|>abc}<tool_call|>',
    '<|tool_call>call:f{a:<|"|>abc}<tool_call|>',
    [],
  ],
];

for (const [family, output, text, calls] of ENDED) {
  Deno.test(`a call of ${family.name} in which the model ends its output, however it is cut: ${output}`, () => {
    for (let at = 0; at < output.length; at++) {
      for (const pieces of [[output.slice(0, at), output.slice(at)], [...output]]) {
        deepEqual(readCalls(family, pieces, TOOLS, false), { text, calls });
      }
    }
  });
}

Deno.test("a text argument is returned as it comes", () => {
  const stream = callStream(QWEN_CODER.format, TOOLS);
  const begun = "<tool_call>\n<function=get_weather>\n<parameter=location>\nSan ";
  deepEqual(stream.push(begun), [
    { kind: "call", index: 0, name: "get_weather" },
    { kind: "arguments", index: 0, text: '{"location": "San ' },
  ]);
  deepEqual(stream.push("Francisco\n</par"), [{ kind: "arguments", index: 0, text: "Francisco" }]);
});

Deno.test("values without quotes: of the types the most particular that fits, else a text", () => {
  const typed = (text: string, ...types: string[]) => jsonOfText(text, new Set(types));
  equal(typed("12345678901234567890", "integer"), "12345678901234567890");
  equal(typed("1.50", "number"), "1.50");
  equal(typed("1.5", "integer"), '"1.5"');
  equal(typed("2", "integer", "string"), "2");
  equal(typed("2", "string"), '"2"');
  equal(typed("null", "string", "null"), "null");
  equal(typed("None", "string", "null"), "null");
  for (const text of ["none", "NULL", "Null"]) equal(typed(text, "string", "null"), `"${text}"`);
  for (const text of ["none", "NULL", "null"]) equal(typed(text, "integer", "null"), "null");
  equal(typed("TRUE", "boolean"), "true");
  equal(typed("TRUE", "boolean", "string"), '"TRUE"');
  // What a search must contain.
  equal(typed('"an exact phrase"', "string", "null"), '"\\"an exact phrase\\""');
  equal(typed('"a"', "string", "number", "object"), '"\\"a\\""');
  equal(typed("[1, ", "array"), '"[1, "');
  equal(typed("{'a': 1}", "object"), '{"a":1}');
  equal(jsonOfText("2", undefined), '"2"');
  deepEqual(argumentTypes(WEATHER, "at"), new Set(["object", "null"]));
  equal(argumentTypes(WEATHER, "toString"), undefined);
  equal(argumentTypes(undefined, "a"), undefined);
});

Deno.test("the types of arguments are known whatever the root of the schema combines", () => {
  const properties = { days: { type: "integer" }, list: { $ref: "#/$defs/list" } };
  const $defs = { list: { type: "array" }, all: { properties } };
  const roots = [
    { $ref: "#/$defs/all" },
    {
      allOf: [{ properties: { days: properties.days } }, { properties: { list: properties.list } }],
    },
    { anyOf: [{ $ref: "#/$defs/all" }, { $ref: "#" }, { $ref: "#/$defs/none" }] },
  ];
  for (const root of roots) {
    const tool = { name: "f", parameters: { type: "object", $defs, ...root } };
    deepEqual(argumentTypes(tool, "days"), new Set(["integer"]));
    deepEqual(argumentTypes(tool, "list"), new Set(["array"]));
    equal(argumentTypes(tool, "other"), undefined);
    const expected = { text: "", calls: [["f", { days: 5, list: ["a"] }]] };
    deepEqual(
      readCalls(QWEN_CODER, [qwen("f", ["days", "5"], ["list", '["a"]'])], [tool]),
      expected,
    );
  }
  const either = [{ properties: { a: { type: "null" } } }, { properties: { a: { const: 1 } } }];
  const tool = { name: "f", parameters: { oneOf: either } };
  deepEqual(argumentTypes(tool, "a"), new Set(["null", "integer"]));
});

Deno.test("a format is known by its template", () => {
  const of = (chatTemplate: string) =>
    toolFamily({ chatTemplate: `{{ tools }}${chatTemplate}` }).name;
  equal(of("<tool_call>\\n<function="), "qwen_coder");
  equal(of("<tool_call>{name}<arg_key>"), "glm");
  equal(of("<seed:tool_call>\\n<function="), "seed_oss");
  equal(of("<|channel|>commentary to=functions."), "harmony");
  equal(of("<|tool_call>call:"), "gemma4");
  equal(of("<|tool_call_start|>["), "lfm2");
  equal(of("<function_calls>"), "olmo3");
  equal(of("<atem:function_calls>"), "glimmer");
  equal(of("<|start_of_role|><|tool_call|>"), "granite");
  equal(of("<|start_of_role|><tool_call>"), "hermes");
});

/** Parts of all formats, in orders that no model writes. */
const PARTS = [
  ...[
    "<tool_call>",
    "</tool_call>",
    "<function=f>",
    "<function=get_weather>",
    "<parameter=a>",
    "\n<parameter=days>",
    "\n<parameter=location>\n",
    "</parameter>",
    "</function>",
  ],
  ...["<arg_key>", "a", "</arg_key>", "<arg_value>", "</arg_value>", '{"name": "f", "arguments": '],
  ...[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
    '"',
    "'",
    '"""',
    "r'",
    "null",
    "\t",
    "\\",
    '<|"|>',
    "call:f",
    "f",
    " ",
    "\n",
  ],
  ...["<|message|>", "<atem:function_calls>", '<atem:invoke name="', '">', "</atem:invoke>"],
  ...["<|tool_call>", "<tool_call|>", "<|tool_call_start|>", "<|tool_call_end|>", "[ARGS]"],
  ...["<function_calls>", "</function_calls>", "[TOOL_CALLS]", "[CALL_ID]", "<|call|>", "1", "é"],
  ...[
    "<|channel|>commentary to=functions.",
    "<seed:tool_call>",
    "</seed:tool_call>",
    "<|tool_call|>",
  ],
];

Deno.test("calls: whatever an output is, the pieces do not depend on how it is cut", () => {
  const outputs = fc.array(fc.constantFrom(...PARTS), { maxLength: 25 });
  const family = fc.constantFrom(HERMES, ...CASES.map(([each]) => each));
  fc.assert(
    fc.property(family, outputs, fc.nat(), fc.boolean(), (family, parts, at, isCut) => {
      const output = parts.join("");
      const joined = (pieces: readonly string[]) => {
        const stream = callStream(family.format, TOOLS);
        const made = [...pieces.flatMap((piece) => stream.push(piece)), ...stream.end(isCut)];
        let text = "";
        const calls: string[] = [];
        for (const piece of made) {
          if (piece.kind === "text") text += piece.text;
          else if (piece.kind === "call") calls.push(piece.name);
          else if (piece.kind === "arguments") calls[piece.index] += piece.text;
          else calls[piece.index] += piece.broken ? "!" : ".";
        }
        return { text, calls };
      };
      const cut = at % (output.length + 1);
      const whole = joined([output]);
      deepEqual(joined([...output]), whole);
      deepEqual(joined([output.slice(0, cut), output.slice(cut)]), whole);
    }),
    { numRuns: 300 },
  );
});
