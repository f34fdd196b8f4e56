import { UsageError } from "../errors.ts";
import { PAGE } from "../model/rows_layout.ts";
import { type Capacity, maxSteps, reservedCells } from "./buffers.ts";
import type { Core } from "./core.ts";
import type { GenerateRequest } from "./events.ts";
import type { Outputs } from "./output.ts";
import type { Slot } from "./slot.ts";

/** Cells that the request may need until it ends. */
export function cellsAtEnd(
  capacity: Capacity,
  { promptIds, maxTokens }: GenerateRequest,
): number {
  const tokens = Math.min(promptIds.length + maxTokens, capacity.contextLength);
  return reservedCells(capacity, tokens);
}

/** @throws UsageError for a request that no slot could ever hold, or that the tiers cannot run. */
export function checkRequest(
  capacity: Capacity,
  { name, contextLength }: Outputs,
  request: GenerateRequest,
): void {
  const { promptIds, maxTokens, numSteps } = request;
  const { length } = promptIds;
  if (length === 0) throw new UsageError("Cannot generate: the prompt is empty");
  if (length >= contextLength) {
    throw new UsageError(
      `Cannot generate: the prompt has ${length} tokens, ` +
        `the context of "${name}" holds ${contextLength}`,
    );
  }
  if (maxTokens < 1) throw new UsageError(`Cannot generate: max tokens is ${maxTokens}`);
  if (numSteps !== undefined && numSteps > maxSteps(capacity)) {
    throw new UsageError(
      `Cannot generate with num_steps ${numSteps}: the deepest tier is ${maxSteps(capacity)}`,
    );
  }
  const cells = cellsAtEnd(capacity, request);
  if (cells > capacity.pages * PAGE) {
    throw new UsageError(
      `Cannot generate: prompt and output may take ${cells} tokens of keys and values, ` +
        `--max-kv-tokens is ${capacity.pages * PAGE}`,
    );
  }
}

/**
 * Gives each sequence pages for `count` rounds without the host, or for as many rounds as there are
 * pages for all; one is reserved already. Nobody needs more than it may store until its end, and half
 * of the free pages stay free: what is reserved ahead must not keep others from being admitted.
 *
 * @returns the number of rounds.
 */
export function reserveRounds(
  core: Core,
  entries: readonly { readonly slot: Slot | undefined; readonly request: GenerateRequest }[],
  count: number,
): number {
  const lanes = entries.map(({ slot, request }) => ({ slot: slot as Slot, request }));
  const cells = ({ slot, request }: typeof lanes[number], rounds: number) => {
    const ahead = reservedCells(core.capacity, slot.tokens.length, rounds);
    return Math.min(ahead, cellsAtEnd(core.capacity, request));
  };
  const missing = (rounds: number) =>
    lanes.reduce((sum, lane) => {
      return sum + Math.max(0, Math.ceil(cells(lane, rounds) / PAGE) - lane.slot.pages.length);
    }, 0);
  let rounds = count;
  while (rounds > 1 && missing(rounds) > core.freePages / 2) rounds--;
  if (rounds > 1) { for (const lane of lanes) core.reserve(lane.slot, cells(lane, rounds)); }
  return rounds;
}

/**
 * Tokens of the prompt whose keys and values the slot holds. The last of them is run again: its
 * draft entry pairs its hidden row with the next token, which may be another one now; and a prompt
 * that is cached whole still needs the logits of its last row.
 */
export function reusable(slot: Slot, ids: readonly number[], draft: boolean): number {
  const most = Math.min(slot.tokens.length, ids.length);
  let common = 0;
  while (common < most && slot.tokens[common] === ids[common]) common++;
  return Math.max(0, Math.min(common - 1, draft ? slot.draftLength : Infinity));
}
