import assert from "node:assert/strict";
import { checked } from "../../src/serve/http/body.ts";
import { CHAT } from "../../src/serve/openai/chat_schema.ts";
import { user } from "./server.ts";

/** The message with which a field of a chat is refused. */
function messageOf(fields: Readonly<Record<string, unknown>>): string {
  try {
    checked(CHAT, { ...user("Hi."), ...fields });
  } catch (error) {
    return (error as Error).message;
  }
  return "taken";
}

Deno.test("a field that does not fit says what it is and what is allowed, in the words of other errors", () => {
  const messages: readonly (readonly [fields: Readonly<Record<string, unknown>>, string])[] = [
    [{ temperature: -1 }, 'Cannot use "temperature": it is -1, allowed is a number of at least 0'],
    [{ top_p: 0 }, 'Cannot use "top_p": it is 0, allowed is a number of more than 0'],
    [{ temperature: "a" }, 'Cannot use "temperature": it is a text, allowed is a number'],
    [{ max_tokens: 1.5 }, 'Cannot use "max_tokens": it is 1.5, allowed is a whole number'],
    [{ stream: [] }, 'Cannot use "stream": it is a list, allowed is true or false'],
    [{ stop: 5 }, 'Cannot use "stop": it is 5, allowed is a text, or a list'],
    [
      { stop: Array(17).fill("a") },
      'Cannot use "stop": it has 17 items, allowed is at most 16 items',
    ],
    [{ stop: "" }, 'Cannot use "stop": it has 0 characters, allowed is at least 1 character'],
    [{ messages: undefined }, 'Cannot do without "messages": allowed is a list'],
    [
      { response_format: { type: "xml" } },
      'Cannot use "response_format.type": allowed is "text", "json_object", "json_schema"',
    ],
    [
      { tool_choice: "some" },
      'Cannot use "tool_choice": allowed is "none", "auto", "required", or an object',
    ],
    // The schema's own sentences stay.
    [{ logit_bias: { a: 1 } }, 'Cannot use "logit_bias.a": keys are token ids'],
    [{ seed: 1.5 }, 'Cannot use "seed": a seed is an integer'],
  ];
  for (const [fields, message] of messages) assert.equal(messageOf(fields), message);
});

Deno.test("an error quotes no text of a request: it is in the log", () => {
  const secret = "a prompt in the wrong place";
  for (const field of ["temperature", "messages", "tool_choice", "reasoning_effort", "stream"]) {
    const message = messageOf({ [field]: secret });
    assert.match(message, /^Cannot use /);
    assert.doesNotMatch(message, /wrong place/);
  }
});
