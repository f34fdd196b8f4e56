import { percentText } from "../../text/numbers.ts";
import { digits, percentilesText, places, ratioText, shortName, slashed } from "../formats.ts";
import type { Percentiles } from "../statistics.ts";
import { type Column, filledColumns, fittedTable, markdownText } from "../table.ts";
import { numbers, words, wrapped } from "../table.ts";
import { batchRanges } from "./choices.ts";
import type { LoadRow } from "./row.ts";
import { type LoadSummary, summaries } from "./summary.ts";
import { loadVerdicts } from "./verdict.ts";

type LoadColumn = Column<LoadSummary>;

const LOAD: LoadColumn = words("load", ({ load }) => load);
const POLICY: LoadColumn = {
  ...words("policy", ({ label }: LoadSummary) => label),
  rowHeader: true,
};

const half = ({ p50, p99 }: Percentiles) => slashed([p50, p99]);

const SPEED: LoadColumn = numbers("tokens/s", (one) => one.outputThroughput, digits);
const GOODPUT: LoadColumn = numbers("goodput req/s", ({ goodput }) => goodput, digits);
const PREFILL: LoadColumn = numbers("prefill tokens/s", (one) => one.prefillThroughput, digits);
const SHARE: LoadColumn = numbers("prefill time", (one) => one.prefillShare, percentText);
const OVER: LoadColumn = numbers("over first [95 %]", (one) => one.throughputRatio, ratioText);
const E2E_OVER: LoadColumn = numbers("E2E over first [95 %]", (one) => one.latencyRatio, ratioText);
const TTFT: LoadColumn = numbers("TTFT ms p50/p99", ({ ttft }) => ttft, half);
const TPOT: LoadColumn = numbers("TPOT ms p50/p99", ({ tpot }) => tpot, half);
const ITL: LoadColumn = numbers("ITL ms p50/p99", ({ itl }) => itl, half);
const E2E: LoadColumn = numbers("E2E ms p50", ({ e2el }) => slashed([e2el.p50]));
const ACCEPT: LoadColumn = numbers("accept length", (one) => one.acceptLength, places(2));
const STEPS: LoadColumn = numbers("steps", ({ meanSteps }) => meanSteps, places(2));
const QUEUE: LoadColumn = numbers("peak queue", ({ peakQueue }) => peakQueue);

/** The columns on a terminal, besides load and policy. */
const NARROW = [
  ...[SPEED, TTFT, TPOT, E2E, E2E_OVER, OVER, GOODPUT],
  ...[ACCEPT, STEPS, ITL, PREFILL, SHARE, QUEUE],
];
/** The columns that a narrow terminal leaves out, in this order; the others are always shown. */
const DROPPED = [QUEUE, SHARE, PREFILL, ITL, STEPS, ACCEPT, OVER, E2E_OVER, GOODPUT];

/** The columns of the Markdown table and of the page that have a value for at least one of the summaries. */
export function loadColumns(all: readonly LoadSummary[]): LoadColumn[] {
  const base = all.find(({ throughputRatio }) => throughputRatio === null)?.label ?? "the first";
  const columns: LoadColumn[] = [
    SPEED,
    numbers("req/s", (one) => one.requestThroughput, digits),
    GOODPUT,
    PREFILL,
    SHARE,
    numbers(`tokens/s over ${base} [95 %]`, (one) => one.throughputRatio, ratioText),
    numbers(`E2E over ${base} [95 %]`, (one) => one.latencyRatio, ratioText),
    numbers("tokens/s over best fixed", (one) => one.throughputRegret, ratioText),
    numbers("E2E over best fixed", (one) => one.latencyRegret, ratioText),
    numbers("TTFT p50/p90/p99 ms", ({ ttft }) => ttft, percentilesText),
    numbers("TPOT p50/p90/p99 ms", ({ tpot }) => tpot, percentilesText),
    numbers("ITL p50/p90/p99 ms", ({ itl }) => itl, percentilesText),
    numbers("E2E p50/p90/p99 ms", ({ e2el }) => e2el, percentilesText),
    ACCEPT,
    STEPS,
    numbers("switches", ({ switches, peakQueue }) => peakQueue === null ? null : switches, digits),
    QUEUE,
    numbers("preempted", ({ preemptions }) => preemptions || null, digits),
    numbers("blocks", ({ rows }) => rows.length),
  ];
  return [...namesOf(all), ...filledColumns(columns, all)];
}

