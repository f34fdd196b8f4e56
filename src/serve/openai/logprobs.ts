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

/** Where a completion's next token begins, in characters, and the first bytes of a character that it continues. */
export interface TextOffset {
  at: number;
  readonly decoder: TextDecoder;
}

export function textOffset(): TextOffset {
  return { at: 0, decoder: new TextDecoder() };
}

/** OpenAI's `logprobs` of a completion, whose offset goes on to the end of these tokens. */
export function completionLogprobs(tokens: readonly TextLogprobs[], offset: TextOffset): unknown {
  return {
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    // The chosen token is there even if it is none of the most probable.
    top_logprobs: tokens.map((token) =>
      Object.fromEntries([...token.top, token].map(({ text, logprob }) => [text, logprob]))
    ),
    text_offset: tokens.map(({ text, bytes }) => {
      const { at, decoder } = offset;
      const whole = bytes ? decoder.decode(Uint8Array.from(bytes), { stream: true }) : text;
      offset.at += whole.length;
      return at;
    }),
  };
}
