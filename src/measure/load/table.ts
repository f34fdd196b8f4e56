import { markdownTable } from "markdown-table";
import { digits, ratioText, shortName } from "../columns.ts";
import type { Percentiles, Ratio } from "../statistics.ts";
import { fittedTable, type TextColumn, wrapped } from "../terminal_table.ts";
import { type BatchRange, batchRanges } from "./choices.ts";
import type { LoadRow } from "./row.ts";
import { type LoadSummary, summaries } from "./summary.ts";
import { loadVerdicts } from "./verdict.ts";

/** A column of the tables for people. */
export type LoadColumn = TextColumn<LoadSummary>;

const number = (title: string, text: LoadColumn["text"]): LoadColumn => (
  { title, align: "right", text }
);
const times = (name: string, of: (one: LoadSummary) => Percentiles) =>
  number(`${name} p50/p90/p99 ms`, (one) => percentilesText(of(one)));

const LOAD: LoadColumn = { title: "load", align: "left", text: ({ load }) => load };
const POLICY: LoadColumn = { title: "policy", align: "left", text: ({ label }) => label };

const half = (name: string, of: (one: LoadSummary) => Percentiles) =>
  number(`${name} ms p50/p99`, (one) => {
    const { p50, p99 } = of(one);
    return [p50, p99].map((value) => value === null ? "-" : digits(value)).join("/");
  });

const SPEED = number("tokens/s", (one) => digits(one.outputThroughput));
const GOODPUT = number("goodput req/s", ({ goodput }) => goodput === null ? "" : digits(goodput));
const OVER = number("over first [95 %]", (one) => changeText(one.throughputRatio));
const E2E_OVER = number("E2E over first [95 %]", (one) => changeText(one.latencyRatio));
const TTFT = half("TTFT", ({ ttft }) => ttft);
const TPOT = half("TPOT", ({ tpot }) => tpot);
const ITL = half("ITL", ({ itl }) => itl);
const E2E = number("E2E ms p50", ({ e2el: { p50 } }) => p50 === null ? "-" : digits(p50));
const ACCEPT = number("accept length", ({ acceptLength }) => acceptLength?.toFixed(2) ?? "");
const STEPS = number("steps", ({ meanSteps }) => meanSteps?.toFixed(2) ?? "");
const QUEUE = number("peak queue", ({ peakQueue }) => peakQueue === null ? "" : String(peakQueue));

/** Of a terminal. */
const NARROW = [SPEED, TTFT, TPOT, E2E, E2E_OVER, OVER, GOODPUT, ACCEPT, STEPS, ITL, QUEUE];
/** Those of `NARROW` that go first where the terminal is narrow; the others always stay. */
const DROPPED = [QUEUE, ITL, STEPS, ACCEPT, OVER, E2E_OVER, GOODPUT];

/** The columns that these lines have something to say in. */
export function loadColumns(all: readonly LoadSummary[]): LoadColumn[] {
  const base = all.find(({ throughputRatio }) => throughputRatio === null)?.label ?? "the first";
  const columns = [
    SPEED,
    number("req/s", (one) => digits(one.requestThroughput)),
    GOODPUT,
    number(`tokens/s over ${base} [95 %]`, (one) => changeText(one.throughputRatio)),
    number(`E2E over ${base} [95 %]`, (one) => changeText(one.latencyRatio)),
    number("tokens/s over best fixed", (one) => changeText(one.throughputRegret)),
    number("E2E over best fixed", (one) => changeText(one.latencyRegret)),
    times("TTFT", ({ ttft }) => ttft),
    times("TPOT", ({ tpot }) => tpot),
    times("ITL", ({ itl }) => itl),
    times("E2E", ({ e2el }) => e2el),
    ACCEPT,
    STEPS,
    number("switches", ({ switches, peakQueue }) => peakQueue === null ? "" : digits(switches)),
    QUEUE,
    number("preempted", ({ preemptions }) => preemptions === 0 ? "" : digits(preemptions)),
    number("blocks", ({ rows }) => String(rows.length)),
  ];
  const loads = new Set(all.map(({ load }) => load)).size;
  return [
    ...loads > 1 ? [LOAD] : [],
    POLICY,
    ...columns.filter(({ text }) => all.some((one) => text(one) !== "")),
  ];
}

/** What all rows share: name and text. */
export function loadFacts(rows: readonly LoadRow[]): (readonly [string, string])[] {
  const [row] = rows;
  if (row === undefined) return [];
  const loads = new Set(rows.map(({ load }) => load));
  const { slo_ttft_ms: ttft, slo_tpot_ms: tpot } = row;
  const objectives = [
    ...ttft === null ? [] : [`TTFT ${ttft} ms`],
    ...tpot === null ? [] : [`TPOT ${tpot} ms`],
  ];
  return [
    ["model", row.model_id],
    ["draft", row.draft_id ?? "none"],
    ["device", row.device],
    ["workload", row.workload],
    ...loads.size === 1 ? [["load", row.load] as const] : [],
    ...row.burstiness === null || row.burstiness === 1
      ? []
      : [["burstiness", String(row.burstiness)] as const],
    ["requests", [...new Set(rows.map((each) => each.num_prompts))].join(", ")],
    ...row.max_batch === null ? [] : [["max batch", String(row.max_batch)] as const],
    ...objectives.length === 0 ? [] : [["objectives", objectives.join(", ")] as const],
  ];
}

