import type { ApiError } from "../http/errors.ts";

const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/** Anthropic's error object. Its clients look for the words of a prompt that is too long. */
export function anthropicError({ status, message, fields }: ApiError): {
  readonly type: "error";
  readonly error: { readonly type: string; readonly message: string };
} {
  const { n_prompt_tokens: tokens, n_ctx: most } = fields;
  const text = tokens === undefined
    ? message
    : `prompt is too long: ${tokens} tokens > ${most} maximum`;
  const other = status < 500 ? "invalid_request_error" : "api_error";
  return { type: "error", error: { type: TYPES[status] ?? other, message: text } };
}
