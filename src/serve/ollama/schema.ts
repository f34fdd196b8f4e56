import { z } from "zod";
import { HINT, neutral, neutralWhere, type TakingTable } from "../fields/taking.ts";
import { MAX_TOOLS, TOOL_NAME } from "../openai/chat_schema.ts";
import { type Maybe, optional, REPETITION_PENALTY, SEED } from "../openai/fields.ts";

/** ollama's `options`, as far as they are known here. */
export interface OllamaOptions {
  readonly temperature?: Maybe<number>;
  readonly top_k?: Maybe<number>;
  readonly top_p?: Maybe<number>;
  readonly min_p?: Maybe<number>;
  readonly seed?: Maybe<number>;
  readonly stop?: Maybe<readonly string[]>;
  readonly num_predict?: Maybe<number>;
  readonly num_ctx?: Maybe<number>;
  readonly repeat_penalty?: Maybe<number>;
  readonly presence_penalty?: Maybe<number>;
  readonly frequency_penalty?: Maybe<number>;
}

interface Common {
  readonly model: string;
  readonly stream?: Maybe<boolean>;
  readonly format?: Maybe<string | Readonly<Record<string, unknown>>>;
  readonly options?: Maybe<OllamaOptions>;
  readonly think?: Maybe<boolean | string>;
  /** How long the model stays loaded, in seconds or as Go's durations. It stays as long as the server runs. */
  readonly keep_alive?: Maybe<number | string>;
}

export interface OllamaMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly thinking?: Maybe<string>;
  readonly tool_calls?: Maybe<
    readonly { readonly function: { readonly name: string; readonly arguments: unknown } }[]
  >;
  readonly tool_name?: Maybe<string>;
}

export interface OllamaTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: Maybe<string>;
    readonly parameters?: Maybe<Readonly<Record<string, unknown>>>;
  };
}

/** Body of POST /api/chat. */
export interface OllamaChat extends Common {
  /** None: load the model. */
  readonly messages?: Maybe<readonly OllamaMessage[]>;
  readonly tools?: Maybe<readonly OllamaTool[]>;
}

/** Body of POST /api/generate. */
export interface OllamaGenerate extends Common {
  /** None, or an empty one: load the model. */
  readonly prompt?: Maybe<string>;
  readonly system?: Maybe<string>;
  readonly raw?: Maybe<boolean>;
}

const number = (min: number, max: number) => z.number().min(min).max(max);
/** The names of a body's fields are ollama's own alone. */
export const OLLAMA_FIELDS: TakingTable = {
  logprobs: neutral([false], "ollama's answers have none here"),
  top_logprobs: neutral([0], "ollama's answers have none here"),
  truncate: HINT, // a conversation that does not fit is refused
  shift: HINT,
  debug: HINT,
};

const SAMPLER = "the sampler has no such step: allowed is the value that turns it off";

/** Fields of `options` that change nothing here, and those that cannot be used. */
export const OLLAMA_OPTIONS: TakingTable = {
  num_keep: HINT,
  num_batch: HINT,
  num_gpu: HINT,
  main_gpu: HINT,
  num_thread: HINT,
  numa: HINT,
  low_vram: HINT,
  f16_kv: HINT,
  use_mmap: HINT,
  use_mlock: HINT,
  vocab_only: HINT,
  mirostat_tau: HINT,
  mirostat_eta: HINT,
  mirostat: neutral([0], SAMPLER),
  typical_p: neutral([0, 1], SAMPLER),
  tfs_z: neutral([1], SAMPLER),
  penalize_newline: HINT,
  repeat_last_n: neutralWhere(
    (value, { repeat_penalty: penalty = 1 }) => value === -1 || penalty === 1,
    "repeat_penalty counts the whole text: allowed is -1",
  ),
};

const NO_IMAGES = z.array(z.never("this model reads text alone"));

const OPTIONS: z.ZodType<OllamaOptions> = z.object({
  temperature: optional(number(0, 100)),
  top_k: optional(z.int().min(-1).max(1_000_000)),
  top_p: optional(z.number().gt(0).max(1)),
  min_p: optional(number(0, 1)),
  seed: optional(SEED),
  stop: optional(z.array(z.string().min(1)).max(16)),
  // -1 and -2: until the model or the context ends it.
  num_predict: optional(z.int().min(-2).max(1_000_000)),
  num_ctx: optional(z.int().min(1)),
  repeat_penalty: optional(REPETITION_PENALTY),
  presence_penalty: optional(number(-2, 2)),
  frequency_penalty: optional(number(-2, 2)),
});

const COMMON = {
  model: z.string(),
  stream: optional(z.boolean()),
  format: optional(z.union([z.enum(["", "json"]), z.record(z.string(), z.unknown())])),
  options: optional(OPTIONS),
  think: optional(z.union([z.boolean(), z.enum(["low", "medium", "high", "max"])])),
  keep_alive: optional(z.union([z.number(), z.string()])),
};

const CALL = z.looseObject({
  function: z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
});

export const OLLAMA_CHAT: z.ZodType<OllamaChat> = z.object({
  ...COMMON,
  messages: optional(z.array(z.object({
    role: z.enum(["system", "user", "assistant", "tool"]),
    content: z.string().default(""),
    thinking: optional(z.string()),
    images: optional(NO_IMAGES),
    tool_calls: optional(z.array(CALL)),
    tool_name: optional(z.string()),
    tool_call_id: optional(z.string()),
  }))),
  tools: optional(
    z.array(z.looseObject({
      type: z.literal("function"),
      function: z.looseObject({
        name: TOOL_NAME,
        description: optional(z.string()),
        parameters: optional(z.record(z.string(), z.unknown())),
      }),
    })).max(MAX_TOOLS),
  ),
});

export const OLLAMA_GENERATE: z.ZodType<OllamaGenerate> = z.object({
  ...COMMON,
  prompt: optional(z.string()),
  system: optional(z.string()),
  raw: optional(z.boolean()),
  images: optional(NO_IMAGES),
  suffix: optional(z.literal("", "this model does not fill in the middle")),
  template: optional(z.literal("", "the model's own template is used")),
  context: optional(z.array(z.never("send the text: allowed is no token"))),
});

/** Body of POST /api/show. */
export interface OllamaShow {
  readonly model?: Maybe<string>;
  /** The same, for older clients. */
  readonly name?: Maybe<string>;
}

export const OLLAMA_SHOW: z.ZodType<OllamaShow> = z.object({
  model: optional(z.string()),
  name: optional(z.string()),
  verbose: optional(z.boolean()),
});
