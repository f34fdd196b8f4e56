/**
 * Lengths of strings, which xgrammar does not see: a grammar that counts characters has a place for each
 * of them, and a table of all tokens for each place. What is compiled allows strings of any length;
 * here is where an output is in the rules, with the characters of its strings counted, and the tokens
 * that would make a string too long or end it too soon are taken out of the masks. The result is exact:
 * the texts are those of the rules.
 */
import { GrammarError } from "./rules/grammar.ts";
import { tokensOf } from "./matcher.ts";
import { type Expression, rule, type Rules } from "./rules/rules.ts";

/** Where an output may be in the rules: all at once. */
export interface Position {
  readonly places: readonly Place[];
  /** It may end here. */
  readonly ended: boolean;
}

/** What follows a part. Two that are the same are one object. */
interface Frame {
  readonly id: number;
  /** The sequence or repetition that goes on. */
  readonly of: Extract<Expression, { kind: "sequence" | "repeat" }>;
  /** Its next part, or how often it was there. */
  readonly at: number;
  readonly next: Frame | undefined;
}

/** A part that reads the next byte. */
interface Place {
  readonly of: Extract<Expression, { kind: "text" | "one of" | "counted string" }>;
  /** Bytes of the text or characters of the string that were read; 0 before its quote. */
  readonly at: number;
  /** Of a character the bytes so far, as a number; of a string, see IN_*. */
  readonly part: number;
  readonly next: Frame | undefined;
}

const BEFORE = 0;
const INSIDE = 1;
const ESCAPED = 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** More places at once are too ambiguous to follow. */
const MOST_PLACES = 20_000;

/** What is known of a vocabulary's tokens. */
export interface TokenCounts {
  readonly bytes: readonly Uint8Array[];
  /** Of each token the characters of a string that it has before its first quote. */
  readonly characters: Uint8Array;
  /** Whether it has a quote, 1, and anything behind it, 2. */
  readonly quotes: Uint8Array;
  /** Those that have something behind a quote: they may begin a string. */
  readonly entering: readonly number[];
  readonly mostCharacters: number;
}

export function tokenCounts(bytes: readonly Uint8Array[]): TokenCounts {
  const characters = new Uint8Array(bytes.length);
  const quotes = new Uint8Array(bytes.length);
  for (const [token, text] of bytes.entries()) {
    let escaped = false;
    let count = 0;
    let at = 0;
    for (; at < text.length; at++) {
      const byte = text[at] as number;
      if (escaped) escaped = false;
      else if (byte === QUOTE) break;
      else {
        escaped = byte === BACKSLASH;
        if (!continues(byte)) count++;
      }
    }
    characters[token] = Math.min(255, count);
    quotes[token] = at === text.length ? 0 : at === text.length - 1 ? 1 : 2;
  }
  const entering = [...bytes.keys()].filter((token) => {
    const at = bytes[token]?.indexOf(QUOTE) ?? -1;
    return at >= 0 && at < (bytes[token]?.length ?? 0) - 1;
  });
  const mostCharacters = characters.reduce((a, b) => Math.max(a, b), 0);
  return { bytes, characters, quotes, entering, mostCharacters };
}

