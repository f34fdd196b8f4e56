import type { Tokenizer } from "./tokenizer.ts";

/** Turns the ids of one output into pieces of text as they come. */
export interface TextStream {
  /** The text that `ids` completed; "" while a character is still missing bytes. */
  push(ids: readonly number[]): string;
  /** What was held back: U+FFFD if the output ends within a character, else "". */
  end(): string;
}

/** What a stream needs of a tokenizer. */
export type StreamDecoder = Pick<Tokenizer, "decode" | "isSkipped">;

/**
 * Tokens kept as context. An unfinished UTF-8 character has at most 3 bytes, and each kept token has at least one,
 * so 3 tokens always contain the start of the last character, where a decoder resynchronizes whatever came
 * before. The rest is room for tokens that decode to nothing.
 */
const CONTEXT = 8;

/** Decoded at most at a time; larger than CONTEXT so that the context is not decoded each step. */
const WINDOW = 2 * CONTEXT;

const REPLACEMENT = "\uFFFD";

/**
 * A stream whose pieces, joined, are exactly `decode(all ids, {skipSpecialTokens: true})`, at the
 * cost of decoding at most `WINDOW` tokens beside those of a push. Each piece is what the newest
 * tokens added to the text of the window, never their text alone: decoders that strip the first space
 * (Metaspace) strip it once, at the start of the output.
 */
export function textStream(tokenizer: StreamDecoder): TextStream {
  const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecialTokens: true });
  let window: number[] = [];
  /** Characters (UTF-16 units) of the window's text that have been given out. */
  let given = 0;

  /** Forgets all but the last tokens, once all of the text before them is out. */
  const trim = (text: string) => {
    if (window.length < WINDOW) return;
    const held = text.length - given;
    const context = window.slice(-CONTEXT);
    const shorter = decode(context);
    if (shorter.length < held || !shorter.endsWith(text.slice(given))) return;
    window = context;
    given = shorter.length - held;
  };

  const push = (ids: readonly number[]): string => {
    // Skipped tokens may stand between the bytes of a character; they must not push it out of the window.
    const shown = ids.filter((id) => !tokenizer.isSkipped(id));
    if (shown.length === 0) return "";
    window.push(...shown);
    const text = decode(window);
    // A decoder shows an unfinished character as one U+FFFD at the end, so only that is uncertain.
    const end = text.endsWith(REPLACEMENT) ? text.length - 1 : text.length;
    const piece = text.slice(given, end);
    given = Math.max(given, end);
    trim(text);
    return piece;
  };

  return {
    push,
    end: () => {
      const rest = decode(window).slice(given);
      given += rest.length;
      return rest;
    },
  };
}
