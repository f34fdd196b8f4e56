import { createParser } from "eventsource-parser";
import { RemoteError } from "../errors.ts";
import { isObject } from "../objects.ts";
import type { Endpoint } from "./endpoint.ts";
import { ask, message, type RemoteRequest, textIn } from "./http.ts";
import { type Json, parsed } from "./json.ts";

/** What OpenAI's streams end with. */
const DONE = "[DONE]";

/**
 * The JSON of a stream's events, and `[DONE]` where the server says so.
 *
 * @throws what `ask` throws, and RemoteError for a stream that breaks off, that is no JSON or that
 * says an error; the signal's reason where it aborts.
 */
export async function* events(
  endpoint: Endpoint,
  sent: RemoteRequest,
): AsyncGenerator<Json | typeof DONE, void, void> {
  const response = await ask(endpoint, sent);
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || !/^text\/event-stream/i.test(type)) {
    const said = message(await textIn(response, sent.signal));
    const because = said === "" ? "" : `: ${said}`;
    throw broken(endpoint, `it sent ${type || "no type"}, not a stream of events${because}`);
  }
  for await (const data of dataOf(response.body, { endpoint, signal: sent.signal })) {
    if (data === DONE) {
      yield DONE;
      return;
    }
    yield eventOf(data, endpoint);
  }
}

/** Whatever ended a stream before its end. */
export function cutOff(endpoint: Endpoint): RemoteError {
  return broken(endpoint, "its stream was cut off in the middle");
}

function broken({ shown }: Endpoint, why: string): RemoteError {
  return new RemoteError(`Cannot get an answer of "${shown}": ${why}`);
}

/** Texts of the events. */
async function* dataOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  { endpoint, signal }: { readonly endpoint: Endpoint; readonly signal: AbortSignal },
): AsyncGenerator<string, void, void> {
  const found: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => void found.push(data) });
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    while (true) {
      const { value, done } = await reader.read().catch((error) => {
        throw signal.aborted ? error : cutOff(endpoint);
      });
      if (done) return;
      parser.feed(value);
      yield* found.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function eventOf(data: string, endpoint: Endpoint): Json {
  const json = parsed(data);
  if (!isObject(json)) {
    const start = data.length > 40 ? `${data.slice(0, 40)}...` : data;
    const line = start.replaceAll(/\s+/g, " ");
    throw broken(endpoint, `it sent an event that is no JSON object: ${line}`);
  }
  const { error } = json;
  if (error === undefined || error === null) return json;
  throw broken(endpoint, `it failed in the middle: ${message(data)}`);
}
