import { eitherCall } from "./body.ts";
import { jsonForm, openAiCallId, type ToolFamily } from "./family.ts";
import { nativeForms, taggedSyntax } from "./native_forms.ts";
import { taggedCall, type Tags } from "./tagged.ts";

const CALL = "<seed:tool_call>";
const END = "</seed:tool_call>";

const TAGS: Tags = {
  name: { open: "<function=", close: ">" },
  key: { open: "<parameter=", close: ">" },
  value: { open: "", close: "</parameter>" },
  end: "</function>",
};

const SYNTAX = taggedSyntax(TAGS, { after: `\n${END}` });

/** Seed-OSS: `<seed:tool_call>\n<function=f>\n<parameter=a>1</parameter>\n</function>\n</seed:tool_call>`. */
export const SEED_OSS: ToolFamily = {
  name: "seed_oss",
  speaks: (template) => template.includes(CALL),
  format: {
    marks: { [CALL]: "call", [END]: "drop" },
    after: [END],
    listed: /^<f/,
    closes: [END],
    bare: false,
    body: ({ tools }) => eitherCall(() => taggedCall(TAGS, { tools })),
  },
  forced: (tools) => ({
    begin: `${CALL}\n`,
    forms: nativeForms(tools, SYNTAX, (tool) => jsonForm(tool, "arguments")),
  }),
  argumentsAs: "object",
  wholeTools: true,
  callId: openAiCallId,
};
