/** One sequence on a runner without the scheduler: for check, profile and bench. */
import type { Runner } from "./runner.ts";
import { newSequence, rewind, type Sequence } from "./sequence.ts";

/** A sequence with a slot; disposing it gives slot and pages back. */
export type OpenSequence = Sequence & Disposable;

/** @throws Error when all slots are taken. */
export function openSequence(runner: Runner, ids: readonly number[] = []): OpenSequence {
  const sequence = Object.assign(newSequence(ids), {
    [Symbol.dispose]: () => runner.closeSlot(sequence),
  });
  if (!runner.openSlot(sequence)) throw new Error(`all ${runner.capacity.batch} slots are taken`);
  return sequence;
}

/**
 * Makes `ids` the sequence's prompt and stores it from token `from` on: those before are stored.
 *
 * @returns the first token, which is added to the sequence's ids.
 */
export async function prefillPrompt(
  runner: Runner,
  sequence: Sequence,
  ids: readonly number[],
  from: number = 0,
): Promise<number> {
  sequence.ids.splice(0, Infinity, ...ids);
  rewind(sequence, from);
  while (true) {
    const to = Math.min(ids.length, sequence.stored + runner.capacity.prefillRows);
    const [token] = await runner.prefill([{ sequence, to }]);
    if (token !== undefined) return token.id;
  }
}
