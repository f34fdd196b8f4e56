import type { EngineEvent } from "./events.ts";

/**
 * The events of one request, in order: the last one is "finish" or "error". The engine pushes them. One reader takes
 * them, either with `listen`, as they are pushed and so before the next round begins, or with `for await`, later:
 * events that were not read yet are kept. Iterating throws the error of an "error" event. Leaving the iteration before
 * its end cancels the request and waits until it has ended.
 */
export class EventStream implements AsyncIterableIterator<EngineEvent, void, void> {
  readonly #cancel: () => void;
  readonly #over: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Pushed and not read; those before `#at` have been read. */
  #events: EngineEvent[] = [];
  #at = 0;
  #ended = false;
  #listener: ((event: EngineEvent) => unknown) | undefined;
  /** Resolves with the next event. */
  #pushed: PromiseWithResolvers<void> = Promise.withResolvers();

  /** @param cancel ends the request with reason "interrupt"; its last event is still pushed. */
  constructor(cancel: () => void) {
    this.#cancel = cancel;
  }

  /** The last event was pushed. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Passes an event on; events after the last one are dropped. Returns or throws what the listener does. */
  push(event: EngineEvent): unknown {
    if (this.#ended) return undefined;
    const last = event.kind === "finish" || event.kind === "error";
    try {
      return this.#listener ? this.#listener(event) : this.#events.push(event);
    } finally {
      if (last) {
        this.#ended = true;
        this.#over.resolve();
      }
      this.#pushed.resolve();
      this.#pushed = Promise.withResolvers();
    }
  }

  /** Calls the listener for each event that was pushed and for each that will be. */
  listen(listener: (event: EngineEvent) => unknown): void {
    // What the listener itself pushes meanwhile comes after what was pushed before.
    while (this.#at < this.#events.length) listener(this.#events[this.#at++] as EngineEvent);
    this.#events.length = this.#at = 0;
    this.#listener = listener;
  }

  /** Ends the request with reason "interrupt", unless it has ended. */
  cancel(): void {
    if (!this.#ended) this.#cancel();
  }

  async next(): Promise<IteratorResult<EngineEvent, void>> {
    while (this.#at === this.#events.length) {
      if (this.#ended) return { done: true, value: undefined };
      await this.#pushed.promise;
    }
    const event = this.#events[this.#at++] as EngineEvent;
    if (this.#at === this.#events.length) this.#events.length = this.#at = 0;
    if (event.kind === "error") throw event.error;
    return { done: false, value: event };
  }

  async return(): Promise<IteratorResult<EngineEvent, void>> {
    this.listen(() => {});
    this.cancel();
    await this.#over.promise;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
