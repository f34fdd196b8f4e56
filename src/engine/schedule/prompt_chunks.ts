/** Which tokens of which prompts the next forward stores. */
import { wholeRuns } from "../device/prompt_rows.ts";

/** Rows that a forward of prompts may have. */
export interface PromptBudget {
  /** At most, padding between chunks included. */
  readonly rows: number;
  /** Rows of a run (`promptRun`): in a forward of several chunks each is padded to whole runs. */
  readonly run: number;
}

/**
 * Tokens of each prompt that go into the next forward, oldest first until it is full: the first prompts whole, then a
 * part of one. So the oldest prompt always goes on, and what it leaves is given to those behind it.
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
