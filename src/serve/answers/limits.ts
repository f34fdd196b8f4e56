import type { EngineFacts } from "../../engine/client.ts";

/** Tokens, prompt and output, that a request may have. */
export function mostTokens(
  { contextLength, requestTokens = contextLength }: Pick<
    EngineFacts,
    "contextLength" | "requestTokens"
  >,
): number {
  return Math.max(1, Math.min(contextLength, requestTokens));
}
