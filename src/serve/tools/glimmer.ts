import { ATEM, ATEM_MESSAGE } from "../../text/glimmer_channels.ts";
import { eitherCall } from "./body.ts";
import { jsonForm, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, taggedSyntax } from "./native_forms.ts";
import { taggedCall, type Tags } from "./tagged.ts";

const [CALLS, END] = ATEM;

const TAGS: Tags = {
  name: { open: '<atem:invoke name="', close: '">' },
  key: { open: '<atem:parameter name="', close: '">' },
  value: { open: "", close: "</atem:parameter>" },
  end: "</atem:invoke>",
  // The header's end, which models write again in the name.
  dropped: ["<|message|>"],
};

const SYNTAX = taggedSyntax(TAGS, { after: `\n${END}` });

/** Muse Glimmer's ATEM: `<atem:invoke name="f">` with an `<atem:parameter name="a">` for each argument. */
export const GLIMMER: ToolFamily = {
  name: "glimmer",
  speaks: (template) => template.includes(CALLS),
  format: {
    marks: { [`${ATEM_MESSAGE}${CALLS}`]: "call" },
    after: [END],
    listed: /^<a/,
    closes: [END],
    bare: false,
    body: ({ tools }) => eitherCall(() => taggedCall(TAGS, { tools })),
  },
  forced(tools) {
    const [only] = tools;
    const recipient = tools.length === 1 && only !== undefined ? only.name : "functions";
    const begin = ` to=${recipient}${ATEM_MESSAGE}${CALLS}\n`;
    return {
      begin,
      forms: nativeForms(tools, SYNTAX, (tool) => jsonForm(tool, "arguments")),
    };
  },
  argumentsAs: "object",
  wholeTools: true,
  callId: openAiCallId,
};
