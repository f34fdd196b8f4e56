import { joinedSystem } from "../../text/turns.ts";
import { type ChatAsk, chatAsk } from "../openai/chat_ask.ts";
import {
  type CallField,
  type ChatRequest,
  contentText,
  type FormatField,
  type MessageField,
} from "../openai/chat_schema.ts";
import type { Ready, ServiceOptions } from "../service/service.ts";
import type { Item, ItemContent, ResponsesRequest } from "./schema.ts";
import { customArguments, flatName, toolFields } from "./tools.ts";

/** What the request asks for, by way of the same request for a chat. @throws ApiError as `chatAsk`. */
export function responsesAsk(
  request: ResponsesRequest,
  ready: Ready,
  options: Pick<ServiceOptions, "templateArguments">,
): ChatAsk {
  const { input, instructions, tools, tool_choice: choice, text, reasoning, include } = request;
  const items: readonly Item[] = typeof input === "string"
    ? [{ role: "user", content: input }]
    : input;
  const wantsLogprobs = include?.includes("message.output_text.logprobs") ||
    typeof request.top_logprobs === "number";
  const chat: ChatRequest = {
    ...request,
    messages: joinedSystem<MessageField>([
      ...instructions ? [{ role: "system" as const, content: instructions }] : [],
      ...messagesOf(items),
    ], ({ content }) => contentText(content)),
    max_tokens: request.max_output_tokens,
    stream_options: undefined,
    response_format: formatOf(text?.format),
    tools: tools && toolFields(tools),
    tool_choice: choice && typeof choice === "object"
      ? { type: "function", function: { name: choice.name } }
      : choice,
    reasoning_effort: reasoning?.effort,
    logprobs: wantsLogprobs,
    top_logprobs: wantsLogprobs ? request.top_logprobs : undefined,
  };
  return chatAsk(chat, ready, options);
}

function formatOf(
  format: NonNullable<ResponsesRequest["text"]>["format"],
): FormatField | undefined {
  if (!format) return undefined;
  if (format.type !== "json_schema") return format;
  return { type: "json_schema", json_schema: { schema: format.schema } };
}

/** An assistant's thoughts, text and calls are items of their own, but one message of a chat. */
function messagesOf(items: readonly Item[]): MessageField[] {
  const messages: MessageField[] = [];
  let turn: { content: string; reasoning_content?: string; tool_calls: CallField[] } | undefined;
  const assistant = () => {
    if (turn === undefined) {
      turn = { content: "", tool_calls: [] };
      messages.push({ role: "assistant", ...turn, tool_calls: turn.tool_calls });
    }
    return turn;
  };
  const update = () => {
    if (turn) messages[messages.length - 1] = { role: "assistant", ...turn };
  };
  for (const item of items) {
    if (item.type === "reasoning") {
      const said = [assistant().reasoning_content, textOf(item.content ?? "")];
      assistant().reasoning_content = said.filter((each) => each).join("\n\n");
      update();
    } else if (item.type === "function_call") {
      const { call_id: id, arguments: given } = item;
      const name = flatName(item.name, item.namespace);
      assistant().tool_calls.push({ id, type: "function", function: { name, arguments: given } });
      update();
    } else if (item.type === "custom_tool_call") {
      const called = { name: item.name, arguments: customArguments(item.input) };
      assistant().tool_calls.push({ id: item.call_id, type: "function", function: called });
      update();
    } else if (item.type === "function_call_output" || item.type === "custom_tool_call_output") {
      turn = undefined;
      messages.push({ role: "tool", tool_call_id: item.call_id, content: textOf(item.output) });
    } else if (item.role === "assistant") {
      assistant().content += textOf(item.content);
      update();
    } else {
      turn = undefined;
      messages.push({ role: item.role, content: textOf(item.content) });
    }
  }
  return messages;
}

function textOf(content: ItemContent): string {
  if (typeof content === "string") return content;
  return content.map((part) => "refusal" in part ? part.refusal : part.text).join("");
}
