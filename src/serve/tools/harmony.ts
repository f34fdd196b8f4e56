import { HARMONY_CALL } from "../../text/harmony_channels.ts";
import { namedCall } from "./body.ts";
import { namedForms, openAiCallId, type ToolFamily } from "./family.ts";

const [CALL, END] = HARMONY_CALL;
const MESSAGE = "<|message|>";
const JSON_TYPE = " <|constrain|>json";

/** gpt-oss: what its channels leave of a call is `<|channel|>commentary to=functions.f<|message|>{...}`. */
export const HARMONY: ToolFamily = {
  name: "harmony",
  speaks: (template) =>
    template.includes("<|channel|>commentary") && template.includes("functions."),
  format: {
    marks: { [CALL]: "call", [END]: "drop" },
    after: [END],
    bare: false,
    body: () => namedCall({ separators: [JSON_TYPE.trim(), MESSAGE], ends: [END] }),
  },
  forced: (tools) => namedForms(tools, CALL, { one: `${JSON_TYPE}${MESSAGE}`, each: MESSAGE }),
  argumentsAs: "object",
  wholeTools: true,
  callId: openAiCallId,
};
