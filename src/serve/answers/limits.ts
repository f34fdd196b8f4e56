import type { EngineInfo } from "../../engine/engine.ts";

/** Tokens, prompt and output, that a request may have. */
export function maxRequestTokens(
  { contextLength, requestTokens = contextLength }: Pick<
    EngineInfo,
    "contextLength" | "requestTokens"
  >,
): number {
  return Math.max(1, Math.min(contextLength, requestTokens));
}
