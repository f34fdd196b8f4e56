import { asError } from "../../errors.ts";
import type { EngineInfo, EngineStatus } from "../engine.ts";
import type { EngineOptions } from "../options.ts";
import type { EngineEvent, GenerateRequest } from "../schedule/events.ts";
import { type SentMessages, sentMessages } from "./message_counter.ts";
import { receivedError } from "./errors.ts";
import type { FromEngine, ToEngine } from "./messages.ts";

export interface OpenedEngine {
  readonly info: EngineInfo;
  readonly status: EngineStatus;
}

interface Answer {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A worker with an engine, and the questions and requests that wait for its answers. */
export class Channel {
  readonly opened: Promise<OpenedEngine>;
  readonly #worker: Worker;
  readonly #sent: SentMessages = sentMessages();
  /** Questions that were not answered yet. */
  readonly #asked = new Map<number, Answer>();
  /** Receivers of the events of requests that have not ended. */
  readonly #requests = new Map<number, (event: EngineEvent) => void>();
  readonly #opening: PromiseWithResolvers<OpenedEngine> = Promise.withResolvers();
  #failure: Error | undefined;
  #status: EngineStatus | undefined;
  /** Resolves once the thread is idle or has ended. */
  #closing: PromiseWithResolvers<void> | undefined;
  #id = 0;

  /** Starts the worker `url`, whose module calls `serveThread`. */
  constructor(url: string | URL, { hooks = {}, ...options }: EngineOptions) {
    const { signal, onProgress, onWarning } = hooks;
    this.opened = this.#opening.promise;
    this.#worker = new Worker(url, { type: "module", name: "engine" });
    this.#worker.onmessage = ({ data }: MessageEvent<FromEngine>) => {
      try {
        // What is sent before the module has run is lost.
        if (data.kind === "ready") this.#post({ kind: "open", options, sent: this.#sent.memory });
        else if (data.kind === "progress") onProgress?.(data.progress);
        else if (data.kind === "warning") onWarning?.(data.line);
        else this.#receive(data);
      } catch (error) {
        // Options that cannot be copied, or a hook that throws: as in the engine's own thread.
        this.end(asError(error));
      }
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.end(new Error(`the engine's thread ended: ${event.message}`));
    };
    const stop = () => this.end(signal?.reason as Error);
    const settled = () => signal?.removeEventListener("abort", stop);
    this.opened.then(settled, settled);
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
  }

  /** Why there is no engine any more. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** The status when the last request ended. */
  get status(): EngineStatus | undefined {
    return this.#status;
  }

  /** Whether requests are in flight. */
  get busy(): boolean {
    return this.#requests.size > 0;
  }

  readStatus(): Promise<EngineStatus> {
    return this.#ask((id) => ({ kind: "read status", id }));
  }

  /** Resolves once the thread has read the message, to the milliseconds that it took. */
  async ping(): Promise<number> {
    const sent = performance.now();
    await this.#ask((id) => ({ kind: "ping", id }));
    return performance.now() - sent;
  }

  /** @param question whose answer has a value of type T. */
  #ask<T>(question: (id: number) => ToEngine): Promise<T> {
    const id = this.#id++;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    // Posted first: it throws where the thread has ended, and nothing would answer.
    this.#post(question(id));
    this.#asked.set(id, { resolve: (value) => resolve(value as T), reject });
    return promise;
  }

  /** Submits a request: its events are pushed until the last one. */
  submit(
    request: Omit<GenerateRequest, "signal">,
    push: (event: EngineEvent) => void,
  ): { readonly cancel: () => void } {
    const id = this.#id++;
    const refused = this.#failure ?? (this.#closing && new Error("the engine is closed"));
    if (refused) push({ kind: "error", error: refused });
    else {
      this.#post({ kind: "submit", id, request });
      this.#requests.set(id, push);
    }
    return {
      cancel: () => {
        if (this.#requests.has(id)) this.#post({ kind: "cancel", id });
      },
    };
  }

  /** Stops the engine, which takes no more requests; resolves once its thread is idle or has ended, or after `ms`. */
  async close(ms: number): Promise<void> {
    if (this.#failure) return;
    if (this.#closing === undefined) {
      this.#closing = Promise.withResolvers();
      this.#post({ kind: "close" });
    }
    const { promise, resolve } = this.#closing;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }

  /** Ends the thread, wherever it is; everything that waits gets the error. */
  end(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#worker.terminate();
    this.#opening.reject(error);
    this.#closing?.resolve();
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
    for (const id of [...this.#requests.keys()]) this.#pass(id, { kind: "error", error });
  }

  #post(message: ToEngine): void {
    if (this.#failure) throw this.#failure;
    this.#worker.postMessage(message);
    // Only now: what cannot be copied throws and is not sent, and the thread would look for it for ever.
    this.#sent.count();
  }

  #receive(message: Exclude<FromEngine, { kind: "ready" | "progress" | "warning" }>): void {
    switch (message.kind) {
      case "opened":
        this.#status = message.status;
        return this.#opening.resolve(message);
      case "closed":
        return this.#closing?.resolve();
      case "not opened":
        return this.end(receivedError(message.error));
      case "status read":
      case "pong":
        this.#asked.get(message.id)?.resolve(message.value);
        return void this.#asked.delete(message.id);
      case "error":
        return this.#fail(message.id, receivedError(message.error));
      case "events":
        this.#status = message.status ?? this.#status;
        for (const [id, event] of message.events) this.#pass(id, event);
    }
  }

  /** Where a listener throws, its request ends with that error, as in the engine's own thread; the others go on. */
  #pass(id: number, event: EngineEvent): void {
    const push = this.#requests.get(id);
    const isLast = event.kind === "finish" || event.kind === "error";
    if (isLast) this.#requests.delete(id);
    try {
      push?.(event);
    } catch (thrown) {
      if (isLast) return;
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      if (!this.#failure) this.#post({ kind: "cancel", id });
      this.#pass(id, { kind: "error", error });
    }
  }

  #fail(id: number, error: Error): void {
    this.#asked.get(id)?.reject(error);
    this.#asked.delete(id);
    this.#pass(id, { kind: "error", error });
  }
}
