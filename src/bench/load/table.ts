import { markdownTable } from "markdown-table";
import { digits, ratioText } from "../columns.ts";
import type { Percentiles, Ratio } from "../statistics.ts";
import { type BatchRange, batchRanges } from "./choices.ts";
import type { LoadRow } from "./row.ts";
import { type LoadSummary, summaries } from "./summary.ts";

/** A column of the tables for people. */
export interface LoadColumn {
  readonly title: string;
  readonly align: "left" | "right";
  readonly text: (one: LoadSummary) => string;
}

const number = (title: string, text: LoadColumn["text"]): LoadColumn => (
  { title, align: "right", text }
);
const times = (name: string, of: (one: LoadSummary) => Percentiles) =>
  number(`${name} p50/p90/p99 ms`, (one) => percentilesText(of(one)));

const LOAD: LoadColumn = { title: "load", align: "left", text: ({ load }) => load };
const POLICY: LoadColumn = { title: "policy", align: "left", text: ({ label }) => label };

/** The columns that these lines have something to say in. */
export function loadColumns(all: readonly LoadSummary[]): LoadColumn[] {
  const base = all.find(({ throughputRatio }) => throughputRatio === null)?.label ?? "the first";
  const columns = [
    number("tokens/s", (one) => digits(one.outputThroughput)),
    number("req/s", (one) => digits(one.requestThroughput)),
    number("goodput req/s", ({ goodput }) => goodput === null ? "" : digits(goodput)),
    number(`tokens/s over ${base} [95 %]`, (one) => changeText(one.throughputRatio)),
    number(`E2E over ${base} [95 %]`, (one) => changeText(one.latencyRatio)),
    number("tokens/s over best fixed", (one) => changeText(one.throughputRegret)),
    number("E2E over best fixed", (one) => changeText(one.latencyRegret)),
    times("TTFT", ({ ttft }) => ttft),
    times("TPOT", ({ tpot }) => tpot),
    times("ITL", ({ itl }) => itl),
    times("E2E", ({ e2el }) => e2el),
    number("accept length", ({ acceptLength }) => acceptLength?.toFixed(2) ?? ""),
    number("steps", ({ meanSteps }) => meanSteps?.toFixed(2) ?? ""),
    number("switches", ({ switches, peakQueue }) => peakQueue === null ? "" : digits(switches)),
    number("peak queue", ({ peakQueue }) => peakQueue === null ? "" : String(peakQueue)),
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

/** The order in which columns go where a terminal is narrow, by how their titles begin. */
const DROPPED = [
  ...["blocks", "ITL", "req/s", "preempted", "switches", "TPOT", "E2E p50", "peak queue", "steps"],
  ...["accept length", "goodput", "TTFT", "tokens/s over best", "E2E over best", "E2E over"],
] as const;

/**
 * Tables to paste into an issue: what was measured, the policies, and what they chose.
 *
 * @param width most characters of a line of the first table, where that can be.
 */
export function loadMarkdown(rows: readonly LoadRow[], width: number = Infinity): string {
  const all = summaries(rows);
  let columns = loadColumns(all);
  const whole = columns.length;
  for (const start of DROPPED) {
    if ((tableOf(columns, all).split("\n")[0] ?? "").length <= width) break;
    columns = columns.filter(({ title }) => !title.startsWith(start));
  }
  const simulated = rows.some((row) => row.simulated) ? ["SIMULATED acceptance: timing only"] : [];
  const facts = loadFacts(rows).map(([title, value]) => `${title} ${value}`).join(", ");
  const steps = stepsTable(all);
  return [
    ...simulated,
    facts,
    tableOf(columns, all),
    ...steps === undefined ? [] : ["Mean draft steps by requests in a round:", steps],
    ...noteLines(all),
    ...columns.length === whole ? [] : ["--output md: all columns"],
  ].join("\n\n") + "\n";
}

function tableOf(columns: readonly LoadColumn[], all: readonly LoadSummary[]): string {
  return markdownTable(
    [columns.map(({ title }) => title), ...all.map((one) => columns.map(({ text }) => text(one)))],
    { align: columns.map(({ align }) => align) },
  );
}

/** Mean steps in each range of batch sizes; undefined where nobody had a choice. */
function stepsTable(all: readonly LoadSummary[]): string | undefined {
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
  return tableOf([...loads > 1 ? [LOAD] : [], POLICY, ...names.map(column)], choosing);
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
