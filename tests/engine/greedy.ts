/** Requests that need no tokenizer, decoded greedily. */
import { type GenerateResult, resultOf } from "../../src/engine/schedule/events.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import type { LocalEngine } from "./open.ts";

/** Token ids of a prompt, other ones for each seed. */
export function idsOf(length: number, seed: number): number[] {
  return Array.from({ length }, (_, j) => 3 + (j * 37 + seed * 11) % 300);
}

/** Exactly `maxTokens` tokens after a prompt. */
export function generate(
  engine: LocalEngine,
  promptIds: readonly number[],
  maxTokens: number,
): Promise<GenerateResult> {
  const job = { promptIds, sampling: GREEDY, maxTokens, stop: [], ignoreEos: true };
  return resultOf(engine.submit(job));
}
