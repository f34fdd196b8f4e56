import type { RoundsPerSync } from "../engine/schedule/sync_interval.ts";
import { defined } from "../defined.ts";
import { type Arm, PLAIN_AGAIN } from "./plan.ts";
import { acceptanceOf, meanRoundsPerSync, type RoundMs, roundMs, tierShare } from "./rounds.ts";
import { type Timeline, timelineOf, verifyCostRatio } from "./rounds.ts";
import { type TreeEntry, treeEntry } from "../speculate/emit_config.ts";
import type { Case, CellResult, Setting, Subject, Switch } from "./runner.ts";
import { type Percentiles, percentiles, type Ratio, type Spread, spread } from "./statistics.ts";
import { average, pairedRatio } from "./statistics.ts";
import { prefillRate, prefillShare } from "./prefills.ts";

/** The format of rows in files. Its number changes when a field changes its meaning. */
export const ROW_FORMAT = "eyrie-bench-2";

/** The measurement of one setting in one case, over all blocks. Field names are those of the files. */
export interface BenchRow {
  readonly format: typeof ROW_FORMAT;
  readonly acceptance: "measured" | "SIMULATED";
  /** The probabilities of simulated acceptance. Absent in measured rows, and in rows from before it was kept. */
  readonly simulate_acceptance?: readonly number[];
  readonly model: string;
  readonly draft: string | null;
  /** The given rope base of the draft. Absent where it is the one of its config. */
  readonly draft_rope_theta?: number;
  readonly device: string;
  /** Absent in rows from before there was a choice, which are from Deno's own WebGPU. */
  readonly webgpu?: "builtin" | "dawn";
  readonly workload: string;
  readonly batch: number;
  readonly prompt_tokens: number | null;
  readonly output_tokens: number;
  readonly temperature: number;
  readonly depth: number;
  /** The given value. */
  readonly rounds_per_sync: RoundsPerSync;
  readonly seed: number;
  readonly setting: string;
  readonly setting_kind: "plain" | "plain again" | "static" | "tree" | "policy";
  /** Draft steps of a round; null if they change. */
  readonly num_steps: number | null;
  /** [steps, topk, draft tokens] of a tree, as in adaptive configs; null for other settings. */
  readonly tree: TreeEntry | null;
  readonly blocks: number;
  /** Output tokens of all requests per second. */
  readonly tokens_per_second: Spread & { readonly samples: readonly number[] };
  /**
   * Prompt tokens that were not in the prefix cache per second of prefill. Absent in rows from before it was measured.
   */
  readonly prefill_tokens_per_second?: Spread & { readonly samples: readonly number[] };
  /** The share of the wall time that prefill took, 0 to 1. Absent in rows from before it was measured. */
  readonly prefill_time_share?: Spread & { readonly samples: readonly number[] };
  /** Tokens/s over those of plain decoding in the same block: geometric mean and t interval. */
  readonly speedup: Ratio & { readonly log_ratios: readonly number[] };
  readonly mean_accept_length: number | null;
  readonly draft_acceptance_rate: number | null;
  readonly acceptance_per_position: readonly number[];
  readonly round_ms: RoundMs;
  /** Rounds over syncs; null if there was no round. */
  readonly mean_rounds_per_sync: number | null;
  readonly verify_cost_ratio: number | null;
  readonly ttft_ms: Percentiles;
  readonly tpot_ms: Percentiles;
  readonly itl_ms: Percentiles;
  /** Switches of tier, mean of the blocks. */
  readonly switches: number;
  readonly tier_share: Readonly<Record<string, number>>;
  /** Tokens/s over those of the best static setting of the case: 0.97 is 3 % slower. */
  readonly gap_to_best_static: (Ratio & { readonly best: string }) | null;
  /** The switches of tier in the first block. */
  readonly switch_log: readonly Switch[];
  readonly timeline: Timeline;
}

/** The cell of an arm and that of plain decoding in the same block. */
export interface BlockPair {
  readonly own: CellResult;
  readonly plain: CellResult;
}

interface Place {
  readonly subject: Subject;
  readonly one: Case;
  readonly seed: number;
}

