import { z } from "zod";
import {
  DROPPED,
  HINT,
  neutral,
  neutralWhere,
  refused,
  type TakingTable,
} from "../fields/taking.ts";
import { EFFORTS, MAX_TOOLS, TOOL_NAME } from "../openai/chat_schema.ts";
import { type Maybe, optional, SEED } from "../openai/fields.ts";

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

export type MessageBlock =
  | TextBlock
  | { readonly type: "thinking"; readonly thinking: string }
  | { readonly type: "redacted_thinking" }
  | {
    readonly type: "tool_use";
    readonly id: string;
    readonly name: string;
    readonly input: Readonly<Record<string, unknown>>;
  }
  | {
    readonly type: "tool_result";
    readonly tool_use_id: string;
    readonly content?: Maybe<string | readonly TextBlock[]>;
    readonly is_error?: Maybe<boolean>;
  };

export interface AnthropicMessage {
  /** A system message may stand anywhere. */
  readonly role: "user" | "assistant" | "system";
  readonly content: string | readonly MessageBlock[];
}

export interface AnthropicTool {
  readonly name: string;
  readonly description?: Maybe<string>;
  readonly input_schema: Readonly<Record<string, unknown>>;
}

export interface AnthropicToolChoice {
  readonly type: "auto" | "any" | "tool" | "none";
  readonly name?: Maybe<string>;
  readonly disable_parallel_tool_use?: Maybe<boolean>;
}

/** Body of POST /v1/messages/count_tokens. */
export interface CountRequest {
  readonly model?: Maybe<string>;
  readonly messages: readonly AnthropicMessage[];
  readonly system?: Maybe<string | readonly TextBlock[]>;
  readonly tools?: Maybe<readonly AnthropicTool[]>;
  readonly tool_choice?: Maybe<AnthropicToolChoice>;
  readonly thinking?: Maybe<{ readonly type: "enabled" | "disabled" | "adaptive" }>;
  readonly output_config?: Maybe<{
    readonly format?: Maybe<
      { readonly type: "json_schema"; readonly schema: Readonly<Record<string, unknown>> }
    >;
    readonly effort?: Maybe<string>;
  }>;
}

/** Body of POST /v1/messages. */
export interface MessagesRequest extends CountRequest {
  readonly max_tokens: number;
  readonly stop_sequences?: Maybe<readonly string[]>;
  readonly stream?: Maybe<boolean>;
  readonly temperature?: Maybe<number>;
  readonly top_p?: Maybe<number>;
  readonly top_k?: Maybe<number>;
  readonly seed?: Maybe<number>;
}

/** Every prompt is cached as far as it can be: the mark changes nothing. */
const CACHE = { cache_control: optional(z.looseObject({ type: z.string() })) };

const TEXT = z.looseObject({ type: z.literal("text"), text: z.string(), ...CACHE });
const TEXTS = z.array(z.discriminatedUnion("type", [TEXT], "this model reads text alone"));

const BLOCK = z.discriminatedUnion("type", [
  TEXT,
  z.looseObject({ type: z.literal("thinking"), thinking: z.string() }),
  z.looseObject({ type: z.literal("redacted_thinking") }),
  z.object({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
    caller: optional(z.unknown()),
    ...CACHE,
  }),
  z.object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: optional(z.union([z.string(), TEXTS])),
    is_error: optional(z.boolean()),
    ...CACHE,
  }),
], "this model reads text alone");

const MESSAGE = z.object({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union([z.string(), z.array(BLOCK)]),
});

const TOOL = z.object({
  type: optional(z.literal("custom")),
  name: TOOL_NAME,
  description: optional(z.string()),
  input_schema: z.record(z.string(), z.unknown()),
  strict: optional(z.boolean()),
  // Calls are sent when they are whole, or while they are written: a client takes both.
  eager_input_streaming: optional(z.boolean()),
  defer_loading: optional(z.boolean()),
  allowed_callers: optional(z.array(z.string())),
  input_examples: optional(z.array(z.unknown())),
  ...CACHE,
});

const COUNT_FIELDS = {
  model: optional(z.string()),
  messages: z.array(MESSAGE).min(1),
  system: optional(z.union([z.string(), TEXTS])),
  tools: optional(z.array(TOOL).max(MAX_TOOLS)),
  tool_choice: optional(z.object({
    type: z.enum(["auto", "any", "tool", "none"]),
    name: optional(z.string()),
    disable_parallel_tool_use: optional(z.boolean()),
  })),
  thinking: optional(z.looseObject({ type: z.enum(["enabled", "disabled", "adaptive"]) })),
  output_config: optional(z.object({
    format: optional(z.object({
      type: z.literal("json_schema"),
      schema: z.record(z.string(), z.unknown()),
    })),
    effort: optional(z.enum(EFFORTS)),
    task_budget: optional(z.unknown()),
  })),
};

/** Fields of Anthropic's clients besides those of the routes. */
export const ANTHROPIC_FIELDS: TakingTable = {
  metadata: HINT,
  service_tier: HINT,
  inference_geo: HINT,
  speed: HINT,
  betas: HINT,
  thread: HINT,
  user_profile_id: HINT,
  diagnostics: HINT,
  cache_control: HINT, // every prompt is cached as far as it can be
  context_management: HINT, // conversations are sent whole, and what does not fit is refused
  context_hint: HINT,
  mcp_servers: neutralWhere(
    (value) => Array.isArray(value) && value.length === 0,
    "the server calls no other servers",
  ),
  container: refused("the server runs no code"),
  fallbacks: DROPPED,
  repetition_penalty: neutral([1], "Anthropic's API has no such field: allowed is 1"),
};

export const COUNT: z.ZodType<CountRequest> = z.object(COUNT_FIELDS);

export const MESSAGES: z.ZodType<MessagesRequest> = z.object({
  ...COUNT_FIELDS,
  // Anthropic's 0 fills the prompt cache and answers nothing.
  max_tokens: z.int().min(1, "an answer has a token at least: allowed is 1 to 1000000")
    .max(1_000_000),
  stop_sequences: optional(z.array(z.string().min(1)).max(16)),
  stream: optional(z.boolean()),
  temperature: optional(z.number().min(0).max(100)),
  top_p: optional(z.number().gt(0).max(1)),
  top_k: optional(z.int().min(0).max(1_000_000)),
  /** Not Anthropic's, but what makes an answer repeatable. */
  seed: optional(SEED),
});
