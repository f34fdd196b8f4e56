import { z } from "zod";
import {
  type Fields,
  type Maybe,
  optional,
  SAMPLING_FIELDS,
  type SamplingValues,
  TOKENS,
} from "./fields.ts";

/** A text, or parts that are texts. */
export type Content = string | readonly { readonly type: "text"; readonly text: string }[];

/** A call that the assistant made earlier; `arguments` is JSON. */
export interface CallField {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export type MessageField =
  | {
    readonly role: "system" | "developer" | "user";
    readonly content: Content;
    readonly name?: Maybe<string>;
  }
  | {
    readonly role: "assistant";
    readonly content?: Maybe<Content>;
    readonly tool_calls?: Maybe<readonly CallField[]>;
    readonly reasoning_content?: Maybe<string>;
    readonly reasoning?: Maybe<string>;
    readonly refusal?: Maybe<string>;
    readonly name?: Maybe<string>;
  }
  | {
    readonly role: "tool";
    readonly content?: Maybe<Content>;
    readonly tool_call_id: string;
    readonly name?: Maybe<string>;
  };

export interface ToolField {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: Maybe<string>;
    readonly parameters?: Maybe<Readonly<Record<string, unknown>>>;
    readonly strict?: Maybe<boolean>;
  };
}

export type ToolChoice =
  | "none"
  | "auto"
  | "required"
  | { readonly type: "function"; readonly function: { readonly name: string } };

export type FormatField = { readonly type: "text" } | {
  readonly type: "json_object";
  /** llama-server's and Together's. */
  readonly schema?: Maybe<Readonly<Record<string, unknown>>>;
} | {
  readonly type: "json_schema";
  readonly json_schema: { readonly schema?: Maybe<Readonly<Record<string, unknown>> | boolean> };
};

/** Body of POST /v1/chat/completions. */
export interface ChatRequest extends SamplingValues {
  readonly model?: Maybe<string>;
  readonly messages: readonly MessageField[];
  readonly max_tokens?: Maybe<number>;
  readonly max_completion_tokens?: Maybe<number>;
  readonly n?: Maybe<number>;
  readonly logprobs?: Maybe<boolean>;
  readonly top_logprobs?: Maybe<number>;
  readonly stream?: Maybe<boolean>;
  readonly stream_options?: Maybe<StreamOptions>;
  readonly response_format?: Maybe<FormatField>;
  readonly tools?: Maybe<readonly ToolField[]>;
  readonly tool_choice?: Maybe<ToolChoice>;
  readonly parallel_tool_calls?: Maybe<boolean>;
  readonly reasoning_effort?: Maybe<string>;
  readonly chat_template_kwargs?: Maybe<Readonly<Record<string, unknown>>>;
  readonly prediction?: Maybe<{ readonly type: "content"; readonly content: Content }>;
  readonly modalities?: Maybe<readonly string[]>;
  /** The answer goes on from the assistant's last message (vLLM). */
  readonly continue_final_message?: Maybe<boolean>;
  /** False: thoughts are left in the text (SGLang). */
  readonly separate_reasoning?: Maybe<boolean>;
  /** False: thoughts are left out (vLLM, OpenRouter). */
  readonly include_reasoning?: Maybe<boolean>;
  /** Report for each round how many tokens it drafted and accepted: the page shows it. */
  readonly return_rounds?: Maybe<boolean>;
}

export interface StreamOptions {
  readonly include_usage?: Maybe<boolean>;
  /** Answers are not padded. */
  readonly include_obfuscation?: Maybe<boolean>;
}

const TEXT_PART = z.looseObject({ type: z.literal("text"), text: z.string() });
const CONTENT = z.union([
  z.string(),
  z.array(z.discriminatedUnion("type", [TEXT_PART], "this model reads text alone")),
]);

