/**
 * Fields that clients of vLLM, SGLang, llama-server and OpenRouter send to OpenAI's routes, one a
 * line: a name, and how it is taken. A row with `honoured` maps it to fields that the routes have.
 */
import { z } from "zod";
import {
  type Body,
  DROPPED,
  HINT,
  honoured,
  neutral,
  neutralWhere,
  refused,
  type TakingTable,
} from "../fields/taking.ts";

const SCHEMA = z.record(z.string(), z.unknown());

/** The engine ends an answer at its end-of-sequence token, a stop text or a limit. */
const STOPS = "an answer ends at its end-of-sequence token, at a text of stop or at max_tokens";
const SAMPLER = "the sampler has no such step: allowed is the value that turns it off";
const NO_TOKENS = "answers are texts: allowed is false";
const NOT_LOADED = "the model is served as it was loaded";

/** What no answer depends on. */
const HINTS: TakingTable = {
  user: HINT,
  metadata: HINT,
  safety_identifier: HINT,
  prompt_cache_key: HINT,
  prompt_cache_retention: HINT,
  service_tier: HINT,
  verbosity: HINT,
  client_metadata: HINT,
  // vLLM
  request_id: HINT,
  priority: HINT,
  cache_salt: HINT,
  spaces_between_special_tokens: HINT,
  guided_decoding_backend: HINT,
  mm_processor_kwargs: HINT,
  kv_transfer_params: HINT,
  length_penalty: HINT, // of beams
  early_stopping: HINT,
  // SGLang
  rid: HINT,
  bootstrap_host: HINT,
  bootstrap_port: HINT,
  bootstrap_room: HINT,
  data_parallel_rank: HINT,
  stream_reasoning: HINT,
  // llama-server
  cache_prompt: HINT,
  id_slot: HINT,
  slot_id: HINT,
  n_keep: HINT, // nothing is shifted out of a context
  n_discard: HINT,
  n_cache_reuse: HINT,
  timings_per_token: HINT,
  return_progress: HINT,
  mirostat_tau: HINT,
  mirostat_eta: HINT,
  xtc_threshold: HINT,
  dry_base: HINT,
  dry_allowed_length: HINT,
  dry_penalty_last_n: HINT,
  dry_sequence_breakers: HINT,
  dynatemp_exponent: HINT,
  "speculative.n_max": HINT, // a draft changes no text
  "speculative.n_min": HINT,
  "speculative.p_min": HINT,
  // OpenRouter
  models: HINT,
  route: HINT,
  provider: HINT,
  transforms: HINT,
  usage: HINT,
  session_id: HINT,
  trace: HINT,
  cache_control: HINT,
};

