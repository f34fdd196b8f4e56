import { defined } from "../../defined.ts";
import type { GenerateRequest } from "../../engine/schedule/events.ts";
import type { PromptInput } from "../../engine/load/text.ts";
import { randomSeed, type SamplingChoice, samplingOf } from "../../engine/sampling.ts";
import type { Grammar } from "../../grammar/rules/grammar.ts";
import { UsageError } from "../../errors.ts";
import { ApiError, invalid, promptTooLong, tooManyOf } from "../http/errors.ts";
import { maxRequestTokens } from "./limits.ts";
import type { Ready, ServiceOptions } from "../service/service.ts";

/** A prompt as an API gives it. */
export type Prompt = PromptInput | { readonly ids: readonly number[] };

/** The settings of one answer, whichever API the request used. Absent: the server's default. */
export interface Ask {
  readonly sampling: Partial<SamplingChoice> & { readonly seed?: number };
  readonly maxTokens?: number | undefined;
  readonly stop: readonly string[];
  readonly ignoreEos: boolean;
  readonly grammar?: Grammar | undefined;
  /** The API's field that the grammar comes from, for errors. */
  readonly grammarField?: string | undefined;
  /** Number of most probable tokens to report for each output token; absent: no log-probabilities. */
  readonly logprobs?: number | undefined;
  readonly numSteps?: number | undefined;
  /** What the answer is predicted to be, or a part of it. */
  readonly prediction?: string | undefined;
}

/** Most characters of one token. A prompt with more per token of the context cannot fit: it is not tokenized. */
const MAX_CHARACTERS = 128;

/** Prompts with more characters per token of the context are not tokenized: other requests would wait. */
const USUAL_CHARACTERS = 16;

/** This many characters are tokenized even if the context is short. */
const MIN_CHARACTER_LIMIT = 2 ** 20;

/** Token ids of a prompt. @throws ApiError as `promptTokens`, and where it does not fit. */
export async function encodePrompt(
  ready: Ready,
  prompt: Prompt,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const { contextLength } = ready.engine.info;
  const length = textLength(prompt);
  if (length > contextLength * MAX_CHARACTERS) {
    throw promptTooLong(Math.ceil(length / MAX_CHARACTERS), contextLength);
  }
  const ids = await promptTokens(ready, prompt, signal);
  const most = maxRequestTokens(ready.engine.info);
  if (ids.length >= most) throw promptTooLong(ids.length, most);
  return ids;
}

/**
 * Token ids of a prompt, also of one that does not fit.
 *
 * @param signal ends the rendering and tokenizing of the prompt.
 * @throws ApiError for one that is far too long to look at (413), or that the template refuses (400);
 * 499 where the signal aborts.
 */
export async function promptTokens(
  { engine }: Ready,
  prompt: Prompt,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const { contextLength } = engine.info;
  const length = textLength(prompt);
  const most = Math.max(contextLength * USUAL_CHARACTERS, MIN_CHARACTER_LIMIT);
  if (length > most) throw tooManyOf("characters", length, most);
  return "ids" in prompt ? prompt.ids : await encoded(engine, prompt, signal);
}

/**
 * Token ids of a prediction, as many as the context holds.
 *
 * @throws ApiError (400) for one that is far too long to look at.
 */
export async function encodePrediction(
  ready: Ready,
  text: string,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const { engine } = ready;
  const most = engine.info.contextLength * MAX_CHARACTERS;
  if (text.length > most) {
    const why = `it has ${text.length} characters, allowed are ${most}`;
    throw invalid(`Cannot use "prediction": ${why}`, "prediction");
  }
  const ids = await encoded(engine, { raw: text, addSpecialTokens: false }, signal);
  return ids.slice(0, engine.info.contextLength);
}

async function encoded(
  engine: Ready["engine"],
  prompt: PromptInput,
  signal: AbortSignal,
): Promise<readonly number[]> {
  try {
    return await engine.encodePrompt(prompt, signal);
  } catch (error) {
    if (signal.aborted) throw new ApiError(499, "the client left while its prompt was encoded");
    if (error instanceof UsageError) throw invalid(error.message, "messages");
    throw error;
  }
}

/** Characters of a prompt: of a conversation all names and texts, also those of calls and tools. */
function textLength(prompt: Prompt): number {
  return "ids" in prompt ? prompt.ids.length : charactersOf(prompt);
}

function charactersOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + charactersOf(each), 0);
  return Object.entries(value)
    .reduce((sum, [name, each]) => sum + name.length + charactersOf(each), 0);
}

/**
 * The engine's request for answer number `choice` of a prompt. The seed counts up with `choice`, so that
 * the first of several answers equals the answer of a request for one.
 */
export function requestOf(
  { sampling, maxTokens, stop, ignoreEos, grammar, logprobs, numSteps }: Ask,
  { promptIds, prediction, ready, options, choice = 0, drawSeed = randomSeed }: {
    readonly promptIds: readonly number[];
    /** `Ask.prediction` as token ids. */
    readonly prediction?: readonly number[] | undefined;
    readonly ready: Ready;
    readonly options: Pick<ServiceOptions, "sampling" | "maxTokens">;
    readonly choice?: number;
    readonly drawSeed?: () => number;
  },
): Omit<GenerateRequest, "signal"> {
  const { engine } = ready;
  const { seed: given, ...own } = sampling;
  const seed = given === undefined ? undefined : (given + choice) % 2 ** 32;
  return {
    promptIds,
    sampling: samplingOf({ ...options.sampling(engine), ...own, seed }, drawSeed),
    // A limit beyond the context is lowered: the answer would be cut at the context's end anyway.
    maxTokens: Math.min(
      maxTokens ?? options.maxTokens ?? Infinity,
      maxRequestTokens(engine.info) - promptIds.length,
    ),
    stop,
    ignoreEos,
    ...defined({ grammar, logprobs, numSteps, prediction }),
  };
}
