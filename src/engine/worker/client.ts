import type {
  ClientOptions,
  EngineClient,
  EngineFacts,
  EngineStatus,
  OpenClient,
  PromptInput,
} from "../client.ts";
import { type EventQueue, eventQueue } from "../event_queue.ts";
import type { EngineEvent, GenerateRequest } from "../events.ts";
import { type Bell, newBell } from "./bell.ts";
import { receivedError } from "./errors.ts";
import { interruptedResult, type Received, receive } from "./interrupted.ts";
import type { FromEngine, ToEngine } from "./messages.ts";

/** An abort is answered within this time, also while the device is in the middle of a round. */
export const INTERRUPT_MS = 100;

/** Opens engines in workers, whose module `url` calls `serveEngine`. */
export function engineInWorker(url: string | URL): OpenClient {
  return async (options) => {
    const channel = new Channel(url, options);
    const facts = await channel.opened;
    return new WorkerClient(channel, facts);
  };
}

/** Everything that waits for a message with an id. */
interface Waiting {
  readonly resolve: (message: FromEngine) => void;
  readonly reject: (error: Error) => void;
}

/** A worker and what it owes answers to. */
class Channel implements Disposable {
  readonly opened: Promise<EngineFacts>;
  readonly #worker: Worker;
  readonly #bell: Bell;
  readonly #waiting = new Map<number, Waiting>();
  readonly #streams = new Map<number, EventQueue<EngineEvent>>();
  #failure: Error | undefined;
  #id = 0;

  constructor(url: string | URL, options: ClientOptions) {
    const { signal, onProgress, onWarning, ...sent } = options;
    const { memory, bell } = newBell();
    this.#bell = bell;
    this.#worker = new Worker(url, { type: "module", name: "engine" });
    const { promise, resolve, reject } = Promise.withResolvers<EngineFacts>();
    this.opened = promise;
    const stop = () => this.#fail(signal?.reason as Error);
    signal?.addEventListener("abort", stop);
    this.#waiting.set(-1, {
      resolve: (message) => message.kind === "opened" && resolve(message.facts),
      reject,
    });
    promise.catch(() => this[Symbol.dispose]()).finally(() =>
      signal?.removeEventListener("abort", stop)
    );
    this.#worker.onmessage = ({ data }: MessageEvent<FromEngine>) => {
      if (data.kind === "progress") onProgress?.(data.progress);
      else if (data.kind === "warning") onWarning?.(data.line);
      else this.#receive(data);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(new Error(`the engine's thread ended: ${event.message}`));
    };
    if (signal?.aborted) stop();
    else this.#post({ kind: "open", options: sent, bell: memory });
  }

  #post(message: ToEngine): void {
    if (this.#failure) throw this.#failure;
    this.#bell.ring();
    this.#worker.postMessage(message);
  }

  #receive(message: FromEngine): void {
    switch (message.kind) {
      case "opened":
        return this.#settle(-1)?.resolve(message);
      case "not opened":
        return this.#settle(-1)?.reject(receivedError(message.error));
      case "encoded":
      case "status":
        return this.#settle(message.id)?.resolve(message);
      case "error": {
        const error = receivedError(message.error);
        this.#settle(message.id)?.reject(error);
        this.#streams.get(message.id)?.push({ kind: "error", error });
        return;
      }
      case "events":
        for (const [id, event] of message.events) this.#streams.get(id)?.push(event);
    }
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** Ends everything: the thread may be anywhere. */
  #fail(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(error);
    for (const stream of this.#streams.values()) stream.push({ kind: "error", error });
    this.#waiting.clear();
    this.#streams.clear();
  }

  /** Sends a message and waits for its answer. */
  ask(make: (id: number) => ToEngine): Promise<FromEngine> {
    const id = this.#id++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post(make(id));
    });
  }

  /** Submits a request whose events go into the queue until `leave` is called. */
  submit(
    request: Omit<GenerateRequest, "signal">,
    events: EventQueue<EngineEvent>,
  ): { cancel(): void; leave(): void } {
    const id = this.#id++;
    this.#streams.set(id, events);
    this.#post({ kind: "generate", id, request });
    return {
      cancel: () => this.#failure || this.#post({ kind: "cancel", id }),
      leave: () => void this.#streams.delete(id),
    };
  }

  [Symbol.dispose](): void {
    this.#fail(new Error("the engine is closed"));
  }
}

class WorkerClient implements EngineClient {
