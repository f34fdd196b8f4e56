import type { GenerateResult } from "../../engine/schedule/events.ts";
import type { SpeculativeStats } from "../../speculate/stats.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import type { EngineInfo } from "../../engine/engine.ts";
import { MAX_TOKENS } from "../open/sampling.ts";

type Context = Pick<EngineInfo, "contextLength" | "maxContextLength">;

/** Why an answer ends where the model had not ended it; undefined where it had. */
export function cutNote(
  { contextLength, maxContextLength }: Context,
  { finishReason, promptIds, outputIds }: GenerateResult,
  more: { readonly tokens: string; readonly context?: string },
): string | undefined {
  if (finishReason !== "length") return undefined;
  if (promptIds.length + outputIds.length >= contextLength) {
    const allows = more.context === undefined || contextLength >= maxContextLength
      ? ""
      : `; ${more.context} allows more`;
    return `The context (${contextLength} tokens) is full: the answer was cut${allows}.`;
  }
  return `The answer was cut at ${outputIds.length} tokens; ${more.tokens} allows more.`;
}

/** What `generate` was to make. */
interface AnswerLimits {
  /** Value of `--max-tokens`; undefined: its default. */
  readonly maxTokens: number | undefined;
  readonly grammar: Grammar | undefined;
}

/** `cutNote` of `generate`: names the limit that cut the answer and says where its JSON is incomplete. */
export function cutAnswerNote(
  engine: Context,
  result: GenerateResult,
  { maxTokens, grammar }: AnswerLimits,
): string | undefined {
  const note = cutNote(engine, result, { tokens: "--max-tokens", context: "--context-length" });
  if (note === undefined) return undefined;
  const full = result.promptIds.length + result.outputIds.length >= engine.contextLength;
  return (full ? note : cutAtText(maxTokens)) + incompleteText(grammar, result.text);
}

/** `The answer was cut at --max-tokens 512 (the default).` */
export function cutAtText(maxTokens: number | undefined): string {
  const limit = maxTokens ?? `${MAX_TOKENS} (the default)`;
  return `The answer was cut at --max-tokens ${limit}; a larger number allows more.`;
}

/** A note that a cut, constrained answer is incomplete; empty where it happens to be whole JSON. */
export function incompleteText(grammar: Grammar | undefined, text: string): string {
  if (grammar === undefined) return "";
  if (grammar.kind !== "json object" && grammar.kind !== "json schema") {
    return " It may not be a whole text of the grammar.";
  }
  try {
    JSON.parse(text);
    return "";
  } catch {
    return " Its JSON is incomplete.";
  }
}

/** Rounds after which a draft that never guessed right causes a warning. */
const MANY_ROUNDS = 50;

/** Adds up the draft statistics of requests; returns a warning, once, if no draft was ever accepted. */
export function draftWatch(): (stats: SpeculativeStats) => string | undefined {
  let [rounds, drafted, accepted, warned] = [0, 0, 0, false];
  return (stats) => {
    if (stats.draft_tokens === 0) return undefined;
    rounds += stats.rounds;
    drafted += stats.draft_tokens;
    accepted += stats.accepted_tokens;
    if (warned || accepted > 0 || rounds < MANY_ROUNDS) return undefined;
    warned = true;
    return `none of ${drafted} drafted tokens was accepted in ${rounds} rounds: is the draft one for ` +
      "this model, are its weights whole? --draft none is faster";
  };
}
