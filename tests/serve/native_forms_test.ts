// Forced calls in the formats of their models: the reader must read whatever the grammar allows.
import { deepEqual, equal, ok } from "node:assert/strict";
import type { CallForm, Grammar } from "../../src/grammar/rules/grammar.ts";
import type { ToolFamily } from "../../src/serve/tools/family.ts";
import { GEMMA4 } from "../../src/serve/tools/gemma4.ts";
import { GLIMMER } from "../../src/serve/tools/glimmer.ts";
import { GLM } from "../../src/serve/tools/glm.ts";
import { LFM2 } from "../../src/serve/tools/lfm2.ts";
import { OLMO3 } from "../../src/serve/tools/olmo3.ts";
import { QWEN_CODER } from "../../src/serve/tools/qwen_coder.ts";
import { SEED_OSS } from "../../src/serve/tools/seed_oss.ts";
import type { Tool } from "../../src/serve/tools/tool.ts";
import { accepts } from "../grammar/accepts.ts";
import { readCalls } from "./read_calls.ts";

const EDIT: Tool = {
  name: "edit_file",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "where" },
      mode: { enum: ["append", "replace all"] },
      line: { type: "integer", minimum: 1 },
      force: { type: "boolean" },
      tags: { type: "array", items: { type: "string" } },
      note: { anyOf: [{ type: "string" }, { type: "null" }] },
      to: { type: ["string", "null"] },
      at: { $ref: "#/$defs/place" },
    },
    required: ["path", "line"],
    $defs: {
      place: { type: "object", properties: { x: { type: "number" } }, required: ["x"] },
    },
  },
};
const TIME: Tool = { name: "time", parameters: { type: "object", properties: {} } };
const TOOLS = [TIME, EDIT];

const PATH = 'a < b </p <<|"| "x" \\ <é <名>\t\n</par\n\n';
const GIVEN: readonly Readonly<Record<string, unknown>>[] = [
  { path: "src/a.ts", line: 3 },
  { path: "", line: 12, force: true, note: "none of it" },
  {
    path: PATH,
    mode: "replace all",
    line: 7,
    force: false,
    tags: ["<b>", "</parameter></arg_value>", '"'],
    note: "<",
    to: null,
    at: { x: 1.5 },
  },
];

/** Writes arguments in a form's syntax, with lists and objects spaced as the grammar writes them. */
function written(form: CallForm, given: Readonly<Record<string, unknown>>): string {
  const { before, syntax, after } = form;
  ok(syntax, before);
  const json = (value: unknown): string =>
    Array.isArray(value)
      ? `[${value.map(json).join(", ")}]`
      : typeof value === "object" && value !== null
      ? `{${Object.entries(value).map(([key, each]) => `"${key}": ${json(each)}`).join(", ")}}`
      : JSON.stringify(value).replaceAll("</", "<\\/");
  const members = Object.entries(given).map(([key, value]) => {
    const isText = syntax.texts.includes(key);
    const [open, close] = isText ? syntax.text : syntax.value;
    const word = typeof value === "boolean" ? syntax.booleans?.[Number(value)] : undefined;
    const body = word ?? (isText ? String(value) : json(value));
    return `${syntax.key[0]}${key}${syntax.key[1]}${open}${body}${close}`;
  });
  return `${before}${members.join(syntax.between)}${after}`;
}

/** Whole outputs, including the beginning that the prompt has. The last one lacks the header, which is not read. */
const WRITTEN: readonly (readonly [ToolFamily, template: string, string])[] = [
  [
    QWEN_CODER,
    "",
    "<tool_call>\n<function=edit_file>\n<parameter=path>\nsrc/a.ts\n</parameter>\n" +
    "<parameter=line>\n3\n</parameter>\n</function>\n</tool_call>",
  ],
  [
    GLM,
    "</arg_key><arg_value>",
    "<tool_call>edit_file<arg_key>path</arg_key><arg_value>src/a.ts</arg_value>" +
    "<arg_key>line</arg_key><arg_value>3</arg_value></tool_call>",
  ],
  [
    GLM,
    "</arg_key>\\n<arg_value>",
    "<tool_call>edit_file\n<arg_key>path</arg_key>\n<arg_value>src/a.ts</arg_value>\n" +
    "<arg_key>line</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
  ],
  [GEMMA4, "", '<|tool_call>call:edit_file{path:<|"|>src/a.ts<|"|>,line:3}'],
  [LFM2, "", '<|tool_call_start|>[edit_file(path="src/a.ts", line=3)]'],
  [OLMO3, "", '<function_calls>\nedit_file(path="src/a.ts", line=3)'],
  [
    SEED_OSS,
    "",
    "<seed:tool_call>\n<function=edit_file>\n<parameter=path>src/a.ts</parameter>\n" +
    "<parameter=line>3</parameter>\n</function>\n</seed:tool_call>",
  ],
  [
    GLIMMER,
    "",
    ' to=functions<|message|><atem:function_calls>\n<atem:invoke name="edit_file">\n' +
    '<atem:parameter name="path">src/a.ts</atem:parameter>\n' +
    '<atem:parameter name="line">3</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
  ],
];

