import { textWithLiterals } from "../../text/number_literals.ts";
import { joinedTurns, systemReminder } from "../../text/turns.ts";
import { invalid } from "../http/errors.ts";
import { type ChatAsk, chatAsk } from "../openai/chat_ask.ts";
import {
  type ChatRequest,
  contentText,
  type MessageField,
  type ToolChoice,
} from "../openai/chat_schema.ts";
import type { Ready, ServiceOptions } from "../service/service.ts";
import type {
  AnthropicMessage,
  CountRequest,
  MessageBlock,
  MessagesRequest,
  TextBlock,
} from "./schema.ts";

/**
 * Converts the request to an OpenAI chat request and reads that. Where the last message is the
 * assistant's, the answer continues it.
 *
 * @throws ApiError as `chatAsk`.
 */
export function anthropicAsk(
  request: CountRequest & Partial<MessagesRequest>,
  ready: Ready,
  options: Pick<ServiceOptions, "templateArguments">,
): ChatAsk {
  const { system, messages, tools, output_config: output } = request;
  const format = output?.format;
  const chat: ChatRequest = {
    messages: [
      ...system ? [{ role: "system" as const, content: textOf(system) }] : [],
      ...joinedTurns(
        combined(messages).flatMap(messageFields),
        ({ content }) => contentText(content),
      ),
    ],
    continue_final_message: messages.at(-1)?.role === "assistant",
    max_tokens: request.max_tokens,
    stop: request.stop_sequences,
    temperature: request.temperature,
    top_p: request.top_p,
    top_k: request.top_k,
    seed: request.seed,
    tools: tools?.map(({ name, description, input_schema }) => ({
      type: "function",
      function: { name, description, parameters: input_schema },
    })),
    tool_choice: choiceOf(request),
    parallel_tool_calls: !request.tool_choice?.disable_parallel_tool_use,
    reasoning_effort: effortOf(request),
    response_format: format && { type: "json_schema", json_schema: { schema: format.schema } },
  };
  return chatAsk(chat, ready, options);
}

/** The messages with the blocks of consecutive messages of the assistant in one. */
function combined(messages: readonly AnthropicMessage[]): AnthropicMessage[] {
  const all: AnthropicMessage[] = [];
  for (const message of messages) {
    const last = all.at(-1);
    if (message.role !== "assistant" || last?.role !== "assistant") all.push(message);
    else all[all.length - 1] = { ...last, content: [...blocksOf(last), ...blocksOf(message)] };
  }
  const last = all.at(-1);
  if (last?.role === "assistant" && blocksOf(last).some(({ type }) => type === "tool_use")) {
    throw invalid('Cannot go on from "messages": the last one calls a tool', "messages");
  }
  return all;
}

function blocksOf({ content }: AnthropicMessage): readonly MessageBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function choiceOf({ tool_choice: choice }: CountRequest): ToolChoice | undefined {
  if (!choice) return undefined;
  if (choice.type === "any") return "required";
  if (choice.type !== "tool") return choice.type;
  if (!choice.name) throw invalid('Cannot do without "tool_choice.name"', "tool_choice.name");
  return { type: "function", function: { name: choice.name } };
}

function effortOf({ thinking, output_config: output }: CountRequest): string | undefined {
  if (thinking?.type === "disabled") return "none";
  if (output?.effort) return output.effort;
  return thinking?.type === "enabled" ? "high" : undefined;
}

function messageFields({ role, content }: AnthropicMessage): MessageField[] {
  const text = textOf(content);
  // Templates take a system message at the beginning alone.
  if (role === "system") return [systemReminder(text)];
  if (typeof content === "string") return [{ role, content }];
  const of = <T extends MessageBlock["type"]>(type: T) =>
    content.filter((block): block is Extract<MessageBlock, { type: T }> => block.type === type);
  if (role === "assistant") {
    const thoughts = of("thinking").map(({ thinking }) => thinking).join("");
    const calls = of("tool_use").map(({ id, name, input }) => (
      { id, type: "function" as const, function: { name, arguments: textWithLiterals(input) } }
    ));
    return [{
      role,
      content: text,
      ...thoughts === "" ? {} : { reasoning_content: thoughts },
      ...calls.length === 0 ? {} : { tool_calls: calls },
    }];
  }
  const results = of("tool_result").map((result): MessageField => ({
    role: "tool",
    tool_call_id: result.tool_use_id,
    content: `${result.is_error ? "Error: " : ""}${textOf(result.content ?? "")}`,
  }));
  return text === "" && results.length > 0 ? results : [...results, { role, content: text }];
}

function textOf(content: string | readonly (MessageBlock | TextBlock)[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => block.type === "text" ? block.text : "").join("");
}
