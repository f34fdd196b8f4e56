import type { TokenPiece } from "../load/text.ts";
import { receivedError } from "./errors.ts";
import type { ModelOptions } from "../options.ts";
import type { FromText, TextAnswer, TextQuestion, ToText } from "./text_messages.ts";

interface PendingQuestion {
  readonly question: TextQuestion;
  readonly resolve: (value: TextAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** Milliseconds for which a thread may continue with a question that nothing waits for. */
const ABANDONED_MS = 100;

/** The name of a text thread's worker. */
export const TEXT_THREAD = "text";

/**
 * A thread, separate from the engine's, that renders templates and tokenizes, so that neither a long prompt nor a
 * template keeps the engine from its rounds. It takes one question at a time; the others wait here. A thread that still
 * works on an aborted question after ABANDONED_MS is ended and replaced.
 */
export class TextThread {
  readonly #url: string | URL;
  readonly #model: ModelOptions;
  readonly #waiting: PendingQuestion[] = [];
  #worker: Worker | undefined;
  /** The thread has opened the checkpoint's text and takes questions. */
  #ready = false;
  #current: PendingQuestion | undefined;
  #failure: Error | undefined;

  /** @param url a module that calls `serveText` in a worker named `TEXT_THREAD`. */
  constructor(url: string | URL, model: ModelOptions = {}) {
    this.#url = url;
    this.#model = model;
    this.#start();
  }

  /** @throws the error that answers the question, or the signal's reason if it aborts first. */
  async encode(
    input: Extract<TextQuestion, { kind: "encode" }>["input"],
    signal?: AbortSignal,
  ): Promise<readonly number[]> {
    return await this.#ask({ kind: "encode", input }, signal) as readonly number[];
  }

  async decode(ids: readonly number[], signal?: AbortSignal): Promise<string> {
    return await this.#ask({ kind: "decode", ids }, signal) as string;
  }

  async pieces(ids: readonly number[], signal?: AbortSignal): Promise<readonly TokenPiece[]> {
    return await this.#ask({ kind: "pieces", ids }, signal) as readonly TokenPiece[];
  }

  /** Ends the thread; everything that waits gets the error. */
  end(error: Error): void {
    this.#failure ??= error;
    this.#stop();
    const asked = [...this.#current ? [this.#current] : [], ...this.#waiting.splice(0)];
    this.#current = undefined;
    for (const { reject } of asked) reject(error);
  }

  async #ask(
    question: TextQuestion,
    signal: AbortSignal | undefined,
  ): Promise<TextAnswer> {
    signal?.throwIfAborted();
    if (this.#failure) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<TextAnswer>();
    const asked: PendingQuestion = { question, resolve, reject };
    const abort = () => {
      reject(signal?.reason);
      this.#abandon(asked);
    };
    signal?.addEventListener("abort", abort);
    this.#waiting.push(asked);
    this.#next();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  #abandon(asked: PendingQuestion): void {
    const at = this.#waiting.indexOf(asked);
    if (at >= 0) this.#waiting.splice(at, 1);
    if (asked !== this.#current) return;
    setTimeout(() => {
      if (asked === this.#current) this.#start();
    }, ABANDONED_MS);
  }

  #start(): void {
    if (this.#failure) return;
    this.#stop();
    this.#current = undefined;
    const worker = new Worker(this.#url, { type: "module", name: TEXT_THREAD });
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<FromText>) => {
      if (worker === this.#worker) this.#receive(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker !== this.#worker) return;
      // Whatever was asked is not asked again: it may be what ended the thread.
      this.#stop();
      const error = new Error(`the text thread ended: ${event.message}`);
      if (!this.#current) return this.end(error);
      this.#current.reject(error);
      this.#start();
    };
  }

  #stop(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#ready = false;
  }

  #receive(message: FromText): void {
    if (message.kind === "ready") return this.#post({ kind: "open text", model: this.#model });
    // Questions wait here until then: an aborted one does not end the thread while it opens the text.
    if (message.kind === "opened") this.#ready = true;
    else {
      const asked = this.#current;
      this.#current = undefined;
      if (message.kind === "answer") asked?.resolve(message.value);
      else asked?.reject(receivedError(message.error));
    }
    this.#next();
  }

  #next(): void {
    if (!this.#ready || this.#current) return;
    const asked = this.#waiting.shift();
    if (asked === undefined) return;
    try {
      this.#post({ kind: "ask", question: asked.question });
      this.#current = asked;
    } catch (error) {
      // It cannot be copied, and was not sent.
      asked.reject(error as Error);
      this.#next();
    }
  }

  #post(message: ToText): void {
    this.#worker?.postMessage(message);
  }
}
