/**
 * Counts characters in place of xgrammar. For a rule that counts characters, xgrammar would need a place for
 * each character and a table of all tokens for each place. So the compiled grammar allows counted strings, and
 * counted repeats of characters (rules/relaxed.ts), of any length. This file tracks the position of an output
 * in the original rules, with its characters counted, and removes the tokens that the rules do not allow from
 * the masks. The result is exact: the possible texts are those of the rules.
 *
 * Positions are the states of a deterministic automaton that is built lazily: a position remembers where each
 * kind of byte leads, so most tokens cost one lookup a byte. Tokens that consist only of characters counted at
 * the position are decided by their number of characters.
 */
import { ANY, both, type CodePoints, utf8Ranges } from "./rules/code_points.ts";
import { GrammarError } from "./rules/grammar.ts";
import { tokensOf } from "./matcher.ts";
import { type Expression, rule, type Rules } from "./rules/rules.ts";
import { STRING, type TokenClasses } from "./token_classes.ts";
import {
  BACKSLASH,
  continues,
  LAST_BYTE,
  LEAST_OF_LENGTH,
  lengthOf,
  QUOTE,
  SHORT_ESCAPES,
} from "./utf8.ts";

/** The set of all places in the rules where an output may be. */
export interface Position {
  readonly places: readonly Place[];
  /** It may end here. */
  readonly ended: boolean;
  /** Where a byte leads, by its kind, as far as it is known. */
  readonly next: (Position | undefined)[];
}

/** A stack frame: what follows a part. Equal frames are the same object. */
interface Frame {
  readonly id: number;
  /** The sequence or repetition that goes on. */
  readonly of: Extract<Expression, { kind: "sequence" | "repeat" }>;
  /** The index of the sequence's next part, or how often the repeated part has occurred. */
  readonly at: number;
  readonly next: Frame | undefined;
}

/** A part that reads the next byte. */
interface Place {
  readonly id: number;
  readonly of: Extract<Expression, { kind: "text" | "one of" | "counted string" }>;
  /** Bytes of the text or characters of the string that were read; 0 before its quote. */
  readonly at: number;
  /** Within a character: its length and its value so far, see `read`; for a string: BEFORE, INSIDE or ESCAPED. */
  readonly part: number;
  readonly next: Frame | undefined;
}

const BEFORE = 0;
const INSIDE = 1;
const ESCAPED = 2;

/** The most places to follow at once; a grammar with more is refused as too ambiguous. */
const MOST_PLACES = 20_000;

/** The size of the cache of positions, counted in places; when it is full, all are dropped. */
const MOST_KEPT = 200_000;

/** Follows outputs of one grammar. */
export interface Counter {
  readonly start: Position;
  /** @throws GrammarError where the rules are too ambiguous to follow. */
  after(position: Position, text: Uint8Array): Position;
  /** The mask without the tokens that no text of the rules has at the position. */
  restricted(mask: Uint32Array, position: Position): Uint32Array;
}

/**
 * @param rules each must have a text, as `productive` ensures.
 * @param of.few in masks of at most so many tokens, each token is tried by itself.
 */
