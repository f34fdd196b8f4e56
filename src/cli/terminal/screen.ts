import stringWidth from "string-width";
import type { Cell, Edited } from "./edited.ts";
import type { TextSink } from "./io.ts";
import { visible } from "./visible.ts";
import { graphemes } from "./wrap.ts";

/** What begins the second and later lines of a message. */
const CONTINUES = "... ";

/** A prompt and the text behind it. */
export interface Prompted extends Edited {
  readonly prompt: string;
}

/** The rows that a terminal shows of a text, and where its cursor is. */
interface Layout {
  /** Each row with what ends it: nothing where the terminal itself goes on to the next row. */
  readonly rows: readonly string[];
  readonly row: number;
  readonly column: number;
}

/** Draws an edited text. Between a submitted line and the next prompt it is muted and draws nothing. */
export class LineScreen {
  muted: boolean = true;
  readonly #output: TextSink;
  /** Rows between the first that was drawn and the cursor's. */
  #above = 0;

  constructor(output: TextSink) {
    this.#output = output;
  }

  /** Draws over what was drawn before. */
  draw(line: Prompted): void {
    if (this.muted) return;
    const { rows, row, column } = this.#layout(line);
    const up = (count: number) => count > 0 ? `\x1b[${count}A` : "";
    const right = column > 0 ? `\x1b[${column}C` : "";
    // If the cursor is after the last character, drawing has left it in its place.
    const atEnd = line.cursor >= line.cells.length;
    const back = atEnd ? "" : `${up(rows.length - 1 - row)}\r${right}`;
    this.#output.write(`${up(this.#above)}\r\x1b[J${rows.join("")}${back}`);
    this.#above = row;
  }

  /** Draws on a row on which nothing of the text is. */
  drawAnew(line: Prompted): void {
    this.#above = 0;
    this.muted = false;
    this.draw(line);
  }

  /** Draws for the terminal's new width: terminals wrap what they show anew, the cursor moves with it. */
  redraw(line: Prompted): void {
    this.#above = this.#layout(line).row;
    this.draw(line);
  }

  /** Leaves the text on the screen and goes to the row below it. */
  leave(line: Prompted): void {
    if (this.muted) return;
    this.draw({ ...line, cursor: line.cells.length });
    this.#output.write("\n");
    this.#above = 0;
  }

  /** Shows a line that was submitted before there was a prompt for it. */
  leaveAnew(line: Prompted): void {
    this.muted = false;
    this.leave(line);
    this.muted = true;
  }

  /** Lays out the line; of a text that is higher than the terminal only the rows around the cursor. */
  #layout(line: Prompted): Layout {
    const { rows, row, column } = layout(line, this.#output.columns());
    const most = Math.max(1, this.#output.rows());
    if (rows.length <= most) return { rows, row, column };
    const first = Math.min(Math.max(0, row - most + 1), rows.length - most);
    const seen = rows.slice(first, first + most);
    return {
      rows: seen.with(-1, (seen.at(-1) ?? "").replace(/\r\n$/, "")),
      row: row - first,
      column,
    };
  }
}

function layout({ prompt, cells, cursor }: Prompted, columns: number): Layout {
  const rows = [""];
  let column = 0;
  let place: Pick<Layout, "row" | "column"> | undefined;
  /** Appends one character; returns where it stands. */
  const put = (character: string) => {
    const width = stringWidth(character);
    if (column > 0 && column + width > columns) {
      rows.push("");
      column = 0;
    }
    const at = { row: rows.length - 1, column };
    rows[at.row] += character;
    column += width;
    return at;
  };
  const putAll = (text: string) => {
    const [first] = graphemes(text).map(put);
    return first;
  };
  const breakRow = () => {
    rows[rows.length - 1] += "\r\n";
    rows.push("");
    column = 0;
  };
  const newline = () => {
    const at = { row: rows.length - 1, column: Math.min(column, columns - 1) };
    breakRow();
    putAll(CONTINUES);
    return at;
  };
  const show = ({ shown }: Cell) => shown === "\n" ? newline() : putAll(shown);
  putAll(visible(prompt));
  for (const [index, cell] of cells.entries()) {
    const at = show(cell);
    if (index === cursor) place = at;
  }
  // Behind a full row the cursor stands on the next one.
  if (column >= columns) breakRow();
  return { rows, ...place ?? { row: rows.length - 1, column } };
}
