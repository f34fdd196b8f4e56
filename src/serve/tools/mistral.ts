import { jsonCall, namedCall } from "./body.ts";
import type { BodyReader } from "./body.ts";
import { ANY_ARGUMENTS, jsonForms, randomId, type ToolFamily } from "./family.ts";

const ARGS = "[ARGS]";

/**
 * `[TOOL_CALLS][{"name": "f", "arguments": {...}}, ...]`, since 2025 `[TOOL_CALLS]f[ARGS]{...}`:
 * Mistral, Magistral, Ministral.
 */
export const MISTRAL: ToolFamily = {
  name: "mistral",
  speaks: (template) => template.includes("[TOOL_CALLS]"),
  format: {
    marks: { "[TOOL_CALLS]": "call" },
    after: [",", "]"],
    listed: true,
    bare: false,
    body: eitherCall,
  },
  forced(tools, template) {
    if (!template.includes(ARGS)) {
      return { begin: "[TOOL_CALLS]", forms: jsonForms(tools, "arguments", ["[", "]"]) };
    }
    const [only] = tools;
    if (tools.length === 1 && only !== undefined) {
      const schema = only.parameters ?? ANY_ARGUMENTS;
      const begin = `[TOOL_CALLS]${only.name}${ARGS}`;
      return { begin, forms: [{ before: "", schema, after: "" }] };
    }
    const forms = tools.map(({ name, parameters }) => ({
      before: `${name}${ARGS}`,
      schema: parameters ?? ANY_ARGUMENTS,
      after: "",
    }));
    return { begin: "[TOOL_CALLS]", forms };
  },
  argumentsAs: "object",
  callId: () => randomId(9),
};

/** Which of the two it is shows its first character. */
function eitherCall(): BodyReader {
  let inner: BodyReader | undefined;
  return {
    take: () => inner?.take() ?? [],
    push(character) {
      if (inner === undefined) {
        if (/[\s[]/.test(character)) return "more";
        inner = character === "{" ? jsonCall() : namedCall({ separators: [ARGS] });
      }
      return inner.push(character);
    },
  };
}