for (const [family, template, simple] of WRITTEN) {
  Deno.test(`a forced call in the format of ${family.name}: what the grammar allows is read, however it is cut ${template}`, async () => {
    const { begin, forms } = family.forced(TOOLS, template);
    const [time, edit] = forms as [CallForm, CallForm];
    const grammar: Grammar = { kind: "forms", forms };
    equal(begin + written(edit, GIVEN[0]!), simple);
    const outputs = [
      [TIME, {}, written(time, {})] as const,
      ...GIVEN.map((given) => [EDIT, given, written(edit, given)] as const),
    ];
    for (const [tool, given, text] of outputs) {
      ok(await accepts(grammar, text), text);
      const output = `${begin}${text}`.replace(/^ to=\w+/, "");
      const expected = { text: "", calls: [[tool.name, given]] };
      deepEqual(readCalls(family, [output], TOOLS), expected, output);
      deepEqual(readCalls(family, [...output], TOOLS), expected, output);
      for (let at = 1; at < output.length; at++) {
        const cut = [output.slice(0, at), output.slice(at)];
        deepEqual(readCalls(family, cut, TOOLS), expected, output);
      }
    }
    const bad = [
      written(edit, { path: "a" }),
      written(edit, { line: 3, path: "a" }),
      written(edit, { path: "a", line: "3" }),
      written(edit, { path: "a", line: 0 }),
      written(edit, { path: "a", mode: "append ", line: 3 }),
      written(edit, { path: "a", line: 3, more: 1 }),
      written(time, { path: "a" }),
      ...(edit.syntax?.ends ?? []).map((end) => written(edit, { path: `a${end}b`, line: 3 })),
      written(edit, { path: "a", line: 3 }).slice(0, -1),
    ];
    for (const text of bad) ok(!await accepts(grammar, text), text);
  });
}

Deno.test("a tool whose arguments a format cannot write one by one is called by a JSON object", () => {
  const of = (properties: Readonly<Record<string, unknown>>, more = {}) => ({
    name: "f",
    parameters: { type: "object", properties, ...more },
  });
  const TEXT = { type: "string" };
  const open: readonly Tool[] = [
    { name: "f" },
    { name: "f", parameters: { type: "object" } },
    of({ a: TEXT }, { additionalProperties: true }),
    of({ a: TEXT }, { required: ["b"] }),
    of({ a: TEXT }, { anyOf: [{ required: ["a"] }] }),
    of({ "a b": TEXT }),
  ];
  const texts: readonly Tool[] = [
    of({ a: { type: "string", maxLength: 5 } }),
    of({ a: { type: "string", format: "date" } }),
    of({ a: { type: ["string", "integer"] } }),
    of({ a: {} }),
    of({ a: { enum: ["</parameter>"] } }),
  ];
  const native = (family: ToolFamily, tool: Tool) =>
    family.forced([tool], "").forms[0]?.syntax !== undefined;
  for (const [family] of WRITTEN) {
    for (const tool of open) ok(!native(family, tool), JSON.stringify(tool));
    ok(native(family, of({ a: TEXT }, { additionalProperties: false })));
    const quotes = [GEMMA4, LFM2, OLMO3].includes(family);
    for (const tool of texts) equal(native(family, tool), quotes, JSON.stringify(tool));
  }
  // A text is written with quotes if the format's own marks are not enough.
  const { forms } = GEMMA4.forced([of({ a: texts[0]?.parameters, b: TEXT })], "");
  deepEqual(forms[0]?.syntax?.texts, ["b"]);
});
