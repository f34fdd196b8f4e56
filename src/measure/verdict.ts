import type { TreeEntry } from "../speculate/emit_config.ts";
import { type BenchRow, isAdaptive, isDrafting, isStatic } from "./row.ts";
import { average, FEWEST_BLOCKS, pairedRatio, type Ratio, standardError } from "./statistics.ts";

/** One setting against plain decoding, over all cases it is judged in. */
export interface Standing {
  readonly setting: string;
  readonly numSteps: number | null;
  readonly tree: TreeEntry | null;
  readonly setting_kind: BenchRow["setting_kind"];
  readonly speedup: Ratio;
  /** Mean log-ratio of the cases, a number for each block. */
  readonly logs: readonly number[];
}

/** Who won. Noise is the interval of the A/A row, widened to hold 1. */
export type Verdict =
  /**
   * `top` has the largest mean of what is shown to be faster than plain decoding; `fastest`, which may be the
   * same, is within one standard error of `top`. `unsure` have a larger mean than `fastest` but are not shown
   * to be faster than plain decoding.
   */
  | {
    readonly kind: "drafting";
    readonly fastest: Standing;
    readonly top: Standing;
    readonly unsure: readonly Standing[];
    readonly noise: Interval;
  }
  /** Every other setting is slower than plain decoding, `next` the least. */
  | { readonly kind: "plain"; readonly next: Standing }
  /** `best` may be as fast as plain decoding, or faster: its interval and the noise overlap. */
  | { readonly kind: "none shown"; readonly best: Standing; readonly noise: Interval }
  | { readonly kind: "too few blocks"; readonly blocks: number }
  | { readonly kind: "nothing to compare" };

/** Of a ratio to plain decoding. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * The verdict on rows of one batch size; table, page and emitted config all name this one. A
 * setting is faster than plain decoding where its 95 % interval lies above the noise. Of those that
 * are, the one of the largest mean wins, or fewer steps within one standard error of the paired
 * difference: of two chains the shorter, of trees that of fewer rows. Cases (depths, temperatures, ...) count alike; a setting must be in all.
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
 * The fewest fixed steps within a standard error of the best, unless a preset or policy has the largest mean
 * of all and is better than those by more than that: so a fixed winner is the emitted config's too.
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

/** What a static schedule should run at this batch size; undefined is no drafting. */
export function fixedWinner(rows: readonly BenchRow[]): Standing | undefined {
  const verdict = verdictOf(rows.filter((row) => isStatic(row) || !isDrafting(row)));
  return verdict.kind === "drafting" ? verdict.fastest : undefined;
}
