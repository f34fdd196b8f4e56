/**
 * Where an output may be in the rules of a grammar, with characters counted: the states of a deterministic automaton
 * that is built lazily. A position remembers where each kind of byte leads, so most bytes cost one lookup.
 */
import { utf8Ranges } from "./rules/code_points.ts";
import { GrammarError } from "./rules/grammar.ts";
import type { Expression, Rules } from "./rules/rules.ts";
import {
  BACKSLASH,
  continues,
  LAST_BYTE,
  lengthOf,
  MIN_OF_LENGTH,
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
  /** Where it is kept. */
  readonly pool: Pool;
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
export const INSIDE = 1;
const ESCAPED = 2;

/** The most places to follow at once; a grammar with more is refused as too ambiguous. */
const MAX_PLACES = 20_000;

/** The most positions, places and frames that are kept; beyond that all are dropped but the one where an output is. */
const MAX_KEPT = 200_000;

/** The automaton of one grammar. */
export interface Positions {
  /** Where an output begins. */
  readonly start: Position;
  /** The position itself, or an equal one where those that were kept with it have been dropped. */
  current(position: Position): Position;
  /** @throws GrammarError where the rules are too ambiguous to follow. */
  behind(position: Position, byte: number): Position;
}

/**
 * @param rules each must have a text, as `productive` ensures.
 * @param max for tests: how many positions, places and frames are kept.
 */
export function openPositions(rules: Rules, root: Expression, max: number = MAX_KEPT): Positions {
  const kinds = byteKinds(rules);
  let pool = new Pool(rules);
  const first = new Step(pool);
  first.enter(root, undefined);

  function stepped({ places, pool }: Position, byte: number): Position {
    const step = new Step(pool);
    for (const place of places) read(pool, place, byte, step);
    return step.position();
  }

  return {
    start: first.position(),
    current(position) {
      if (pool.kept > max) pool = new Pool(rules);
      return position.pool === pool ? position : pool.copied(position);
    },
    behind(position, byte) {
      const kind = kinds[byte] as number;
      return position.next[kind] ?? (position.next[kind] = stepped(position, byte));
    },
  };
}

type Text = Extract<Expression, { kind: "text" }>;

/** Frames, places and positions of one grammar: equal ones are the same object. */
class Pool {
  readonly rules: Rules;
  /** How many there are. */
  kept = 0;
  readonly #ids = new Map<Expression, number>();
  readonly #frames = new Map<string, Frame>();
  readonly #places = new Map<string, Place>();
  readonly #positions = new Map<string, Position>();
  readonly #texts = new Map<Expression, Uint8Array>();

  constructor(rules: Rules) {
    this.rules = rules;
  }

  #idOf(expression: Expression): number {
    return this.#ids.getOrInsertComputed(expression, () => this.#ids.size);
  }

  frame(of: Frame["of"], at: number, next: Frame | undefined): Frame {
    const key = `${this.#idOf(of)} ${at} ${next?.id ?? ""}`;
    const make = () => ({ id: this.kept++, of, at, next });
    return this.#frames.getOrInsertComputed(key, make);
  }

  place({ of, at, part, next }: Omit<Place, "id">): Place {
    const key = `${this.#idOf(of)} ${at} ${part} ${next?.id ?? ""}`;
    const make = () => ({ id: this.kept++, of, at, part, next });
    return this.#places.getOrInsertComputed(key, make);
  }

  position(places: ReadonlyMap<number, Place>, ended: boolean): Position {
    const key = `${[...places.keys()].sort((a, b) => a - b).join()} ${ended}`;
    return this.#positions.getOrInsertComputed(key, () => {
      this.kept += 1 + places.size;
      return { places: [...places.values()], ended, next: [], pool: this };
    });
  }

  /** The position of another pool here. */
  copied({ places, ended }: Position): Position {
    const copies = places.map(({ next, ...place }) => {
      const frames: Frame[] = [];
      for (let frame = next; frame; frame = frame.next) frames.push(frame);
      const copy = frames.reduceRight<Frame | undefined>(
        (below, { of, at }) => this.frame(of, at, below),
        undefined,
      );
      return this.place({ ...place, next: copy });
    });
    return this.position(new Map(copies.map((place) => [place.id, place])), ended);
  }

  bytesOf(of: Text): Uint8Array {
    return this.#texts.getOrInsertComputed(of, () => new TextEncoder().encode(of.text));
  }
}

