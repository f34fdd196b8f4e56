import { eitherCall } from "./body.ts";
import { jsonForm, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, PYTHON_SYNTAX } from "./native_forms.ts";
import { pythonCall, pythonText } from "./python.ts";

const CALL = "<|tool_call_start|>";
const END = "<|tool_call_end|>";

/** LFM2 and 2.5: `<|tool_call_start|>[f(a=1), g(b="x")]<|tool_call_end|>`. */
export const LFM2: ToolFamily = {
  name: "lfm2",
  // Some of its templates list the tools and leave calls to the text.
  speaks: (template) => template.includes(CALL) || template.includes("List of tools: "),
  format: {
    marks: { [CALL]: "call", [END]: "drop" },
    after: [",", "]", END],
    listed: /^[\w{]/,
    closes: [END],
    bare: false,
    body: () => eitherCall(pythonCall, /[\s[]/),
  },
  forced: (tools) => ({
    begin: `${CALL}[`,
    forms: nativeForms(
      tools,
      { ...PYTHON_SYNTAX, after: `${PYTHON_SYNTAX.after}]` },
      (tool) => jsonForm(tool, "arguments", ["", "]"]),
    ),
  }),
  argumentsAs: "object",
  written: (calls) =>
    `${CALL}[${
      calls.map(({ name, arguments: given }) => pythonText(name, given)).join(", ")
    }]${END}`,
  callId: openAiCallId,
};