/** Values that turn off what cannot be turned on here. */
const NEUTRALS: TakingTable = {
  store: neutral([false], "answers are not stored: allowed is false"),
  functions: neutral([[]], 'it was replaced by "tools"'),
  function_call: neutral(["none", "auto"], 'it was replaced by "tool_choice"'),
  audio: refused("this model writes text alone"),
  // vLLM
  use_beam_search: neutral([false], "there are no beams: allowed is false"),
  stop_token_ids: neutral([[]], STOPS),
  include_stop_str_in_output: neutral([false], "a stop text is no part of an answer"),
  min_tokens: neutral([0], STOPS),
  skip_special_tokens: neutral([true], "special tokens are no text: allowed is true"),
  truncate_prompt_tokens: refused("prompts are not cut"),
  prompt_logprobs: refused("there are none of a prompt's tokens"),
  allowed_token_ids: refused("use logit_bias, grammar or regex"),
  bad_words: neutral([[]], "use logit_bias"),
  guided_whitespace_pattern: refused("the grammar has its own white space"),
  return_token_ids: neutral([false], NO_TOKENS),
  return_tokens_as_token_ids: neutral([false], NO_TOKENS),
  add_generation_prompt: neutralWhere(
    (value, body) => value === true || body["continue_final_message"] === true,
    "an answer is the assistant's: allowed is true",
  ),
  chat_template: refused("the model's own template is used"),
  documents: neutral([[]], "the documents are sent in a message"),
  vllm_xargs: neutral([{}], NOT_LOADED),
  logits_processors: neutral([[]], NOT_LOADED),
  // SGLang
  min_new_tokens: neutral([0], STOPS),
  no_stop_trim: neutral([false], "a stop text is no part of an answer"),
  lora_path: neutral([""], NOT_LOADED),
  session_params: neutral([{}], "answers are not stored: send the conversation"),
  return_hidden_states: neutral([false], NO_TOKENS),
  custom_logit_processor: refused(NOT_LOADED),
  custom_params: neutral([{}], NOT_LOADED),
  // llama-server
  t_max_predict_ms: neutralWhere((value) => Number(value) <= 0, STOPS),
  t_max_prompt_ms: neutralWhere((value) => Number(value) <= 0, STOPS),
  n_indent: neutral([0], STOPS),
  min_keep: neutral([0, 1], SAMPLER),
  repeat_last_n: neutralWhere(
    (value, body) => value === -1 || !penalizes(body),
    "repetition_penalty counts the whole text: allowed is -1",
  ),
  penalize_nl: neutralWhere(
    (value, body) => value === true || !penalizes(body),
    "repetition_penalty counts all tokens",
  ),
  dry_multiplier: neutral([0], SAMPLER),
  xtc_probability: neutral([0], SAMPLER),
  typical_p: neutral([0, 1], SAMPLER),
  typical: neutral([0, 1], SAMPLER),
  tfs_z: neutral([1], SAMPLER),
  top_a: neutral([0], SAMPLER),
  top_n_sigma: neutralWhere((value) => typeof value === "number" && value <= 0, SAMPLER),
  dynatemp_range: neutral([0], SAMPLER),
  adaptive_target: neutralWhere((value) => typeof value === "number" && value < 0, SAMPLER),
  adaptive_decay: HINT,
  mirostat: neutral([0], SAMPLER),
  samplers: neutral([[]], "the order of the sampler's steps is fixed"),
  post_sampling_probs: neutral([false], "log-probabilities are those before sampling"),
  return_tokens: neutral([false], NO_TOKENS),
  thinking_forced_open: neutral([false], "the chat template opens thoughts"),
  parse_tool_calls: neutral([true], "calls are read: allowed is true"),
  lora: neutral([[]], NOT_LOADED),
  response_fields: neutral([[]], "answers have all their fields"),
};

/** What other servers run besides the model. */
const DROPS: TakingTable = { web_search_options: DROPPED, plugins: DROPPED };

/** Other names of the same. */
const ALIASES: TakingTable = {
  n_predict: honoured(z.int().min(-2), (most) => most < 0 ? {} : { max_tokens: most }),
  max_new_tokens: honoured(z.int(), (most) => ({ max_tokens: most })),
  repeat_penalty: honoured(z.number(), (penalty) => ({ repetition_penalty: penalty })),
  guided_regex: honoured(z.string(), (regex) => ({ regex })),
  guided_grammar: honoured(z.string(), (grammar) => ({ grammar })),
  guided_choice: honoured(z.array(z.string()).min(1), (texts) => ({ regex: oneOf(texts) })),
  ebnf: honoured(z.string(), (grammar) => ({ grammar })),
};

/** Fields of chats and completions that those servers know and OpenAI does not. */
const OPENAI_FIELDS: TakingTable = { ...HINTS, ...NEUTRALS, ...DROPS, ...ALIASES };

/** A JSON schema, or the same as a text (SGLang). */
export const SCHEMA_OR_TEXT: z.ZodType<Record<string, unknown>> = z.union([
  SCHEMA,
  z.string().transform((text, context): Record<string, unknown> => {
    const value = parsed(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: "it is no JSON schema" });
    return z.NEVER;
  }),
]);

/** vLLM's; it has one kind of grammar, and allows others to be null. */
const STRUCTURED = z.strictObject({
  json: SCHEMA_OR_TEXT.nullish(),
  json_object: z.boolean().nullish(),
  regex: z.string().min(1).nullish(),
  choice: z.array(z.string()).min(1).nullish(),
  grammar: z.string().min(1).nullish(),
  structural_tag: z.null("it is not known here").optional(),
  whitespace_pattern: z.null("the grammar has its own white space").optional(),
  disable_fallback: z.boolean().optional(),
  disable_any_whitespace: z.boolean().optional(),
  disable_additional_properties: z.literal(false, "the schema says which there are").optional(),
}).refine(
  ({ json, json_object: any, regex, choice, grammar }) =>
    [json, any, regex, choice, grammar].filter(Boolean).length < 2,
  "an output has one grammar",
);

