import type { Grammar } from "../rules/grammar.ts";
import { type Answer, type Call, LEAVE, Mailbox, mailboxMemory } from "./mailbox.ts";
import {
  type FromGrammars,
  GRAMMAR_THREAD,
  type SharedVocabulary,
  type ToGrammars,
} from "./messages.ts";

/** The time after which an unanswered call fails that nobody else waits for: the one mask takes too long. */
const LATER_MS = 10_000;

/** The same for calls that all requests wait for. The slowest known call takes 64 rows of 60 ms. */
const CALL_MS = 5000;

/** For so long all requests wait for the answer to `callLater`, while the thread is not slow and while it is. */
const SOON_MS = { quick: 20, slow: 1 } as const;

/** A thread is slow after more late answers than one, until about so many were not late. */
const SLOW = { late: 8, max: 32 } as const;

/** A worker that compiles and matches grammars. */
export class GrammarThread {
  /** Texts that are compiled here, the least recently used first. */
  readonly texts: Set<string> = new Set();
  /** A text is being opened. */
  busy: string | undefined;
  /** Open constraints: they are all of one text. */
  live = 0;
  liveText: string | undefined;
  #failure: Error | undefined;
  readonly #worker: Worker;
  readonly #mailbox: Mailbox;
  readonly #words: number;
  #answered: PromiseWithResolvers<FromGrammars> = Promise.withResolvers();
  /** Resolves when the call that was not answered soon is answered. */
  #called: PromiseWithResolvers<void> | undefined;
  #waiting: Promise<void> | undefined;
  /** Resolves when the text that is being opened is open: calls are answered only then. */
  #opening: Promise<void> | undefined;
  /** Each late answer adds `SLOW.late`, any other takes 1 off. */
  #lateness = 0;
  #ready: Promise<unknown>;

  constructor(vocabulary: SharedVocabulary) {
    this.#words = Math.ceil(vocabulary.vocabSize / 32);
    const memory = mailboxMemory(this.#words);
    this.#mailbox = new Mailbox(memory);
    this.#worker = new Worker(moduleUrl(), { type: "module", name: GRAMMAR_THREAD });
    this.#worker.onmessage = ({ data }: MessageEvent<FromGrammars>) => {
      if (data.kind === "called") return this.#called?.resolve();
      if (data.kind !== "started") return this.#answered.resolve(data);
      this.#worker.postMessage(
        { kind: "vocabulary", vocabulary, mailbox: memory } satisfies ToGrammars,
      );
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.end(new Error(`its thread ended: ${event.message}`));
    };
    this.#ready = this.#answered.promise;
    this.#ready.catch(() => {});
  }

  /** Why there is no such thread any more. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Resolves when the thread can compile. @throws Error where it ended instead. */
  async ready(): Promise<void> {
    await this.#ready;
  }

  /** Opens a constraint in the thread, which does nothing else meanwhile. */
  async open(grammar: Grammar, ignoreEos: boolean): Promise<FromGrammars> {
    while (this.#waiting) await this.#waiting;
    if (this.live > 0) this.call({ command: LEAVE, handle: 0 });
    else this.#lateness = 0;
    if (this.#failure) throw this.#failure;
    this.#answered = Promise.withResolvers();
    this.#mailbox.interrupted = false;
    this.#worker.postMessage({ kind: "open", grammar, ignoreEos } satisfies ToGrammars);
    const answered = this.#answered.promise;
    this.#opening = answered.then(() => {}, () => {}).then(() => {
      this.#opening = undefined;
    });
    return await answered;
  }

  /** Lets `open` fail soon, so that the thread can open something else. */
  interrupt(): void {
    this.#mailbox.interrupted = true;
  }

  /** @throws Error as the thread reports it, or where it does not answer. */
  call(call: Call): Answer {
    if (this.#waiting) throw new Error("the thread answers another call");
    const answer = this.#begin(call, CALL_MS);
    if (answer) return answer;
    throw this.#late(CALL_MS);
  }

  /** Resolves when a call is answered soon; undefined: now. Opening takes as long as the first mask. */
  get waiting(): Promise<void> | undefined {
    return this.#waiting ?? (this.slow ? this.#opening : undefined);
  }

  /** Whether answers were late lately, and not once only. */
  get slow(): boolean {
    return this.#lateness > SLOW.late;
  }

  /**
   * Like `call`, but if the answer is not there soon, or other calls are not answered yet, returns a promise of it:
   * `waiting` resolves then.
   */
  callLater(call: Call): Answer | Promise<Answer> {
    if (this.#waiting === undefined) {
      const answer = this.#begin(call, this.slow ? SOON_MS.slow : SOON_MS.quick);
      const lateness = this.#lateness + (answer ? -1 : SLOW.late);
      this.#lateness = Math.min(Math.max(0, lateness), SLOW.max);
      if (answer) return answer;
    }
    const promise = this.#waiting
      ? this.#waiting.then(() => this.#begin(call, 0) ?? this.#answerLater())
      : this.#answerLater();
    const waiting = promise.then(() => {}, () => {}).then(() => {
      if (this.#waiting === waiting) this.#waiting = undefined;
    });
    this.#waiting = waiting;
    return promise;
  }

  #begin(call: Call, ms: number): Answer | undefined {
    if (this.#failure) throw this.#failure;
    this.#mailbox.begin(call);
    return this.#mailbox.answer(ms);
  }

  async #answerLater(): Promise<Answer> {
    for (let answer: Answer | undefined;; answer = this.#mailbox.answer(0)) {
      if (answer) return answer;
      this.#called = Promise.withResolvers();
      if (!this.#mailbox.announced()) continue;
      const timer = setTimeout(() => this.#late(LATER_MS), LATER_MS);
      try {
        await this.#called.promise;
      } finally {
        clearTimeout(timer);
      }
    }
  }

  #late(ms: number): Error {
    const error = new Error(`its next tokens are not found in ${ms / 1000} s`);
    this.end(error);
    return error;
  }

  /** Masks of the rows of the last FILL, u32 [rows, words of a mask]. */
  masks(rows: number): Uint32Array {
    return this.#mailbox.masks.subarray(0, rows * this.#words);
  }

  /**
   * Ends the thread: its calls fail from now on. A worker that is terminated inside of a loop goes on, and takes a
   * core, until it leaves that loop, so it is interrupted too.
   */
  end(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.interrupt();
    this.#worker.terminate();
    this.#answered.promise.catch(() => {});
    this.#answered.reject(error);
    this.#called?.promise.catch(() => {});
    this.#called?.reject(error);
  }
}

/** main.ts, which serves grammars in a worker of this name; or the one file of a bundle. */
function moduleUrl(): string {
  const { url } = import.meta;
  return url.endsWith("/src/grammar/thread/thread.ts")
    ? new URL("../../../main.ts", url).href
    : url;
}
