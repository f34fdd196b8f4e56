import { UsageError } from "../../errors.ts";
import type { Constraint } from "../constraint.ts";
import { grammarFault } from "../fault.ts";
import { type Grammars, KEPT, type Vocabulary } from "../grammars.ts";
import type { Grammar } from "../rules/grammar.ts";
import { CLOSE } from "./mailbox.ts";
import type { SharedVocabulary } from "./messages.ts";
import { remoteConstraint } from "./remote_constraint.ts";
import { GrammarThread } from "./thread.ts";
import { sharedVocabulary } from "./vocabulary.ts";

/** Each has its own copy of the vocabulary's tables: some 30 MB for 150,000 tokens. */
const MAX_THREADS = 8;

/** A grammar takes this long to compile at most. */
const COMPILE_MS = 10_000;

/** Characters of a grammar, written as JSON. */
const MAX_CHARACTERS = 1_000_000;

/** The number of too large grammars that are remembered by their text and refused at once. */
const REFUSED = 32;

interface ConstraintRequest {
  readonly key: string;
  readonly grammar: Grammar;
  readonly ignoreEos: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Compiles and matches grammars in worker threads. All constraints that are open in one thread at a time have the
 * same grammar text. So ending a thread fails no other grammar's constraints, and a thread that compiles delays none.
 * If more texts are open than there are threads, the others wait for a free thread.
 *
 * @param limits.compileMs how long a grammar may take to compile.
 */
export function openGrammarThreads(
  vocabulary: Vocabulary,
  { compileMs = COMPILE_MS, threads: max = MAX_THREADS }: {
    readonly compileMs?: number;
    readonly threads?: number;
  } = {},
): Grammars {
  let shared: SharedVocabulary | undefined;
  let closed = false;
  /** The least recently used first. */
  const threads: GrammarThread[] = [];
  const refused = new Map<string, string>();
  let change = Promise.withResolvers<void>();

  function changed(): void {
    change.resolve();
    change = Promise.withResolvers();
  }

  function end(thread: GrammarThread, error: Error): void {
    thread.end(error);
    const at = threads.indexOf(thread);
    if (at >= 0) threads.splice(at, 1);
    changed();
  }

  /** The thread to open a text in; undefined where one has to be waited for. */
  function threadFor(key: string): GrammarThread | undefined {
    for (const thread of threads.filter(({ failure }) => failure)) {
      end(thread, thread.failure as Error);
    }
    if (threads.some(({ busy }) => busy === key)) return undefined;
    const free = threads.filter(({ busy, live, liveText }) =>
      busy === undefined && (live === 0 || liveText === key)
    );
    const found = free.find(({ texts }) => texts.has(key)) ?? free[0];
    if (found) {
      threads.splice(threads.indexOf(found), 1);
      threads.push(found);
      return found;
    }
    if (threads.length >= max) return undefined;
    const made = new GrammarThread(shared ??= sharedVocabulary(vocabulary));
    threads.push(made);
    return made;
  }

  /**
   * Opens a text in a thread. The request may be aborted before the constraint is ready. The thread then
   * compiles on, for at most the time that it has, and keeps the compiled grammar.
   */
  function openIn(thread: GrammarThread, { key, grammar, ignoreEos, signal }: ConstraintRequest) {
    const { promise, resolve, reject } = Promise.withResolvers<Constraint>();
    const abort = () => reject(signal?.reason);
    let waits = true;
    signal?.addEventListener("abort", abort);
    promise.catch(() => {}).finally(() => {
      waits = false;
      signal?.removeEventListener("abort", abort);
    });
    thread.busy = key;
    const run = async () => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      try {
        await thread.ready();
        timer = setTimeout(() => {
          const message = "Cannot constrain the output: its grammar takes more than " +
            `${compileMs / 1000} s to compile; smaller bounds, fewer properties or fewer ` +
            "alternatives take less";
          refuse(key, message);
          reject(new UsageError(message));
          // A thread with open constraints has compiled this text: it is finding what may follow in one of them.
          if (thread.live === 0) thread.interrupt();
          changed();
        }, compileMs);
        const answer = await thread.open(grammar, ignoreEos);
        if (answer.kind === "refused") throw new UsageError(answer.message);
        if (answer.kind !== "opened") throw new Error(`"${answer.kind}" after "open"`);
        keep(thread, key);
        const { handle, complete } = answer;
        if (!waits) return void await thread.callLater({ command: CLOSE, handle });
        thread.live++;
        thread.liveText = key;
        const leave = () => {
          thread.live--;
          changed();
        };
        resolve(remoteConstraint(thread, { handle, complete, closed: leave }));
      } catch (error) {
        reject(error);
      } finally {
        clearTimeout(timer);
        thread.busy = undefined;
        changed();
      }
    };
    void run();
    return promise;
  }

  function keep({ texts }: GrammarThread, key: string): void {
    texts.delete(key);
    texts.add(key);
    const [oldest] = texts;
    if (texts.size > KEPT && oldest !== undefined) texts.delete(oldest);
  }

  function refuse(key: string, message: string): void {
    refused.set(key, message);
    const [oldest] = refused.keys();
    if (refused.size > REFUSED && oldest !== undefined) refused.delete(oldest);
  }

  async function open(asked: ConstraintRequest): Promise<Constraint> {
    const { key, signal } = asked;
    while (true) {
      signal?.throwIfAborted();
      if (closed) throw new Error("the engine is closed");
      const known = refused.get(key);
      if (known !== undefined) throw new UsageError(known);
      const thread = threadFor(key);
      if (thread) return await openIn(thread, asked);
      await orAborted(change.promise, signal);
    }
  }

  return {
    async open(grammar, { ignoreEos, signal }) {
      const key = JSON.stringify(grammar);
      if (key.length > MAX_CHARACTERS) {
        throw new UsageError(
          `Cannot constrain the output: its grammar has ${key.length} characters, of at most ` +
            `${MAX_CHARACTERS}`,
        );
      }
      try {
        return await open({ key, grammar, ignoreEos, signal });
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        throw grammarFault(error);
      }
    },
    close() {
      closed = true;
      for (const thread of [...threads]) end(thread, new Error("the engine is closed"));
    },
  };
}

/** Waits for a promise that never rejects, or until the signal aborts. */
async function orAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return await promise;
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const abort = () => resolve();
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  await Promise.race([promise, aborted]);
  signal.removeEventListener("abort", abort);
}
