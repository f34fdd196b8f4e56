import type { TextLogprob, TextLogprobs } from "../../engine/schedule/events.ts";

const UTF8 = new TextEncoder();

/** OpenAI's `logprobs.content` of a chat. */
export function chatLogprobs(tokens: readonly TextLogprobs[]): unknown {
  return {
    content: tokens.map((token) => ({ ...named(token), top_logprobs: token.top.map(named) })),
    refusal: null,
  };
}

/** `bytes` is null where a tokenizer does not have the bytes of an incomplete character. */
function named({ text, bytes, logprob }: TextLogprob): Record<string, unknown> {
  const own = bytes ?? (text.includes("\ufffd") ? undefined : UTF8.encode(text));
  return { token: text, logprob, bytes: own ? [...own] : null };
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
