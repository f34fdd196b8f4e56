import { GREEDY } from "../../../speculate/sampling.ts";
import type { Core } from "../../device/core.ts";
import { prefillPrompt } from "../../device/direct.ts";
import { newSequence, type Sequence } from "../../device/sequence.ts";
import { prefixCache } from "../../schedule/prefix_cache.ts";
import { sequencePages } from "../../schedule/sequence_pages.ts";

/** Sequences side by side whose contexts are about equally long, for rounds that are measured. */
export interface Lanes extends Disposable {
  /**
   * The first `batch` lanes with `context` tokens stored, or up to WINDOW more, and room for one more
   * round of `tokens` each. Their long prompts share pages. Undefined where slots or pages are short.
   *
   * @param context no multiple of a page: a prompt's last cell is in a page of its own.
   */
  at(batch: number, context: number, tokens: number): Promise<readonly Sequence[] | undefined>;
  /** Gives all slots back, and the pages but those of the shared prompt. */
  close(): void;
}

/** Tokens that a lane goes on by before it is set back to its prompt. */
export const WINDOW = 64;

interface Lane {
  readonly sequence: Sequence;
  /** Tokens it may go on by. */
  left: number;
}

/** @param core nobody else uses it until the lanes are disposed of. */
export function openLanes(core: Core): Lanes {
  const cache = prefixCache(core.pool, {
    lookahead: core.draft === "none" ? 0 : 1,
    requireDraft: core.draft === "always",
  });
  const pages = sequencePages(core, cache);
  const lanes: Lane[] = [];
  let open = 0;

  function close(): void {
    for (const { sequence } of lanes.splice(0)) pages.close(sequence);
  }

  async function add(context: number): Promise<boolean> {
    const sequence = newSequence(promptIds(core, context));
    if (pages.open(sequence) !== "opened") return false;
    lanes.push({ sequence, left: 0 });
    // Two windows: a round that ends beyond the first is still within them.
    if (!pages.reserve(sequence, context + 2 * WINDOW)) return false;
    core.setSampling(sequence, GREEDY);
    await prefillPrompt(core, sequence, promptIds(core, context), sequence.stored);
    pages.share(sequence);
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
      if (used.some(({ left }) => left < tokens)) {
        for (const lane of used) {
          await prefillPrompt(core, lane.sequence, promptIds(core, context), context - 1);
          lane.left = WINDOW;
        }
      }
      for (const lane of used) lane.left -= tokens;
      return used.map(({ sequence }) => sequence);
    },
    close,
    [Symbol.dispose](): void {
      close();
      cache.clear();
    },
  };
}

/** Tokens of the target that differ from each other, as far as it has so many. */
export function promptIds(core: Pick<Core, "models">, length: number): number[] {
  const { vocabSize } = core.models.target.config;
  return Array.from({ length }, (_, i) => (7 + 31 * i) % vocabSize);
}
