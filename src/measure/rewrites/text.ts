import { csvText } from "../csv.ts";
import { digits, ratioText } from "../formats.ts";
import { type Column, markdownText, numbers, words } from "../table.ts";
import type { RewriteRow } from "./row.ts";

/** What the columns of the tables mean. */
export const REWRITES_NOTES: readonly string[] = [
  "With: milliseconds of a forward with all rewrites. Without: the same forward without the rewrite of the " +
  "line, or without all. Ratio: without over with, the median of the pairs and its 95 % interval. " +
  "`-`: the forward dispatches the same without it.",
  "A round is the target's forward and its choice over the verify rows, without drafting and acceptance; " +
  "a prompt is a chunk of a prompt without the head.",
];

/** A rewrite of one model on one device, with the rows of the shapes that it was measured at. */
interface RewriteLine {
  readonly rewrite: string;
  readonly rows: ReadonlyMap<string, RewriteRow>;
}

/** The rows as one Markdown table for each model and WebGPU, and below them what was left out. */
export function rewritesMarkdown(
  rows: readonly RewriteRow[],
  skipped: readonly string[],
): string {
  const tables = Map.groupBy(rows, titleOf);
  return [
    ...REWRITES_NOTES,
    ...[...tables].flatMap(([title, rows]) => [`## ${title}`, tableText(rows)]),
    ...skipped.length === 0 ? [] : [skipped.map((line) => `left out: ${line}`).join("\n")],
  ].join("\n\n") + "\n";
}

/** All numbers of the rows as CSV; the names of the columns are those of the JSON rows. */
export function rewritesCsv(rows: readonly RewriteRow[]): string {
  return csvText(rows.map(({ format: _, ...row }) => row));
}

function titleOf({ model, draft, device, clock }: RewriteRow): string {
  const time = clock === "device" ? "device time" : "the host's clock";
  return `${model}, draft ${draft ?? "none"}, ${device}, ${time}`;
}

function tableText(rows: readonly RewriteRow[]): string {
  const several = new Set(rows.filter(({ kind }) => kind === "round").map(({ context }) => context))
    .size > 1;
  const shapeOf = (row: RewriteRow) => shapeText(row, several);
  const shapes = [...new Set(rows.map(shapeOf))];
  const lines = [...Map.groupBy(rows, ({ rewrite }) => rewrite)].map((
    [rewrite, rows],
  ): RewriteLine => ({ rewrite, rows: new Map(rows.map((row) => [shapeOf(row), row])) }));
  // Shapes differ in what they change: the line of all rewrites is the last.
  const last = lines.filter(({ rewrite }) => rewrite === "all");
  return markdownText(columnsOf(shapes), [
    ...lines.filter((line) => !last.includes(line)),
    ...last,
  ]);
}

function columnsOf(shapes: readonly string[]): Column<RewriteLine>[] {
  const cell = (shape: string, title: string, text: (row: RewriteRow) => string) =>
    numbers(`${shape}: ${title}`, ({ rows }: RewriteLine) => {
      const row = rows.get(shape);
      return row ? text(row) : "-";
    });
  return [
    { ...words("without", ({ rewrite }: RewriteLine) => rewrite), rowHeader: true },
    words(
      "bits",
      ({ rows }) => rows.values().some(({ changes_bits }) => changes_bits) ? "others" : "same",
    ),
    ...shapes.flatMap((shape) => [
      cell(shape, "with ms", ({ with_ms }) => digits(with_ms)),
      cell(shape, "without ms", ({ without_ms }) => digits(without_ms)),
      cell(
        shape,
        "ratio",
        ({ ratio, ratio_low: low, ratio_high: high }) => ratioText({ ratio, low, high }),
      ),
    ]),
  ];
}

/** `4 x 2 rows`, `prompt of 256`; with the context where rows have several. */
function shapeText({ kind, context, batch, rows }: RewriteRow, several: boolean): string {
  if (kind === "prompt") return `prompt of ${rows}`;
  const count = `${batch === 1 ? "" : `${batch} x `}${rows} ${rows === 1 ? "row" : "rows"}`;
  return `${count}${several ? ` at ${context}` : ""}`;
}
