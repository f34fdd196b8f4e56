/** Requests to the hub: one attempt each, with its refusals in plain words. */
import { reason, UsageError } from "../errors.ts";
import { MAIN, type ModelName, modelText } from "./names.ts";
import type { HubSettings } from "./settings.ts";
import { TransientError } from "./retry.ts";

/** Asks for a URL and answers with a successful response. */
export type Ask = (url: string, init: RequestInit) => Promise<Response>;

/** What may stand in a header. The check's own message names no character: it may be part of a secret. */
const TOKEN = /^[\x21-\x7e]+$/;

/** The hub answers with something else than what was asked for; the cache may still have that. */
export class RefusedError extends UsageError {}

/** The hub has no model of this name, or does not show it to us. */
export class NoSuchModelError extends RefusedError {}

type Access = Pick<HubSettings, "endpoint" | "token" | "tokenFrom">;

const RETRIED = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Requests on behalf of one model. The token goes to the hub itself only, never to the servers it
 * redirects to.
 * @throws UsageError for an endpoint or a token that cannot be one.
 * @throws (each request) TransientError, or RefusedError for what will not change by asking again.
 */
export function asker(name: ModelName, access: Access): Ask {
  const { endpoint, token } = access;
  const origin = originOf(endpoint);
  checkToken(access);
  return async (url, init) => {
    const headers = new Headers(init.headers);
    headers.set("User-Agent", "eyrie");
    // Compressed bytes cannot be resumed by range, and their length is not the file's.
    headers.set("Accept-Encoding", "identity");
    if (token !== undefined && new URL(url).origin === origin) {
      headers.set("Authorization", `Bearer ${token}`);
    }
    const response = await connect(url, { ...init, headers });
    if (response.ok) return response;
    await response.body?.cancel();
    throw refusal(response, { name, ...access });
  };
}

function checkToken({ token, tokenFrom = "HF_TOKEN" }: Access): void {
  if (token === undefined || TOKEN.test(token)) return;
  const why = /[\r\n]/.test(token)
    ? "it has several lines, expected the token alone"
    : "it has characters that no token has";
  throw new UsageError(`Cannot use the token of ${tokenFrom}: ${why}`);
}

/** Replaces the token in a text: an error message may quote a server that repeats what it was sent. */
export function withoutToken(text: string, { token }: Pick<HubSettings, "token">): string {
  return token === undefined ? text : text.replaceAll(token, "[the token]");
}

async function connect(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw lost(new URL(url).host, error);
  }
}

/** A connection that was not made or broke off. */
export function lost(host: string, error: unknown): TransientError {
  return new TransientError(`no connection to ${host} (${cause(error)})`);
}

/** Deno's words are "fetch failed" at the top; the URL in its cause may carry a signature. */
function cause(error: unknown): string {
  const inner = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return reason(inner).replace(/^error sending request for url \([^)]*\): /, "")
    .replace(/^client error \(\w+\): /, "").replace(/\s+/g, " ");
}

function originOf(endpoint: string): string {
  const url = URL.parse(endpoint);
  // It would stand in messages, and a token is what the hub asks for.
  if (url?.username || url?.password) {
    throw new UsageError("Cannot use HF_ENDPOINT: it has a user name or a password in it");
  }
  if (url && /^https?:$/.test(url.protocol)) return url.origin;
  throw new UsageError(`Cannot use HF_ENDPOINT "${endpoint}": not an http or https URL`);
}

/** Seconds for which a busy server asks us to wait; the hub says `RateLimit: "api";r=0;t=55`. 0 where it says none. */
function secondsToWait(headers: Headers): number {
  const seconds = Number(headers.get("Retry-After") ?? NaN);
  if (Number.isFinite(seconds)) return seconds;
  const [, reset] = /;\s*t=(\d+)/.exec(headers.get("RateLimit") ?? "") ?? [];
  return reset === undefined ? 0 : Number(reset) + 1;
}

function refusal(
  { status, headers, url }: Response,
  { name, ...access }: { name: ModelName } & Access,
): Error {
  const { endpoint, token, tokenFrom = "HF_TOKEN" } = access;
  const cannot = (why: string) => new RefusedError(`Cannot get "${modelText(name)}": ${why}`);
  const none = (rest: string) =>
    new NoSuchModelError(
      `Cannot get "${modelText(name)}": there is no such model at ${endpoint}${rest}`,
    );
  const code = headers.get("X-Error-Code");
  const message = withoutToken(headers.get("X-Error-Message") ?? "", access);
  const page = `${endpoint}/${name.repo}`;
  const licence = `accept the licence at ${page} ` +
    (token === undefined ? "and set HF_TOKEN" : `as the account of the token of ${tokenFrom}`);
  // A storage refuses an URL whose signature has expired; the hub signs a new one at the next attempt.
  const expired = status === 403 && code === null && new URL(url).origin !== originOf(endpoint);
  if (RETRIED.has(status) || expired) {
    return new TransientError(
      `${new URL(url).host} answers ${status}`,
      secondsToWait(headers) * 1000,
    );
  }
  if (status === 401 && /invalid credentials/i.test(message)) {
    return cannot(`${endpoint} does not accept the token of ${tokenFrom}`);
  }
  if (status === 403 || code === "GatedRepo") return cannot(`gated: ${licence}`);
  if (status === 401) {
    const gated = `it is private or gated: ${licence}`;
    return none(`, or ${gated}`);
  }
  if (status === 404 && code === "RevisionNotFound") {
    const short = /^[0-9a-f]{4,39}$/.test(name.revision)
      ? "; a commit is given by all 40 digits"
      : "";
    return cannot(`there is no revision "${name.revision}" at ${page}${short}`);
  }
  if (status === 404) {
    const file = /\/resolve\/[^/]+\/([^?]+)/.exec(url)?.[1];
    if (file !== undefined) return cannot(`there is no file "${file}" at ${page}`);
    const revision = name.revision === MAIN ? "" : ` or no revision "${name.revision}" of it`;
    return none(revision);
  }
  return cannot(`${new URL(url).host} answers ${status}${message === "" ? "" : `: ${message}`}`);
}
