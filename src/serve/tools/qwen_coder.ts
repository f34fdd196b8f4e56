import { eitherCall } from "./body.ts";
import { jsonForm, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, taggedSyntax } from "./native_forms.ts";
import { taggedCall, type Tags } from "./tagged.ts";

const CALL = "<tool_call>";
const END = "</tool_call>";
const FUNCTION = "<function=";

const TAGS: Tags = {
  name: { open: FUNCTION, close: ">" },
  key: { open: "<parameter=", close: ">" },
  value: { open: "", close: "</parameter>" },
  end: "</function>",
  lines: true,
  after: END,
};

const SYNTAX = taggedSyntax(TAGS, { after: `\n${END}` });

/**
 * Qwen3-Coder, Qwen3.5 to 3.8, Nemotron 3:
 * `<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>`, where models
 * leave out the first line at times.
 */
export const QWEN_CODER: ToolFamily = {
  name: "qwen_coder",
  speaks: (template) => template.includes(CALL) && template.includes(FUNCTION),
  format: {
    marks: { [CALL]: "call", [FUNCTION]: "call", [END]: "drop" },
    after: [END],
    bare: false,
    body: ({ mark, tools }) =>
      mark === FUNCTION
        ? taggedCall(TAGS, { tools, named: true })
        : eitherCall(() => taggedCall(TAGS, { tools }), /\s/, CALL),
  },
  forced: (tools) => ({
    begin: `${CALL}\n`,
    forms: nativeForms(tools, SYNTAX, (tool) => jsonForm(tool, "arguments")),
  }),
  argumentsAs: "object",
  callId: openAiCallId,
};
