import { HARMONY_CALL } from "../../text/harmony_channels.ts";
import { namedCall } from "./body.ts";
import { ANY_ARGUMENTS, openAiCallId, type ToolFamily } from "./family.ts";

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
  forced(tools) {
    const [only] = tools;
    if (tools.length === 1 && only !== undefined) {
      const schema = only.parameters ?? ANY_ARGUMENTS;
      const begin = `${CALL}${only.name}${JSON_TYPE}${MESSAGE}`;
      return { begin, forms: [{ before: "", schema, after: "" }] };
    }
    const forms = tools.map(({ name, parameters }) => ({
      before: `${name}${MESSAGE}`,
      schema: parameters ?? ANY_ARGUMENTS,
      after: "",
    }));
    return { begin: CALL, forms };
  },
  argumentsAs: "object",
  wholeTools: true,
  callId: openAiCallId,
};
