import type { TreeEntry } from "../speculate/emit_config.ts";
import { type BenchRow, isAdaptive, isDrafting, isStatic } from "./row.ts";
import { average, FEWEST_BLOCKS, pairedRatio, type Ratio, standardError } from "./statistics.ts";

/** A setting compared with plain decoding, over all cases. */
export interface Standing {
  readonly setting: string;
  readonly numSteps: number | null;
  readonly tree: TreeEntry | null;
  readonly setting_kind: BenchRow["setting_kind"];
  readonly speedup: Ratio;
  /** Mean log-ratio of the cases, for each block. */
  readonly logs: readonly number[];
}

/** The fastest setting. The noise is the interval of the A/A row, widened to contain 1. */
export type Verdict =
  /**
   * `top` has the largest mean of the settings that are shown to be faster than plain decoding. `fastest`, which may be
   * the same, is within one standard error of `top`. The settings in `unsure` have a larger mean than `fastest`, but
   * are not shown to be faster than plain decoding.
   */
  | {
    readonly kind: "drafting";
    readonly fastest: Standing;
    readonly top: Standing;
    readonly unsure: readonly Standing[];
    readonly noise: Interval;
  }
  /** Every other setting is slower than plain decoding; `next` is the fastest of them. */
  | { readonly kind: "plain"; readonly next: Standing }
  /**
   * No setting is shown to be faster than plain decoding; `best` is the fastest of those that are not shown to be
   * slower.
   */
  | { readonly kind: "none shown"; readonly best: Standing; readonly noise: Interval }
  | { readonly kind: "too few blocks"; readonly blocks: number }
  | { readonly kind: "nothing to compare" };

/** The interval of a ratio to plain decoding. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * The verdict on rows of one batch size, which table, page and emitted config all use. A setting is shown to be faster
 * than plain decoding if its 95 % interval lies above the noise. Of these the one with the largest mean wins, or a
 * fixed one with fewer verify rows that is within one standard error of the paired difference. Cases (depths,
 * temperatures, ...) have equal weight; a setting must be in all.
 */
export function verdictOf(rows: readonly BenchRow[]): Verdict {
  const standings = standingsOf(rows);
  const drafting = standings.filter(isDrafting);
  if (drafting.length === 0) return { kind: "nothing to compare" };
  const blocks = Math.min(...standings.map(({ logs }) => logs.length));
  if (blocks < FEWEST_BLOCKS) return { kind: "too few blocks", blocks };
  const noise = noiseOf(standings);
  const best = fastestFirst(drafting.filter(({ speedup }) => (speedup.low ?? 0) > noise.high));
  if (best[0] !== undefined) {
    const [top] = best;
    const fastest = winner(best);
    const larger = drafting.filter(({ speedup }) => speedup.ratio > fastest.speedup.ratio);
    const unsure = fastestFirst(larger.filter((one) => !best.includes(one)));
    return { kind: "drafting", fastest, top, unsure, noise };
  }
  const open = fastestFirst(drafting.filter(({ speedup }) => (speedup.high ?? 0) >= noise.low));
  if (open[0] !== undefined) return { kind: "none shown", best: open[0], noise };
  return { kind: "plain", next: fastestFirst(drafting)[0] as Standing };
}

function standingsOf(rows: readonly BenchRow[]): Standing[] {
  const bySetting = [...Map.groupBy(rows, ({ setting }) => setting).values()];
  const cases = Math.max(0, ...bySetting.map((rows) => rows.length));
  return bySetting.filter((rows) => rows.length === cases).map((rows) => {
    // Rows written before there were trees have none.
    const { setting, setting_kind, num_steps: numSteps, tree = null } = rows[0] as BenchRow;
    const byCase = rows.map(({ speedup }) => speedup.log_ratios);
    const blocks = Math.min(...byCase.map((logs) => logs.length));
    const logs = Array.from(
      { length: blocks },
      (_, block) => average(byCase.map((logs) => logs[block] ?? NaN)),
    );
    return { setting, setting_kind, numSteps, tree, logs, speedup: pairedRatio(logs) };
  });
}

function noiseOf(standings: readonly Standing[]): Interval {
  const again = standings.find(({ setting_kind }) => setting_kind === "plain again")?.speedup;
  return { low: Math.min(1, again?.low ?? 1), high: Math.max(1, again?.high ?? 1) };
}

function fastestFirst(standings: readonly Standing[]): Standing[] {
  return standings.toSorted((a, b) => b.speedup.ratio - a.speedup.ratio);
}

/**
 * The fixed setting with the fewest verify rows within one standard error of the best, unless a policy has the largest
 * mean and is better by more than that. A fixed winner is therefore the one in the emitted config too.
 */
function winner(best: readonly Standing[]): Standing {
  const fixed = best.filter((one) => !isAdaptive(one));
  const [bestFixed] = fixed;
  const fewest = bestFixed && fixed.filter((one) => isWithin(one, bestFixed))
    .toSorted((a, b) => rowsOf(a) - rowsOf(b))[0];
  const [first] = best;
  const other = first && isAdaptive(first) ? first : undefined;
  const adaptive = fewest && other && isWithin(fewest, other) ? undefined : other;
  return (adaptive ?? fewest) as Standing;
}

/** Verify rows of a sequence. */
function rowsOf({ numSteps, tree }: Standing): number {
  return tree?.[2] ?? (numSteps ?? 0) + 1;
}

function isWithin(own: Standing, best: Standing): boolean {
  const blocks = Math.min(own.logs.length, best.logs.length);
  const losses = Array.from(
    { length: blocks },
    (_, block) => (best.logs[block] ?? NaN) - (own.logs[block] ?? NaN),
  );
  return average(losses) <= (standardError(losses) ?? 0);
}

/** The setting that a static schedule should run at this batch size; undefined for no drafting. */
export function fixedWinner(rows: readonly BenchRow[]): Standing | undefined {
  const verdict = verdictOf(rows.filter((row) => isStatic(row) || !isDrafting(row)));
  return verdict.kind === "drafting" ? verdict.fastest : undefined;
}
