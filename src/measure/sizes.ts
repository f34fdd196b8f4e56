import { type EngineSizes, reservedCells } from "../engine/device/buffers.ts";
import { CELLS_PER_PAGE } from "../engine/schedule/sequence_pages.ts";
import type { DraftShape } from "../speculate/round_shape.ts";
import type { BenchRequest, Case } from "./runner.ts";
import type { Prompt } from "./workload/prompt.ts";
import { workloadOf } from "./workload/workload.ts";

/** The number of seeds whose prompts are searched for the longest; blocks have other prompts of the same kinds. */
const SEEDS = 16;
/** Tokens that a chat template may add to a conversation. */
const TEMPLATE_TOKENS = 256;

/**
 * The size of the KV cache in tokens beyond which a sweep does not get faster: the keys and values of all requests of a
 * cell fit until its end, so no request waits and no stored context is evicted. The length of a text is bounded by its
 * bytes, as no tokenizer is loaded yet; a longer text still fits, by eviction.
 *
 * @param tiers of the rounds, which may write after the last token.
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

/** The size of the KV cache in tokens that a measurement of costs uses, for all requests together. */
export function costsTokens(maxBatch: number): number {
  return SHARED_TOKENS + maxBatch * OWN_TOKENS;
}

/** The most tokens of a request and its answers, without the context before it. */
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