/** What an assistant has said may be a refusal, which is text too. */
const ANSWER = z.union([
  z.string(),
  z.array(z.discriminatedUnion("type", [
    TEXT_PART,
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() })
      .transform(({ refusal }) => ({ type: "text" as const, text: refusal })),
  ], "this model reads text alone")),
]);

const CALL = z.looseObject({
  id: z.string(),
  type: z.literal("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const NAME = { name: optional(z.string().max(256)) };

const MESSAGE = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: CONTENT, ...NAME }),
  z.object({ role: z.literal("developer"), content: CONTENT, ...NAME }),
  z.object({ role: z.literal("user"), content: CONTENT, ...NAME }),
  // Clients send answers back with what they have made of them: `parsed`, `annotations`.
  z.looseObject({
    role: z.literal("assistant"),
    content: optional(ANSWER),
    tool_calls: optional(z.array(CALL)),
    reasoning_content: optional(z.string()),
    reasoning: optional(z.string()),
    refusal: optional(z.string()),
    ...NAME,
  }),
  // Clients send null for a tool that returned nothing, and null counts as absent.
  z.object({
    role: z.literal("tool"),
    content: optional(CONTENT),
    tool_call_id: z.string(),
    ...NAME,
  }),
]);

/** Name of a function; Anthropic's are the longest. */
export const TOOL_NAME: z.ZodString = z.string()
  .regex(/^[\w.-]{1,128}$/, "1 to 128 letters, digits, _, - and .");

/** Agents with many servers of tools have hundreds. */
export const MAX_TOOLS = 1024;

const TOOL = z.object({
  type: z.literal("function"),
  function: z.object({
    name: TOOL_NAME,
    description: optional(z.string()),
    parameters: optional(z.record(z.string(), z.unknown())),
    strict: optional(z.boolean()),
  }),
});

const TOOL_CHOICE = z.union([
  z.enum(["none", "auto", "required"]),
  z.object({
    type: z.literal("function"),
    function: z.object({ name: z.string() }),
  }),
]);

export const RESPONSE_FORMAT: z.ZodType<FormatField> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({
    type: z.literal("json_object"),
    schema: optional(z.record(z.string(), z.unknown())),
  }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z.object({
      name: optional(z.string()),
      description: optional(z.string()),
      schema: optional(z.union([z.record(z.string(), z.unknown()), z.boolean()])),
      strict: optional(z.boolean()),
    }),
  }),
]);

/** What requests may say of how much is thought. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

export const STREAM_OPTIONS: z.ZodType<Maybe<StreamOptions>> = optional(z.object(
  {
    include_usage: optional(z.boolean()),
    include_obfuscation: optional(z.boolean()),
  } satisfies Fields<StreamOptions>,
));

/** POST /v1/chat/completions. */
export const CHAT: z.ZodType<ChatRequest> = z.object({
  model: optional(z.string()),
  messages: z.array(MESSAGE).min(1),
  ...SAMPLING_FIELDS,
  max_tokens: optional(TOKENS),
  max_completion_tokens: optional(TOKENS),
  n: optional(z.int().min(1).max(128)),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.int().min(0).max(20)),
  stream: optional(z.boolean()),
  stream_options: STREAM_OPTIONS,
  response_format: optional(RESPONSE_FORMAT),
  tools: optional(z.array(TOOL).max(MAX_TOOLS)),
  tool_choice: optional(TOOL_CHOICE),
  parallel_tool_calls: optional(z.boolean()),
  reasoning_effort: optional(z.enum(EFFORTS)),
  chat_template_kwargs: optional(z.record(z.string(), z.unknown())),
  prediction: optional(z.object({ type: z.literal("content"), content: CONTENT })),
  modalities: optional(z.array(z.literal("text", "this model writes text alone"))),
  continue_final_message: optional(z.boolean()),
  separate_reasoning: optional(z.boolean()),
  include_reasoning: optional(z.boolean()),
  return_rounds: optional(z.boolean()),
});

/** The text of a content that is a text or a list of them. */
export function contentText(content: Maybe<Content>): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text }) => text).join("");
}