export function openCounter(
  rules: Rules,
  { texts, starts, eosTokenIds, addUpTo }: TokenClasses,
  { stripsSpace, few }: { readonly stripsSpace: boolean; readonly few: number },
): Counter {
  const kinds = byteKinds(rules);
  const ids = new Map<Expression, number>();
  const frames = new Map<string, Frame>();
  const places = new Map<string, Place>();
  const positions = new Map<string, Position>();
  let kept = 0;
  /** The sets without code points that UTF-8 cannot encode. */
  const sets = new Map<Expression, CodePoints>();
  const idOf = (expression: Expression) => ids.getOrInsertComputed(expression, () => ids.size);

  function frame(of: Frame["of"], at: number, next: Frame | undefined): Frame {
    const key = `${idOf(of)} ${at} ${next?.id ?? ""}`;
    return frames.getOrInsertComputed(key, () => ({ id: frames.size, of, at, next }));
  }

  /** Collects the places of the next position. */
  class Step {
    readonly places = new Map<number, Place>();
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

    place({ of, at, part, next }: Omit<Place, "id">): void {
      const key = `${idOf(of)} ${at} ${part} ${next?.id ?? ""}`;
      const place = places.getOrInsertComputed(
        key,
        () => ({ id: places.size, of, at, part, next }),
      );
      this.places.set(place.id, place);
    }

    position(): Position {
      const key = `${[...this.places.keys()].sort((a, b) => a - b).join()} ${this.ended}`;
      const known = positions.get(key);
      if (known) return known;
      kept += 1 + this.places.size;
      if (kept > MOST_KEPT) {
        positions.clear();
        kept = 1 + this.places.size;
      }
      const made = { places: [...this.places.values()], ended: this.ended, next: [] };
      positions.set(key, made);
      return made;
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
      // Without an upper bound, counts above `least` are equivalent, so the count stops there.
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
        // `at` bytes of the character were read; `part` holds its length and its value so far.
        if (continues(byte) !== at > 0 || byte > LAST_BYTE) return;
        const length = at === 0 ? lengthOf(byte) : (part >>> 24);
        const value = at === 0
          ? (length === 1 ? byte : byte & (0x7f >> length))
          : ((part & 0xffffff) << 6) | (byte & 0x3f);
        // `least` to `most` are the code points that begin with these bytes.
        const left = 6 * (length - at - 1);
        const least = Math.max(value << left, LEAST_OF_LENGTH[length] as number);
        const most = ((value + 1) << left) - 1;
        const set = sets.getOrInsertComputed(of, () => both(of.set, ANY));
        if (!set.some(([from, to]) => from <= most && least <= to)) return;
        if (left > 0) return step.place({ of, at: at + 1, part: (length << 24) | value, next });
        return step.resume(next);
      }
      case "counted string": {
        const { least, most = Infinity } = of;
        if (part === BEFORE) {
          if (byte === QUOTE) step.place({ of, at: 0, part: INSIDE, next });
        } else if (part === ESCAPED) {
          if (SHORT_ESCAPES.includes(byte)) step.place({ of, at, part: INSIDE, next });
        } else if (byte === QUOTE) {
          if (at >= least) step.resume(next);
        } else if (continues(byte)) step.place(place);
        else if (byte >= 0x20 && at < most) {
          // Without an upper bound, counts above `least` are equivalent, so the count stops there.
          const count = of.most === undefined ? Math.min(at + 1, least) : at + 1;
          step.place({ of, at: count, part: byte === BACKSLASH ? ESCAPED : INSIDE, next });
        }
      }
    }
  }

  const encodings = new Map<Expression, Uint8Array>();
  function encoded(of: Extract<Expression, { kind: "text" }>): Uint8Array {
    return encodings.getOrInsertComputed(of, () => new TextEncoder().encode(of.text));
  }

  function behind(position: Position, byte: number): Position {
    const kind = kinds[byte] as number;
    return position.next[kind] ?? (position.next[kind] = stepped(position, byte));
  }

  function stepped(position: Position, byte: number): Position {
    const step = new Step();
    for (const place of position.places) read(place, byte, step);
    return step.position();
  }

  function after(position: Position, text: Uint8Array): Position {
    let at = position;
    for (const byte of text) at = behind(at, byte);
    return at;
  }

  function isPossible(position: Position, token: number): boolean {
    let at = position;
    const end = starts[token + 1] as number;
    for (let i = starts[token] as number; i < end; i++) {
      if (at.places.length === 0) return false;
      at = behind(at, texts[i] as number);
    }
    return at.places.length > 0 || at.ended;
  }

  /** Tokens that consist only of characters which a repeat or string at this position still allows so many of. */
  function surelyPossible(position: Position, words: number): Uint32Array {
    const most = new Map<CodePoints | typeof STRING, number>();
    const may = (of: CodePoints | typeof STRING, count: number) =>
      most.set(of, Math.max(count, most.get(of) ?? 0));
    for (const { of, at, part, next } of position.places) {
      if (of.kind === "counted string" && part === INSIDE) may(STRING, (of.most ?? Infinity) - at);
      if (of.kind !== "one of" || at > 0 || next?.of.kind !== "repeat") continue;
      // `next.at` counts the character that this place reads.
      if (isOneOf(of, next.of.part)) may(of.set, (next.of.most ?? Infinity) - next.at + 1);
    }
    const made = new Uint32Array(words);
    for (const [of, count] of most) if (count > 0) addUpTo(made, of, count);
    return made;
  }

  function opened(expression: Expression): Position {
    const step = new Step();
    step.enter(expression, undefined);
    return step.position();
  }

  const root = rule("root");
  return {
    start: opened(
      stripsSpace ? { kind: "sequence", parts: [{ kind: "text", text: " " }, root] } : root,
    ),
    after,
    restricted(mask, position) {
      const known = tokensOf(mask, few) ? undefined : surelyPossible(position, mask.length);
      const rest = known ? mask.map((word, at) => word & ~(known[at] as number)) : mask;
      const ends = position.ended ? [] : eosTokenIds;
      return without(mask, [
        ...ends,
        ...(tokensOf(rest, Infinity) ?? []).filter((token) =>
          !eosTokenIds.includes(token) && !isPossible(position, token)
        ),
      ]);
    },
  };
}

function without(mask: Uint32Array, tokens: readonly number[]): Uint32Array {
  const made = mask.slice();
  for (const token of tokens) {
    made[token >>> 5] = (made[token >>> 5] as number) & ~(1 << (token & 31));
  }
  return made;
}

/** Whether the part is `of` itself, or a choice with `of` among its alternatives. */
function isOneOf(of: Expression, part: Expression): boolean {
  switch (part.kind) {
    case "choice":
      return part.parts.some((each) => isOneOf(of, each));
    case "sequence":
      return part.parts.length === 1 && isOneOf(of, part.parts[0] as Expression);
    default:
      return part === of;
  }
}

/** The kind of each byte: all parts of the rules treat bytes of one kind alike. */
function byteKinds(rules: Rules): Uint16Array {
  /** The bytes at which a new kind begins. */
  const begins = new Set([QUOTE, BACKSLASH, 0x20, 0x80, 0xc0, ...SHORT_ESCAPES].flatMap(around));
  const visit = (expression: Expression): void => {
    switch (expression.kind) {
      case "text":
        for (const byte of new TextEncoder().encode(expression.text)) {
          for (const each of around(byte)) begins.add(each);
        }
        return;
      case "one of":
        for (const [from, to] of utf8Ranges(expression.set).flat()) begins.add(from).add(to + 1);
        return;
      case "sequence":
      case "choice":
        return expression.parts.forEach(visit);
      case "repeat":
        return visit(expression.part);
    }
  };
  for (const body of rules.values()) visit(body);
  let kind = 0;
  return Uint16Array.from({ length: 256 }, (_, byte) => begins.has(byte) ? ++kind : kind);
}

function around(byte: number): [number, number] {
  return [byte, byte + 1];
}
