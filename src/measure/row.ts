import type { RoundsPerSync } from "../engine/schedule/sync_interval.ts";
import { type Arm, PLAIN_AGAIN } from "./plan.ts";
import { acceptanceOf, meanRoundsPerSync, type RoundMs, roundMs, tierShare } from "./rounds.ts";
import { type Timeline, timelineOf, verifyCostRatio } from "./rounds.ts";
import { type TreeEntry, treeEntry } from "../speculate/emit_config.ts";
import type { Case, CellResult, Setting, Subject, Switch } from "./runner.ts";
import { type Percentiles, percentiles, type Ratio, type Spread, spread } from "./statistics.ts";
import { average, pairedRatio, sum } from "./statistics.ts";

/** Of rows written to a file; another number when a field changes its meaning. */
export const ROW_FORMAT = "eyrie-bench-2";

/** One setting in one case, over all blocks. The names are those of the files. */
export interface BenchRow {
  readonly format: typeof ROW_FORMAT;
  readonly acceptance: "measured" | "SIMULATED";
  readonly model: string;
  readonly draft: string | null;
  readonly device: string;
  /** Of rows that were written before there was a choice it is absent: Deno's own. */
  readonly webgpu?: "builtin" | "dawn";
  readonly workload: string;
  readonly batch: number;
  readonly prompt_tokens: number | null;
  readonly output_tokens: number;
  readonly temperature: number;
  readonly depth: number;
  /** As asked. */
  readonly rounds_per_sync: RoundsPerSync;
  readonly seed: number;
  readonly setting: string;
  readonly setting_kind: "plain" | "plain again" | "static" | "tree" | "preset" | "policy";
  /** Null where it moves. */
  readonly num_steps: number | null;
  /** Of a tree [steps, topk, draft tokens], as adaptive configs name it; null for all else. */
  readonly tree: TreeEntry | null;
  readonly blocks: number;
  /** Output tokens of all requests a second. */
  readonly tokens_per_second: Spread & { readonly samples: readonly number[] };
  /** Prompt tokens that no cache had a second, as each request saw it; of rows of before it was measured absent. */
  readonly prompt_tokens_per_second?: Spread & { readonly samples: readonly number[] };
  /** Tokens/s over those of plain decoding in the same block: geometric mean, t interval. */
  readonly speedup: Ratio & { readonly log_ratios: readonly number[] };
  readonly mean_accept_length: number | null;
  readonly draft_acceptance_rate: number | null;
  readonly acceptance_per_position: readonly number[];
  readonly round_ms: RoundMs;
  /** Rounds submitted at once, over the syncs; null where there was no round. */
  readonly mean_rounds_per_sync: number | null;
  readonly verify_cost_ratio: number | null;
  readonly ttft_ms: Percentiles;
  readonly tpot_ms: Percentiles;
  readonly itl_ms: Percentiles;
  /** Mean of the blocks. */
  readonly switches: number;
  readonly tier_share: Readonly<Record<string, number>>;
  /** Tokens/s against the best static setting of the case: 0.97 = 3 % slower; 1 is the best. */
  readonly gap_to_best_static: (Ratio & { readonly best: string }) | null;
  /** Of the first block. */
  readonly switch_log: readonly Switch[];
  readonly timeline: Timeline;
}

/** An arm's cell and the plain one of the same block. */
export interface BlockPair {
  readonly own: CellResult;
  readonly plain: CellResult;
}

interface Place {
  readonly subject: Subject;
  readonly one: Case;
  readonly seed: number;
}

/** Everything of a row but the gap, which needs the other rows of its case. */
export function rowOf(
  arm: Arm,
  pairs: readonly BlockPair[],
  place: Place,
): BenchRow {
  const own = pairs.map((pair) => pair.own);
  const rounds = own.flatMap((block) => block.rounds);
  const plainRounds = pairs.flatMap((pair) => pair.plain.rounds);
  const acceptance = acceptanceOf(rounds);
  const samples = own.map(tokensPerSecond);
  const prompts = own.map(promptRate);
  const logRatios = pairs.map((pair) =>
    Math.log(tokensPerSecond(pair.own) / tokensPerSecond(pair.plain))
  );
  return {
    ...identity(arm, place),
    blocks: pairs.length,
    tokens_per_second: { ...spread(samples), samples },
    prompt_tokens_per_second: { ...spread(prompts), samples: prompts },
    speedup: { ...pairedRatio(logRatios), log_ratios: logRatios },
    mean_accept_length: acceptance.meanAcceptLength,
    draft_acceptance_rate: acceptance.draftAcceptanceRate,
    acceptance_per_position: acceptance.perPosition,
    round_ms: roundMs(rounds),
    mean_rounds_per_sync: meanRoundsPerSync(rounds),
    verify_cost_ratio: verifyCostRatio(rounds, plainRounds, place.one.batch),
    ...latencies(own),
    switches: average(own.map((block) => block.switches.length)),
    tier_share: tierShare(own),
    gap_to_best_static: null,
    switch_log: own[0]?.switches ?? [],
    timeline: timelineOf(own[0]?.rounds ?? []),
  };
}

