import { cases } from "./cases.ts";
import { digits, ratioText } from "./columns.ts";
import type { BenchRow } from "./row.ts";
import { type Verdict, verdictOf } from "./verdict.ts";

/** The verdict on one case, in words. */
export interface CaseVerdict {
  /** `batch 1, depth 512`. */
  readonly place: string;
  readonly text: string;
  /** The row of a setting that is shown to be the fastest, plain decoding too. */
  readonly fastest: BenchRow | undefined;
}

/** One for each case of the rows, in their order. */
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

/** `batch 1: fastest is 3 steps, ...`, a line for each case. */
export function verdictLines(rows: readonly BenchRow[]): string[] {
  return caseVerdicts(rows).map(({ place, text }) => `${place}: ${text}`);
}

/** Blocks that narrow an interval enough for most differences. */
const ENOUGH_BLOCKS = 5;

/** Why there is no interval: `2 blocks are too few for an interval; --repeat 5`. */
export function tooFewText(blocks: number): string {
  const are = blocks === 1 ? "1 block is" : `${blocks} blocks are`;
  return `${are} too few for an interval; --repeat ${ENOUGH_BLOCKS}`;
}

function verdictText(verdict: Verdict, row: BenchRow | undefined): string {
  switch (verdict.kind) {
    case "drafting": {
      const { fastest: { setting, speedup }, also } = verdict;
      const speed = row === undefined ? "" : `${digits(row.tokens_per_second.mean)} tokens/s, `;
      const others = also.map(({ setting }) => setting).join(", ");
      const note = others === "" ? "" : `; not shown to be faster: ${others}`;
      return `fastest is ${setting}, ${speed}${ratioText(speedup, "x plain")}${note}`;
    }
    case "plain": {
      const { setting, speedup } = verdict.next;
      return `fastest is plain; next is ${setting}, ${ratioText(speedup, "x plain")}`;
    }
    case "none shown": {
      const { best: { setting, speedup }, noise } = verdict;
      const around = `[${noise.low.toFixed(2)}, ${noise.high.toFixed(2)}]`;
      return `no difference shown: ${setting} ${ratioText(speedup, "x plain")}, noise ${around}`;
    }
    case "too few blocks":
      return `no verdict: ${tooFewText(verdict.blocks)}`;
    case "nothing to compare":
      return "only plain decoding was measured";
  }
}
