import { reason, UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import type { ChatMessage } from "../../text/chat_template.ts";
import type { Prompt } from "./prompt.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Prompts of a file with `{"prompt": TEXT}` or `{"messages": [...]}` in each line; other fields are ignored. @throws
 * UsageError
 */
export function fileExamples(path: string, text: string): Prompt[] {
  return examples(path, text, ({ prompt, messages }) => {
    if (typeof prompt === "string" && prompt !== "" && messages === undefined) {
      return { kind: "text", group: path, text: prompt };
    }
    if (prompt === undefined && isConversation(messages)) {
      return { kind: "chat", group: path, messages, followUps: [] };
    }
    return "expected either prompt, a text, or messages, a list of {role, content}";
  });
}

/**
 * Prompts of a file of Spec-Bench, with `{"question_id", "category", "turns": [TEXT, ...]}` in each line. @throws
 * UsageError
 */
export function specBenchExamples(path: string, text: string): Prompt[] {
  return examples(path, text, ({ category, turns }) => {
    if (!isTexts(turns)) return "expected turns, a list of texts";
    const [content = "", ...followUps] = turns;
    const group = typeof category === "string" ? category : "no category";
    return { kind: "chat", group, messages: [{ role: "user", content }], followUps };
  });
}

/** The prompts of all lines. `parse` returns a prompt, or the reason that a line has none. */
function examples(
  path: string,
  text: string,
  parse: (fields: Fields) => Prompt | string,
): Prompt[] {
  const found: Prompt[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const fields = parseLine(line);
    const example = typeof fields === "string" ? fields : parse(fields);
    if (typeof example === "string") {
      throw new UsageError(`Cannot read prompts from "${path}": line ${at + 1}: ${example}`);
    }
    found.push(example);
  }
  if (found.length === 0) {
    throw new UsageError(`Cannot read prompts from "${path}": the file has no line`);
  }
  return found;
}

/** The object of a line, or the reason that it is not one. */
export function parseLine(line: string): Fields | string {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : "expected a JSON object";
  } catch (error) {
    return `not JSON: ${reason(error)}`;
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 &&
    value.every((text) => typeof text === "string" && text !== "");
}

function isConversation(value: unknown): value is ChatMessage[] {
  return Array.isArray(value) && value.length > 0 && value.every((message: unknown) => {
    const { role, content } = (message ?? {}) as Fields;
    return typeof role === "string" && typeof content === "string";
  });
}
