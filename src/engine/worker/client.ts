import { setTimeout } from "node:timers/promises";
import type { Engine, OpenEngine } from "../engine.ts";
import { EventStream } from "../schedule/event_stream.ts";
import type { EngineEvent, GenerateRequest } from "../schedule/events.ts";
import { Channel, type OpenedEngine } from "./channel.ts";
import { interruptedResult } from "./interrupted_result.ts";
import { TextThread } from "./text_client.ts";

/** An abort is answered within this time, also in the middle of a round or of a prompt. */
const INTERRUPT_MS = 100;

/** How long the end of a round in flight is waited for when the engine is closed. */
const CLOSE_MS = 5000;

/** Nothing reports when an ended thread has given its device back: 200 ms were enough on an H200. */
const TEARDOWN_MS = 300;

/** Opens engines in workers, whose module `url` calls `serveThread`. */
export function engineInWorker(url: string | URL): OpenEngine {
  return async (options) => {
    const channel = new Channel(url, options);
    const text = new TextThread(url, options.model);
    try {
      return client(channel, await channel.opened, text);
    } catch (error) {
      text.end(error as Error);
      // If the process exits while the thread still has its device, Mesa's driver may crash.
      await setTimeout(TEARDOWN_MS);
      throw error;
    }
  };
}

function client(channel: Channel, { info, status }: OpenedEngine, text: TextThread): Engine {
  /** An abort was not answered in time, and nothing has come since. */
  let unresponsive = false;

  function submit(request: GenerateRequest): EventStream {
    const { signal, ...sent } = request;
    const started = performance.now();
    const events: { readonly at: number; readonly event: EngineEvent }[] = [];
    let timer: ReturnType<typeof globalThis.setTimeout> | undefined;
    const interrupted = () => {
      const result = interruptedResult(info, request, { started, events });
      try {
        push({ kind: "finish", result });
      } catch {
        // The request has ended, and nothing waits for what its listener throws.
      }
    };
    const cancel = () => {
      job.cancel();
      timer ??= globalThis.setTimeout(() => {
        if (signal?.aborted) unresponsive = true;
        interrupted();
      }, INTERRUPT_MS);
    };
    const stream = new EventStream(cancel);
    const push = (event: EngineEvent) => {
      events.push({ at: performance.now(), event });
      try {
        stream.push(event);
      } finally {
        if (stream.ended) {
          clearTimeout(timer);
          signal?.removeEventListener("abort", cancel);
        }
      }
    };
    if (signal?.aborted) {
      interrupted();
      return stream;
    }
    const job = channel.submit(sent, (event) => {
      unresponsive = false;
      push(event);
    });
    if (!stream.ended) signal?.addEventListener("abort", cancel);
    return stream;
  }

  async function close(): Promise<void> {
    text.end(new Error("the engine is closed"));
    if (!unresponsive || !channel.busy) await channel.close(CLOSE_MS);
  }

  return {
    info,
    get status() {
      return channel.status ?? status;
    },
    submit,
    encodePrompt: (input, signal) => text.encode(input, signal),
    decode: (ids, signal) => text.decode(ids, signal),
    pieces: (ids, signal) => text.pieces(ids, signal),
    ping: async (signal) => {
      signal?.throwIfAborted();
      return await unlessAborted(channel.ping(), signal);
    },
    readStatus: async () => await channel.readStatus(),
    async terminate() {
      await close();
      channel.end(new Error("the engine is closed"));
      await setTimeout(TEARDOWN_MS);
    },
    [Symbol.asyncDispose]: close,
  };
}

/** The promise's value; throws the signal's reason if it aborts first. */
async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal?.reason);
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