function continues(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Follows outputs of one grammar. */
export interface Counter {
  readonly start: Position;
  /** @throws GrammarError where the rules are too ambiguous to follow. */
  after(position: Position, text: Uint8Array): Position;
  /** The mask without the tokens that no string of the allowed lengths has. */
  restricted(mask: Uint32Array, position: Position): Uint32Array;
}

/** Undefined for rules that count nothing. */
export function openCounter(
  rules: Rules,
  tokens: () => TokenCounts,
  { stripsSpace }: { readonly stripsSpace: boolean },
): Counter | undefined {
  const counted = [...rules.values()].flatMap(countedIn);
  if (counted.length === 0) return undefined;
  const { bytes, characters, quotes, entering, mostCharacters } = tokens();
  /** A token may do more than the string at hand shows: one that it begins may be wrong already. */
  const entersWrong = counted.some(({ least, most = Infinity }) =>
    least > 0 || most < mostCharacters
  );

  const ids = new Map<Expression, number>();
  const frames = new Map<string, Frame>();
  const idOf = (expression: Expression) => ids.getOrInsertComputed(expression, () => ids.size);

  function frame(of: Frame["of"], at: number, next: Frame | undefined): Frame {
    const key = `${idOf(of)} ${at} ${next?.id ?? ""}`;
    return frames.getOrInsertComputed(key, () => ({ id: frames.size, of, at, next }));
  }

  /** Collects the places that are next. */
  class Step {
    readonly places = new Map<string, Place>();
    ended = false;
    readonly #seen = new Set<string>();

    #once(what: string, next: Frame | undefined): boolean {
      const key = `${what} ${next?.id ?? ""}`;
      if (this.#seen.has(key)) return false;
      if (this.#seen.size > MOST_PLACES) {
        throw new GrammarError("its alternatives are too many to follow at once");
      }
      this.#seen.add(key);
      return true;
    }

    place(place: Place): void {
      const { of, at, part, next } = place;
      this.places.set(`${idOf(of)} ${at} ${part} ${next?.id ?? ""}`, place);
    }

    enter(of: Expression, next: Frame | undefined): void {
      switch (of.kind) {
        case "text":
          if (of.text === "") return this.resume(next);
          return this.place({ of, at: 0, part: 0, next });
        case "one of":
        case "counted string":
          return this.place({ of, at: 0, part: BEFORE, next });
        case "sequence":
          return this.resume(frame(of, 0, next));
        case "choice":
          for (const part of of.parts) this.enter(part, next);
          return;
        case "repeat":
          return this.resume(frame(of, 0, next));
        case "rule": {
          const body = rules.get(of.name);
          if (body && this.#once(of.name, next)) this.enter(body, next);
        }
      }
    }

    resume(frame_: Frame | undefined): void {
      if (!this.#once("resume", frame_)) return;
      if (frame_ === undefined) {
        this.ended = true;
        return;
      }
      const { of, at, next } = frame_;
      if (of.kind === "sequence") {
        const part = of.parts[at];
        if (part === undefined) return this.resume(next);
        const last = at === of.parts.length - 1;
        return this.enter(part, last ? next : frame(of, at + 1, next));
      }
      const { part, least, most } = of;
      if (at >= least) this.resume(next);
      if (most !== undefined && at >= most) return;
      // Beyond the least, how often is the same unless there is a most.
      this.enter(part, frame(of, most === undefined ? Math.min(at + 1, least) : at + 1, next));
    }
  }

  function read(place: Place, byte: number, step: Step): void {
    const { of, at, part, next } = place;
    switch (of.kind) {
      case "text": {
        const text = encoded(of);
        if (text[at] !== byte) return;
        if (at + 1 === text.length) return step.resume(next);
        return step.place({ of, at: at + 1, part: 0, next });
      }
      case "one of": {
        // `at` bytes of the character were read, `part` is what they say.
        const length = at === 0 ? lengthOf(byte) : (part >>> 24);
        const value = at === 0
          ? (length === 1 ? byte : byte & (0x7f >> length))
          : ((part & 0xffffff) << 6) | (byte & 0x3f);
        if (at > 0 && !continues(byte)) return;
        if (at + 1 < length) {
          return step.place({ of, at: at + 1, part: (length << 24) | value, next });
        }
        if (of.set.some(([from, to]) => from <= value && value <= to)) step.resume(next);
        return;
      }
      case "counted string": {
        if (part === BEFORE) {
          if (byte === QUOTE) step.place({ of, at: 0, part: INSIDE, next });
        } else if (part === ESCAPED) step.place({ of, at, part: INSIDE, next });
        else if (byte === QUOTE) {
          if (at >= of.least) step.resume(next);
        } else if (continues(byte)) step.place(place);
        else if (at < (of.most ?? Infinity)) {
          step.place({ of, at: at + 1, part: byte === BACKSLASH ? ESCAPED : INSIDE, next });
        }
      }
    }
  }

  const texts = new Map<Expression, Uint8Array>();
  function encoded(of: Extract<Expression, { kind: "text" }>): Uint8Array {
    return texts.getOrInsertComputed(of, () => new TextEncoder().encode(of.text));
  }

  function after(position: Position, text: Uint8Array): Position {
    let at = position;
    for (const byte of text) {
      const step = new Step();
      for (const place of at.places) read(place, byte, step);
      at = { places: [...step.places.values()], ended: step.ended };
    }
    return at;
  }

  function isPossible(position: Position, token: number): boolean {
    const { places, ended } = after(position, bytes[token] as Uint8Array);
    return places.length > 0 || ended;
  }

  /** Within one string: most tokens are known by their numbers of characters. */
  function withinString(mask: Uint32Array, position: Position, { of, at }: Place): Uint32Array {
    const { least, most = Infinity } = of as Extract<Expression, { kind: "counted string" }>;
    const [needed, left] = [least - at, most - at];
    if (needed <= 0 && left >= mostCharacters && !entersWrong) return mask;
    return filtered(mask, tokensOf(mask, Infinity) ?? [], (token) => {
      const count = characters[token] as number;
      const quoted = quotes[token] as number;
      if (quoted === 0) return count <= left;
      if (quoted === 1 || !entersWrong) return count <= left && count >= needed;
      return isPossible(position, token);
    });
  }

  const start = new Step();
  start.enter(rule("root"), undefined);
  const root: Position = { places: [...start.places.values()], ended: start.ended };
  const spaced: Expression = {
    kind: "sequence",
    parts: [{ kind: "text", text: " " }, rule("root")],
  };
  const begin = new Step();
  begin.enter(spaced, undefined);
  return {
    start: stripsSpace ? { places: [...begin.places.values()], ended: false } : root,
    after,
    restricted(mask, position) {
      const [place] = position.places;
      const within = position.places.filter(({ of, part }) =>
        of.kind === "counted string" && part !== BEFORE
      );
      if (within.length === 0) {
        if (!entersWrong) return mask;
        return filtered(mask, entering, (token) => isPossible(position, token));
      }
      if (place && position.places.length === 1 && place.part === INSIDE) {
        return withinString(mask, position, place);
      }
      return filtered(
        mask,
        tokensOf(mask, Infinity) ?? [],
        (token) => bytes[token]?.length === 0 || isPossible(position, token),
      );
    },
  };
}

/** The mask without those of the tokens that are not to be kept. */
function filtered(
  mask: Uint32Array,
  tokens: readonly number[],
  keep: (token: number) => boolean,
): Uint32Array {
  const made = mask.slice();
  for (const token of tokens) {
    const bit = 1 << (token & 31);
    const word = made[token >>> 5] as number;
    if ((word & bit) !== 0 && !keep(token)) made[token >>> 5] = word & ~bit;
  }
  return made;
}

/** Bytes of a character that begins so. */
function lengthOf(byte: number): number {
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

function countedIn(
  expression: Expression,
): readonly Extract<Expression, { kind: "counted string" }>[] {
  switch (expression.kind) {
    case "counted string":
      return [expression];
    case "sequence":
    case "choice":
      return expression.parts.flatMap(countedIn);
    case "repeat":
      return countedIn(expression.part);
    default:
      return [];
  }
}