/** The row of an arm, except for its gap, which needs the other rows of the case. */
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
  const prompts = own.map(({ prefills }) => prefillRate(prefills));
  const shares = own.map(({ prefills, seconds }) => prefillShare(prefills, seconds));
  const logRatios = pairs.map((pair) =>
    Math.log(tokensPerSecond(pair.own) / tokensPerSecond(pair.plain))
  );
  return {
    ...identity(arm, place),
    blocks: pairs.length,
    tokens_per_second: { ...spread(samples), samples },
    prefill_tokens_per_second: { ...spread(prompts), samples: prompts },
    prefill_time_share: { ...spread(shares), samples: shares },
    speedup: { ...pairedRatio(logRatios), log_ratios: logRatios },
    mean_accept_length: acceptance.meanAcceptLength,
    draft_acceptance_rate: acceptance.draftAcceptanceRate,
    acceptance_per_position: acceptance.perPosition,
    round_ms: roundMs(rounds),
    mean_rounds_per_sync: meanRoundsPerSync(rounds),
    verify_cost_ratio: verifyCostRatio(rounds, plainRounds, place.one.batch),
    ...latencies(own),
    switches: average(own.map((block) => block.switchCount)),
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
    case "policy":
      return null;
  }
}

/** The fields that identify a row together with its setting. A new axis of cases is a line here. */
type CaseFields = Pick<
  BenchRow,
  | ("acceptance" | "simulate_acceptance" | "model" | "draft" | "draft_rope_theta")
  | ("device" | "webgpu" | "workload" | "batch")
  | "prompt_tokens"
  | ("output_tokens" | "temperature" | "depth" | "rounds_per_sync" | "seed")
>;

function caseFields({ subject, one, seed }: Place): CaseFields {
  return {
    acceptance: subject.simulated ? "SIMULATED" : "measured",
    ...defined({ simulate_acceptance: subject.simulateAcceptance }),
    model: subject.model,
    draft: subject.draft ?? null,
    ...defined({ draft_rope_theta: subject.draftRopeTheta }),
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

function latencies(blocks: readonly CellResult[]) {
  const requests = blocks.flatMap((block) => block.requests);
  return {
    ttft_ms: percentiles(requests.map(({ ttftMs }) => ttftMs)),
    tpot_ms: percentiles(requests.flatMap(({ tpotMs }) => tpotMs ?? [])),
    itl_ms: percentiles(requests.flatMap(({ itlMs }) => itlMs)),
  };
}

/** Can this row be a slot of a static schedule? These are plain decoding (0 steps), fixed steps and trees. */
export function isStatic({ setting_kind }: BenchRow): boolean {
  return ["plain", "static", "tree"].includes(setting_kind);
}

/** Does this setting choose its draft steps while it runs? */
export function isAdaptive({ setting_kind }: Pick<BenchRow, "setting_kind">): boolean {
  return setting_kind === "policy";
}

/** Is this row neither plain decoding nor plain decoding again? */
export function isDrafting({ setting_kind }: Pick<BenchRow, "setting_kind">): boolean {
  return setting_kind !== "plain" && setting_kind !== "plain again";
}

/**
 * The rows of a case with their gaps to the best static setting, which is the one with the largest mean log-ratio. Gaps
 * are paired by block, and have no interval if the numbers of blocks differ.
 *
 * @param known further rows of the case, for the choice of the best setting only.
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

/**
 * The key of a row. `--resume` takes rows with the same key for the same measurement. JSON leaves out absent fields, so
 * that a row from before they were kept matches a measurement without them.
 */
export function keyOfRow(row: CaseFields & Pick<BenchRow, "setting">): string {
  const { acceptance, model, draft, device, workload, batch, prompt_tokens, output_tokens } = row;
  const { temperature, depth, rounds_per_sync, seed, setting } = row;
  const { simulate_acceptance, draft_rope_theta } = row;
  return JSON.stringify([
    ...[acceptance, model, draft, device, workload, batch, prompt_tokens, output_tokens],
    ...[temperature, depth, rounds_per_sync, seed, setting],
    { simulate_acceptance, draft_rope_theta },
  ]);
}

/** The key that the row of a measurement will have. */
export function rowKey(
  subject: Subject,
  one: Case,
  { label, seed }: { label: string; seed: number },
): string {
  return keyOfRow({ ...caseFields({ subject, one, seed }), setting: label });
}
