import { z } from "zod";

/** What a route answers with 200. */
export interface Described {
  /** Content type. */
  readonly type: string;
  /** Schema of the JSON; absent: the answer is a text. */
  readonly schema?: z.ZodType;
  /** Where its body has `stream: true`. */
  readonly stream?: {
    readonly type: "text/event-stream" | "application/x-ndjson";
    /** The JSON of an event's data, or of a line. */
    readonly schema: z.ZodType;
    /** What follows the last one. */
    readonly end?: string;
  };
}

const JSON_TYPE = "application/json";
/** The text of a token alone, or its bytes where they are not UTF-8. */
const piece = z.union([z.string(), z.array(z.int().min(0).max(255))]);
const count = z.int().min(0);
const ms = z.number().min(0);

const USAGE = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.looseObject({ cached_tokens: count }),
  completion_tokens_details: z.looseObject({
    reasoning_tokens: count,
    accepted_prediction_tokens: count,
    rejected_prediction_tokens: count,
  }),
});

/** The object of llama-server. */
const TIMINGS = z.looseObject({
  cache_n: count,
  prompt_n: count,
  prompt_ms: ms,
  predicted_n: count,
  predicted_ms: ms,
  draft_n: count,
  draft_n_accepted: count,
  queue_ms: ms,
});

