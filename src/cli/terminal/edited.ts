import { graphemes } from "./wrap.ts";

/** What the cursor moves over in one step: a character, or a long paste that is shown shortened. */
export interface Cell {
  readonly text: string;
  /** The text that the screen shows for it; a newline ends the row. */
  readonly shown: string;
}

/** A text that is being edited. */
export interface Edited {
  readonly cells: readonly Cell[];
  /** Number of cells before the cursor. */
  readonly cursor: number;
}

export const EMPTY: Edited = { cells: [], cursor: 0 };

/** A text with more lines or characters than these is one cell. */
const FOLDED_LINES = 10;
const FOLDED_CHARACTERS = 1000;

/** Line ends as `\n`, and no control characters but those and tabs: a paste is text, not keys. */
function plain(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    // deno-lint-ignore no-control-regex
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
}

/** The text as it can be edited; a long one is a single cell. */
export function cellsOf(text: string): Cell[] {
  const kept = plain(text);
  const lines = kept.replace(/\n$/, "").split("\n").length;
  if (lines > FOLDED_LINES) return [{ text: kept, shown: `[pasted ${lines} lines]` }];
  if (kept.length > FOLDED_CHARACTERS) {
    return [{ text: kept, shown: `[pasted ${kept.length} characters]` }];
  }
  return typedCells(kept);
}

/** A cell for each character. */
function typedCells(text: string): Cell[] {
  return graphemes(text).map((character) => ({
    text: character,
    shown: character === "\t" ? "\u2409" : character,
  }));
}

/** The text with the cursor at its end. */
export function editing(text: string): Edited {
  const cells = cellsOf(text);
  return { cells, cursor: cells.length };
}

export function textOf(cells: readonly Cell[]): string {
  return cells.map(({ text }) => text).join("");
}

export function insert({ cells, cursor }: Edited, added: readonly Cell[]): Edited {
  return {
    cells: [...cells.slice(0, cursor), ...added, ...cells.slice(cursor)],
    cursor: cursor + added.length,
  };
}

/** Typed characters; the first may combine with the one before the cursor (accents, emoji). */
export function type(line: Edited, text: string): Edited {
  const before = line.cells[line.cursor - 1];
  const combines = before !== undefined && before.shown === before.text && before.text !== "\n";
  if (!combines) return insert(line, typedCells(text));
  return insert(remove(line, line.cursor - 1, line.cursor), typedCells(before.text + text));
}

/** Without the cells from `start` to `end`; the cursor stands where they were. */
export function remove({ cells }: Edited, start: number, end: number): Edited {
  return { cells: [...cells.slice(0, start), ...cells.slice(end)], cursor: start };
}

/** Exchanges the characters around the cursor; at the end of the text the last two. */
export function transpose({ cells, cursor }: Edited): Edited {
  const at = Math.min(cursor, cells.length - 1);
  const [left, right] = [cells[at - 1], cells[at]];
  if (left === undefined || right === undefined) return { cells, cursor };
  return { cells: cells.with(at - 1, right).with(at, left), cursor: at + 1 };
}

type Place = (line: Edited) => number;

/** Where each key moves the cursor to. */
export const MOVES: Readonly<Record<string, Place>> = {
  "left": before,
  "C-b": before,
  "right": after,
  "C-f": after,
  "home": lineStart,
  "C-a": lineStart,
  "end": lineEnd,
  "C-e": lineEnd,
  "M-b": (line) => skipBack(line, isWord),
  "M-f": (line) => skip(line, isWord),
};

/** Where the text ends that each key deletes, from the cursor on. */
export const DELETES: Readonly<Record<string, Place>> = {
  "backspace": before,
  "delete": after,
  "C-d": after,
};

/** Like `DELETES`; Ctrl+Y inserts the deleted text. */
export const KILLS: Readonly<Record<string, Place>> = {
  "C-u": lineStart,
  // At the end of a line the line end itself.
  "C-k": (line) =>
    Math.max(lineEnd(line), line.cells[line.cursor]?.text === "\n" ? after(line) : 0),
  "C-w": (line) => skipBack(line, ({ text }) => /\S/.test(text)),
  "M-backspace": (line) => skipBack(line, isWord),
  "M-d": (line) => skip(line, isWord),
};

/** The cursor in the line above (-1) or below (1), in the same column; undefined at the last one. */
export function moveLine(line: Edited, step: -1 | 1): Edited | undefined {
  const start = lineStart(line);
  const column = line.cursor - start;
  const beyond = step < 0 ? start - 1 : lineEnd(line) + 1;
  if (beyond < 0 || beyond > line.cells.length) return undefined;
  const there = { ...line, cursor: beyond };
  const cursor = Math.min(lineStart(there) + column, lineEnd(there));
  return { ...line, cursor };
}

function before({ cursor }: Edited): number {
  return Math.max(0, cursor - 1);
}

function after({ cells, cursor }: Edited): number {
  return Math.min(cells.length, cursor + 1);
}

function lineStart({ cells, cursor }: Edited): number {
  let at = cursor;
  while (at > 0 && cells[at - 1]?.text !== "\n") at--;
  return at;
}

function lineEnd({ cells, cursor }: Edited): number {
  let at = cursor;
  while (at < cells.length && cells[at]?.text !== "\n") at++;
  return at;
}

function isWord({ text }: Cell): boolean {
  return /[\p{L}\p{N}_]/u.test(text);
}

/** Past the next run of cells that are `part` of a word. */
function skip({ cells, cursor }: Edited, part: (cell: Cell) => boolean): number {
  let at = cursor;
  for (const inside of [false, true]) {
    for (let cell = cells[at]; cell !== undefined && part(cell) === inside; cell = cells[at]) at++;
  }
  return at;
}

function skipBack({ cells, cursor }: Edited, part: (cell: Cell) => boolean): number {
  const reversed = cells.slice(0, cursor).toReversed();
  return cursor - skip({ cells: reversed, cursor: 0 }, part);
}
