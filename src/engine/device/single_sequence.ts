/** One sequence on a core without the scheduler: for check, profile and bench. */
import type { Runner } from "./runner.ts";
import { newSequence, rewind, type Sequence } from "./sequence.ts";

/** A sequence with a slot; disposing it gives slot and pages back. */
export type OpenSequence = Sequence & Disposable;

/** @throws Error when all slots are taken. */
export function openSequence(core: Runner, ids: readonly number[] = []): OpenSequence {
  const sequence = Object.assign(newSequence(ids), {
    [Symbol.dispose]: () => core.closeSlot(sequence),
  });
  if (!core.openSlot(sequence)) throw new Error(`all ${core.capacity.batch} slots are taken`);
  return sequence;
}

/**
 * Makes `ids` the sequence's prompt and stores it from token `from` on: those before are stored.
 *
 * @returns the first token, which is added to the sequence's ids.
 */
export async function prefillPrompt(
  core: Runner,
  sequence: Sequence,
  ids: readonly number[],
  from: number = 0,
): Promise<number> {
  sequence.ids.splice(0, Infinity, ...ids);
  rewind(sequence, from);
  while (true) {
    const to = Math.min(ids.length, sequence.stored + core.capacity.prefillRows);
    const [token] = await core.prefill([{ sequence, to }]);
    if (token !== undefined) return token.id;
  }
}
