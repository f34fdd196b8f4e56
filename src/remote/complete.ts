import { type Acceptance, counted } from "./acceptance.ts";
import { type Json, listOf, numberOf, objectOf, textOf } from "./json.ts";
import type { Server } from "./server.ts";
import { cutOff, events } from "./stream.ts";

/** What a server is asked to continue. */
export type RemotePrompt =
  | { readonly messages: readonly unknown[] }
  /** A text or token ids, which go through no chat template. */
  | { readonly raw: string | readonly number[] };

export interface RemoteRequest {
  readonly prompt: RemotePrompt;
  /** Fields of the body besides model, prompt and stream. */
  readonly fields: Json;
  readonly signal: AbortSignal;
}

/** A piece of an answer as it arrived. */
export interface Piece {
  readonly text: string;
  /** What the model thinks before it answers. */
  readonly reasoning: string;
  /** Output tokens since the last piece; undefined if the server does not count them. */
  readonly tokens: number | undefined;
}

/** An answer as far as it arrived. */
export interface Completed {
  readonly text: string;
  readonly reasoning: string;
  /** `interrupt`: the signal ended it. */
  readonly finishReason: string;
  /** Tokens, as the server counts them; undefined where it does not. */
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  /** What the server reported with the answer. */
  readonly acceptance: Acceptance | undefined;
}

/** What the chunks have brought so far. */
interface PartialAnswer {
  text: string;
  reasoning: string;
  finishReason: string | undefined;
  usage: Json;
  timings: Json | undefined;
  /** vLLM's, with `--per-request-spec-decode-metrics`. */
  metrics: Json | undefined;
  /** Eyrie's. */
  rounds: Json[];
  /** Output tokens that were reported. */
  tokens: number;
  /** Whether a text came without a count: a later one is then of more than its own chunk. */
  uncounted: boolean;
}

/**
 * Asks for one answer and reads it as it comes.
 *
 * @param onPiece called with each piece; an abort ends the answer without an error.
 * @throws what `events` throws, RemoteError where the stream ends before the answer.
 */
export async function complete(
  server: Server,
  { prompt, fields, signal }: RemoteRequest,
  onPiece: (piece: Piece) => void,
): Promise<Completed> {
  const { endpoint, model } = server;
  const partial: PartialAnswer = {
    text: "",
    reasoning: "",
    finishReason: undefined,
    usage: {},
    tokens: 0,
    uncounted: false,
    timings: undefined,
    metrics: undefined,
    rounds: [],
  };
  const [path, asked] = "raw" in prompt
    ? ["completions", { prompt: prompt.raw }]
    : ["chat/completions", { messages: prompt.messages }];
  const url = `${endpoint.api}/${path}`;
  const body = { model, ...asked, ...fields, ...streamFields(server, prompt) };
  let done = false;
  try {
    for await (const event of events(endpoint, { url, body, model, signal })) {
      if (event === "[DONE]") done = true;
      else readChunk(partial, event, onPiece);
    }
    if (!done && partial.finishReason === undefined) throw cutOff(endpoint);
  } catch (error) {
    if (!signal.aborted) throw error;
    partial.finishReason = "interrupt";
  }
  return completedOf(partial);
}

/** Fields that request a stream with token counts, in the form that each kind of server takes. */
function streamFields({ kind }: Server, prompt: RemotePrompt): Json {
  const counts = kind === "vllm" || kind === "sglang";
  return {
    stream: true,
    stream_options: {
      include_usage: true,
      ...counts ? { continuous_usage_stats: true } : {},
    },
    ...kind === "eyrie" && "messages" in prompt ? { return_rounds: true } : {},
  };
}

