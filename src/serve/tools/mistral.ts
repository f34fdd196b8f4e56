import { eitherCall, namedCall } from "./body.ts";
import { jsonForms, namedForms, randomId, type ToolFamily } from "./family.ts";

const ARGS = "[ARGS]";
/** Between the name and the arguments (version 11 of the format), with an id behind it. */
const CALL_ID = "[CALL_ID]";

/**
 * `[TOOL_CALLS][{"name": "f", "arguments": {...}}, ...]`, since 2025 `[TOOL_CALLS]f[ARGS]{...}`, for a
 * while `[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{...}`: Mistral, Magistral, Ministral, Devstral.
 */
export const MISTRAL: ToolFamily = {
  name: "mistral",
  speaks: (template) => template.includes("[TOOL_CALLS]"),
  format: {
    marks: { "[TOOL_CALLS]": "call" },
    after: [",", "]"],
    listed: /^\{/,
    bare: false,
    body: () => eitherCall(() => namedCall({ separators: [ARGS], ignored: CALL_ID }), /[\s[]/),
  },
  forced: (tools, template) =>
    template.includes(ARGS)
      ? namedForms(tools, "[TOOL_CALLS]", { one: ARGS, each: ARGS })
      : { begin: "[TOOL_CALLS]", forms: jsonForms(tools, "arguments", ["[", "]"]) },
  argumentsAs: "object",
  callId: () => randomId(ID_LENGTH),
  earlierId: (id) => id.length === ID_LENGTH && /^\w+$/.test(id) ? id : digest(id),
};

const ID_LENGTH = 9;

/** The same nine characters for the same id (FNV-1a): clients of other servers bring longer ids. */
function digest(id: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(id)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(36).padStart(ID_LENGTH, "0").slice(-ID_LENGTH);
}
