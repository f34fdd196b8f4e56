import { digits } from "../formats.ts";
import { markdownText } from "../table.ts";
import { growthTables } from "./columns.ts";
import type { GrowthRow } from "./row.ts";

/** What the outputs of a growth measurement have besides its rows. */
export interface GrowthFacts {
  /** 10^9 bytes per second; `given` on the command line or measured. */
  readonly bandwidth: { readonly gbps: number | null; readonly given: boolean };
  /** A line for each point that was left out. */
  readonly skipped: readonly string[];
}

/** What the columns of the tables mean. */
export const GROWTH_NOTES: readonly string[] = [
  "One axis at a time is varied, the others stay. A step is a round that is submitted alone, by the " +
  "host's clock; its device time is of timestamps, host is what is left. Medians.",
  "Floor: the bytes that have to be read and written, once each, at full bandwidth. Over floor: the " +
  "device's time over it, of a prefill the whole time. Over first: over the device's time of the first row.",
  "Contexts are random keys and values; drafts are the draft's own, without one random tokens. " +
  "Memory is predicted for an engine with this point alone.",
];

/** The rows as Markdown tables, with device, bandwidth and notes above them and the points that were left out below. */
export function growthMarkdown(rows: readonly GrowthRow[], facts: GrowthFacts): string {
  const tables = growthTables(rows).flatMap(({ title, rows, columns }) => [
    `## ${title}`,
    markdownText(columns, rows),
  ]);
  const skipped = facts.skipped.map((line) => `left out: ${line}`).join("\n");
  return [
    ...deviceLines(rows),
    bandwidthText(facts.bandwidth),
    ...GROWTH_NOTES,
    ...tables,
    ...skipped === "" ? [] : [skipped],
  ].join("\n\n") + "\n";
}

/** `model m, draft d, device x` for each combination in the rows. */
export function deviceLines(rows: readonly GrowthRow[]): string[] {
  return [
    ...new Set(
      rows.map(({ model, draft, device }) =>
        `model ${model}, draft ${draft ?? "none"}, device ${device}`
      ),
    ),
  ];
}

/** The bandwidth and where it is from, or how to give it if it is not known. */
export function bandwidthText({ gbps, given }: GrowthFacts["bandwidth"]): string {
  return gbps === null
    ? "bandwidth not known: set EYRIE_BANDWIDTH for the floor of each step"
    : `bandwidth ${digits(gbps)} GB/s (${given ? "given" : "measured"})`;
}
