import { UsageError } from "../errors.ts";

/** Where a server is, and what it is sent to be let in. */
export interface Endpoint {
  /** The address as it was typed, for messages. */
  readonly shown: string;
  /** Base URL of /server_info and /metrics, without a slash at its end. */
  readonly root: string;
  /** Base URL of /chat/completions, OpenAI's `baseURL`, without a slash at its end. */
  readonly api: string;
  readonly key: string | undefined;
  /** The field that limits an answer's tokens: OpenAI refuses the older name for its newer models. */
  readonly limitField: "max_tokens" | "max_completion_tokens";
}

/** A key for OpenAI is sent nowhere else, and not unencrypted. */
const OPENAI = "https://api.openai.com";

/**
 * Reads an address. One without a path has the API under /v1; any other path is the API's own, as
 * the `baseURL` of OpenAI's clients.
 *
 * @param env EYRIE_REMOTE_KEY is the key, for https://api.openai.com else OPENAI_API_KEY.
 * @throws UsageError
 */
export function endpointOf(
  address: string,
  env: (name: string) => string | undefined,
): Endpoint {
  const refuse = (why: string) => new UsageError(`Cannot use "--remote ${address}": ${why}`);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw refuse("allowed is an address such as http://127.0.0.1:8000");
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(
      `Cannot use "--remote ${url.host}" with a password in the address: allowed is EYRIE_REMOTE_KEY`,
    );
  }
  if (url.search !== "" || url.hash !== "") throw refuse("it has more than host, port and path");
  const path = url.pathname.replace(/\/+$/, "");
  const key = env("EYRIE_REMOTE_KEY") ||
    (url.origin === OPENAI ? env("OPENAI_API_KEY") : undefined);
  return {
    shown: address,
    root: url.origin + path.replace(/\/v1$/, ""),
    api: url.origin + (path === "" ? "/v1" : path),
    key: key || undefined,
    limitField: url.origin === OPENAI ? "max_completion_tokens" : "max_tokens",
  };
}
