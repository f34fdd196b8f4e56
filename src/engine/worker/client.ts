import { setTimeout } from "node:timers/promises";
import type { ClientOptions, EngineClient, OpenClient } from "../client.ts";
import { eventQueue } from "../schedule/event_queue.ts";
import type { EngineEvent, GenerateRequest } from "../schedule/events.ts";
import { Channel, type Opened } from "./channel.ts";
import { receive } from "./interrupted.ts";

/** An abort is answered within this time, also in the middle of a round or of a prompt. */
export const INTERRUPT_MS = 100;

/** How long the end of a round in flight is waited for when the engine is closed. */
const CLOSE_MS = 5000;

/** Nothing reports when an ended thread has given its device back: 200 ms were enough on an H200. */
const TEARDOWN_MS = 300;

/** Opens engines in workers, whose module `url` calls `serveEngine`. */
export function engineInWorker(url: string | URL): OpenClient {
  return async (options) => {
    const channel = new Channel(url, options);
    return client(channel, await channel.opened, () => new Channel(url, reopening(options)));
  };
}

/** The signal was for the first opening. */
function reopening({ signal: _, ...options }: ClientOptions): ClientOptions {
  return options;
}

/** @param reopen starts another thread, where the one before had to be ended. */
function client(first: Channel, { facts, status }: Opened, reopen: () => Channel): EngineClient {
  let channel = first;
  let restart = false;
  /** An abort was not answered in time. */
  let unresponsive = false;

  /** The engine's thread, which is opened again if an abort had to end it. */
  async function live(): Promise<Channel> {
    if (restart) {
      restart = false;
      channel = reopen();
    }
    await channel.opened;
    return channel;
  }

  async function* generate(request: GenerateRequest): AsyncGenerator<EngineEvent, void, void> {
    const { signal, ...sent } = request;
    const events = eventQueue<EngineEvent>();
    const received = receive(facts, request);
    if (signal?.aborted) return yield { kind: "finish", result: received.interrupted() };
    const job = (await live()).submit(sent, events);
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
    if (signal?.aborted) abort(); // while the thread was opened
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
    if (!unresponsive || !channel.busy) await channel.close(CLOSE_MS);
  }

  return {
    ...facts,
    get status() {
      return channel.status ?? status;
    },
    generate,
    async encodePrompt(input, signal) {
      const current = await live();
      const stop = () => {
        // Nothing else keeps the thread busy: the template does not end, so the thread must.
        restart = !current.busy;
        if (restart) current.end(signal?.reason as Error);
      };
      return await unlessAborted(current.encode(input), signal, stop);
    },
    decode: async (ids) => await (await live()).decode(ids),
    ping: async (signal) => {
      signal?.throwIfAborted();
      return await unlessAborted((await live()).ping(), signal, () => {});
    },
    readStatus: async () => await (await live()).readStatus(),
    async terminate() {
      await close();
      channel.end(new Error("the engine is closed"));
      await setTimeout(TEARDOWN_MS);
    },
    [Symbol.asyncDispose]: close,
  };
}

/** The promise's value; throws the signal's reason, after calling `stop`, if it aborts first. */
async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  stop: () => void,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => {
    reject(signal?.reason);
    stop();
  };
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
