import { z } from "zod";
import { type Maybe, optional } from "../openai/fields.ts";

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

export type MessageBlock =
  | TextBlock
  | { readonly type: "thinking"; readonly thinking: string }
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
  readonly role: "user" | "assistant";
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
const CACHE = { cache_control: optional(z.looseObject({ type: z.literal("ephemeral") })) };

const TEXT = z.looseObject({ type: z.literal("text"), text: z.string(), ...CACHE });
const TEXTS = z.array(z.discriminatedUnion("type", [TEXT], "this model reads text alone"));

const BLOCK = z.discriminatedUnion("type", [
  TEXT,
  z.looseObject({ type: z.literal("thinking"), thinking: z.string() }),
  z.strictObject({
    type: z.literal("tool_use"),
    ...{ id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) },
    caller: optional(z.unknown()),
    ...CACHE,
  }),
  z.strictObject({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: optional(z.union([z.string(), TEXTS])),
    is_error: optional(z.boolean()),
    ...CACHE,
  }),
], "this model reads text alone");

const MESSAGE = z.strictObject({
  role: z.enum(["user", "assistant"]),
  content: z.union([z.string(), z.array(BLOCK)]),
});

const TOOL = z.strictObject({
  type: optional(z.literal("custom", "the server has no tools of its own")),
  name: z.string().regex(/^[\w.-]{1,64}$/, "1 to 64 letters, digits, _, - and ."),
  description: optional(z.string()),
  input_schema: z.record(z.string(), z.unknown()),
  strict: optional(z.boolean()),
  ...CACHE,
});

const COUNT_FIELDS = {
  model: optional(z.string()),
  messages: z.array(MESSAGE).min(1),
  system: optional(z.union([z.string(), TEXTS])),
  tools: optional(z.array(TOOL).max(128)),
  tool_choice: optional(z.strictObject({
    type: z.enum(["auto", "any", "tool", "none"]),
    name: optional(z.string()),
    disable_parallel_tool_use: optional(z.boolean()),
  })),
  thinking: optional(z.looseObject({ type: z.enum(["enabled", "disabled", "adaptive"]) })),
  output_config: optional(z.strictObject({
    format: optional(z.strictObject({
      type: z.literal("json_schema"),
      schema: z.record(z.string(), z.unknown()),
    })),
    effort: optional(z.enum(["low", "medium", "high", "xhigh"])),
  })),
  ...CACHE,
};

export const COUNT: z.ZodType<CountRequest> = z.strictObject(COUNT_FIELDS);

export const MESSAGES: z.ZodType<MessagesRequest> = z.strictObject({
  ...COUNT_FIELDS,
  max_tokens: z.int().min(1).max(1_000_000),
  stop_sequences: optional(z.array(z.string().min(1)).max(16)),
  stream: optional(z.boolean()),
  temperature: optional(z.number().min(0).max(100)),
  top_p: optional(z.number().gt(0).max(1)),
  top_k: optional(z.int().min(0).max(1_000_000)),
  /** Not Anthropic's, but what makes an answer repeatable. */
  seed: optional(z.int().min(0).max(2 ** 32 - 1)),
  metadata: optional(z.looseObject({ user_id: optional(z.string()) })),
  service_tier: optional(z.enum(["auto", "standard_only"])),
});
