import { visible } from "./visible.ts";
import stringWidth from "string-width";
import { beginLine, type Line, NO_BLOCKS } from "./blocks.ts";
import { emphasize, NO_EMPHASIS } from "./emphasis.ts";
import type { TextSink } from "./io.ts";
import { graphemes, lastBreak, type Paint, WordWrap } from "./wrap.ts";

/** Codes of Select Graphic Rendition. */
const SGR = { bold: "1", dim: "2", italic: "3", cyan: "36" } as const;

export interface TextStyle {
  /** The terminal's width now. */
  readonly columns: () => number;
  readonly colour: boolean;
  /** All of the text is dim. */
  readonly dim?: boolean;
}

/** Text for a terminal as it comes; both return what to write now. */
export interface TerminalText {
  write(text: string): string;
  /** What was held back. */
  end(): string;
}

/**
 * Wraps words at the terminal's width and colours Markdown, whose marks are kept; code blocks and
 * tables are left alone. Text comes in any pieces; no more than a word is held back.
 */
export function terminalText({ columns, colour, dim = false }: TextStyle): TerminalText {
  const base = dim ? [SGR.dim] : [];
  const wrap = new WordWrap(columns);
  let held = "";
  let previous = " ";
  let line: Line | undefined;
  let blocks = NO_BLOCKS;
  let emphasis = NO_EMPHASIS;

  const paint = (text: string, codes: readonly string[]) =>
    !colour || codes.length === 0 ? text : `\x1b[${codes.join(";")}m${text}\x1b[0m`;

  const paintWord = (look: Line["look"]): Paint => (piece, around) => {
    const { runs, emphasis: next } = emphasize(piece, emphasis, around);
    emphasis = next;
    return runs.map(({ text, look: of }) => {
      if (of === "mark") return paint(text, [SGR.dim]);
      const codes = [
        ...base,
        ...of.bold || look === "heading" ? [SGR.bold] : [],
        ...of.italic ? [SGR.italic] : [],
        ...of.code > 0 ? [SGR.cyan] : [],
      ];
      return paint(text, codes);
    }).join("");
  };

  function drop(length: number): string {
    const dropped = held.slice(0, length);
    previous = dropped.at(-1) ?? previous;
    held = held.slice(length);
    return dropped;
  }

  /** The next part of a line that is left as it is. */
  function verbatim(look: Line["look"]): string {
    const end = held.indexOf("\n");
    const codes = look === "code" ? [SGR.cyan] : look === "mark" ? [SGR.dim] : base;
    const text = drop(end < 0 ? held.length : end);
    return text === "" ? "" : paint(text, codes);
  }

  /** The next word, or the part of it that is already certain; undefined while more text must arrive. */
  function word(look: Line["look"], ended: boolean): string | undefined {
    const [blanks = ""] = /^[ \t]*/.exec(held) ?? [];
    wrap.space(drop(blanks.length));
    const end = held.search(/[ \t\n]/);
    const known = end >= 0 || ended;
    const length = known ? (end < 0 ? held.length : end) : begunWord();
    if (length === 0) return known || blanks !== "" ? "" : undefined;
    const before = previous;
    const text = drop(length);
    return wrap.word(text, paintWord(look), { before, after: held[0] ?? " " });
  }

  /** Length of the part of an unfinished word that may be written; its last character may still change. */
  function begunWord(): number {
    const characters = graphemes(held);
    const full = stringWidth(held) > columns() ? characters.length - 1 : 0;
    return characters.slice(0, Math.max(full, lastBreak(characters))).join("").length;
  }

  function take(ended: boolean): string {
    let out = "";
    while (held !== "") {
      if (line === undefined) {
        const begun = beginLine(held, blocks, ended);
        if (begun === undefined) break;
        ({ line, blocks } = begun);
        wrap.hang = line.hang;
      }
      if (held.startsWith("\n")) {
        drop(1);
        out += wrap.newline();
        line = undefined;
        emphasis = NO_EMPHASIS;
        continue;
      }
      const part = line.wrapped ? word(line.look, ended) : verbatim(line.look);
      if (part === undefined) break;
      out += part;
    }
    return out;
  }

  return {
    write(text) {
      held += visible(text);
      return take(false);
    },
    end: () => take(true),
  };
}

/** Byte for byte. */
const AS_IT_IS: TerminalText = { write: (text) => text, end: () => "" };

/** Writes a model's text without layout; for a terminal its control sequences are removed. */
export function plainWriter(output: TextSink): TerminalText {
  return output.isTerminal ? { write: visible, end: () => "" } : AS_IT_IS;
}

/** Writes a model's text as Markdown on a terminal, elsewhere as it is. */
export function markdownWriter(output: TextSink, style: Omit<TextStyle, "columns">): TerminalText {
  return output.isTerminal ? terminalText({ ...style, columns: output.columns }) : AS_IT_IS;
}
