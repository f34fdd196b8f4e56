import { z } from "zod";
import type { StreamOptions, ToolChoice } from "../openai/chat_schema.ts";
import { EFFORTS, MAX_TOOLS, STREAM_OPTIONS, TOOL_NAME } from "../openai/chat_schema.ts";
import {
  type Maybe,
  optional,
  SAMPLING_FIELDS,
  type SamplingValues,
  TOKENS,
} from "../openai/fields.ts";

export type ItemContent = string | readonly ItemPart[];

/** A part that is a text, or an answer of a model that refused. */
export type ItemPart = { readonly type: string; readonly text: string } | {
  readonly type: "refusal";
  readonly refusal: string;
};

/** An item of a conversation. */
export type Item =
  | {
    readonly type?: Maybe<"message">;
    readonly role: "system" | "developer" | "user" | "assistant";
    readonly content: ItemContent;
  }
  | {
    readonly type: "function_call";
    readonly call_id: string;
    readonly name: string;
    readonly namespace?: Maybe<string>;
    readonly arguments: string;
  }
  | {
    readonly type: "function_call_output";
    readonly call_id: string;
    readonly output: ItemContent;
  }
  | {
    readonly type: "custom_tool_call";
    readonly call_id: string;
    readonly name: string;
    readonly input: string;
  }
  | {
    readonly type: "custom_tool_call_output";
    readonly call_id: string;
    readonly output: ItemContent;
  }
  | { readonly type: "reasoning"; readonly content?: Maybe<ItemContent> };

/** A function of the client's. */
export interface FunctionTool {
  readonly type: "function";
  readonly name: string;
  readonly description?: Maybe<string>;
  readonly parameters?: Maybe<Readonly<Record<string, unknown>>>;
  readonly strict?: Maybe<boolean>;
}

/** A tool that takes a text. */
export interface CustomTool {
  readonly type: "custom";
  readonly name: string;
  readonly description?: Maybe<string>;
  readonly format?: Maybe<{ readonly type: string }>;
}

export type ResponseTool = FunctionTool | CustomTool | {
  readonly type: "namespace";
  readonly name: string;
  readonly tools: readonly (FunctionTool | CustomTool)[];
};

export type ResponseFormat = { readonly type: "text" } | {
  readonly type: "json_object";
  readonly schema?: Maybe<Readonly<Record<string, unknown>>>;
} | {
  readonly type: "json_schema";
  readonly schema: Readonly<Record<string, unknown>>;
};

/** Body of POST /v1/responses. */
export interface ResponsesRequest extends SamplingValues {
  readonly model?: Maybe<string>;
  readonly input: string | readonly Item[];
  readonly instructions?: Maybe<string>;
  readonly max_output_tokens?: Maybe<number>;
  readonly stream?: Maybe<boolean>;
  readonly stream_options?: Maybe<StreamOptions>;
  readonly tools?: Maybe<readonly ResponseTool[]>;
  readonly tool_choice?: Maybe<
    Extract<ToolChoice, string> | { readonly type: "function" | "custom"; readonly name: string }
  >;
  readonly parallel_tool_calls?: Maybe<boolean>;
  readonly text?: Maybe<{ readonly format?: Maybe<ResponseFormat> }>;
  readonly reasoning?: Maybe<{ readonly effort?: Maybe<string> }>;
  readonly include?: Maybe<readonly string[]>;
  readonly top_logprobs?: Maybe<number>;
  readonly truncation?: Maybe<string>;
  /** These two come back with the answer. */
  readonly user?: Maybe<string>;
  readonly metadata?: Maybe<Readonly<Record<string, unknown>>>;
}

const PARTS = z.array(z.discriminatedUnion("type", [
  z.looseObject({
    type: z.enum(["input_text", "output_text", "text", "reasoning_text", "summary_text"]),
    text: z.string(),
  }),
  z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
], "this model reads text alone"));
const CONTENT = z.union([z.string(), PARTS]);

const ROLE = z.enum(["system", "developer", "user", "assistant"]);

// Answers of this API come back as they were: with their ids and states.
const ITEM = z.discriminatedUnion("type", [
  z.looseObject({ type: optional(z.literal("message")), role: ROLE, content: CONTENT }),
  z.looseObject({
    type: z.literal("function_call"),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
    namespace: optional(z.string()),
  }),
  z.looseObject({
    type: z.literal("function_call_output"),
    call_id: z.string(),
    output: CONTENT,
  }),
  z.looseObject({
    type: z.literal("custom_tool_call"),
    call_id: z.string(),
    name: z.string(),
    input: z.string(),
  }),
  z.looseObject({
    type: z.literal("custom_tool_call_output"),
    call_id: z.string(),
    output: CONTENT,
  }),
  z.looseObject({ type: z.literal("reasoning"), content: optional(CONTENT) }),
]);

const FUNCTION = z.object({
  type: z.literal("function"),
  name: TOOL_NAME,
  description: optional(z.string()),
  parameters: optional(z.record(z.string(), z.unknown())),
  strict: optional(z.boolean()),
  defer_loading: optional(z.boolean()),
});

const CUSTOM = z.object({
  type: z.literal("custom"),
  name: TOOL_NAME,
  description: optional(z.string()),
  format: optional(z.looseObject({ type: z.string() })),
});

const TOOL = z.discriminatedUnion("type", [
  FUNCTION,
  CUSTOM,
  z.object({
    type: z.literal("namespace"),
    name: TOOL_NAME,
    description: optional(z.string()),
    tools: z.array(z.discriminatedUnion("type", [FUNCTION, CUSTOM])),
  }),
]);

const FORMAT = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({
    type: z.literal("json_object"),
    schema: optional(z.record(z.string(), z.unknown())),
  }),
  z.object({
    type: z.literal("json_schema"),
    schema: z.record(z.string(), z.unknown()),
    name: optional(z.string()),
    description: optional(z.string()),
    strict: optional(z.boolean()),
  }),
]);

export const RESPONSES: z.ZodType<ResponsesRequest> = z.object({
  model: optional(z.string()),
  input: z.union([z.string(), z.array(ITEM).min(1)]),
  ...SAMPLING_FIELDS,
  instructions: optional(z.string()),
  max_output_tokens: optional(TOKENS),
  stream: optional(z.boolean()),
  stream_options: STREAM_OPTIONS,
  tools: optional(z.array(TOOL).max(MAX_TOOLS)),
  tool_choice: optional(z.union([
    z.enum(["none", "auto", "required"]),
    z.object({ type: z.enum(["function", "custom"]), name: z.string() }),
  ])),
  parallel_tool_calls: optional(z.boolean()),
  text: optional(z.object({
    format: optional(FORMAT),
    verbosity: optional(z.string()),
  })),
  reasoning: optional(z.object({
    effort: optional(z.enum(EFFORTS)),
    // Thoughts are sent whole, whatever a client wants to see of them.
    summary: optional(z.string()),
    generate_summary: optional(z.string()),
    context: optional(z.unknown()),
  })),
  include: optional(z.array(z.string())),
  top_logprobs: optional(z.int().min(0).max(20)),
  // Nothing is cut: what does not fit is refused.
  truncation: optional(z.enum(["disabled", "auto"])),
  user: optional(z.string()),
  metadata: optional(z.record(z.string(), z.unknown())),
});
