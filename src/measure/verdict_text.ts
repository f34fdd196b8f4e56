import { cases } from "./cases.ts";
import { digits, ratioText } from "./formats.ts";
import { type BenchRow, isAdaptive } from "./row.ts";
import { type Interval, type Verdict, verdictOf } from "./verdict.ts";

type Drafting = Verdict & { readonly kind: "drafting" };

/** The verdict on one case, in words. */
export interface CaseVerdict {
  /** `batch 1, depth 512`. */
  readonly place: string;
  readonly text: string;
  /** The row of the setting that is shown to be the fastest, which may be plain decoding. */
  readonly fastest: BenchRow | undefined;
}

/** The verdicts on all cases of the rows, in their order. */
export function caseVerdicts(rows: readonly BenchRow[]): CaseVerdict[] {
  return cases(rows).map(({ title, rows }) => {
    const verdict = verdictOf(rows);
    const name = verdict.kind === "drafting" ? verdict.fastest.setting : undefined;
    const fastest = rows.find(({ setting, setting_kind }) =>
      verdict.kind === "plain" ? setting_kind === "plain" : setting === name
    );
    return { place: title, text: verdictText(verdict, fastest), fastest };
  });
}

/** One line for each case: `batch 1: fastest is 3 steps, ...`. */
export function verdictLines(rows: readonly BenchRow[]): string[] {
  return caseVerdicts(rows).map(({ place, text }) => `${place}: ${text}`);
}

/** The number of blocks whose interval is narrow enough for most differences. */
const ENOUGH_BLOCKS = 5;

/** The reason that there is no interval: `2 blocks are too few for an interval; --repeat 5`. */
export function tooFewText(blocks: number): string {
  const are = blocks === 1 ? "1 block is" : `${blocks} blocks are`;
  return `${are} too few for an interval; --repeat ${ENOUGH_BLOCKS}`;
}

/** The reason that the row with the largest mean is not the fastest; empty if it is. */
function tiedText({ fastest, top }: Drafting): string {
  if (top === fastest) return "";
  const why = isAdaptive(top) ? "needs no adaptation" : "does less work a round";
  return `${top.setting} has the largest mean, ${
    top.speedup.ratio.toFixed(2)
  }x, but the two are not ` +
    `shown to differ (their difference, block by block, is within a standard error), and ` +
    `${fastest.setting} ${why}`;
}

/** The rows that have a larger mean but are not shown to be faster than plain decoding; empty if there are none. */
function unsureText({ unsure, noise }: Drafting): string {
  if (unsure.length === 0) return "";
  const overlap = unsure.length === 1
    ? "has a larger mean, but its interval overlaps"
    : "have a larger mean, but their intervals overlap";
  const names = unsure.map(({ setting, speedup }) =>
    `${setting}, ${ratioText(speedup, "x plain")},`
  );
  return `${listText(names)} ${overlap} ${noiseRange(noise)}`;
}

/** The interval of plain decoding over itself, widened to contain 1. */
function noiseRange({ low, high }: Interval): string {
  return `the noise [${low.toFixed(2)}, ${high.toFixed(2)}] (plain against itself)`;
}

function listText(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
}

function verdictText(verdict: Verdict, row: BenchRow | undefined): string {
  switch (verdict.kind) {
    case "drafting": {
      const { fastest, top } = verdict;
      const { setting, speedup } = fastest;
      const speed = row === undefined ? "" : `${digits(row.tokens_per_second.mean)} tokens/s, `;
      const best = top === fastest ? "fastest is" : "named is";
      const notes = [tiedText(verdict), unsureText(verdict)].map((note) => note && `; ${note}`);
      return `${best} ${setting}, ${speed}${ratioText(speedup, "x plain")}${notes.join("")}`;
    }
    case "plain": {
      const { setting, speedup } = verdict.next;
      return "fastest is plain: whatever drafts is slower; " +
        `the next is ${setting}, ${ratioText(speedup, "x plain")}`;
    }
    case "none shown": {
      const { best: { setting, speedup, logs }, noise } = verdict;
      return `nothing is shown to be faster than plain: the best, ${setting}, is ` +
        `${ratioText(speedup, "x plain")}, and its interval overlaps ${noiseRange(noise)}; ` +
        `--repeat ${2 * logs.length} narrows both`;
    }
    case "too few blocks":
      return `no verdict: ${tooFewText(verdict.blocks)}`;
    case "nothing to compare":
      return "only plain decoding was measured";
  }
}