/** OpenRouter's `reasoning`, of chats. */
const REASONING = z.object({
  effort: z.string().optional(),
  max_tokens: z.number().optional(),
  enabled: z.boolean().optional(),
  exclude: z.boolean().optional(),
});

const format = (schema: unknown): Body => (
  { response_format: { type: "json_schema", json_schema: { schema } } }
);

/** POST /v1/chat/completions. */
export const CHAT_FIELDS: TakingTable = {
  ...OPENAI_FIELDS,
  add_special_tokens: neutral([false], "the chat template writes them: allowed is false"),
  echo: neutral([false], "the prompt is not repeated: allowed is false"),
  best_of: neutralWhere(sameAsN, 'allowed is what "n" is'),
  guided_json: honoured(SCHEMA_OR_TEXT, format),
  json_schema: honoured(SCHEMA_OR_TEXT, format),
  structured_outputs: honoured(z.union([z.boolean(), STRUCTURED]), (given) => {
    if (typeof given === "boolean") return {}; // OpenRouter's, of the provider
    if (given.json_object) return { response_format: { type: "json_object" } };
    return { ...given.json ? format(given.json) : {}, ...textGrammar(given) };
  }),
  n_probs: honoured(
    z.int().min(0),
    (most): Body => most === 0 ? {} : { logprobs: true, top_logprobs: most },
  ),
  reasoning: honoured(REASONING, ({ effort, enabled, exclude, max_tokens }) => ({
    ...enabled === false
      ? { reasoning_effort: "none" }
      : effort !== undefined
      ? { reasoning_effort: effort }
      : enabled || max_tokens
      ? { reasoning_effort: "high" }
      : {},
    ...exclude ? { include_reasoning: false } : {},
  })),
  reasoning_format: honoured(
    z.enum(["none", "auto", "deepseek", "deepseek-legacy"]),
    (kind): Body => kind === "none" ? { separate_reasoning: false } : {},
  ),
};

/** POST /v1/completions. */
export const COMPLETION_FIELDS: TakingTable = {
  ...OPENAI_FIELDS,
  guided_json: honoured(SCHEMA_OR_TEXT, (schema) => ({ json_schema: schema })),
  structured_outputs: honoured(z.union([z.boolean(), STRUCTURED]), (given) => {
    if (typeof given === "boolean") return {};
    if (given.json_object) return { json_schema: { type: "object" } };
    return { ...given.json ? { json_schema: given.json } : {}, ...textGrammar(given) };
  }),
  n_probs: honoured(z.int().min(0), (most): Body => most === 0 ? {} : { logprobs: most }),
};

/** Responses have these two as they were sent. */
const { user: _user, metadata: _metadata, ...SHARED_BY_RESPONSES } = OPENAI_FIELDS;

/** POST /v1/responses; `reasoning` is its own field. */
export const RESPONSES_FIELDS: TakingTable = {
  ...SHARED_BY_RESPONSES,
  background: neutral([false], "answers are not stored: allowed is false"),
  previous_response_id: refused("answers are not stored: send the conversation"),
  conversation: refused("answers are not stored: send the conversation"),
  prompt: refused("prompts are not stored: send the conversation"),
  max_tool_calls: HINT, // of tools that servers run
  context_management: HINT,
};

function textGrammar({ regex, choice, grammar }: z.infer<typeof STRUCTURED>): Body {
  const pattern = choice ? oneOf(choice) : regex ?? undefined;
  return { ...pattern !== undefined && { regex: pattern }, ...grammar && { grammar } };
}

/** A regular expression of these texts. A hyphen stays as it is: escaped outside a class it is an error of flag u. */
function oneOf(texts: readonly string[]): string {
  return texts.map((each) => each.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
}

function sameAsN(value: unknown, { n }: Body): boolean {
  return value === (n ?? 1);
}

function penalizes({ repeat_penalty: a = 1, repetition_penalty: b = 1 }: Body): boolean {
  return a !== 1 || b !== 1;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return SCHEMA.safeParse(value).data;
  } catch {
    return undefined;
  }
}
