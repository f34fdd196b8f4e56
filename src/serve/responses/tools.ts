import { invalid } from "../http/errors.ts";
import type { Take } from "../fields/route.ts";
import type { Body } from "../fields/taking.ts";
import type { ToolField } from "../openai/chat_schema.ts";
import { withoutServerTools } from "../openai/server_tools.ts";
import type { CustomTool, FunctionTool, ResponseTool } from "./schema.ts";

/** A tool as the client knows it. */
export interface ClientTool {
  readonly name: string;
  readonly namespace: string | undefined;
  /** The tool takes a plain text, which the model writes as the field `input` of the arguments. */
  readonly custom: boolean;
}

/** Arguments of a tool that takes a text. */
const TEXT_INPUT = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
} as const;

/** The name under which the model sees a tool. A tool of a namespace gets the namespace's name in front. */
export function flatName(name: string, namespace: string | null | undefined): string {
  if (!namespace) return name;
  return namespace.endsWith("__") ? `${namespace}${name}` : `${namespace}__${name}`;
}

/** The tools as functions, namespaces flattened. */
export function toolFields(tools: readonly ResponseTool[]): ToolField[] {
  return flat(tools).map(([tool, namespace]) => {
    const { description } = tool;
    const parameters = tool.type === "custom" ? TEXT_INPUT : tool.parameters;
    const name = flatName(tool.name, namespace);
    return { type: "function", function: { name, description, parameters } };
  });
}

/** The client's tools by the names that the model has for them. */
export function clientTools(tools: readonly ResponseTool[]): ReadonlyMap<string, ClientTool> {
  return new Map(
    flat(tools).map(([{ name, type }, namespace]) => [
      flatName(name, namespace),
      { name, namespace, custom: type === "custom" },
    ]),
  );
}

function flat(
  tools: readonly ResponseTool[],
): (readonly [tool: FunctionTool | CustomTool, namespace: string | undefined])[] {
  return tools.flatMap((tool): (readonly [FunctionTool | CustomTool, string | undefined])[] =>
    tool.type === "namespace" ? tool.tools.map((each) => [each, tool.name]) : [[tool, undefined]]
  );
}

/** Whether a tool's text should have a form, which is not enforced here. */
export function hasFormats(tools: readonly ResponseTool[]): boolean {
  return flat(tools).some(([tool]) =>
    tool.type === "custom" && (tool.format?.type ?? "text") !== "text"
  );
}

/** Arguments of a call of a tool that takes a text. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The text of such a call, as far as it is there if a limit has cut the arguments. */
export function customInput(json: string): string {
  try {
    return String((JSON.parse(json) as { readonly input?: unknown }).input ?? "");
  } catch {
    const [, begun = ""] =
      /^\s*\{\s*"input"\s*:\s*"((?:[^"\\]|\\["\\/bfnrt]|\\u[\da-f]{4})*)/i.exec(json) ?? [];
    return JSON.parse(`"${begun}"`) as string;
  }
}

const RUN_BY_CLIENT = ["function", "custom", "namespace"];

const ITEMS = [
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "reasoning",
];

/** Removes the tools that OpenAI's server would run, and the input items that such tools have made. */
export function withoutHosted(body: Body, { ignore }: Pick<Take, "ignore">): Body {
  const isOurs = ({ type }: Body) => RUN_BY_CLIENT.includes(String(type));
  const kept = withoutServerTools(body, ignore, isOurs);
  const tools = Array.isArray(kept["tools"])
    ? kept["tools"].map((tool: Body) =>
      Array.isArray(tool?.["tools"]) ? withoutServerTools(tool, ignore, isOurs) : tool
    )
    : undefined;
  const { input } = kept;
  const items = Array.isArray(input)
    ? input.filter((item: Body | null) => {
      const type = item?.["type"];
      if (typeof type !== "string" || ITEMS.includes(type)) return true;
      if (type === "item_reference") {
        const why = "answers are not stored: send the conversation (store: false)";
        throw invalid(`Cannot use "input" with items of type "item_reference": ${why}`, "input");
      }
      ignore(`input.${type}`);
      return false;
    })
    : input;
  return { ...kept, ...tools ? { tools } : {}, ...items === undefined ? {} : { input: items } };
}
