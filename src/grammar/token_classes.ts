/** Which tokens consist of characters of one class, and of how many: made once for a vocabulary. */
import {
  BACKSLASH,
  continues,
  LAST_BYTE,
  lengthOf,
  MIN_OF_LENGTH,
  QUOTE,
  SHORT_ESCAPES,
} from "./utf8.ts";
import type { CodePoints } from "./rules/code_points.ts";

/** Characters within a string of JSON, of which an escape is one. */
export const STRING = "string";

/** Classes that are kept, each with 2 bytes a token. */
const MAX_CLASSES = 16;

/** Tokens that are not wholly of the class. */
const OTHER = 0xffff;

interface TokenClass {
  /** The number of characters of each token, or OTHER. */
  readonly lengths: Uint16Array;
  readonly longest: number;
  /** All that consist of the class, as a mask. */
  readonly whole: Uint32Array;
}

export interface TokenClasses {
  /** The texts of all tokens, one behind the other: token t's is from `starts[t]` to `starts[t + 1]`. */
  readonly texts: Uint8Array;
  readonly starts: Uint32Array;
  readonly eosTokenIds: readonly number[];
  /**
   * Adds the tokens that consist of 1 to `max` characters of the class and are not empty to a mask. A token
   * of STRING may begin and end within a character, but not end within an escape.
   */
  addUpTo(mask: Uint32Array, of: CodePoints | typeof STRING, max: number): void;
}

export function tokenClasses(
  bytes: readonly Uint8Array[],
  eosTokenIds: readonly number[],
): TokenClasses {
  /** Classes by their contents, the least recently used first. */
  const classes = new Map<string, TokenClass>();
  const ends = new Set(eosTokenIds);
  const starts = new Uint32Array(bytes.length + 1);
  for (const [token, { length }] of bytes.entries()) {
    starts[token + 1] = (starts[token] as number) + length;
  }
  const texts = new Uint8Array(starts.at(-1) as number);
  for (const [token, text] of bytes.entries()) texts.set(text, starts[token]);

  function classOf(of: CodePoints | typeof STRING): TokenClass {
    const key = String(of);
    const known = classes.get(key);
    classes.delete(key);
    const found = known ?? make(of === STRING ? stringLength : lengthIn(of));
    classes.set(key, found);
    const [oldest] = classes.keys();
    if (classes.size > MAX_CLASSES && oldest !== undefined) classes.delete(oldest);
    return found;
  }

  function make(length: (text: Uint8Array) => number | undefined): TokenClass {
    const lengths = new Uint16Array(bytes.length).fill(OTHER);
    const whole = new Uint32Array(Math.ceil(bytes.length / 32));
    let longest = 0;
    for (const [token, text] of bytes.entries()) {
      const count = text.length === 0 || ends.has(token) ? undefined : length(text);
      if (count === undefined || count >= OTHER) continue;
      lengths[token] = count;
      longest = Math.max(longest, count);
      whole[token >>> 5] = (whole[token >>> 5] as number) | 1 << (token & 31);
    }
    return { lengths, longest, whole };
  }

  return {
    texts,
    starts,
    eosTokenIds,
    addUpTo(mask, of, max) {
      const { lengths, longest, whole } = classOf(of);
      if (max >= longest) {
        for (const [word, bits] of whole.entries()) mask[word] = (mask[word] as number) | bits;
        return;
      }
      for (let token = 0; token < lengths.length; token++) {
        if ((lengths[token] as number) > max) continue;
        mask[token >>> 5] = (mask[token >>> 5] as number) | 1 << (token & 31);
      }
    },
  };
}

/** Characters of a text that consists of the set; undefined for other texts. */
function lengthIn(set: CodePoints): (text: Uint8Array) => number | undefined {
  const ascii = Uint8Array.from({ length: 128 }, (_, point) => Number(contains(set, point)));
  return (text) => {
    let count = 0;
    for (let i = 0; i < text.length; count++) {
      const byte = text[i] as number;
      if (byte < 0x80) {
        if (ascii[byte] === 0) return undefined;
        i++;
        continue;
      }
      const length = lengthOf(byte);
      let point = byte & (0x7f >> length);
      // Part of a character, or bytes that are not UTF-8, are not a character of a set.
      if (continues(byte) || byte > LAST_BYTE || i + length > text.length) return undefined;
      for (let k = 1; k < length; k++) {
        const more = text[i + k] as number;
        if (!continues(more)) return undefined;
        point = (point << 6) | (more & 0x3f);
      }
      if (point < (MIN_OF_LENGTH[length] as number) || !contains(set, point)) return undefined;
      i += length;
    }
    return count;
  };
}

function contains(set: CodePoints, point: number): boolean {
  return set.some(([from, to]) => from <= point && point <= to);
}

/** Characters of a part of a string of JSON without its quotes; undefined for what is none. */
function stringLength(text: Uint8Array): number | undefined {
  let escaped = false;
  let count = 0;
  for (const byte of text) {
    if (escaped) {
      if (!SHORT_ESCAPES.includes(byte)) return undefined;
      escaped = false;
    } else if (byte === QUOTE || byte < 0x20) return undefined;
    else {
      escaped = byte === BACKSLASH;
      if (!continues(byte)) count++;
    }
  }
  return escaped ? undefined : count;
}
