import { textWithLiterals } from "../../text/number_literals.ts";
import { eitherCall, jsonCall } from "./body.ts";
import { jsonForms, openAiCallId, type ToolFamily } from "./family.ts";

const CALL = "<|tool_call|>";

/** Granite 3: `<|tool_call|>[{"name": "f", "arguments": {...}}]`. Granite 4 has Hermes's format. */
export const GRANITE: ToolFamily = {
  name: "granite",
  speaks: (template) => template.includes("<|start_of_role|>") && template.includes(CALL),
  format: {
    marks: { [CALL]: "call", "<tool_call>": "call" },
    after: [",", "]"],
    listed: /^\{/,
    bare: false,
    body: () => eitherCall(jsonCall, /[\s[]/),
  },
  forced: (tools) => ({ begin: CALL, forms: jsonForms(tools, "arguments", ["[", "]"]) }),
  argumentsAs: "object",
  written: (calls) => `${CALL}${textWithLiterals(calls)}`,
  callId: openAiCallId,
};
