import type { Body } from "../fields/taking.ts";
import { invalid } from "../http/errors.ts";

/**
 * The body without the tools that a server would have to run itself (`web_search` and the like):
 * they are ignored by their types.
 *
 * @throws ApiError (400) for a custom tool: the client runs it, but a chat's call of it has another form.
 * @param runs says of a tool, as it was sent, whether the client runs it.
 */
export function withoutServerTools(
  body: Body,
  ignore: (name: string) => void,
  runs: (tool: Body) => boolean = isFunction,
): Body {
  const { tools } = body;
  if (!Array.isArray(tools)) return body;
  const kept = tools.filter((tool: unknown) => {
    // What is no tool at all is left to the schema.
    if (typeof tool !== "object" || tool === null || runs(tool as Body)) return true;
    const { type } = tool as Body;
    if (typeof type !== "string") return true;
    if (type === "custom") {
      throw invalid('Cannot use "tools" of type "custom" here: /v1/responses takes them', "tools");
    }
    ignore(`tools.${type}`);
    return false;
  });
  return { ...body, tools: kept };
}

function isFunction({ type }: Body): boolean {
  return type === "function";
}
