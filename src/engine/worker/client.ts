import { setTimeout } from "node:timers/promises";
import type { Engine, OpenEngine } from "../engine.ts";
import { eventQueue } from "../schedule/event_queue.ts";
import type { EngineEvent, GenerateRequest } from "../schedule/events.ts";
import { Channel, type Opened } from "./channel.ts";
import { receive } from "./partial_result.ts";
import { TextThread } from "./text_client.ts";

/** An abort is answered within this time, also in the middle of a round or of a prompt. */
export const INTERRUPT_MS = 100;

/** How long the end of a round in flight is waited for when the engine is closed. */
const CLOSE_MS = 5000;

/** Nothing reports when an ended thread has given its device back: 200 ms were enough on an H200. */
const TEARDOWN_MS = 300;

/** Opens engines in workers, whose module `url` calls `serveThread`. */
export function engineInWorker(url: string | URL): OpenEngine {
  return async (options) => {
    const channel = new Channel(url, options);
    const text = new TextThread(url, options);
    try {
      return client(channel, await channel.opened, text);
    } catch (error) {
      text.end(error as Error);
      throw error;
    }
  };
}

function client(channel: Channel, { info, status }: Opened, text: TextThread): Engine {
  /** An abort was not answered in time. */
  let unresponsive = false;

  async function* generate(request: GenerateRequest): AsyncGenerator<EngineEvent, void, void> {
    const { signal, ...sent } = request;
    const events = eventQueue<EngineEvent>();
    const received = receive(info, request);
    if (signal?.aborted) return yield { kind: "finish", result: received.interrupted() };
    const job = channel.submit(sent, events);
    let timer: ReturnType<typeof globalThis.setTimeout> | undefined;
    const abort = () => {
      job.cancel();
      const interrupted = () => {
        unresponsive = true;
        events.push({ kind: "finish", result: received.interrupted() });
      };
      timer ??= globalThis.setTimeout(interrupted, INTERRUPT_MS);
    };
    signal?.addEventListener("abort", abort);
    try {
      while (true) {
        const event = await events.next();
        if (event.kind === "error") throw event.error;
        received.add(event);
        yield event;
        if (event.kind === "finish") return;
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      job.leave();
    }
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
    generate,
    encodePrompt: (input, signal) => text.encode(input, signal),
    decode: (ids, signal) => text.decode(ids, signal),
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
