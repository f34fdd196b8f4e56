import type { GenerateResult } from "../../engine/schedule/events.ts";
import type { SpeculativeStats } from "../../speculate/stats.ts";
import type { Engine } from "../open/engine.ts";

/** Why an answer ends where the model had not ended it; undefined where it had. */
export function cutNote(
  { contextLength }: Pick<Engine, "contextLength">,
  { finishReason, promptIds, outputIds }: GenerateResult,
  more: { readonly tokens: string; readonly context?: string },
): string | undefined {
  if (finishReason !== "length") return undefined;
  if (promptIds.length + outputIds.length >= contextLength) {
    const allows = more.context === undefined ? "" : `; ${more.context} allows more`;
    return `The context (${contextLength} tokens) is full: the answer was cut${allows}.`;
  }
  return `The answer was cut at ${outputIds.length} tokens; ${more.tokens} allows more.`;
}

/** Rounds after which a draft that never guessed right is told of. */
const MANY_ROUNDS = 50;

/** Adds up requests; returns a warning, once, where none of all drafts was accepted. */
export function draftWatch(): (stats: SpeculativeStats) => string | undefined {
  let [rounds, drafted, accepted, told] = [0, 0, 0, false];
  return (stats) => {
    if (stats.draft_tokens === 0) return undefined;
    rounds += stats.rounds;
    drafted += stats.draft_tokens;
    accepted += stats.accepted_tokens;
    if (told || accepted > 0 || rounds < MANY_ROUNDS) return undefined;
    told = true;
    return `none of ${drafted} drafted tokens was accepted in ${rounds} rounds: is the draft one for ` +
      "this model, are its weights whole? --draft none is faster";
  };
}
