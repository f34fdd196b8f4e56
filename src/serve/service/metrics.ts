import { CONTENT_TYPE, openRegistry } from "./prometheus.ts";

/** What is counted for GET /metrics: vLLM's names with the prefix `eyrie:`. */
export interface Metrics {
  /** Seconds from a request's arrival to its slot, the encoding of its prompt included. */
  queued(seconds: number): void;
  /** Seconds from a request's arrival to its first token. */
  firstToken(seconds: number): void;
  tokens(count: number): void;
  /** A round of a request, with the drafts that it verified and accepted. */
  round(drafted: number, accepted: number): void;
  request(ended: EndedRequest): void;
  http(answered: AnsweredHttp): void;
  /** The text that Prometheus reads. */
  text(live: LiveNumbers): string;
  readonly contentType: string;
}

/** An HTTP request that was answered, or whose client left. */
export interface AnsweredHttp {
  readonly method: string;
  /** The route's path with its parameters' names; undefined where there is no route. */
  readonly route: string | undefined;
  /** 499 where the client left before. */
  readonly status: number;
}

export interface EndedRequest {
  /** A finish reason, "abort" or "error". */
  readonly reason: string;
  readonly seconds: number;
  /** Seconds a token after the first. */
  readonly perToken: number | undefined;
  readonly outputTokens: number;
  /** Undefined where it ended before its prompt was begun. */
  readonly prompt: { readonly promptTokens: number; readonly cachedTokens: number } | undefined;
}

/** What is read when it is asked for. */
export interface LiveNumbers {
  readonly running: number;
  readonly waiting: number;
  /** Share of the KV pages in use, 0 to 1. */
  readonly kvUsage: number;
  /** Tokens that the KV pages hold. */
  readonly kvTokens: number;
  readonly preemptions: number;
}

/** Upper ends, seconds: a cached prompt has its first token within milliseconds, a long answer takes minutes. */
const BELOW_SECOND = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75];
const SECONDS = [...BELOW_SECOND, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 320, 640, 1280];
const PER_TOKEN = [...BELOW_SECOND, 1, 2.5];
/** Upper ends, tokens. */
const TOKENS = [1, 10, 100, 1000, 10_000, 100_000].flatMap((n) => [n, 2 * n, 5 * n]);

/** Other methods are one label, as other paths are. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "OPTIONS"]);

/** @param modelName of the model, a label of every number. */
export function openMetrics(modelName: () => string): Metrics {
  const registry = openRegistry();
  const counter = (name: string, help: string, labelled?: "labelled") =>
    registry.counter(`eyrie:${name}`, help, labelled);
  const gauge = (name: string, help: string) => registry.gauge(`eyrie:${name}`, help);
  const histogram = (name: string, help: string, ends: readonly number[]) =>
    registry.histogram(`eyrie:${name}`, help, ends);
  const running = gauge("num_requests_running", "Requests that have a slot.");
  const waiting = gauge("num_requests_waiting", "Requests that wait for a slot.");
  const kvUsage = gauge("kv_cache_usage_perc", "Share of the KV pages in use; 1 is all.");
  const kvTokens = gauge("max_total_num_tokens", "Tokens that the KV pages hold together.");
  const preemptions = counter("num_preemptions_total", "Requests that gave their slot back.");
  const prompt = counter("prompt_tokens_total", "Prompt tokens, cached ones included.");
  const generated = counter("generation_tokens_total", "Output tokens.");
  const queries = counter("prefix_cache_queries_total", "Prompt tokens looked up in the cache.");
  const hits = counter("prefix_cache_hits_total", "Prompt tokens found in the cache.");
  const drafts = counter("spec_decode_num_drafts_total", "Rounds that verified drafts.");
  const drafted = counter("spec_decode_num_draft_tokens_total", "Drafts verified.");
  const accepted = counter("spec_decode_num_accepted_tokens_total", "Drafts accepted.");
  const acceptedAt = counter(
    "spec_decode_num_accepted_tokens_per_pos_total",
    "Drafts accepted at each position of a chain, from 0.",
    "labelled",
  );
  const success = counter("request_success_total", "Requests by how they ended.", "labelled");
  const first = histogram(
    "time_to_first_token_seconds",
    "From arrival to the first token.",
    SECONDS,
  );
  const perToken = histogram(
    "time_per_output_token_seconds",
    "A token after the first, mean of each request.",
    PER_TOKEN,
  );
  const queue = histogram("request_queue_time_seconds", "From arrival to a slot.", SECONDS);
  const promptLength = histogram("request_prompt_tokens", "Prompt tokens of a request.", TOKENS);
  const outputLength = histogram("request_generation_tokens", "Its output tokens.", TOKENS);
  const http = counter("http_requests_total", "HTTP requests by route and status.", "labelled");
  const whole = histogram("e2e_request_latency_seconds", "From arrival to the end.", SECONDS);
  return {
    queued: (seconds) => queue.observe(seconds),
    firstToken: (seconds) => first.observe(seconds),
    tokens: (count) => generated.add(count),
    round(proposed, kept) {
      if (proposed === 0) return;
      drafts.add(1);
      drafted.add(proposed);
      accepted.add(kept);
      for (let position = 0; position < kept; position++) {
        acceptedAt.add(1, { position: String(position) });
      }
    },
    request(ended) {
      success.add(1, { finished_reason: ended.reason });
      whole.observe(ended.seconds);
      if (ended.perToken !== undefined) perToken.observe(ended.perToken);
      if (ended.prompt === undefined) return;
      promptLength.observe(ended.prompt.promptTokens);
      outputLength.observe(ended.outputTokens);
      prompt.add(ended.prompt.promptTokens);
      queries.add(ended.prompt.promptTokens);
      hits.add(ended.prompt.cachedTokens);
    },
    http({ method, route, status }) {
      const known = METHODS.has(method) ? method : "other";
      http.add(1, { method: known, path: route ?? "other", status: String(status) });
    },
    text(live) {
      running.set(live.running);
      waiting.set(live.waiting);
      kvUsage.set(live.kvUsage);
      kvTokens.set(live.kvTokens);
      preemptions.set(live.preemptions); // counted by the engine
      return registry.text({ model_name: modelName() });
    },
    contentType: CONTENT_TYPE,
  };
}
