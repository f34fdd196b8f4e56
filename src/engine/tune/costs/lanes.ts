import { GREEDY } from "../../../speculate/sampling.ts";
import type { Runner } from "../../device/runner.ts";
import { prefillPrompt } from "../../device/single_sequence.ts";
import { newSequence, type Sequence } from "../../device/sequence.ts";
import { tablePages } from "../../device/buffers.ts";
import { PAGE } from "../../../model/device_layout.ts";

/** Sequences side by side whose contexts are about equally long, for rounds that are measured. */
export interface Lanes extends Disposable {
  /**
   * The first `batch` lanes with `context` tokens stored, or up to WINDOW more, and room for one more
   * round of `tokens` each. Their long prompts share pages. Undefined where slots or pages are short.
   *
   * @param context the last cell of it and what comes after are in pages of each lane's own.
   */
  at(batch: number, context: number, tokens: number): Promise<readonly Sequence[] | undefined>;
  /** Gives all slots back, and all pages except those of shared prompts. */
  close(): void;
}

/** Tokens that a lane decodes before it is set back to its prompt. */
export const WINDOW = 64;

interface Lane {
  readonly sequence: Sequence;
  /** Tokens it may go on by. */
  left: number;
}

/**
 * Takes only the pool's free pages: what a prefix cache keeps is left alone.
 *
 * @param runner is used by nothing else until the lanes are disposed of.
 */
export function openLanes(runner: Runner): Lanes {
  const { pool } = runner;
  const lanes: Lane[] = [];
  /** Whole pages of each context's prompt, held once more for the lanes to come. */
  const shared = new Map<number, readonly number[]>();
  let open = 0;

  function close(): void {
    for (const { sequence } of lanes.splice(0)) runner.closeSlot(sequence);
  }

  async function add(context: number): Promise<boolean> {
    const sequence = newSequence();
    const prefix = shared.get(context) ?? [];
    pool.retain(prefix);
    sequence.pages.push(...prefix);
    if (!runner.openSlot(sequence)) {
      pool.release(prefix);
      return false;
    }
    lanes.push({ sequence, left: WINDOW });
    sequence.stored = sequence.draftStored = prefix.length * PAGE;
    // Two windows: a round that ends beyond the first is still within them.
    const cells = context + 2 * WINDOW;
    const fits = cells <= tablePages(runner.capacity) * PAGE && runner.reserve(sequence, cells);
    if (!fits) return false;
    runner.setSampling(sequence, GREEDY);
    await prefillPrompt(runner, sequence, promptIds(runner, context), sequence.stored);
    if (!shared.has(context)) {
      const whole = sequence.pages.slice(0, Math.floor((context - 1) / PAGE));
      pool.retain(whole);
      shared.set(context, whole);
    }
    return true;
  }

  return {
    async at(batch, context, tokens) {
      if (context !== open) close();
      open = context;
      while (lanes.length < batch) {
        if (!await add(context)) {
          close();
          return undefined;
        }
      }
      const used = lanes.slice(0, batch);
      for (const lane of used) {
        if (lane.left < tokens) {
          await prefillPrompt(runner, lane.sequence, promptIds(runner, context), context - 1);
          lane.left = WINDOW;
        }
        lane.left -= tokens;
      }
      return used.map(({ sequence }) => sequence);
    },
    close,
    [Symbol.dispose](): void {
      close();
      for (const pages of shared.values()) pool.release(pages);
      shared.clear();
    },
  };
}

/** Distinct tokens of the target, as far as it has enough. */
export function promptIds(runner: Pick<Runner, "models">, length: number): number[] {
  const { vocabSize } = runner.models.target.config;
  return Array.from({ length }, (_, i) => (7 + 31 * i) % vocabSize);
}