/** Tables to paste into an issue: what was measured, the policies, what they chose, who won. */
export function loadMarkdown(rows: readonly LoadRow[]): string {
  const all = summaries(rows);
  const simulated = rows.some((row) => row.simulated) ? ["SIMULATED acceptance: timing only"] : [];
  const facts = loadFacts(rows).map(([title, value]) => `${title} ${value}`).join(", ");
  const steps = stepsColumns(all);
  return [
    ...simulated,
    facts,
    tableOf(loadColumns(all), all),
    ...steps === undefined ? [] : [STEPS_TITLE, tableOf(steps.columns, steps.rows)],
    ...noteLines(all),
    ...loadVerdicts(all),
  ].join("\n\n") + "\n";
}

/** What a terminal shows, in lines of at most `columns` characters: the same, of the columns what fits. */
export function loadTerminal(
  rows: readonly LoadRow[],
  { columns: width }: { readonly columns: number },
): string {
  const all = summaries(rows);
  const loads = new Set(all.map(({ load }) => load)).size;
  const named = { ...POLICY, text: (one: LoadSummary) => shortName(one.label) };
  const columns = [...loads > 1 ? [LOAD] : [], named, ...NARROW];
  const texts = (lines: readonly string[]) => lines.flatMap((line) => wrapped(line, width));
  const steps = stepsColumns(all);
  const lines = [
    ...rows.some((row) => row.simulated) ? ["SIMULATED acceptance: timing only"] : [],
    ...texts(loadFacts(rows).map(([title, value]) => `${title.padEnd(12)}${value}`)),
    "",
    ...fittedTable(columns, all, { width, dropped: DROPPED }),
    "",
    ...steps === undefined
      ? []
      : [STEPS_TITLE, "", ...fittedTable(steps.columns, steps.rows, { width, dropped: [] }), ""],
    ...texts(noteLines(all)),
    "",
    ...texts(loadVerdicts(all)),
    "",
    ...texts(["over first: over the first policy in the same blocks; --output md: all columns"]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function tableOf(columns: readonly LoadColumn[], all: readonly LoadSummary[]): string {
  return markdownTable(
    [columns.map(({ title }) => title), ...all.map((one) => columns.map(({ text }) => text(one)))],
    { align: columns.map(({ align }) => align) },
  );
}

const STEPS_TITLE = "Mean draft steps by requests in a round:";

/** Mean steps in each range of batch sizes; undefined where nobody had a choice. */
function stepsColumns(
  all: readonly LoadSummary[],
): { readonly columns: readonly LoadColumn[]; readonly rows: readonly LoadSummary[] } | undefined {
  const choosing = all.filter(({ fixed, stepsByBatch }) =>
    !fixed && Object.keys(stepsByBatch).length > 0
  );
  if (choosing.length === 0) return undefined;
  const ranges = choosing.map((one) => [one, batchRanges(one.stepsByBatch)] as const);
  const names = [...new Set(ranges.flatMap(([, list]) => list.map(({ name }) => name)))]
    .toSorted((a, b) => parseInt(a) - parseInt(b));
  const column = (name: string): LoadColumn => {
    const of = new Map(ranges.map(([one, list]) => [one, list.find((each) => each.name === name)]));
    return number(name, (one) => rangeText(of.get(one)));
  };
  const loads = new Set(all.map(({ load }) => load)).size;
  const columns = [...loads > 1 ? [LOAD] : [], POLICY, ...names.map(column)];
  return { columns, rows: choosing };
}

function rangeText(range: BatchRange | undefined): string {
  return range === undefined ? "" : range.meanSteps.toFixed(2);
}

/** What noise is, and what the intervals are of. */
export function noteLines(all: readonly LoadSummary[]): string[] {
  const noise = all.filter(({ again }) => again).flatMap((
    { load, throughputRatio: tokens, latencyRatio: e2e },
  ) => tokens && e2e ? [`${load}: tokens/s ${ratioText(tokens)}, E2E ${ratioText(e2e)}`] : []);
  return noise.length === 0 ? [] : [`Noise, the first policy against itself: ${noise.join("; ")}`];
}

function changeText(ratio: Ratio | null): string {
  return ratio === null ? "" : ratioText(ratio);
}

function percentilesText({ p50, p90, p99 }: Percentiles): string {
  return [p50, p90, p99].map((value) => value === null ? "-" : digits(value)).join("/");
}
