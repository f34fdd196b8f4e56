import type { ChatMessage } from "../../text/chat_template.ts";
import { textWithLiterals } from "../../text/number_literals.ts";
import { joinedTurns } from "../../text/turns.ts";
import { HERMES } from "./hermes.ts";
import type { ToolFamily } from "./family.ts";
import type { Tool } from "./tool.ts";

/** For templates without tools: Hermes's format, described in a system message. */
export const GENERIC: ToolFamily = { ...HERMES, name: "generic", speaks: () => true };

/**
 * The messages of a conversation with tools in words that any template takes. Results of tools become messages of the
 * user; where several messages of the user then follow each other, they are joined, since Gemma 3's template and others
 * refuse roles that do not alternate.
 */
export function withoutToolRoles(
  messages: readonly ChatMessage[],
  tools: readonly Tool[],
): ChatMessage[] {
  const plainMessages = withoutResults(messages);
  if (tools.length === 0) return plainMessages;
  const [first] = plainMessages;
  const instructions = instructionsFor(tools);
  if (first?.role !== "system") {
    return [{ role: "system", content: instructions }, ...plainMessages];
  }
  return [{ ...first, content: `${first.content}\n\n${instructions}` }, ...plainMessages.slice(1)];
}

function withoutResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const plainMessages = messages.map(plain);
  // A conversation without results keeps its turns as they were sent: a template may take two of the user in a row.
  if (messages.every(({ role }) => role !== "tool")) return plainMessages;
  return joinedTurns(plainMessages, ({ content }) => content);
}

function instructionsFor(tools: readonly Tool[]): string {
  const listed = tools.map((tool) => JSON.stringify(tool)).join("\n");
  return `You may call functions. These there are:\n${listed}\n` +
    'To call one, write <tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call>';
}

function plain({ role, content, tool_calls: calls, ...rest }: ChatMessage): ChatMessage {
  if (role === "tool") {
    return { role: "user", content: `<tool_response>\n${content}\n</tool_response>` };
  }
  if (calls === undefined) return { role, content, ...rest };
  const written = calls.map((call) => {
    const called = (call as { readonly function?: unknown }).function ?? call;
    return `<tool_call>\n${textWithLiterals(called)}\n</tool_call>`;
  });
  return { role, content: [content, ...written].filter((each) => each !== "").join("\n"), ...rest };
}
