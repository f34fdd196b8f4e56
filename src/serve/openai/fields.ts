/** Fields that the APIs' requests share, as zod reads them. */
import { z } from "zod";
import type { Ask } from "../answers/ask.ts";
import { invalid } from "../http/errors.ts";

/** Many clients send null for what they do not mean. */
export type Maybe<T> = T | null | undefined;

/** Schemas of an interface's fields. */
export type Fields<T> = { readonly [K in keyof T]-?: z.ZodType<Maybe<T[K]>> };

export function optional<T extends z.ZodType>(schema: T): z.ZodOptional<z.ZodNullable<T>> {
  return schema.nullish();
}

const number = (min: number, max: number) => z.number().min(min).max(max);

export const TOKENS: z.ZodInt = z.int().min(1).max(1_000_000);

/** Seeds have 32 bits: others are folded, as -1 to 2 ** 32 - 1. */
export const SEED: z.ZodType<number> = z.number().refine(Number.isInteger, "a seed is an integer")
  .transform((seed) => ((seed % 2 ** 32) + 2 ** 32) % 2 ** 32);

/** Factors far from 1 leave no finite logits. */
export const REPETITION_PENALTY: z.ZodType<number> = z.number().min(0.01).max(10);

/** How an answer is sampled and where it ends: the names of OpenAI, llama-server and vLLM. */
export interface SamplingValues {
  readonly temperature?: Maybe<number>;
  readonly top_p?: Maybe<number>;
  /** 0 and -1 are all. */
  readonly top_k?: Maybe<number>;
  readonly min_p?: Maybe<number>;
  readonly seed?: Maybe<number>;
  readonly frequency_penalty?: Maybe<number>;
  readonly presence_penalty?: Maybe<number>;
  readonly repetition_penalty?: Maybe<number>;
  readonly logit_bias?: Maybe<Readonly<Record<string, number>>>;
  readonly stop?: Maybe<string | readonly string[]>;
  readonly ignore_eos?: Maybe<boolean>;
  /** EBNF with the rule root. */
  readonly grammar?: Maybe<string>;
  readonly regex?: Maybe<string>;
  /** Draft steps a round: 0 is plain decoding. */
  readonly num_steps?: Maybe<number>;
}

const BIAS = z.record(z.string().regex(/^\d{1,9}$/, "keys are token ids"), number(-100, 100));
const STOPS = z.union([z.string().min(1), z.array(z.string().min(1)).max(16)]);

export const SAMPLING_FIELDS: Fields<SamplingValues> = {
  temperature: optional(number(0, 100)),
  top_p: optional(z.number().gt(0).max(1)),
  top_k: optional(z.int().min(-1).max(1_000_000)),
  min_p: optional(number(0, 1)),
  seed: optional(SEED),
  frequency_penalty: optional(number(-2, 2)),
  presence_penalty: optional(number(-2, 2)),
  repetition_penalty: optional(REPETITION_PENALTY),
  logit_bias: optional(BIAS),
  stop: optional(STOPS),
  ignore_eos: optional(z.boolean()),
  grammar: optional(z.string().min(1)),
  regex: optional(z.string().min(1)),
  num_steps: optional(z.int().min(0).max(64)),
};

/**
 * What the fields ask for; a grammar of `response_format` is the caller's.
 *
 * @throws ApiError (400) for two grammars: an output has one.
 */
export function askOf(
  values: SamplingValues,
): Pick<Ask, "sampling" | "stop" | "ignoreEos" | "grammar" | "numSteps"> {
  const { temperature, top_p, top_k, min_p, seed, logit_bias, stop } = values;
  const { frequency_penalty, presence_penalty, repetition_penalty } = values;
  const { grammar, regex, num_steps } = values;
  if (grammar && regex) {
    throw invalid('Cannot use "grammar" with "regex": the output has one grammar', "regex");
  }
  return {
    sampling: {
      ...given("temperature", temperature),
      ...given("topP", top_p),
      // -1 is vLLM's for all.
      ...given("topK", top_k === -1 ? 0 : top_k),
      ...given("minP", min_p),
      ...given("seed", seed),
      ...given("frequencyPenalty", frequency_penalty),
      ...given("presencePenalty", presence_penalty),
      ...given("repetitionPenalty", repetition_penalty),
      ...given("logitBias", logit_bias),
    },
    stop: typeof stop === "string" ? [stop] : stop ?? [],
    ignoreEos: values.ignore_eos ?? false,
    grammar: grammar
      ? { kind: "ebnf", text: grammar }
      : regex
      ? { kind: "regex", pattern: regex }
      : undefined,
    numSteps: num_steps ?? undefined,
  };
}

function given<K extends string, V>(key: K, value: Maybe<V>): { [key in K]?: V } {
  return value === undefined || value === null ? {} : { [key]: value } as { [key in K]: V };
}
