import type { TextLogprob, TextLogprobs } from "../../engine/schedule/events.ts";

const UTF8 = new TextEncoder();

/** OpenAI's `logprobs.content` of a chat. */
export function chatLogprobs(tokens: readonly TextLogprobs[]): unknown {
  return {
    content: tokens.map((token) => ({ ...named(token), top_logprobs: token.top.map(named) })),
    refusal: null,
  };
}

/** Half a character has no bytes here: which they are the text does not tell. */
function named({ text, logprob }: TextLogprob): Record<string, unknown> {
  return { token: text, logprob, bytes: text.includes("\ufffd") ? null : [...UTF8.encode(text)] };
}

/** OpenAI's `logprobs` of a completion; `from` is where its text begins. */
export function completionLogprobs(tokens: readonly TextLogprobs[], from: number): unknown {
  let offset = from;
  return {
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ top }) =>
      Object.fromEntries(top.map(({ text, logprob }) => [text, logprob]))
    ),
    text_offset: tokens.map(({ text }) => {
      const at = offset;
      offset += text.length;
      return at;
    }),
  };
}
