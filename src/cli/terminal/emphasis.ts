import type { Neighbours } from "./wrap.ts";

/** What Markdown inside a line has switched on. */
export interface Emphasis {
  readonly bold: boolean;
  readonly italic: boolean;
  /** Backticks that the code began with; 0 outside of code. */
  readonly code: number;
}

export const NO_EMPHASIS: Emphasis = { bold: false, italic: false, code: 0 };

/** A run of text of one look. */
export interface Run {
  readonly text: string;
  readonly look: Emphasis | "mark";
}

const TOKENS = /\\[!-/:-@[-`{-~]|`+|\*+|_+|[^\\`*_]+|\\/g;

/**
 * Splits a piece of a line into runs, and returns the emphasis after it. Marks are kept in the text, so that
 * nothing is lost where they meant something else.
 *
 * @param around the characters before and after the piece: marks open before text and close after it.
 */
export function emphasize(
  piece: string,
  start: Emphasis,
  around: Neighbours,
): { readonly runs: readonly Run[]; readonly emphasis: Emphasis } {
  const runs: Run[] = [];
  let emphasis = start;
  for (const { 0: text, index } of piece.matchAll(TOKENS)) {
    const before = piece.slice(0, index).at(-1) ?? around.before;
    const after = piece[index + text.length] ?? around.after;
    const changed = switched(emphasis, text, { before, after });
    runs.push({ text, look: changed === undefined ? emphasis : "mark" });
    emphasis = changed ?? emphasis;
  }
  return { runs, emphasis };
}

/** What a run of marks changes; undefined where it is text. */
function switched(
  emphasis: Emphasis,
  marks: string,
  { before, after }: Neighbours,
): Emphasis | undefined {
  const { length } = marks;
  if (marks[0] === "`") {
    if (emphasis.code === length) return { ...emphasis, code: 0 };
    return emphasis.code === 0 ? { ...emphasis, code: length } : undefined;
  }
  if ((marks[0] !== "*" && marks[0] !== "_") || emphasis.code > 0 || length > 3) return undefined;
  const bold = length > 1;
  const italic = length !== 2;
  const all = (on: boolean) =>
    (!bold || emphasis.bold === on) && (!italic || emphasis.italic === on);
  const opens = /\S/.test(after) && !isLetter(before) && all(false);
  const closes = /\S/.test(before) && !isLetter(after) && all(true);
  if (!opens && !closes) return undefined;
  return {
    ...emphasis,
    ...bold ? { bold: !emphasis.bold } : {},
    ...italic ? { italic: !emphasis.italic } : {},
  };
}

/** Marks inside a word are text, as in `snake_case`. In scripts without spaces nothing counts as inside a word. */
function isLetter(character: string): boolean {
  return /[\p{L}\p{N}]/u.test(character) &&
    !/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u.test(character);
}
