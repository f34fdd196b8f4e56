import type { HostDrafter } from "../../draft/host_drafter.ts";
import { asError, UsageError } from "../../errors.ts";
import { grammarFault } from "../../grammar/fault.ts";
import type { Grammars } from "../../grammar/grammars.ts";
import type { Runner } from "../device/runner.ts";
import { newSequence, rewind, storesAnswer } from "../device/sequence.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { type Failure, openOutput, type OutputConfig, type RoundOutput } from "./output.ts";
import type { RunQueue } from "./run_queue.ts";
import { type RequestState, tellPrefill, waitsForGrammar } from "./request_state.ts";
import { requestDrafter } from "./rounds/proposing.ts";
import type { SequencePages } from "./sequence_pages.ts";
import type { Coroutine } from "./coroutine.ts";

/**
 * The requests in flight: how they come in, get tokens and end.
 *
 * Here is the boundary between a request and the engine: what belongs to one request (grammar, host
 * drafter, detokenizer, stop texts, sampling, callback) runs in `attempt`, and an error in it ends
 * that request alone.
 */
export interface Requests {
  /** The next one to be admitted comes first. */
  readonly waiting: readonly RequestState[];
  /** In the order they were admitted. */
  readonly running: readonly RequestState[];
  /** Takes a request that was checked. */
  enqueue(request: GenerateRequest, onEvent: (event: EngineEvent) => void): RequestState;
  /**
   * Handles what happened since the last call: tokens whose next mask is ready, requests that were cancelled or
   * aborted, and those that failed during the last round.
   */
  endCancelled(): void;
  /**
   * Admits waiting requests until those that run and do not wait for their grammars have at least `rows` prompt tokens
   * left to store. If no request runs and none can be admitted, it waits until a grammar is open, a request arrives or
   * one is cancelled. Returns false if there is nothing to wait for.
   */
  admit(rows: number): Coroutine<boolean>;
  /** If all running requests wait for their grammars, waits until one of them need not, or something else changed. */
  awaitGrammars(): Coroutine<void>;
  /** Ends a request before the next round. */
  cancel(state: RequestState): void;
  /** Gives tokens to a request, which may end it: at once, or when its grammar has found what may follow them. */
  take(state: RequestState, taken: RoundOutput): void;
  /**
   * Runs code of one request. Whatever it throws ends the request with that error: its slot and pages are freed, and
   * the other requests continue. Does nothing for a request that has ended.
   */
  attempt(state: RequestState, action: () => void): void;
  /** Ends every request with this error. */
  fail(error: Error): void;
}

interface Parts {
  readonly runner: Pick<Runner, "setSampling" | "promptKernels">;
  readonly pages: Pick<SequencePages, "share" | "close">;
  readonly runQueue: RunQueue<RequestState>;
  readonly outputs: OutputConfig;
  readonly drafter: HostDrafter | undefined;
  readonly grammars: Grammars | undefined;
  readonly clock: () => number;
}

