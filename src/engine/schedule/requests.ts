import type { HostDrafter } from "../../draft/host_drafter.ts";
import { UsageError } from "../../errors.ts";
import { grammarFault } from "../../grammar/fault.ts";
import type { Grammars } from "../../grammar/grammars.ts";
import type { Core } from "../device/core.ts";
import { newSequence, rewind } from "../device/sequence.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { openOutput, type Outputs, type Taken } from "./output.ts";
import type { Places } from "./places.ts";
import { type RequestState, tellPrefill } from "./request_state.ts";
import { requestDrafter } from "./rounds/proposing.ts";
import type { SequencePages } from "./sequence_pages.ts";

/** The requests in flight: how they come in, get tokens and end. */
export interface Requests {
  /** The next to be admitted first. */
  readonly waiting: readonly RequestState[];
  /** In the order they were admitted. */
  readonly running: readonly RequestState[];
  /** Takes a request that was checked. */
  enqueue(request: GenerateRequest, onEvent: (event: EngineEvent) => void): RequestState;
  /** Ends those whose callers want no more. */
  endCancelled(): void;
  /**
   * Admits the next. Where no request runs and none can be admitted, it waits for the first grammar
   * that is open, for a request or for a cancellation; false where there is nothing to wait for.
   */
  admit(): Promise<boolean>;
  /** Ends a request before the next round. */
  cancel(state: RequestState): void;
  /** Gives tokens to a request, which may end it. */
  take(state: RequestState, taken: Taken): void;
  /** Broken logits or drafts end this request; the others go on. */
  attempt(state: RequestState, action: () => void): void;
  /** Ends every request with this error. */
  fail(error: Error): void;
}

interface Parts {
  readonly core: Pick<Core, "setSampling">;
  readonly pages: Pick<SequencePages, "share" | "close">;
  readonly places: Places<RequestState>;
  readonly outputs: Outputs;
  readonly drafter: HostDrafter | undefined;
  readonly grammars: Grammars | undefined;
}

export function openRequests(
  { core, pages, places, outputs, drafter, grammars }: Parts,
): Requests {
  const { waiting, running } = places;
  let submitted = 0;

  /** Gives slot and pages back; what is stored stays cached unless the request failed. */
  function leave(state: RequestState, { failed = false } = {}): void {
    const { sequence, request, output } = state;
    state.done = true;
    state.constraint?.close();
    // Tokens that the device chose after the request had ended are nobody's.
    sequence.ids.length = request.promptIds.length + output.tokens;
    state.drafter?.close?.(sequence.ids);
    rewind(sequence, sequence.ids.length);
    if (places.remove(state)) {
      if (!failed) pages.share(sequence);
      pages.close(sequence);
    }
  }

  function finish(state: RequestState): void {
    const ended = performance.now();
    const { started, cached = 0, prefilled = ended, sequence } = state;
    leave(state);
    const ids = sequence.ids.slice(state.request.promptIds.length);
    for (const event of state.output.end({ started, prefilled, ended, cached, ids })) {
      state.onEvent(event);
    }
  }

  /** A mistake ends its request. */
  function fault(state: RequestState, error: unknown): void {
    if (!(error instanceof UsageError)) throw error;
    leave(state, { failed: true });
    state.onEvent({ kind: "error", error });
  }

  function attempt(state: RequestState, action: () => void): void {
    try {
      action();
    } catch (error) {
      fault(state, error);
    }
  }

  /** Requests whose grammars are being opened, in threads of their own. */
  const opening = new Map<RequestState, AbortController>();
  /** What opening a grammar has come to, to be dealt with in the next step. */
  const opened: { readonly state: RequestState; readonly error?: unknown }[] = [];
  let wake = Promise.withResolvers<void>();

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

  /** Those whose grammars are open wait for a place; the others end with the error. */
  function enqueueOpened(): void {
    for (const { state, error } of opened.splice(0)) {
      // Otherwise it has ended meanwhile.
      if (!opening.delete(state)) continue;
      if (isCancelled(state)) finish(state);
      else if (error === undefined) places.enqueue(state);
      else fault(state, error);
    }
  }

  function isCancelled({ cancelled, request: { signal } }: RequestState): boolean {
    return cancelled || (signal?.aborted ?? false);
  }

  function endCancelled(): void {
    enqueueOpened();
    for (const state of [...waiting, ...running, ...opening.keys()]) {
      if (!isCancelled(state)) continue;
      opening.get(state)?.abort();
      opening.delete(state);
      finish(state);
    }
  }

  function admitNext(): void {
    const state = places.admit();
    if (!state) return;
    const { sampling, ignoreEos } = state.request;
    const stopIds = ignoreEos ? [] : outputs.eosTokenIds;
    core.setSampling(state.sequence, sampling, stopIds, state.request.promptIds.length);
    state.cached ??= state.sequence.stored;
    tellPrefill(state);
  }

  return {
    waiting,
    running,
    enqueue(request, onEvent) {
      const state: RequestState = {
        request,
        sequence: newSequence(request.promptIds),
        output: openOutput(outputs, request),
        onEvent,
        constraint: undefined,
        started: performance.now(),
        prefilled: undefined,
        decoding: false,
        cached: undefined,
        cancelled: false,
        done: false,
        drafted: { id: submitted++, depth: undefined, accepted: [], confidences: [] },
        drafter: requestDrafter(drafter, request),
      };
      if (request.grammar) void openGrammar(state);
      else places.enqueue(state);
      woken();
      return state;
    },
    endCancelled,
    async admit() {
      while (true) {
        const changed = wake.promise;
        endCancelled();
        admitNext();
        if (running.length > 0) return true;
        if (waiting.length > 0) throw new Error("a request that fits was not admitted");
        // Others may be submitted meanwhile, but not after the last look.
        if (opening.size === 0) return false;
        await changed;
      }
    },
    cancel(state) {
      state.cancelled = true;
      opening.get(state)?.abort();
      woken();
    },
    take(state, taken) {
      attempt(state, () => {
        for (const event of state.output.take(taken, state.constraint)) state.onEvent(event);
        if (state.output.finished) finish(state);
      });
    },
    attempt,
    fail(error) {
      for (const stop of opening.values()) stop.abort();
      const failed = [...waiting, ...running, ...opening.keys()];
      opening.clear();
      woken();
      for (const state of failed) {
        places.remove(state);
        state.done = true;
        state.onEvent({ kind: "error", error });
      }
    },
  };
}
