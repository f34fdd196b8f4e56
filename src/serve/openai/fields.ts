/** Fields that the APIs' requests share, as zod reads them. */
import { z } from "zod";
import type { Ask } from "../answers/ask.ts";

/** Many clients send null for what they do not mean. */
export type Maybe<T> = T | null | undefined;

/** Schemas of an interface's fields. */
export type Fields<T> = { readonly [K in keyof T]-?: z.ZodType<Maybe<T[K]>> };

export function optional<T extends z.ZodType>(schema: T): z.ZodOptional<z.ZodNullable<T>> {
  return schema.nullish();
}

const number = (min: number, max: number) => z.number().min(min).max(max);

export const TOKENS: z.ZodInt = z.int().min(1).max(1_000_000);

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
  seed: optional(z.int().min(0).max(2 ** 32 - 1)),
  frequency_penalty: optional(number(-2, 2)),
  presence_penalty: optional(number(-2, 2)),
  repetition_penalty: optional(z.number().gt(0).max(10)),
  logit_bias: optional(BIAS),
  stop: optional(STOPS),
  ignore_eos: optional(z.boolean()),
  grammar: optional(z.string().min(1)),
  regex: optional(z.string().min(1)),
  num_steps: optional(z.int().min(0).max(64)),
};

/** Taken from clients that send them; no answer depends on them. */
export interface UnusedValues {
  readonly user?: Maybe<string>;
  readonly metadata?: Maybe<Readonly<Record<string, string>>>;
  readonly safety_identifier?: Maybe<string>;
  readonly prompt_cache_key?: Maybe<string>;
  readonly prompt_cache_retention?: Maybe<string>;
  readonly service_tier?: Maybe<string>;
  readonly store?: Maybe<false>;
}

export const UNUSED_FIELDS: Fields<UnusedValues> = {
  user: optional(z.string()),
  metadata: optional(z.record(z.string(), z.string())),
  safety_identifier: optional(z.string()),
  prompt_cache_key: optional(z.string()),
  prompt_cache_retention: optional(z.string()),
  service_tier: optional(z.enum(["auto", "default"])),
  store: optional(z.literal(false, "answers are not stored: allowed is false")),
};

/** What the fields ask for; a grammar of `response_format` is the caller's. */
export function askOf(
  values: SamplingValues,
): Pick<Ask, "sampling" | "stop" | "ignoreEos" | "grammar" | "numSteps"> {
  const { temperature, top_p, top_k, min_p, seed, logit_bias, stop } = values;
  const { frequency_penalty, presence_penalty, repetition_penalty } = values;
  const { grammar, regex, num_steps } = values;
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
