import stringWidth from "string-width";

/** Colours a piece of a word; text before and after it decides what marks mean. */
export type Paint = (piece: string, around: Neighbours) => string;

/** The characters before and after. */
export interface Neighbours {
  readonly before: string;
  readonly after: string;
}

const SPACES: Neighbours = { before: " ", after: " " };

const PLAIN: Paint = (piece) => piece;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** What a person sees as characters. */
export function graphemes(text: string): string[] {
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/**
 * May a line break between two characters of a word? Next to wide ones (Chinese, Japanese, emoji),
 * which have no spaces, but not before what closes or after what opens.
 */
function breaksBetween(left: string, right: string): boolean {
  if (stringWidth(left) < 2 && stringWidth(right) < 2) return false;
  return !/^[\p{Pe}\p{Pf}\p{Po}\p{Lm}*_`]/u.test(right) && !/^[\p{Ps}\p{Pi}*_`]/u.test(left);
}

/** Where the last line break of an unfinished word may be; 0 where there is none. */
export function lastBreak(characters: readonly string[]): number {
  for (let at = characters.length - 1; at > 0; at--) {
    if (breaksBetween(characters[at - 1] ?? "", characters[at] ?? "")) return at;
  }
  return 0;
}

/** Puts words on lines of a terminal's width, as they come. */
export class WordWrap {
  /** Columns that the lines after the first of a paragraph are indented by. */
  hang: number = 0;
  readonly #columns: () => number;
  #column = 0;
  #spaces = "";

  /** @param columns is asked at every word: the next one uses a new width. */
  constructor(columns: () => number) {
    this.#columns = columns;
  }

  /** Blanks before the next word; dropped where the line breaks. */
  space(blanks: string): void {
    this.#spaces += blanks.replaceAll("\t", "    ");
  }

  /** Ends the line. */
  newline(): string {
    this.#column = 0;
    this.#spaces = "";
    this.hang = 0;
    return "\n";
  }

  /** A word, or as much of it as is known. */
  word(text: string, paint: Paint = PLAIN, around: Neighbours = SPACES): string {
    const characters = graphemes(text);
    const { before, after } = around;
    let out = "";
    let begun = 0;
    for (let end = 1; end <= characters.length; end++) {
      const next = characters[end];
      if (next !== undefined && !breaksBetween(characters[end - 1] ?? "", next)) continue;
      const glued = begun === 0 && /\S/.test(before) && !breaksBetween(before, characters[0] ?? "");
      const piece = characters.slice(begun, end).join("");
      out += this.#place(stringWidth(piece), glued) + paint(piece, {
        before: characters[begun - 1] ?? before,
        after: next ?? after,
      });
      begun = end;
    }
    return out;
  }

  /** Returns the blanks or line break before a piece of this width; a glued piece continues the word before it. */
  #place(width: number, glued: boolean): string {
    const columns = this.#columns();
    const hang = this.hang * 2 > columns ? 0 : this.hang;
    const column = this.#column + this.#spaces.length;
    const wraps = !glued && this.#column > hang && column + width > columns;
    const gap = wraps ? `\n${" ".repeat(hang)}` : this.#spaces;
    this.#spaces = "";
    this.#column = (wraps ? hang : column) + width;
    // A word longer than a line goes on to the next at the terminal's edge.
    if (this.#column > columns) this.#column = (this.#column - 1) % columns + 1;
    return gap;
  }
}

/** Notes of the program: rows of two columns go on below their second one. */
export function wrapNote(text: string, columns: number): string {
  return text.split("\n").map((line) => {
    const wrap = new WordWrap(() => columns);
    const gap = /^\s*\S.*?\s{2,}(?=\S)/.exec(line)?.[0] ?? /^\s*/.exec(line)?.[0] ?? "";
    wrap.hang = stringWidth(gap);
    const parts = line.match(/\s+|\S+/g) ?? [];
    return parts.map((part) => part.trim() === "" ? (wrap.space(part), "") : wrap.word(part)).join(
      "",
    );
  }).join("\n");
}
