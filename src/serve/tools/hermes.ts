import { textWithLiterals } from "../../text/number_literals.ts";
import { eitherCall, jsonCall } from "./body.ts";
import { jsonForms, openAiCallId, type ToolFamily } from "./family.ts";

/** `<tool_call>{"name": "f", "arguments": {...}}</tool_call>`: Hermes, Qwen 2.5 and 3, GLM's kin. */
export const HERMES: ToolFamily = {
  name: "hermes",
  speaks: (template) => template.includes("<tool_call>"),
  format: {
    marks: { "<tool_call>": "call", "</tool_call>": "drop" },
    // One brace too many, and what separates and ends a list.
    after: ["</tool_call>", "}", "]", ","],
    listed: /^\{/,
    closes: ["</tool_call>"],
    bare: false,
    body: () => eitherCall(jsonCall, /[\s[]/, "<tool_call>"),
  },
  forced: (tools) => ({ begin: "<tool_call>\n", forms: jsonForms(tools, "arguments") }),
  argumentsAs: "object",
  // SmolLM3's template writes none.
  written: (calls) =>
    calls.map((call) => `<tool_call>\n${textWithLiterals(call)}\n</tool_call>`).join("\n"),
  callId: openAiCallId,
};
