/** Requests that need no tokenizer, decoded greedily. */
import assert from "node:assert/strict";
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

/**
 * Runs requests for which there are too few pages, so that some are preempted, and asserts that each has the text that
 * `plain` makes of it. Returns the prompts with their answers.
 */
export async function assertPreempted(
  engine: LocalEngine,
  plain: LocalEngine,
): Promise<{ readonly ids: readonly number[]; readonly outputIds: readonly number[] }[]> {
  const prompts = [20, 35, 50, 11].map(idsOf);
  const found = await Promise.all(prompts.map((ids) => generate(engine, ids, 105)));
  for (const [i, ids] of prompts.entries()) {
    const { outputIds } = await generate(plain, ids, 105);
    assert.deepEqual(found[i]?.outputIds, outputIds, `request ${i}`);
  }
  assert.ok(engine.counts.preemptions > 0, "nothing was preempted");
  return prompts.map((ids, i) => ({ ids, outputIds: found[i]?.outputIds ?? [] }));
}

/** Asserts that the next turn after each of these answers has the text that `plain` makes of it. */
export async function assertNextTurns(
  engine: LocalEngine,
  plain: LocalEngine,
  turns: Awaited<ReturnType<typeof assertPreempted>>,
): Promise<void> {
  for (const [i, { ids, outputIds: answer }] of turns.entries()) {
    const later = [...ids, ...answer.slice(0, 90)];
    const { outputIds } = await generate(plain, later, 9);
    assert.deepEqual((await generate(engine, later, 9)).outputIds, outputIds, `turn of ${i}`);
  }
}
