import { ATEM, ATEM_MESSAGE } from "../../text/glimmer_channels.ts";
import { eitherCall } from "./body.ts";
import { jsonForms, openAiCallId, type ToolFamily } from "./family.ts";
import { taggedCall, type Tags } from "./tagged.ts";

const [CALLS, END] = ATEM;
const INVOKE = '<atem:invoke name="';

const TAGS: Tags = {
  name: { open: INVOKE, close: '">' },
  key: { open: '<atem:parameter name="', close: '">' },
  value: { open: "", close: "</atem:parameter>" },
  end: "</atem:invoke>",
  // The header's end, which models write again in the name.
  dropped: ["<|message|>"],
};

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
    return { begin, forms: jsonForms(tools, "arguments") };
  },
  argumentsAs: "object",
  wholeTools: true,
  callId: openAiCallId,
};