const ROUNDS = z.array(z.looseObject({ tokens: count, accepted: count, drafted: count }));
const FINISH = z.enum(["stop", "length", "tool_calls"]);
const LOGPROBS = z.looseObject({}).nullable();
const CALL = z.looseObject({
  id: z.string(),
  type: z.literal("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const HEAD = {
  id: z.string(),
  created: z.int(),
  model: z.string(),
  system_fingerprint: z.string(),
} as const;

const CHAT = z.looseObject({
  ...HEAD,
  object: z.literal("chat.completion"),
  choices: z.array(z.looseObject({
    index: count,
    message: z.looseObject({
      role: z.literal("assistant"),
      content: z.string().nullable(),
      reasoning_content: z.string().optional(),
      tool_calls: z.array(CALL).optional(),
      refusal: z.null(),
    }),
    logprobs: LOGPROBS,
    finish_reason: FINISH,
    rounds: ROUNDS.optional(),
  })),
  usage: USAGE,
  timings: TIMINGS,
});

const CHAT_CHUNK = z.looseObject({
  ...HEAD,
  object: z.literal("chat.completion.chunk"),
  choices: z.array(z.looseObject({
    index: count,
    delta: z.looseObject({
      role: z.literal("assistant").optional(),
      content: z.string().nullish(),
      reasoning_content: z.string().optional(),
      tool_calls: z.array(z.looseObject({
        index: count,
        id: z.string().optional(),
        type: z.literal("function").optional(),
        function: z.looseObject({ name: z.string().optional(), arguments: z.string() }),
      })).optional(),
    }),
    logprobs: LOGPROBS,
    finish_reason: FINISH.nullable(),
    rounds: ROUNDS.optional(),
  })),
  usage: USAGE.nullish(),
  timings: TIMINGS.optional(),
});

const COMPLETION = z.looseObject({
  ...HEAD,
  object: z.literal("text_completion"),
  choices: z.array(z.looseObject({
    text: z.string(),
    index: count,
    logprobs: LOGPROBS,
    finish_reason: FINISH.nullable(),
  })),
  usage: USAGE.nullish(),
  timings: TIMINGS.optional(),
});

const RESPONSE = z.looseObject({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.int(),
  status: z.enum(["in_progress", "completed", "incomplete", "failed"]),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.looseObject({ reason: z.string() }).nullable(),
  model: z.string(),
  output: z.array(z.looseObject({ id: z.string(), type: z.string(), status: z.string() })),
  usage: z.looseObject({ input_tokens: count, output_tokens: count, total_tokens: count })
    .nullable(),
});

const RESPONSE_EVENT = z.looseObject({
  type: z.string().regex(/^response\./),
  sequence_number: count,
  response: RESPONSE.optional(),
});

const MESSAGE = z.looseObject({
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  content: z.array(z.looseObject({ type: z.enum(["text", "thinking", "tool_use"]) })),
  stop_reason: z.enum(["end_turn", "max_tokens", "stop_sequence", "tool_use"]).nullable(),
  stop_sequence: z.string().nullable(),
  usage: z.looseObject({
    input_tokens: count,
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
    output_tokens: count,
  }),
});

const MESSAGE_EVENT = z.looseObject({
  type: z.enum([
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
  ]),
});

const OLLAMA = {
  model: z.string(),
  created_at: z.string(),
  done: z.boolean(),
  // "load" and "unload" answer requests without a prompt.
  done_reason: z.enum(["stop", "length", "load", "unload"]).optional(),
  total_duration: count.optional(),
  load_duration: count.optional(),
  prompt_eval_count: count.optional(),
  prompt_eval_duration: count.optional(),
  eval_count: count.optional(),
  eval_duration: count.optional(),
} as const;

const OLLAMA_CHAT = z.looseObject({
  ...OLLAMA,
  message: z.looseObject({ role: z.literal("assistant"), content: z.string() }),
});

const OLLAMA_GENERATE = z.looseObject({ ...OLLAMA, response: z.string() });

const MODEL = z.looseObject({
  id: z.string(),
  object: z.literal("model"),
  created: z.int(),
  owned_by: z.string(),
  max_model_len: count,
  draft: z.string().nullable(),
});

const HEALTH = z.looseObject({ status: z.literal("ok"), silent_ms: count.optional() });

const ERROR = z.looseObject({
  message: z.string(),
  type: z.string(),
  param: z.string().nullable(),
  code: z.union([z.string(), z.number()]).nullable(),
});

/** The shapes of errors, by the names that the document gives them. */
export const ERRORS: Readonly<Record<"Error" | "AnthropicError" | "OllamaError", z.ZodType>> = {
  Error: z.looseObject({ error: ERROR }),
  AnthropicError: z.looseObject({
    type: z.literal("error"),
    error: z.looseObject({ type: z.string(), message: z.string() }),
  }),
  OllamaError: z.looseObject({ error: z.string() }),
};

/** GET /health while it cannot be answered. */
export const UNHEALTHY: z.ZodType = z.looseObject({
  status: z.enum(["loading", "draining", "error"]),
  error: ERROR,
});

const events = (schema: z.ZodType, end?: string): Described["stream"] => (
  { type: "text/event-stream", schema, ...end === undefined ? {} : { end } }
);
const lines = (schema: z.ZodType): Described["stream"] => (
  { type: "application/x-ndjson", schema }
);
const json = (schema: z.ZodType): Described => ({ type: JSON_TYPE, schema });
const streaming = (schema: z.ZodType, stream: Described["stream"]): Described => (
  { type: JSON_TYPE, schema, ...stream === undefined ? {} : { stream } }
);

/** What each route answers with 200, by its method and its path as `templateOf` has it. */
export const ANSWERS: Readonly<Record<string, Described>> = {
  "post /v1/chat/completions": streaming(CHAT, events(CHAT_CHUNK, "[DONE]")),
  "post /v1/completions": streaming(COMPLETION, events(COMPLETION, "[DONE]")),
  "post /v1/responses": streaming(RESPONSE, events(RESPONSE_EVENT, "[DONE]")),
  "get /v1/models": json(z.looseObject({ object: z.literal("list"), data: z.array(MODEL) })),
  "get /v1/models/:id": json(MODEL),
  "post /v1/messages": streaming(MESSAGE, events(MESSAGE_EVENT)),
  "post /v1/messages/count_tokens": json(z.looseObject({ input_tokens: count })),
  "post /api/chat": streaming(OLLAMA_CHAT, lines(OLLAMA_CHAT)),
  "post /api/generate": streaming(OLLAMA_GENERATE, lines(OLLAMA_GENERATE)),
  "get /api/tags": json(z.looseObject({ models: z.array(z.looseObject({ name: z.string() })) })),
  "post /api/show": json(z.looseObject({
    details: z.looseObject({ format: z.string() }),
    model_info: z.looseObject({}),
    capabilities: z.array(z.string()),
  })),
  "get /api/ps": json(z.looseObject({ models: z.array(z.looseObject({ name: z.string() })) })),
  "get /api/version": json(z.looseObject({ version: z.string() })),
  "get /": { type: "text/html" },
  "get /marked.js": { type: "text/javascript" },
  "get /health": json(HEALTH),
  "get /metrics": { type: "text/plain" },
  "get /server_info": json(z.looseObject({
    version: z.string(),
    served_model_name: z.string(),
    context_length: count,
    speculative_algorithm: z.string().nullable(),
    internal_states: z.array(z.looseObject({ num_running_reqs: count, num_waiting_reqs: count })),
  })),
  "get /props": json(z.looseObject({
    total_slots: count,
    default_generation_settings: z.looseObject({ n_ctx: count }),
    model_alias: z.string(),
    chat_template: z.string(),
  })),
  "get /slots": json(
    z.array(z.looseObject({ id: count, n_ctx: count, is_processing: z.boolean() })),
  ),
  "post /tokenize": json(z.looseObject({
    tokens: z.array(z.union([count, z.looseObject({ id: count, piece })])),
    count,
    max_model_len: count,
  })),
  "post /detokenize": json(z.looseObject({ content: z.string(), prompt: z.string() })),
  "get /openapi.json": json(z.looseObject({ openapi: z.string(), paths: z.looseObject({}) })),
};