function readChunk(partial: PartialAnswer, chunk: Json, onPiece: (piece: Piece) => void): void {
  const [choice] = listOf(chunk["choices"]).map(objectOf);
  if (typeof chunk["usage"] === "object" && chunk["usage"] !== null) {
    partial.usage = objectOf(chunk["usage"]);
  }
  if (chunk["timings"] !== undefined) partial.timings = objectOf(chunk["timings"]);
  const { speculative_decoding } = objectOf(chunk["metrics"]);
  if (speculative_decoding !== undefined) partial.metrics = objectOf(speculative_decoding);
  if (choice === undefined) return;
  const delta = objectOf(choice["delta"]);
  const text = textOf(delta["content"]) ?? textOf(choice["text"]) ?? "";
  const reasoning = textOf(delta["reasoning_content"]) ?? textOf(delta["reasoning"]) ?? "";
  const rounds = listOf(choice["rounds"]).map(objectOf);
  partial.text += text;
  partial.reasoning += reasoning;
  partial.rounds.push(...rounds);
  partial.finishReason = textOf(choice["finish_reason"]) ?? partial.finishReason;
  const written = text !== "" || reasoning !== "";
  const tokens = tokensUntil(partial, objectOf(chunk["usage"]));
  partial.uncounted ||= written && tokens === undefined;
  const newTokens = tokens === undefined || partial.uncounted ? undefined : tokens - partial.tokens;
  partial.tokens = tokens ?? partial.tokens;
  if (written || newTokens) onPiece({ text, reasoning, tokens: newTokens });
}

/** Output tokens up to this chunk, where it says how many. Some servers say 0 until the end. */
function tokensUntil({ rounds }: PartialAnswer, usage: Json): number | undefined {
  if (rounds.length === 0) return numberOf(usage["completion_tokens"]) || undefined;
  return rounds.reduce((sum, { tokens }) => sum + (numberOf(tokens) ?? 0), 0);
}

function completedOf(partial: PartialAnswer): Completed {
  const { text, reasoning, finishReason = "stop", usage, tokens } = partial;
  const details = objectOf(usage["prompt_tokens_details"]);
  return {
    text,
    reasoning,
    finishReason,
    promptTokens: numberOf(usage["prompt_tokens"]),
    outputTokens: numberOf(usage["completion_tokens"]) ?? (tokens > 0 ? tokens : undefined),
    cachedTokens: numberOf(details["cached_tokens"]) ?? numberOf(partial.timings?.["cache_n"]),
    acceptance: acceptanceOf(partial),
  };
}

/** Uses the first that is there: Eyrie's rounds, vLLM's request metrics, llama-server's timings, OpenAI's usage. */
function acceptanceOf({ rounds, metrics, timings, usage }: PartialAnswer): Acceptance | undefined {
  if (rounds.length > 0) return acceptanceOfRounds(rounds);
  const draftTokens = numberOf(metrics?.["num_draft_tokens"]);
  if (draftTokens !== undefined) {
    return counted("answer", {
      draftTokens,
      drafts: numberOf(metrics?.["num_spec_steps"]),
      acceptedTokens: numberOf(metrics?.["num_accepted_draft_tokens"]) ?? 0,
    });
  }
  const drafted = numberOf(timings?.["draft_n"]);
  if (drafted !== undefined) {
    const acceptedTokens = numberOf(timings?.["draft_n_accepted"]) ?? 0;
    return counted("answer", { draftTokens: drafted, acceptedTokens });
  }
  const details = objectOf(usage["completion_tokens_details"]);
  const accepted = numberOf(details["accepted_prediction_tokens"]);
  const rejected = numberOf(details["rejected_prediction_tokens"]);
  // OpenAI itself counts tokens of the field `prediction`, which is not sent: its 0 says nothing about drafts.
  if (accepted === undefined || rejected === undefined || accepted + rejected === 0) {
    return undefined;
  }
  return counted("answer", { draftTokens: accepted + rejected, acceptedTokens: accepted });
}

function acceptanceOfRounds(rounds: readonly Json[]): Acceptance {
  const drafting = rounds.map(({ drafted, accepted }) => ({
    drafted: numberOf(drafted) ?? 0,
    accepted: numberOf(accepted) ?? 0,
  })).filter(({ drafted }) => drafted > 0);
  return counted("answer", {
    drafts: drafting.length,
    draftTokens: drafting.reduce((sum, { drafted }) => sum + drafted, 0),
    acceptedTokens: drafting.reduce((sum, { accepted }) => sum + accepted, 0),
  });
}
