import { z } from "zod";
import type { StreamOptions, ToolChoice } from "../openai/chat_schema.ts";
import { STREAM_OPTIONS } from "../openai/chat_schema.ts";
import {
  type Maybe,
  optional,
  SAMPLING_FIELDS,
  type SamplingValues,
  TOKENS,
  UNUSED_FIELDS,
  type UnusedValues,
} from "../openai/fields.ts";

export type ItemContent = string | readonly { readonly type: string; readonly text: string }[];

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
    readonly arguments: string;
  }
  | {
    readonly type: "function_call_output";
    readonly call_id: string;
    readonly output: ItemContent;
  }
  | { readonly type: "reasoning"; readonly content?: Maybe<ItemContent> };

export interface ResponseTool {
  readonly type: "function";
  readonly name: string;
  readonly description?: Maybe<string>;
  readonly parameters?: Maybe<Readonly<Record<string, unknown>>>;
  readonly strict?: Maybe<boolean>;
}

export type ResponseFormat = { readonly type: "text" } | { readonly type: "json_object" } | {
  readonly type: "json_schema";
  readonly schema: Readonly<Record<string, unknown>>;
};

/** Body of POST /v1/responses. */
export interface ResponsesRequest extends SamplingValues, UnusedValues {
  readonly model?: Maybe<string>;
  readonly input: string | readonly Item[];
  readonly instructions?: Maybe<string>;
  readonly max_output_tokens?: Maybe<number>;
  readonly stream?: Maybe<boolean>;
  readonly stream_options?: Maybe<StreamOptions>;
  readonly tools?: Maybe<readonly ResponseTool[]>;
  readonly tool_choice?: Maybe<
    Extract<ToolChoice, string> | { readonly type: "function"; readonly name: string }
  >;
  readonly parallel_tool_calls?: Maybe<boolean>;
  readonly text?: Maybe<{ readonly format?: Maybe<ResponseFormat> }>;
  readonly reasoning?: Maybe<{ readonly effort?: Maybe<string> }>;
  readonly include?: Maybe<readonly string[]>;
  readonly top_logprobs?: Maybe<number>;
  readonly truncation?: Maybe<"disabled">;
}

const PARTS = z.array(z.looseObject({
  type: z.enum(["input_text", "output_text", "text", "refusal", "reasoning_text", "summary_text"], {
    error: "this model reads text alone",
  }),
  text: z.string(),
}));
const CONTENT = z.union([z.string(), PARTS]);

const ROLE = z.enum(["system", "developer", "user", "assistant"]);

// Answers of this API come back as they were: with their ids and states.
const MESSAGE = z.looseObject({
  type: optional(z.literal("message")),
  role: ROLE,
  content: CONTENT,
});

const OTHERS = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("function_call"),
    ...{ call_id: z.string(), name: z.string(), arguments: z.string() },
  }),
  z.looseObject({
    type: z.literal("function_call_output"),
    ...{ call_id: z.string(), output: CONTENT },
  }),
  z.looseObject({ type: z.literal("reasoning"), content: optional(CONTENT) }),
]);

const TOOL = z.strictObject({
  type: z.literal("function", "the server has no tools of its own: allowed is function"),
  name: z.string().regex(/^[\w.-]{1,64}$/, "1 to 64 letters, digits, _, - and ."),
  description: optional(z.string()),
  parameters: optional(z.record(z.string(), z.unknown())),
  strict: optional(z.boolean()),
});

const FORMAT = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text") }),
  z.strictObject({ type: z.literal("json_object") }),
  z.strictObject({
    type: z.literal("json_schema"),
    schema: z.record(z.string(), z.unknown()),
    ...{ name: optional(z.string()), description: optional(z.string()) },
    strict: optional(z.boolean()),
  }),
]);

const STATELESS = "answers are not stored: send the conversation";

export const RESPONSES: z.ZodType<ResponsesRequest> = z.strictObject({
  model: optional(z.string()),
  input: z.union([z.string(), z.array(z.union([OTHERS, MESSAGE])).min(1)]),
  ...SAMPLING_FIELDS,
  ...UNUSED_FIELDS,
  instructions: optional(z.string()),
  max_output_tokens: optional(TOKENS),
  stream: optional(z.boolean()),
  stream_options: STREAM_OPTIONS,
  tools: optional(z.array(TOOL).max(128)),
  tool_choice: optional(z.union([
    z.enum(["none", "auto", "required"]),
    z.strictObject({ type: z.literal("function"), name: z.string() }),
  ])),
  parallel_tool_calls: optional(z.boolean()),
  text: optional(z.strictObject({
    format: optional(FORMAT),
    verbosity: optional(z.literal("medium", "this model has no such switch: allowed is medium")),
  })),
  reasoning: optional(z.strictObject({
    effort: optional(z.enum(["none", "minimal", "low", "medium", "high", "xhigh"])),
    summary: optional(z.literal("auto", "thoughts are told whole: allowed is auto")),
  })),
  include: optional(
    z.array(z.enum(["message.output_text.logprobs", "reasoning.encrypted_content"])),
  ),
  top_logprobs: optional(z.int().min(0).max(20)),
  truncation: optional(z.literal("disabled", "nothing is cut: allowed is disabled")),
  background: optional(z.literal(false, "allowed is false")),
  previous_response_id: optional(z.never(STATELESS)),
  conversation: optional(z.never(STATELESS)),
});
