import { percentText } from "../../text/numbers.ts";
import type { MeasuredCosts } from "../../engine/tune/costs/measure.ts";
import { at, catchUpMs, prefillMs, roundMs } from "../../speculate/costs/lookup.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import { digits } from "../formats.ts";
import { cellColumns, markdownText } from "../table.ts";

/** Columns of the table of c_prefill: tokens by which a request's draft cache lags. */
const LAGS = [1, 4, 16, 64] as const;
const PROMPTS = [16, 64, 256, 1024] as const;

/**
 * The measured costs as Markdown tables: rounds by steps, drafting and verifying by batch size, catch-up and prefill.
 */
export function costsText(measured: MeasuredCosts): string {
  const { table } = measured;
  const { model, draft, adapter, host, perCell, perRowCell = 0, packing = 0, fitError } = table;
  const drafts = table.extend.length > 0;
  return [
    `model ${model}, draft ${draft ?? "none"}\nadapter ${adapter}`,
    measuredText(measured),
    ...drafts
      ? [
        "## Rounds: ms, by requests in flight and draft steps, short contexts, the host looking after each",
        grid(table.buckets, stepsOf(table), (batch, steps) =>
          roundMs(table, { batch, steps, cells: 0 }), ["batch", "steps"]),
        "## Drafting: ms of one more draft step, by requests in flight",
        row("batch", table.buckets, (batch) =>
          at(table.level, batch)),
      ]
      : [],
    "## Verifying: ms of the target's forward, and of the draft's over the same rows, by rows",
    markdownText(cellColumns(["rows", ...table.verify.map((point) => String(point.at))]), [
      ["verify", ...table.verify.map(({ ms }) => digits(ms))],
      ...drafts
        ? [["extend", ...table.verify.map((point) => digits(at(table.extend, point.at)))]]
        : [],
    ]),
    ...table.catchUp.length > 0
      ? [
        "## Catching up, c_prefill(lag, batch): ms of the draft's prefill of what it missed",
        grid(table.buckets, LAGS, (batch, lag) => catchUpMs(table, batch * lag), ["batch", "lag"]),
      ]
      : [],
    ...table.prefill.length > 0
      ? [
        "## Prompts: ms of a prefill, by tokens",
        row("tokens", PROMPTS, (tokens) => prefillMs(table, tokens)),
      ]
      : [],
    `host ${digits(host)} ms a group of rounds; ${
      packing > 0
        ? `packing ${digits(packing)} ms a round that verifies a part of its drafts; `
        : ""
    }keys and values ${us(1000 * perCell)} a 1000 tokens ` +
    `and ${us(1000 * perRowCell)} more for each verify row of a request; ` +
    `fit error at most ${percentText(fitError)}`,
  ].join("\n\n") + "\n";
}

function measuredText({ seconds, probes, repeats, skipped }: MeasuredCosts): string {
  const found = `${probes} things measured ${repeats} times in ${seconds.toFixed(1)} s: medians`;
  if (skipped.length === 0) return found;
  const some = skipped.slice(0, 3).join(", ");
  const more = skipped.length > 3 ? ` and ${skipped.length - 3} more` : "";
  return `${found}; no time or room for ${some}${more}: interpolated (--duration)`;
}

/** The numbers of draft steps that the table has verify rows for. */
function stepsOf({ verify, buckets }: CostTable): number[] {
  const deepest = Math.round((verify.at(-1)?.at ?? 1) / (buckets.at(-1) ?? 1)) - 1;
  return Array.from({ length: Math.max(1, deepest) + 1 }, (_, steps) => steps);
}

function grid(
  rows: readonly number[],
  columns: readonly number[],
  of: (row: number, column: number) => number,
  [rowName, columnName]: readonly [string, string],
): string {
  return markdownText(
    cellColumns([`${rowName} \\ ${columnName}`, ...columns.map(String)]),
    rows.map((row) => [String(row), ...columns.map((column) => digits(of(row, column)))]),
  );
}

function row(name: string, counts: readonly number[], of: (count: number) => number): string {
  return markdownText(cellColumns([name, ...counts.map(String)]), [
    ["ms", ...counts.map((count) => digits(of(count)))],
  ]);
}

function us(ms: number): string {
  return `${digits(1000 * ms)} us`;
}
