import { type EngineSizes, reservedCells } from "../engine/device/buffers.ts";
import { CELLS_PER_PAGE } from "../engine/schedule/sequence_pages.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { BenchRequest, Case } from "./runner.ts";
import type { Prompt } from "./workload/prompt.ts";
import { workloadOf } from "./workload/workload.ts";

/** Seeds whose prompts are looked at for the longest: blocks have other prompts of the same kinds. */
const SEEDS = 16;
/** Tokens that a chat template may add to a conversation. */
const TEMPLATE_TOKENS = 256;

/**
 * Tokens of keys and values with which a sweep runs as with any more: all requests of a cell keep theirs
 * until its end, so that neither a request waits nor a stored context is evicted. Lengths of texts are
 * bounded by their bytes, as no tokenizer is loaded yet; a text that is longer still has room by eviction.
 *
 * @param tiers of the rounds, which may write behind the last token.
 */
export function sweepTokens(
  { cases, workload }: Pick<BenchRequest, "cases" | "workload">,
  tiers: readonly DraftShape[],
): number {
  const shapes: Pick<EngineSizes, "shapes" | "treeShapes"> = { shapes: tiers, treeShapes: tiers };
  const paged = (tokens: number) =>
    Math.ceil(reservedCells(shapes, tokens) / CELLS_PER_PAGE) * CELLS_PER_PAGE;
  const needOf = (one: Case) => {
    const { batch, depth } = one;
    const prompts = Array.from(
      { length: SEEDS },
      (_, seed) => workloadOf(one, workload).prompts({ batch, seed }),
    );
    const longest = Math.max(...prompts.flat().map((prompt) => tokensOf(prompt, one)));
    const requests = Math.max(...prompts.map(({ length }) => length));
    // A place of the batch has a context, which all requests of the place begin with.
    return batch * (depth === 0 ? 0 : paged(depth)) + requests * paged(longest);
  };
  return Math.max(...cases.map(needOf));
}

/** Tokens of the long context that all requests share, and of each request's own part. */
const [SHARED_TOKENS, OWN_TOKENS] = [4096, 384];

/** Tokens of keys and values that measuring costs has use for, of all requests together. */
export function costsTokens(maxBatch: number): number {
  return SHARED_TOKENS + maxBatch * OWN_TOKENS;
}

/** Tokens of a request and its answers, at most; the context before it not counted. */
function tokensOf(
  prompt: Prompt,
  { promptTokens = 1, outputTokens }: Pick<Case, "promptTokens" | "outputTokens">,
): number {
  if (prompt.kind === "random") return promptTokens + outputTokens;
  if (prompt.kind === "text") return bytesOf(prompt.text) + outputTokens;
  const texts = [...prompt.messages.map(({ content }) => String(content)), ...prompt.followUps];
  const turns = 1 + prompt.followUps.length;
  return texts.reduce((sum, text) => sum + bytesOf(text), 0) +
    turns * (TEMPLATE_TOKENS + outputTokens);
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
