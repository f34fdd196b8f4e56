import { channelsOf } from "./channels.ts";
import type { ChatMessage, TemplateMessage } from "./chat_template.ts";

/**
 * The messages of a conversation with the field names and in the order that a template reads. The template
 * decides which reasoning of earlier turns the model sees again.
 */
export function historyFor(
  template: string,
  messages: readonly ChatMessage[],
): readonly TemplateMessage[] {
  if (channelsOf(template) === "harmony") return oneCallEach(messages).map(thinkingBeforeCall);
  if (takesBlocks(template)) return messages.map(inBlocks);
  if (joinsMessages(template)) return messages.flatMap(textBeforeCalls);
  return readsThinking(template) ? messages.map(withThinking) : messages;
}

/** gpt-oss, LFM2.5. */
function readsThinking(template: string): boolean {
  return /\bmessage\.thinking\b|\bmessage\[["']thinking["']\]/.test(template);
}

function withThinking(message: ChatMessage): TemplateMessage {
  const { reasoning_content: thinking } = message;
  return thinking === undefined ? message : { ...message, thinking };
}

/** Ministral 3 and Magistral. */
function takesBlocks(template: string): boolean {
  return /\[["']type["']\] *== *["']thinking["']/.test(template);
}

function inBlocks(message: ChatMessage): TemplateMessage {
  const { role, content, reasoning_content: thinking } = message;
  if (role !== "assistant" || !thinking) return message;
  const text = content === "" ? [] : [{ type: "text", text: content }];
  return { ...message, content: [{ type: "thinking", thinking }, ...text] };
}

/** Gemma 4's of July 2026: messages of the model that follow one another are one turn. */
function joinsMessages(template: string): boolean {
  return template.includes("<|tool_call>call:") && template.includes("continues_into_next");
}

/**
 * Gemma 4's template writes a message's text behind its calls and their results, and ends the turn with
 * it. As a message of its own the text stays before them, in the same turn.
 */
function textBeforeCalls(message: ChatMessage): TemplateMessage[] {
  const { role, content, tool_calls: calls, reasoning_content: thinking } = message;
  if (calls === undefined || content === "") return [message];
  const { reasoning_content: _, ...calling } = message;
  const said = { role, content };
  return [thinking === undefined ? said : { ...said, reasoning_content: thinking }, {
    ...calling,
    content: "",
  }];
}

/** gpt-oss's template has a place for one text before a call: the reasoning, and what was said. */
function thinkingBeforeCall(message: ChatMessage): TemplateMessage {
  const { content, reasoning_content: thinking, tool_calls: calls } = message;
  if (calls === undefined) return withThinking(message);
  const before = [thinking, content].filter((each) => each).join("\n\n");
  return { ...message, content: "", ...before === "" ? {} : { thinking: before } };
}

/** gpt-oss's template writes one call of a message, and takes a result for the call before it. */
function oneCallEach(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.flatMap((message, at) => {
    const { tool_calls: calls = [] } = message;
    if (message.role === "tool" && isResultOfSeveral(messages, at)) return [];
    if (calls.length < 2) return [message];
    const results = resultsBehind(messages, at);
    return calls.flatMap((call, number) => {
      const { reasoning_content: _, ...rest } = message;
      const first = number === 0 ? message : { ...rest, content: "" };
      const { id } = call as { readonly id?: unknown };
      // ollama's results have no ids: they come in the order of the calls.
      const answers = results.filter((result, place) =>
        result.tool_call_id ? result.tool_call_id === id : place === number
      );
      return [{ ...first, tool_calls: [call] }, ...answers];
    });
  });
}

/** The messages of tools behind the message at a place. */
function resultsBehind(messages: readonly ChatMessage[], at: number): readonly ChatMessage[] {
  const behind = messages.slice(at + 1);
  const end = behind.findIndex(({ role }) => role !== "tool");
  return end < 0 ? behind : behind.slice(0, end);
}

function isResultOfSeveral(messages: readonly ChatMessage[], at: number): boolean {
  const caller = messages.slice(0, at).findLast(({ role }) => role !== "tool");
  return (caller?.tool_calls?.length ?? 0) > 1;
}
