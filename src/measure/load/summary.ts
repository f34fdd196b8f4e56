import { average, pairedRatio, type Percentiles, percentiles, type Ratio } from "../statistics.ts";
import { addedSteps, type StepsByBatch } from "./choices.ts";
import type { LoadArm } from "./plan.ts";
import type { LoadRow } from "./row.ts";

/** The measurements of one policy under one load, over all blocks. */
export interface LoadSummary {
  readonly load: string;
  readonly label: string;
  readonly again: boolean;
  readonly fixed: boolean;
  /** One row for each block. */
  readonly rows: readonly LoadRow[];
  /** Output tokens per second; this and the next seven are means over the blocks. */
  readonly outputThroughput: number;
  readonly requestThroughput: number;
  readonly goodput: number | null;
  /** Prompt tokens per second of prefill; null for a server. */
  readonly prefillThroughput: number | null;
  /** The share of the time that prefill took; null for a server. */
  readonly prefillShare: number | null;
  readonly acceptLength: number | null;
  readonly meanSteps: number | null;
  readonly switches: number;
  /** The highest of all blocks; null for a server. */
  readonly peakQueue: number | null;
  readonly preemptions: number;
  /** Milliseconds; this and the next three are percentiles of the requests of all blocks. */
  readonly ttft: Percentiles;
  readonly tpot: Percentiles;
  readonly itl: Percentiles;
  readonly e2el: Percentiles;
  readonly stepsByBatch: StepsByBatch;
  /** Output throughput over that of the first policy, paired by block; null for the first policy. */
  readonly throughputRatio: Ratio | null;
  /** Mean end-to-end latency over that of the first policy: below 1 is faster. */
  readonly latencyRatio: Ratio | null;
  /** Output throughput over that of the best policy with fixed steps; null if there is none. */
  readonly throughputRegret: Ratio | null;
  readonly latencyRegret: Ratio | null;
}

/** Rows in the order of the plan's arms: blocks measure them in random orders. */
export function inPlanOrder(rows: readonly LoadRow[], arms: readonly LoadArm[]): LoadRow[] {
  const places = new Map(arms.map(({ label }, place) => [label, place]));
  const placeOf = ({ label }: LoadRow) => places.get(label) ?? arms.length;
  return rows.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/**
 * One summary for each load and policy, in the order of the rows. Ratios are to the policy of the first row; a load
 * that Ctrl+C stopped before that policy was measured has none.
 */
export function summaries(rows: readonly LoadRow[]): LoadSummary[] {
  return [...Map.groupBy(rows, ({ load }) => load).values()]
    .flatMap((ofOne) => ofLoad(ofOne, rows[0]?.label));
}

/** Rows of one policy under one load. */
type Arm = readonly [first: LoadRow, ...others: LoadRow[]];

function ofLoad(rows: readonly LoadRow[], baseLabel: string | undefined): LoadSummary[] {
  const arms = [...Map.groupBy(rows, ({ label }) => label).values()] as unknown as Arm[];
  const base = arms.find(([{ label }]) => label === baseLabel);
  const best = (value: (row: LoadRow) => number) =>
    arms.filter(([{ fixed, again }]) => fixed && !again)
      .toSorted((a, b) => average(b.map(value)) - average(a.map(value)))[0];
  const [fastest, soonest] = [best(throughput), best((row) => -latency(row))];
  return arms.map((arm) => summaryOf(arm, { base, fastest, soonest }));
}

function summaryOf(
  arm: Arm,
  { base, fastest, soonest }: {
    readonly base: Arm | undefined;
    readonly fastest: Arm | undefined;
    readonly soonest: Arm | undefined;
  },
): LoadSummary {
  const [{ load, label, again, fixed }] = arm;
  const mean = (value: (row: LoadRow) => number) => average(arm.map(value));
  const known = (value: (row: LoadRow) => number | null) => {
    const values = arm.map(value).filter((each) => each !== null);
    return values.length === 0 ? null : average(values);
  };
  const seconds = (values: readonly number[]) => percentiles(values.map((each) => each * 1000));
  return {
    load,
    label,
    again,
    fixed,
    rows: arm,
    outputThroughput: mean(throughput),
    requestThroughput: mean((row) => row.request_throughput),
    goodput: known((row) => row.request_goodput),
    prefillThroughput: known((row) => row.prefill_throughput),
    prefillShare: known((row) => row.prefill_time_share),
    acceptLength: known((row) => row.accept_length),
    meanSteps: known((row) => row.mean_num_steps),
    switches: mean((row) => row.switches),
    peakQueue: arm.reduce<number | null>(
      (most, { peak_queue }) => peak_queue === null ? most : Math.max(most ?? 0, peak_queue),
      null,
    ),
    preemptions: mean((row) => row.preemptions),
    ttft: seconds(arm.flatMap((row) => row.ttfts)),
    tpot: percentiles(arm.flatMap(tpots)),
    itl: seconds(arm.flatMap((row) => row.itls.flat())),
    e2el: seconds(arm.flatMap((row) => row.latencies)),
    stepsByBatch: addedSteps(arm.map((row) => row.num_steps_by_batch)),
    throughputRatio: arm === base ? null : paired(arm, base, throughput),
    latencyRatio: arm === base ? null : paired(arm, base, latency),
    throughputRegret: paired(arm, fastest, throughput),
    latencyRegret: paired(arm, soonest, latency),
  };
}

export function throughput(row: LoadRow): number {
  return row.output_throughput;
}

export function latency(row: LoadRow): number {
  return row.mean_e2el_ms ?? 0;
}

/** Milliseconds per output token after the first. */
function tpots({ ttfts, latencies, output_lens }: LoadRow): number[] {
  return output_lens.flatMap((tokens, n) =>
    tokens > 1 ? [((latencies[n] ?? 0) - (ttfts[n] ?? 0)) * 1000 / (tokens - 1)] : []
  );
}

/** The ratio over the blocks that both have; after Ctrl+C one arm may have a block more. */
export function paired(
  arm: readonly LoadRow[],
  other: readonly LoadRow[] | undefined,
  value: (row: LoadRow) => number,
): Ratio | null {
  if (other === undefined) return null;
  const byBlock = new Map(other.map((row) => [row.block, row]));
  const logs = arm.flatMap((row) => {
    const beside = byBlock.get(row.block);
    const ratio = beside === undefined ? NaN : value(row) / value(beside);
    return ratio > 0 && Number.isFinite(ratio) ? [Math.log(ratio)] : [];
  });
  return logs.length === 0 ? null : pairedRatio(logs);
}