/** The load, where there are several, and the policy. */
function namesOf(all: readonly LoadSummary[]): LoadColumn[] {
  const loads = new Set(all.map(({ load }) => load)).size;
  return loads > 1 ? [LOAD, POLICY] : [POLICY];
}

/** Names and values of what all rows share. */
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
    ...row.kv_tokens === null ? [] : [["KV cache", `${row.kv_tokens} tokens`] as const],
    ...objectives.length === 0 ? [] : [["objectives", objectives.join(", ")] as const],
  ];
}

/** The rows as Markdown: what was measured, the table of policies, their mean draft steps, noise and verdicts. */
export function loadMarkdown(rows: readonly LoadRow[]): string {
  const all = summaries(rows);
  const simulated = rows.some((row) => row.simulated) ? ["SIMULATED acceptance: timing only"] : [];
  const facts = loadFacts(rows).map(([title, value]) => `${title} ${value}`).join(", ");
  const steps = stepsColumns(all);
  return [
    ...simulated,
    facts,
    markdownText(loadColumns(all), all),
    ...steps === undefined ? [] : [STEPS_TITLE, markdownText(steps.columns, steps.rows)],
    ...noteLines(all),
    ...loadVerdicts(all),
  ].join("\n\n") + "\n";
}

/** The same for a terminal of `columns` characters, with the columns that fit. */
export function loadTerminal(
  rows: readonly LoadRow[],
  { columns: width }: { readonly columns: number },
): string {
  const all = summaries(rows);
  const named = { ...POLICY, text: (one: LoadSummary) => shortName(one.label) };
  const columns = [...namesOf(all).with(-1, named), ...NARROW];
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
    ...texts([...prefillLines(all), ...noteLines(all)]),
    "",
    ...texts(loadVerdicts(all)),
    "",
    ...texts(["over first: over the first policy in the same blocks; --format md: all columns"]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

const STEPS_TITLE = "Mean draft steps by requests in a round:";

/** The table of mean draft steps by range of batch sizes; undefined if no policy chooses its steps. */
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
    return numbers(name, (one) => of.get(one)?.meanSteps, places(2));
  };
  return { columns: [...namesOf(all), ...names.map(column)], rows: choosing };
}

/** The prefill of the first policy under each load: `2 req/s 812 tokens/s in 24.0% of the time`; empty of a server. */
function prefillLines(all: readonly LoadSummary[]): string[] {
  const [first] = all;
  const texts = all.filter(({ label }) => label === first?.label).flatMap((
    { load, prefillThroughput: speed, prefillShare: share },
  ) =>
    speed === null || share === null
      ? []
      : [`${load} ${digits(speed)} tokens/s in ${percentText(share)} of the time`]
  );
  return texts.length === 0 ? [] : [`prefill, ${first?.label}: ${texts.join("; ")}`];
}

/** How many requests failed, if any did, and the ratios of the first policy against itself, if there are any. */
export function noteLines(all: readonly LoadSummary[]): string[] {
  const failures = all.flatMap(({ load, rows }) => {
    const errors = rows.flatMap(({ errors }) => errors);
    const sent = rows.reduce((sum, { num_prompts }) => sum + num_prompts, 0);
    const [first] = errors;
    return first === undefined
      ? []
      : [`${load}: ${errors.length} of ${sent} requests failed, the first: ${first}`];
  });
  const noise = all.filter(({ again }) => again).flatMap((
    { load, throughputRatio: tokens, latencyRatio: e2e },
  ) => tokens && e2e ? [`${load}: tokens/s ${ratioText(tokens)}, E2E ${ratioText(e2e)}`] : []);
  return [
    ...failures,
    ...noise.length === 0 ? [] : [`Noise, the first policy against itself: ${noise.join("; ")}`],
  ];
}
