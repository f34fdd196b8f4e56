import { jsonCall } from "./body.ts";
import { jsonForms, openAiCallId, type ToolFamily } from "./family.ts";

/** The whole output is `{"name": "f", "parameters": {...}}`, maybe behind `<|python_tag|>`: Llama 3.x. */
export const LLAMA3: ToolFamily = {
  name: "llama3",
  speaks: (template) =>
    template.includes("<|python_tag|>") ||
    (template.includes("<|start_header_id|>") && template.includes('"parameters"')),
  format: {
    marks: { "<|python_tag|>": "call" },
    after: [";", ","],
    listed: /^\{/,
    bare: true,
    // A JSON object is an answer as often as it is a call: without a mark it has to look like a call of these tools.
    body: ({ mark, tools }) => mark === "" ? jsonCall({ unmarked: tools }) : jsonCall(),
  },
  forced: (tools) => ({ begin: "", forms: jsonForms(tools, "parameters") }),
  argumentsAs: "object",
  callId: openAiCallId,
};
