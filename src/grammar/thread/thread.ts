import type { Grammar } from "../rules/grammar.ts";
import { type Answer, type Call, LEAVE, Mailbox, mailboxMemory } from "./mailbox.ts";
import {
  type FromGrammars,
  GRAMMAR_THREAD,
  type SharedVocabulary,
  type ToGrammars,
} from "./messages.ts";

/**
 * The time after which an unanswered call fails, because the grammar's masks take too long. The slowest known call
 * takes 64 rows of 100 ms.
 */
const CALL_MS = 10_000;

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
  #ready: Promise<unknown>;

  constructor(vocabulary: SharedVocabulary) {
    this.#words = Math.ceil(vocabulary.vocabSize / 32);
    const memory = mailboxMemory(this.#words);
    this.#mailbox = new Mailbox(memory);
    this.#worker = new Worker(moduleUrl(), { type: "module", name: GRAMMAR_THREAD });
    this.#worker.onmessage = ({ data }: MessageEvent<FromGrammars>) => {
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
    if (this.live > 0) this.call({ command: LEAVE, handle: 0 });
    if (this.#failure) throw this.#failure;
    this.#answered = Promise.withResolvers();
    this.#mailbox.interrupted = false;
    this.#worker.postMessage({ kind: "open", grammar, ignoreEos } satisfies ToGrammars);
    return await this.#answered.promise;
  }

  /** Lets `open` fail soon, so that the thread can open something else. */
  interrupt(): void {
    this.#mailbox.interrupted = true;
  }

  /** @throws Error as the thread reports it, or where it does not answer. */
  call(call: Call): Answer {
    if (this.#failure) throw this.#failure;
    const answer = this.#mailbox.call(call, CALL_MS);
    if (answer) return answer;
    this.end(new Error(`its next tokens are not found in ${CALL_MS / 1000} s`));
    throw this.#failure;
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
  }
}

/** main.ts, which serves grammars in a worker of this name; or the one file of a bundle. */
function moduleUrl(): string {
  const { url } = import.meta;
  return url.endsWith("/src/grammar/thread/thread.ts")
    ? new URL("../../../main.ts", url).href
    : url;
}
