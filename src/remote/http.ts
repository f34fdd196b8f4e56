import { RemoteError, UsageError } from "../errors.ts";
import { isObject } from "../objects.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Json, objectOf, parsed, textOf } from "./json.ts";

/** A request to a server. */
export interface RemoteRequest {
  readonly url: string;
  /** Sent as JSON; a GET without. */
  readonly body?: unknown;
  /** For messages: the model that is asked for. */
  readonly model?: string;
  /** Statuses that are an answer too. */
  readonly absent?: readonly number[];
  readonly signal: AbortSignal;
}

/**
 * The answer to a request where it is a success.
 *
 * @throws UsageError for what the person can mend (no server there, key, model, a request that it
 * refuses), RemoteError for a server that is busy or broken; the signal's reason where it aborts.
 */
export async function ask(endpoint: Endpoint, sent: RemoteRequest): Promise<Response> {
  const response = await send(endpoint, sent);
  if (response.ok || sent.absent?.includes(response.status)) return response;
  throw refusal(endpoint, sent, { response, text: await textIn(response, sent.signal) });
}

/** A server that has not answered within this time counts as one that reports nothing. */
const LOOK_MS = 5000;

/**
 * The text at an address; undefined where there is none, whatever the reason.
 *
 * @throws the signal's reason where it aborts.
 */
export async function look(
  endpoint: Endpoint,
  url: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]);
    const response = await send(endpoint, { url, signal: within });
    const text = await response.text();
    return response.ok ? text : undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

async function send(endpoint: Endpoint, { url, body, signal }: RemoteRequest): Promise<Response> {
  const { key } = endpoint;
  try {
    return await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        accept: "application/json, text/event-stream",
        ...body === undefined ? {} : { "content-type": "application/json" },
        ...key === undefined ? {} : { authorization: `Bearer ${key}` },
      },
      ...body === undefined ? {} : { body: JSON.stringify(body) },
      // A redirect is not followed: the key must go only to the address that the user named.
      redirect: "manual",
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new UsageError(`Cannot reach "${endpoint.shown}": ${networkReason(error)}`, {
      cause: error,
    });
  }
}

/** The root cause of a failed fetch, without the address, which the message names already. */
function networkReason(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  if (cause !== undefined) return networkReason(cause);
  const text = error instanceof Error ? error.message : String(error);
  if (/connection refused/i.test(text)) return "nothing listens there";
  if (/dns error/i.test(text)) return "there is no such host";
  return text.replace(/^.*client error \(\w+\): /, "").replace(/ \(os error \d+\)$/, "");
}

/** The body; "" where it breaks off. @throws the signal's reason where it aborts. */
export async function textIn(response: Response, signal: AbortSignal): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    if (signal.aborted) throw error;
    return "";
  }
}

interface Refused {
  readonly response: Response;
  readonly text: string;
}

function refusal(endpoint: Endpoint, sent: RemoteRequest, { response, text }: Refused): Error {
  const { status } = response;
  const said = message(text);
  const because = said === "" ? "" : `: ${said}`;
  const asked = `"${endpoint.shown}"`;
  switch (status) {
    case 401:
    case 403:
      return new UsageError(`Cannot use ${asked}: ${keyReason(endpoint, status)}${because}`);
    case 404:
      return sent.model !== undefined && /model/i.test(said)
        ? new UsageError(`Cannot use model "${sent.model}" of ${asked} (404)${because}`)
        : new UsageError(
          `Cannot use ${asked}: it has no ${new URL(sent.url).pathname} (404); ` +
            "is it a server of OpenAI's API?",
        );
    case 429:
      return new RemoteError(
        `Cannot get an answer of ${asked}: it is busy (429)${retryText(response)}${because}`,
      );
  }
  const found = `Cannot get an answer of ${asked}`;
  if (status >= 300 && status < 400) {
    const place = response.headers.get("location") ?? "another address";
    return new UsageError(`${found}: it points to ${place} (${status}); give that address`);
  }
  if (status < 500) return new UsageError(`${found}: it refused the request (${status})${because}`);
  return new RemoteError(`${found}: it failed (${status})${retryText(response)}${because}`);
}

function keyReason({ key }: Endpoint, status: number): string {
  return key === undefined
    ? `it requires a key (${status}): set EYRIE_REMOTE_KEY`
    : `it refused the key (${status})`;
}

function retryText({ headers }: Response): string {
  const after = headers.get("retry-after")?.trim() ?? "";
  if (after === "") return "";
  return /^\d+$/.test(after) ? `, try again in ${after} s` : `, try again after ${after}`;
}

/** Most characters of a server's message. */
const MAX = 300;

/** A server's error message, on one line: of a JSON object with an error, else the text itself. */
export function message(text: string): string {
  const json = parsed(text);
  const said = isObject(json) ? errorText(json) : /^\s*</.test(text) ? "" : text;
  const line = said.replaceAll(/\s+/g, " ").trim();
  return line.length > MAX ? `${line.slice(0, MAX)}...` : line;
}

/** Reads the shapes of OpenAI, older vLLM and FastAPI, whose `detail` is a list where a field is wrong. */
function errorText({ error, message, detail }: Json): string {
  const said = [objectOf(error)["message"], error, message, detail].find(Boolean) ?? "";
  return textOf(said) ?? JSON.stringify(said);
}
