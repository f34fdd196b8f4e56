import { textWithLiterals } from "../../text/number_literals.ts";
import { jsonCall } from "./body.ts";
import { jsonForms, openAiCallId, type ToolFamily } from "./family.ts";

/** `<tool_call>{"name": "f", "arguments": {...}}</tool_call>`: Hermes, Qwen 2.5 and 3, GLM's kin. */
export const HERMES: ToolFamily = {
  name: "hermes",
  speaks: (template) => template.includes("<tool_call>"),
  format: {
    marks: { "<tool_call>": "call", "</tool_call>": "drop" },
    after: ["</tool_call>"],
    bare: false,
    body: () => jsonCall(),
  },
  forced: (tools) => ({ begin: "<tool_call>\n", forms: jsonForms(tools, "arguments") }),
  argumentsAs: "object",
  // SmolLM3's template writes none.
  written: (calls) =>
    calls.map((call) => `<tool_call>\n${textWithLiterals(call)}\n</tool_call>`).join("\n"),
  callId: openAiCallId,
};
