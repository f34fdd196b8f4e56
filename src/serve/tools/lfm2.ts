import { eitherCall } from "./body.ts";
import { jsonForms, openAiCallId, type ToolFamily } from "./family.ts";
import { pythonCall } from "./python.ts";

const CALL = "<|tool_call_start|>";
const END = "<|tool_call_end|>";

/** LFM2 and 2.5: `<|tool_call_start|>[f(a=1), g(b="x")]<|tool_call_end|>`. */
export const LFM2: ToolFamily = {
  name: "lfm2",
  speaks: (template) => template.includes(CALL),
  format: {
    marks: { [CALL]: "call", [END]: "drop" },
    after: [",", "]", END],
    listed: /^[\w{]/,
    closes: [END],
    bare: false,
    body: () => eitherCall(pythonCall, /[\s[]/),
  },
  forced: (tools) => ({ begin: CALL, forms: jsonForms(tools, "arguments", ["[", "]"]) }),
  argumentsAs: "object",
  callId: openAiCallId,
};
