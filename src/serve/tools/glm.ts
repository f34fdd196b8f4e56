import { eitherCall } from "./body.ts";
import { jsonForm, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, taggedSyntax } from "./native_forms.ts";
import { taggedCall, type Tags } from "./tagged.ts";

const CALL = "<tool_call>";
const END = "</tool_call>";

const TAGS: Tags = {
  name: { open: "" },
  key: { open: "<arg_key>", close: "</arg_key>" },
  value: { open: "<arg_value>", close: "</arg_value>" },
  end: END,
};

/** GLM-4.5 to 4.7, Laguna: `<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>`. */
export const GLM: ToolFamily = {
  name: "glm",
  speaks: (template) => template.includes(CALL) && template.includes(TAGS.key.open),
  format: {
    marks: { [CALL]: "call", [END]: "drop" },
    after: [END, "<|observation|>"],
    bare: false,
    body: ({ tools }) => eitherCall(() => taggedCall(TAGS, { tools }), /\s/, CALL),
  },
  forced(tools, template) {
    // GLM-4.5, 4.6 and Laguna XS.2 have line ends between the tags, GLM-4.7 and Laguna XS 2.1 have none.
    const line = /<\/arg_key>(?:\\n|\n)/.test(template) ? "\n" : "";
    const forms = nativeForms(
      tools,
      taggedSyntax(TAGS, { line }),
      (tool) => jsonForm(tool, "arguments"),
    );
    return { begin: CALL, forms };
  },
  argumentsAs: "object",
  callId: openAiCallId,
};