/** Collects the places of the next position. */
class Step {
  readonly places = new Map<number, Place>();
  ended = false;
  readonly #seen = new Set<string>();
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  #once(what: string, next: Frame | undefined): boolean {
    const key = `${what} ${next?.id ?? ""}`;
    if (this.#seen.has(key)) return false;
    if (this.#seen.size > MAX_PLACES) {
      throw new GrammarError("its alternatives are too many to follow at once");
    }
    this.#seen.add(key);
    return true;
  }

  place(of: Omit<Place, "id">): void {
    const place = this.#pool.place(of);
    this.places.set(place.id, place);
  }

  position(): Position {
    return this.#pool.position(this.places, this.ended);
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
        return this.resume(this.#pool.frame(of, 0, next));
      case "choice":
        for (const part of of.parts) this.enter(part, next);
        return;
      case "repeat":
        return this.resume(this.#pool.frame(of, 0, next));
      case "rule": {
        const body = this.#pool.rules.get(of.name);
        if (body && this.#once(of.name, next)) this.enter(body, next);
      }
    }
  }

  resume(frame: Frame | undefined): void {
    if (!this.#once("resume", frame)) return;
    if (frame === undefined) {
      this.ended = true;
      return;
    }
    const { of, at, next } = frame;
    if (of.kind === "sequence") {
      const part = of.parts[at];
      if (part === undefined) return this.resume(next);
      const last = at === of.parts.length - 1;
      return this.enter(part, last ? next : this.#pool.frame(of, at + 1, next));
    }
    const { part, min, max } = of;
    if (at >= min) this.resume(next);
    if (max !== undefined && at >= max) return;
    // Without an upper bound, counts above `min` are equivalent, so the count stops there.
    const count = max === undefined ? Math.min(at + 1, min) : at + 1;
    this.enter(part, this.#pool.frame(of, count, next));
  }
}

/** Adds to the step where a byte leads from a place. */
function read(pool: Pool, place: Place, byte: number, step: Step): void {
  const { of, at, part, next } = place;
  switch (of.kind) {
    case "text": {
      const text = pool.bytesOf(of);
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
      // `min` to `max` are the code points that begin with these bytes.
      const left = 6 * (length - at - 1);
      const min = Math.max(value << left, MIN_OF_LENGTH[length] as number);
      const max = ((value + 1) << left) - 1;
      if (!of.set.some(([from, to]) => from <= max && min <= to)) return;
      if (left > 0) return step.place({ of, at: at + 1, part: (length << 24) | value, next });
      return step.resume(next);
    }
    case "counted string": {
      const { min, max = Infinity } = of;
      if (part === BEFORE) {
        if (byte === QUOTE) step.place({ of, at: 0, part: INSIDE, next });
      } else if (part === ESCAPED) {
        if (SHORT_ESCAPES.includes(byte)) step.place({ of, at, part: INSIDE, next });
      } else if (byte === QUOTE) {
        if (at >= min) step.resume(next);
      } else if (continues(byte)) step.place(place);
      else if (byte >= 0x20 && at < max) {
        // Without an upper bound, counts above `min` are equivalent, so the count stops there.
        const count = of.max === undefined ? Math.min(at + 1, min) : at + 1;
        step.place({ of, at: count, part: byte === BACKSLASH ? ESCAPED : INSIDE, next });
      }
    }
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