function identity({ label, setting }: Arm, place: Place) {
  return {
    format: ROW_FORMAT,
    ...caseFields(place),
    setting: label,
    setting_kind: label === PLAIN_AGAIN ? "plain again" : setting.kind,
    num_steps: stepsOf(setting),
    tree: setting.kind === "tree" ? treeEntry(setting.tier) : null,
  } as const;
}

function stepsOf(setting: Setting): number | null {
  switch (setting.kind) {
    case "plain":
      return 0;
    case "static":
      return setting.numSteps;
    case "tree":
      return setting.tier.depth;
    case "preset":
    case "policy":
      return null;
  }
}

/** All that identifies a row but its setting: a new axis of cases is a line here. */
type CaseFields = Pick<
  BenchRow,
  | ("acceptance" | "model" | "draft" | "device" | "webgpu" | "workload" | "batch")
  | "prompt_tokens"
  | ("output_tokens" | "temperature" | "depth" | "rounds_per_sync" | "seed")
>;

function caseFields({ subject, one, seed }: Place): CaseFields {
  return {
    acceptance: subject.simulated ? "SIMULATED" : "measured",
    model: subject.model,
    draft: subject.draft ?? null,
    device: subject.device,
    webgpu: subject.webgpu ?? "builtin",
    workload: one.workload,
    batch: one.batch,
    prompt_tokens: one.promptTokens ?? null,
    output_tokens: one.outputTokens,
    temperature: one.temperature,
    depth: one.depth,
    rounds_per_sync: one.roundsPerSync ?? "auto",
    seed,
  };
}

function tokensPerSecond({ tokens, seconds }: CellResult): number {
  return tokens / seconds;
}

/** Prompt tokens that were computed a second until the first token of each answer. */
export function promptRate({ requests }: Pick<CellResult, "requests">): number {
  const seconds = sum(requests.map(({ prompt }) => prompt.ms)) / 1000;
  return seconds > 0 ? sum(requests.map(({ prompt }) => prompt.tokens)) / seconds : 0;
}

function latencies(blocks: readonly CellResult[]) {
  const requests = blocks.flatMap((block) => block.requests);
  return {
    ttft_ms: percentiles(requests.map(({ ttftMs }) => ttftMs)),
    tpot_ms: percentiles(requests.map(({ tpotMs }) => tpotMs)),
    itl_ms: percentiles(requests.flatMap(({ itlMs }) => itlMs)),
  };
}

/** Can this row be a slot of a static schedule: plain decoding (0 steps), fixed steps or a tree. */
export function isStatic({ setting_kind }: BenchRow): boolean {
  return ["plain", "static", "tree"].includes(setting_kind);
}

/** Is its depth chosen while it runs? */
export function isAdaptive({ setting_kind }: Pick<BenchRow, "setting_kind">): boolean {
  return setting_kind === "preset" || setting_kind === "policy";
}

/** Is this row neither plain decoding nor plain decoding again? */
export function isDrafting({ setting_kind }: Pick<BenchRow, "setting_kind">): boolean {
  return setting_kind !== "plain" && setting_kind !== "plain again";
}

/**
 * Fills in the gaps of a case's rows. The best static setting is the one with the largest mean
 * log-ratio; gaps are paired by block, and have no interval where blocks cannot be paired.
 */
export function withGaps(rows: readonly BenchRow[], known: readonly BenchRow[] = []): BenchRow[] {
  const best = [...rows, ...known].filter(isStatic)
    .toSorted((a, b) => b.speedup.ratio - a.speedup.ratio)[0];
  if (best === undefined) return [...rows];
  return rows.map((row) => ({
    ...row,
    gap_to_best_static: { ...gap(row, best), best: best.setting },
  }));
}

function gap(row: BenchRow, best: BenchRow): Ratio {
  const own = row.speedup.log_ratios;
  const others = best.speedup.log_ratios;
  if (own.length !== others.length) {
    return { ratio: row.speedup.ratio / best.speedup.ratio, low: null, high: null };
  }
  return pairedRatio(own.map((ratio, block) => ratio - (others[block] ?? NaN)));
}

/** What makes two rows the same measurement: `--resume` compares it. */
export function keyOfRow(row: CaseFields & Pick<BenchRow, "setting">): string {
  const { acceptance, model, draft, device, workload, batch, prompt_tokens, output_tokens } = row;
  const { temperature, depth, rounds_per_sync, seed, setting } = row;
  return JSON.stringify([
    ...[acceptance, model, draft, device, workload, batch, prompt_tokens, output_tokens],
    ...[temperature, depth, rounds_per_sync, seed, setting],
  ]);
}

/** The key of a measurement to come. */
export function rowKey(
  subject: Subject,
  one: Case,
  { label, seed }: { label: string; seed: number },
): string {
  return keyOfRow({ ...caseFields({ subject, one, seed }), setting: label });
}
