import { digits, ratioText } from "../formats.ts";
import { type Column, markdownText, numbers, splitTable, words, wrapped } from "../table.ts";
import type { RewriteRow } from "./row.ts";

/** What the columns of the tables mean. */
const REWRITES_NOTES: readonly string[] = [
  "With: milliseconds of a forward with all rewrites. Without: the same forward without the rewrite of the " +
  "line, or without all. Ratio: without over with, the median of the pairs and its 95 % interval. " +
  "`-`: the forward dispatches the same without it.",
  "A round is the target's forward and its choice over the verify rows, without drafting and acceptance; " +
  "a prompt is a chunk of a prompt without the head.",
];

/** The line below tables of a measurement that was stopped. */
const STOPPED = "stopped: an empty field was not reached, or the forward dispatches the same " +
  "without the rewrite; the last rewrite may have fewer pairs";

/** What was measured, or left out. */
export interface RewritesFound {
  readonly rows: readonly RewriteRow[];
  /** A line for each thing that was left out. */
  readonly skipped: readonly string[];
  /** It ended before everything was measured. */
  readonly stopped: boolean;
}

/** A rewrite of one model on one device, with the rows of the shapes that it was measured at. */
interface RewriteLine {
  readonly rewrite: string;
  readonly rows: ReadonlyMap<string, RewriteRow>;
}

/** The rows as one Markdown table for each model and WebGPU, and below them what was left out. */
export function rewritesMarkdown(found: RewritesFound): string {
  const tables = Map.groupBy(found.rows, titleOf);
  return [
    ...REWRITES_NOTES,
    ...[...tables].flatMap(([title, rows]) => {
      const { shapes, lines } = linesOf(rows);
      return [`## ${title}`, markdownText(columnsOf(shapes, emptyField(found)), lines)];
    }),
    ...notesBelow(found),
  ].join("\n\n") + "\n";
}

/** The same for a terminal of so many columns: of each shape the time with all rewrites and the ratios. */
export function rewritesTerminal(
  found: RewritesFound,
  { columns: width }: { readonly columns: number },
): string {
  const tables = [...Map.groupBy(found.rows, titleOf)].flatMap(([title, rows]) => {
    const { shapes, lines } = linesOf(rows);
    const columns = terminalColumns(shapes, emptyField(found));
    return [
      wrapped(title, width).join("\n"),
      ...splitTable(columns, lines, { width }).map((table) => table.join("\n")),
    ];
  });
  const note =
    "ms: a forward with all rewrites; over: without the rewrite of the line over with all; " +
    "-: the forward dispatches the same; --format md: all columns and what they mean";
  return [...tables, ...[...notesBelow(found), note].map((text) => wrapped(text, width).join("\n"))]
    .join("\n\n") + "\n";
}

function notesBelow({ skipped, stopped }: RewritesFound): string[] {
  return [
    ...skipped.length === 0 ? [] : [skipped.map((line) => `left out: ${line}`).join("\n")],
    ...stopped ? [STOPPED] : [],
  ];
}

function emptyField({ stopped }: RewritesFound): string {
  return stopped ? "" : "-";
}

function titleOf({ model, draft, device, clock }: RewriteRow): string {
  const time = clock === "device" ? "device time" : "the host's clock";
  return `${model}, draft ${draft ?? "none"}, ${device}, ${time}`;
}

/** A line for each rewrite, and the shapes that they were measured at. */
function linesOf(rows: readonly RewriteRow[]): {
  readonly shapes: readonly string[];
  readonly lines: readonly RewriteLine[];
} {
  const several = new Set(rows.filter(({ kind }) => kind === "round").map(({ context }) => context))
    .size > 1;
  const shapeOf = (row: RewriteRow) => shapeText(row, several);
  const shapes = [...new Set(rows.map(shapeOf))];
  const lines = [...Map.groupBy(rows, ({ rewrite }) => rewrite)].map((
    [rewrite, rows],
  ): RewriteLine => ({ rewrite, rows: new Map(rows.map((row) => [shapeOf(row), row])) }));
  // Shapes differ in what they change: the line of all rewrites is the last.
  const last = lines.filter(({ rewrite }) => rewrite === "all");
  return { shapes, lines: [...lines.filter((line) => !last.includes(line)), ...last] };
}

const WITHOUT: Column<RewriteLine> = {
  ...words("without", ({ rewrite }: RewriteLine) => rewrite),
  rowHeader: true,
};

/** @param empty for a rewrite that was not measured at the shape. */
function columnsOf(shapes: readonly string[], empty: string): Column<RewriteLine>[] {
  return [
    WITHOUT,
    words(
      "bits",
      ({ rows }) => rows.values().some(({ changes_bits }) => changes_bits) ? "others" : "same",
    ),
    ...shapes.flatMap((shape) => [
      cell(shape, { title: `${shape}: with ms`, text: withText, empty }),
      cell(shape, { title: `${shape}: without ms`, text: withoutText, empty }),
      cell(shape, { title: `${shape}: ratio`, text: ratiosText, empty }),
    ]),
  ];
}

function terminalColumns(shapes: readonly string[], empty: string): Column<RewriteLine>[] {
  return [
    WITHOUT,
    ...shapes.flatMap((shape) => [
      cell(shape, { title: `${shape} ms`, text: withText, empty }),
      cell(shape, { title: `${shape} over`, text: ratiosText, empty }),
    ]),
  ];
}

function cell(
  shape: string,
  { title, text, empty }: {
    readonly title: string;
    readonly text: (row: RewriteRow) => string;
    readonly empty: string;
  },
): Column<RewriteLine> {
  return numbers(title, ({ rows }: RewriteLine) => {
    const row = rows.get(shape);
    return row ? text(row) : empty;
  });
}

function withText({ with_ms }: RewriteRow): string {
  return digits(with_ms);
}

function withoutText({ without_ms }: RewriteRow): string {
  return digits(without_ms);
}

function ratiosText({ ratio, ratio_low: low, ratio_high: high }: RewriteRow): string {
  return ratioText({ ratio, low, high });
}

/** `4 x 2 rows`, `prompt of 256`; with the context where rows have several. */
function shapeText({ kind, context, batch, rows }: RewriteRow, several: boolean): string {
  if (kind === "prompt") return `prompt of ${rows}`;
  const count = `${batch === 1 ? "" : `${batch} x `}${rows} ${rows === 1 ? "row" : "rows"}`;
  return `${count}${several ? ` at ${context}` : ""}`;
}
