import { eitherCall } from "./body.ts";
import { jsonForm, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, PYTHON_SYNTAX } from "./native_forms.ts";
import { pythonCall } from "./python.ts";

const CALLS = "<function_calls>";
const END = "</function_calls>";

/** Olmo 3: `<function_calls>`, a line `f(a=1, b="x")` for each call, `</function_calls>`. */
export const OLMO3: ToolFamily = {
  name: "olmo3",
  speaks: (template) => template.includes(CALLS),
  format: {
    marks: { [CALLS]: "call", [END]: "drop" },
    after: [END],
    listed: /^[\w{]/,
    closes: [END],
    bare: false,
    body: () => eitherCall(pythonCall),
  },
  forced: (tools) => ({
    begin: `${CALLS}\n`,
    forms: nativeForms(tools, PYTHON_SYNTAX, (tool) => jsonForm(tool, "arguments")),
  }),
  argumentsAs: "object",
  callId: openAiCallId,
};
