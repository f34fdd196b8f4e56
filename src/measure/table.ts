/** The one kind of table: its columns, and its text as Markdown and for a terminal. page/parts.ts has it as HTML. */
import { markdownTable } from "markdown-table";

/** One column of a table of rows, for people. */
export interface Column<Row> {
  /** The heading, with its unit or interval: `TPOT p50 ms`, `over plain [95 %]`. */
  readonly title: string;
  readonly align: "left" | "right";
  /** The cell of a row; empty where the row has no such value. */
  readonly text: (row: Row) => string;
  /** On a page the cells of this column are the headers of their rows. */
  readonly rowHeader?: true;
}

/** A column of words, aligned left. */
export function words<Row>(title: string, text: (row: Row) => string): Column<Row> {
  return { title, align: "left", text };
}

/** A column of numbers, aligned right. A row whose value is null or undefined has an empty cell. */
export function numbers<Row, Value>(
  title: string,
  value: (row: Row) => Value | null | undefined,
  format: (value: Value) => string = String,
): Column<Row> {
  const text = (row: Row) => {
    const found = value(row);
    return found === null || found === undefined ? "" : format(found);
  };
  return { title, align: "right", text };
}

/** Columns of rows that are lists of cells already; those with a title in `left` are aligned left. */
export function cellColumns(
  titles: readonly string[],
  left: readonly string[] = [],
): Column<readonly string[]>[] {
  return titles.map((title, at) => ({
    title,
    align: left.includes(title) ? "left" : "right",
    text: (cells) => cells[at] ?? "",
  }));
}

/** The columns in which at least one of the rows has a text. */
export function filledColumns<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): Column<Row>[] {
  return columns.filter(({ text }) => rows.some((row) => text(row) !== ""));
}

/** A Markdown table with all columns, without a newline at its end. */
export function markdownText<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return markdownTable(
    [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ text }) => text(row)))],
    { align: columns.map(({ align }) => align) },
  );
}

const GAP = "  ";

/**
 * The lines of a table for a terminal of `width` characters: headings on two lines where a title has two words, then a
 * line for each row. Columns without any text are left out, and columns of `dropped`, in that order, until no line is
 * longer than `width`.
 */
export function fittedTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, dropped }: { readonly width: number; readonly dropped: readonly Column<Row>[] },
): string[] {
  let shown = filledColumns(columns, rows).map((column) => lay(column, rows));
  for (const column of dropped) {
    if (lineWidth(shown) <= width) break;
    shown = shown.filter((one) => one.column !== column);
  }
  return linesOf(shown, rows);
}

/**
 * The lines of as many tables as it takes to show all columns in `width` characters; each table begins with the first
 * column.
 */
export function splitTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width }: { readonly width: number },
): string[][] {
  const [first, ...others] = columns.map((column) => lay(column, rows));
  const tables: Laid<Row>[][] = [];
  for (const column of others) {
    const last = tables.at(-1);
    if (last && lineWidth([...last, column]) <= width) last.push(column);
    else tables.push(first ? [first, column] : [column]);
  }
  return tables.map((table) => linesOf(table, rows));
}

/**
 * The line broken between words into lines of at most `width` characters, never within brackets; all but the first are
 * indented.
 */
export function wrapped(line: string, width: number): string[] {
  const lines = [""];
  for (const word of line.split(/(?<=\S) (?=\S)(?![^[]*\])/)) {
    const last = lines.at(-1) ?? "";
    if (last === "") lines[lines.length - 1] = word;
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines;
}

interface Laid<Row> {
  readonly column: Column<Row>;
  /** The two lines of the heading, then a cell for each row, all padded to the same width. */
  readonly cells: readonly string[];
}

function lay<Row>(column: Column<Row>, rows: readonly Row[]): Laid<Row> {
  const cells = [...headOf(column), ...rows.map(column.text)];
  const width = Math.max(...cells.map((cell) => cell.length));
  const pad = (cell: string) => column.align === "left" ? cell.padEnd(width) : cell.padStart(width);
  return { column, cells: cells.map(pad) };
}

function linesOf<Row>(laid: readonly Laid<Row>[], rows: readonly Row[]): string[] {
  const lines = [0, 1, ...rows.keys().map((row) => row + 2)].map((line) =>
    laid.map(({ cells }) => cells[line]).join(GAP).trimEnd()
  );
  return lines[0] === "" ? lines.slice(1) : lines;
}

function lineWidth<Row>(laid: readonly Laid<Row>[]): number {
  const widths = laid.map(({ cells }) => (cells[0] ?? "").length + GAP.length);
  return widths.reduce((sum, width) => sum + width, -GAP.length);
}

/**
 * The two lines of a heading: `over plain` above `[95 %]`, `accept` above `length`; a single word is on the lower line.
 */
function headOf({ title }: { readonly title: string }): [string, string] {
  const [, upper = "", lower = title] = /^(.+?) (\[.*|\S+)$/.exec(title) ?? [];
  return [upper, lower];
}