export function openRequests(
  { runner, pages, runQueue, outputs, drafter, grammars, clock }: Parts,
): Requests {
  const { waiting, running } = runQueue;
  let submitted = 0;

  /**
   * Gives slot and pages back; what is stored stays cached unless the request failed.
   *
   * @returns what closing its grammar or drafter threw.
   */
  function leave(state: RequestState, { failed = false } = {}): Failure | undefined {
    const { sequence, request, output, decoding } = state;
    state.done = true;
    const { stored } = sequence;
    // Tokens that the device chose after the request had ended are dropped.
    sequence.ids.length = request.promptIds.length + output.tokens;
    rewind(sequence, sequence.ids.length);
    if (runQueue.remove(state)) {
      // An answer's pages are of no use to prompts with kernels of their own; those of the prompt are shared already.
      if (!failed && !storesAnswer(sequence)) {
        pages.share(sequence, decoding, stored - sequence.stored);
      }
      pages.close(sequence);
    }
    return closed(state);
  }

  function finish(state: RequestState): void {
    const ended = clock();
    const { started, admitted = ended, cached = 0, prefilled = ended } = state;
    const { sequence, compileMs } = state;
    const failure = leave(state);
    try {
      if (failure) throw failure.thrown;
      const ids = sequence.ids.slice(state.request.promptIds.length);
      const times = { started, admitted, prefilled, compileMs, ended };
      for (const event of state.output.end({ ...times, cached, ids })) state.onEvent(event);
    } catch (error) {
      endWithError(state, error);
    }
  }

  /** Ends a request with what its own code threw, unless it has ended already. */
  function fault(state: RequestState, thrown: unknown): void {
    if (state.done) return;
    leave(state, { failed: true });
    endWithError(state, thrown);
  }

  function attempt(state: RequestState, action: () => void): void {
    if (state.done) return;
    try {
      action();
    } catch (error) {
      fault(state, error);
    }
  }

  /** Requests whose grammars are being opened in other threads. */
  const opening = new Map<RequestState, AbortController>();
  /** Results of opening grammars, which the next step handles. */
  const opened: { readonly state: RequestState; readonly error?: unknown }[] = [];
  let wake = Promise.withResolvers<void>();
  /** Resolves with the first change since `endCancelled` last looked. */
  let changed = wake.promise;

  function woken(): void {
    wake.resolve();
    wake = Promise.withResolvers();
  }

  async function openGrammar(state: RequestState): Promise<void> {
    const { request: { grammar, ignoreEos, signal: asked } } = state;
    const stop = new AbortController();
    const signal = asked ? AbortSignal.any([asked, stop.signal]) : stop.signal;
    opening.set(state, stop);
    try {
      if (!grammars) throw new UsageError("Cannot constrain the output: there are no grammars");
      const constraint = grammar && await grammars.open(grammar, { ignoreEos, signal });
      if (state.done) constraint?.close();
      else state.constraint = constraint;
      opened.push({ state });
    } catch (error) {
      opened.push({ state, error: grammarFault(error) });
    }
    woken();
  }

  /** Requests whose grammars are open join the queue; the others end with the error. */
  function enqueueOpened(): void {
    for (const { state, error } of opened.splice(0)) {
      // A request that is no longer in `opening` has ended meanwhile.
      if (!opening.delete(state)) continue;
      if (isCancelled(state)) finish(state);
      else if (error === undefined) runQueue.enqueue(state);
      else fault(state, error);
    }
  }

  function isCancelled({ cancelled, request: { signal } }: RequestState): boolean {
    return cancelled || (signal?.aborted ?? false);
  }

  /** Tokens whose grammars have found what may follow them. */
  const advanced: { readonly state: RequestState; readonly taken: RoundOutput }[] = [];

  function take(state: RequestState, taken: RoundOutput): void {
    attempt(state, () => {
      if (state.failure) throw state.failure.thrown;
      for (const event of state.output.take(taken, state.constraint)) state.onEvent(event);
      if (state.output.failure) throw state.output.failure.thrown;
      // A callback may have closed the engine.
      if (state.output.finished && !state.done) finish(state);
    });
  }

  function endCancelled(): void {
    changed = wake.promise;
    for (const { state, taken } of advanced.splice(0)) {
      state.awaitsGrammar = false;
      take(state, taken);
    }
    enqueueOpened();
    for (const state of [...waiting, ...running, ...opening.keys()]) {
      const { failure } = state;
      if (failure === undefined && !isCancelled(state)) continue;
      opening.get(state)?.abort();
      opening.delete(state);
      if (failure) fault(state, failure.thrown);
      else finish(state);
    }
  }

  /** Prompt tokens of the running requests that the next forward may store. */
  function promptTokens(): number {
    return running.filter((state) => !state.decoding && !waitsForGrammar(state))
      .reduce((sum, { sequence: { ids, stored } }) => sum + ids.length - stored, 0);
  }

  function begin(state: RequestState): void {
    const { sequence, output, request: { sampling, ignoreEos, promptIds } } = state;
    state.admitted ??= clock();
    const ends = {
      stopIds: ignoreEos ? [] : outputs.eosTokenIds,
      maxTokens: sequence.ids.length + output.left,
    };
    attempt(state, () => {
      runner.setSampling(sequence, sampling, ends, promptIds.length);
      state.cached ??= state.sequence.stored;
      tellPrefill(state);
    });
  }

  return {
    waiting,
    running,
    enqueue(request, onEvent) {
      const state: RequestState = {
        id: submitted++,
        request,
        sequence: {
          ...newSequence(request.promptIds),
          ...runner.promptKernels && { promptTokens: request.promptIds.length },
        },
        output: openOutput(outputs, request),
        onEvent: untilLast(onEvent, (failure) => void (state.failure ??= failure)),
        constraint: undefined,
        started: clock(),
        admitted: undefined,
        prefilled: undefined,
        compileMs: 0,
        decoding: false,
        cached: undefined,
        cancelled: false,
        awaitsGrammar: false,
        failure: undefined,
        done: false,
        draftHistory: { depth: undefined, accepted: [] },
        drafter: requestDrafter(drafter, request),
      };
      if (request.grammar) void openGrammar(state);
      else runQueue.enqueue(state);
      woken();
      return state;
    },
    endCancelled,
    *admit(rows) {
      while (true) {
        endCancelled();
        let admitted = false;
        while (promptTokens() < rows) {
          const state = runQueue.admit();
          if (state === undefined) break;
          admitted = true;
          begin(state);
        }
        if (running.length > 0) return true;
        // All requests just admitted have failed: try the next ones.
        if (admitted) continue;
        if (waiting.length > 0) throw new Error("a request that fits was not admitted");
        // Others may be submitted meanwhile, but not after the last look.
        if (opening.size === 0) return false;
        yield changed;
      }
    },
    cancel(state) {
      state.cancelled = true;
      opening.get(state)?.abort();
      woken();
    },
    *awaitGrammars() {
      const states = [...running, ...waiting];
      const waits = running.length > 0 && running.every(waitsForGrammar);
      if (!waits || states.some(isCancelled)) return;
      const signals = states.map(({ request }) => request.signal)
        .filter((signal) => signal !== undefined);
      for (const signal of signals) signal.addEventListener("abort", woken);
      try {
        yield Promise.race([
          changed,
          ...running.map(({ constraint }) => constraint?.busy)
            .filter((busy) => busy !== undefined),
        ]);
      } finally {
        for (const signal of signals) signal.removeEventListener("abort", woken);
      }
    },
    take(state, taken) {
      let advancing: Promise<void> | undefined;
      attempt(state, () => void (advancing = state.constraint?.advance?.(taken.ids)));
      if (advancing === undefined) return take(state, taken);
      state.awaitsGrammar = true;
      advancing.then(() => {
        advanced.push({ state, taken });
        woken();
      });
    },
    attempt,
    fail(error) {
      for (const stop of opening.values()) stop.abort();
      const failed = [...waiting, ...running, ...opening.keys()];
      opening.clear();
      woken();
      for (const state of failed) {
        runQueue.remove(state);
        state.done = true;
        closed(state);
        endWithError(state, error);
      }
    },
  };
}

/** Closes a request's grammar and drafter; returns what the first failing one threw. */
function closed({ constraint, drafter, sequence }: RequestState): Failure | undefined {
  const failures: Failure[] = [];
  for (const close of [() => constraint?.close(), () => drafter?.close?.(sequence.ids)]) {
    try {
      close();
    } catch (thrown) {
      failures.push({ thrown });
    }
  }
  return failures[0];
}

/** Sends the error as the request's last event, unless it has had its last event. */
function endWithError({ onEvent }: RequestState, thrown: unknown): void {
  try {
    onEvent({ kind: "error", error: asError(thrown) });
  } catch {
    // The request has ended, and nothing waits for what its callback throws.
  }
}

/**
 * Wraps the callback so that it gets nothing after "finish" or "error".
 *
 * @param rejected receives the failure of a callback that is an async function.
 */
function untilLast(
  onEvent: (event: EngineEvent) => unknown,
  rejected: (failure: Failure) => void,
): (event: EngineEvent) => void {
  let last = false;
  return (event) => {
    if (last) return;
    last = event.kind === "finish" || event.kind === "error";
    const returned = onEvent(event);
    if (returned instanceof Promise) returned.catch((thrown) => rejected({ thrown }));
  };
}
