/** Tables and lines that fit a terminal, in characters. */

/** One column of a table for people. */
export interface TextColumn<Row> {
  readonly title: string;
  readonly align: "left" | "right";
  readonly text: (row: Row) => string;
}

const GAP = "  ";

/**
 * Heads of two lines, where one has two words, and the rows under them. Columns without a text are left out; of `dropped` the first
 * ones go until no line is wider than `width`.
 */
export function fittedTable<Row>(
  columns: readonly TextColumn<Row>[],
  rows: readonly Row[],
  { width, dropped }: { readonly width: number; readonly dropped: readonly TextColumn<Row>[] },
): string[] {
  const filled = columns.filter(({ text }) => rows.some((row) => text(row) !== ""));
  let shown = filled.map((column) => lay(column, rows));
  for (const column of dropped) {
    if (lineWidth(shown) <= width) break;
    shown = shown.filter((one) => one.column !== column);
  }
  return linesOf(shown, rows);
}

/** All columns, in as many tables below each other as the width asks for; each begins with the first column. */
export function splitTable<Row>(
  [first, ...others]: readonly [TextColumn<Row>, ...TextColumn<Row>[]],
  rows: readonly Row[],
  { width }: { readonly width: number },
): string[][] {
  const name = lay(first, rows);
  const tables: Laid<Row>[][] = [];
  for (const column of others.map((column) => lay(column, rows))) {
    const last = tables.at(-1);
    if (last && lineWidth([...last, column]) <= width) last.push(column);
    else tables.push([name, column]);
  }
  return tables.map((table) => linesOf(table, rows));
}

/** Broken between words, not within brackets; what follows is indented. */
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
  readonly column: TextColumn<Row>;
  /** Two of the head, then one a row, all of one width. */
  readonly cells: readonly string[];
}

function lay<Row>(column: TextColumn<Row>, rows: readonly Row[]): Laid<Row> {
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

/** `over plain` above `[95 %]`, `accept` above `length`; one word stands on the lower line. */
function headOf({ title }: { readonly title: string }): [string, string] {
  const [, upper = "", lower = title] = /^(.+?) (\[.*|\S+)$/.exec(title) ?? [];
  return [upper, lower];
}
