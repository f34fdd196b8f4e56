import type { Body } from "../fields/taking.ts";

/**
 * The body without the tools that a server would have to run itself (`web_search` and the like):
 * they are ignored by their types.
 *
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
    ignore(`tools.${type}`);
    return false;
  });
  return { ...body, tools: kept };
}

function isFunction({ type }: Body): boolean {
  return type === "function";
}
