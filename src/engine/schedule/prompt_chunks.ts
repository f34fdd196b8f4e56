/** Which tokens of which prompts the next forward stores. */
import { promptsMs } from "../../speculate/costs/lookup.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import { rowBuckets } from "../device/buckets.ts";
import { promptRows, wholeRuns } from "../device/prompt_rows.ts";

/** Rows that a forward of prompts may have. */
export interface PromptBudget {
  /** At most, padding between chunks included. */
  readonly rows: number;
  /** Rows of a run (`promptRun`): in a forward of several chunks each is padded to whole runs. */
  readonly run: number;
}

/**
 * Tokens of each prompt that go into the next forward, oldest first until it is full: the first prompts whole, then a
 * part of one. The oldest prompt always advances, and the rows that it leaves go to the prompts behind it.
 *
 * @param left tokens that each prompt has still to store, 1 or more, oldest first.
 * @returns as many numbers or fewer: the prompts behind them wait.
 */
export function promptChunks(
  left: readonly number[],
  { rows, run }: PromptBudget,
): number[] {
  const [oldest = 0, ...others] = left;
  const chunks = [Math.min(oldest, rows)];
  let room = rows - wholeRuns(oldest, run);
  for (const tokens of others) {
    if (room < run) break;
    const whole = Math.floor(room / run) * run;
    chunks.push(Math.min(tokens, whole));
    room -= wholeRuns(tokens, run);
  }
  return chunks;
}

/** A prompt that is being stored. */
export interface StoringPrompt {
  /** Tokens that are stored. */
  readonly stored: number;
  /** Tokens that are not, 1 or more. */
  readonly left: number;
}

/** A forward may always cost this many times what the smallest one costs. */
const FREE = 1.2;

/**
 * Rows of a forward of these prompts, oldest first, that takes at most `ms` milliseconds by the cost table: the largest
 * number that programs are made for, up to the budget's. If even a run takes longer, it is as many rows as cost little
 * more than a run, so that prompts always advance.
 */
export function rowsWithin(
  ms: number,
  prompts: readonly StoringPrompt[],
  { budget: { rows, run }, costs }: { readonly budget: PromptBudget; readonly costs: CostTable },
): number {
  const left = prompts.map(({ left }) => left);
  const msOf = (most: number) => {
    const tokens = promptChunks(left, { rows: most, run });
    const chunks = tokens.map((count, i) => {
      const from = prompts[i]?.stored ?? 0;
      return { from, to: from + count };
    });
    return promptsMs(costs, chunks, promptRows(tokens, run).count);
  };
  const least = Math.min(rows, run);
  const allowed = Math.max(ms, FREE * msOf(least));
  return rowBuckets(rows).findLast((most) => most >= least && msOf(most) <= allowed) ?? least;
}
