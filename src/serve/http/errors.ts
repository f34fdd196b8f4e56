/** The error that a request is answered with. Each API has its own JSON shape for it: see `errorBody`. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly type: string;
  /** The field that is wrong. */
  readonly param: string | null;
  readonly code: string | number | null;
  /** More fields of the error that clients look for. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, of: ErrorDetails = {}) {
    super(message);
    this.status = status;
    this.type = of.type ?? (status < 500 ? "invalid_request_error" : "server_error");
    this.param = of.param ?? null;
    this.code = of.code ?? null;
    this.fields = of.fields ?? {};
    this.headers = of.headers ?? {};
  }
}

export interface ErrorDetails {
  readonly type?: string;
  readonly param?: string | null;
  readonly code?: string | number | null;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A field of a request that cannot be used. */
export function invalid(message: string, param: string | null = null): ApiError {
  return new ApiError(400, message, { param });
}

/** A field that is larger than the server computes for one request. */
export function tooManyOf(unit: string, count: number, most: number): ApiError {
  return new ApiError(413, `the request has ${count} ${unit}, allowed are ${most}`);
}

/** llama-server's error: clients that know it compact the conversation and try again. */
export function promptTooLong(tokens: number, contextLength: number): ApiError {
  const message =
    `the prompt has ${tokens} tokens, the context holds ${contextLength}: the request exceeds ` +
    "the available context size";
  return new ApiError(400, message, {
    type: "exceed_context_size_error",
    param: "messages",
    code: 400,
    fields: { n_prompt_tokens: tokens, n_ctx: contextLength },
  });
}

/** Seconds after which a client may try again. */
const RETRY_AFTER = { "retry-after": "1" } as const;

export function tooMany(waiting: number): ApiError {
  const message = `${Math.max(0, waiting)} requests wait already (--max-queue); try again later`;
  return new ApiError(429, message, {
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    headers: RETRY_AFTER,
  });
}

/** @param ms that a request may wait for a slot. */
export function waitedTooLong(ms: number): ApiError {
  return unavailable(`no slot was free within ${ms} ms (--max-queue-ms); try again later`);
}

export function unavailable(message: string): ApiError {
  return new ApiError(503, message, { type: "unavailable_error", code: 503, headers: RETRY_AFTER });
}

/** No request is answered any more. */
export function engineFailed({ message }: Error): ApiError {
  return new ApiError(503, `the engine has failed: ${message}`, { code: 503 });
}

/** OpenAI's error object. */
export function errorBody({ message, type, param, code, fields }: ApiError): {
  readonly error: Readonly<Record<string, unknown>>;
} {
  return { error: { message, type, param, code, ...fields } };
}
