import { namedCall } from "./body.ts";
import { ANY_ARGUMENTS, openAiCallId, type ToolFamily } from "./family.ts";

const CALLS = "<｜tool▁calls▁begin｜>";
const CALL = "<｜tool▁call▁begin｜>";
const SEPARATOR = "<｜tool▁sep｜>";
const END = "<｜tool▁call▁end｜>";
const ALL_END = "<｜tool▁calls▁end｜>";
const FENCE = "```json";

/**
 * V3 and R1 write `function<sep>f`, a newline and the arguments in a fence; V3.1 writes
 * `f<sep>{...}`.
 */
export const DEEPSEEK: ToolFamily = {
  name: "deepseek",
  speaks: (template) => template.includes(CALLS),
  format: {
    marks: { [CALL]: "call", [CALLS]: "drop", [END]: "drop", [ALL_END]: "drop" },
    after: ["```", END, ALL_END],
    bare: false,
    body: () =>
      namedCall({
        separators: [SEPARATOR, FENCE],
        prefixes: [`function${SEPARATOR}`, `code${SEPARATOR}`],
      }),
  },
  forced(tools, template) {
    const fenced = template.includes(FENCE);
    const begin = `${CALLS}${CALL}`;
    const forms = tools.map(({ name, parameters }) => ({
      before: fenced ? `${name}\n${FENCE}\n` : `${name}${SEPARATOR}`,
      schema: parameters ?? ANY_ARGUMENTS,
      after: fenced ? "\n```" : "",
    }));
    return { begin: fenced ? `${begin}function${SEPARATOR}` : begin, forms };
  },
  argumentsAs: "text",
  callId: openAiCallId,
};
