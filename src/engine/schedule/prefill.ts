import type { CompileProgress } from "../device/first_runs.ts";
import type { Runner } from "../device/runner.ts";
import type { ElasticDraft } from "./elastic_draft.ts";
import { chunkTokens } from "./run_queue.ts";
import { type RequestState, tellPrefill } from "./request_state.ts";
import type { Requests } from "./requests.ts";
import type { SequencePages } from "./sequence_pages.ts";
import type { SyncInterval } from "./sync_interval.ts";
import { settled, type Walk } from "./walk.ts";

/** A chunk of a prompt: tokens `from` to `to` were stored in `ms` of wall time. */
export interface PrefillSample {
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

/** Stores prompts for the target, and for the draft what it has missed. */
export interface Prefill {
  /** Draft prefills after rounds without the draft, and the time they took. */
  readonly catchUps: number;
  readonly catchUpMs: number;
  /** One chunk of the first prompt that is not stored; the last one brings a token. */
  step(): Walk<void>;
  /** The draft stores what it has missed of these; the milliseconds that it took. */
  catchUp(states: readonly RequestState[]): Walk<number>;
}

interface Parts {
  readonly core: Pick<Runner, "draft" | "prefill" | "catchUp" | "compileMs">;
  readonly pages: Pick<SequencePages, "share">;
  readonly requests: Pick<Requests, "running" | "take" | "attempt">;
  readonly syncInterval: SyncInterval;
  readonly elastic: Pick<ElasticDraft, "away"> | undefined;
  /** Tokens of a chunk, at most; see `chunkTokens`. */
  readonly chunkRows: number;
  readonly onPrefill: (chunk: PrefillSample) => void;
  readonly clock: () => number;
}

export function openPrefill(
  { core, pages, requests, syncInterval, elastic, chunkRows, onPrefill, clock }: Parts,
): Prefill {
  let [catchUps, catchUpMs] = [0, 0];

  function* step(): Walk<void> {
    const state = requests.running.find(({ decoding }) => !decoding);
    if (!state) return;
    const { sequence } = state;
    yield* catchUp([state]);
    syncInterval.pause();
    const tokens = chunkTokens(chunkRows, requests.running);
    const to = Math.min(sequence.ids.length, sequence.stored + tokens);
    let mask: Uint32Array | undefined;
    requests.attempt(state, () => void (mask = state.constraint?.mask));
    if (state.done) return;
    const [from, began] = [sequence.stored, clock()];
    const compiledBefore = core.compileMs;
    const onCompile = (progress: CompileProgress) => {
      try {
        tellPrefill(state, progress);
      } catch (thrown) {
        // The device still writes the request's pages: it ends when the next step begins.
        state.failure ??= { thrown };
      }
    };
    const { logprobs: likeliest } = state.request;
    const token = yield* settled(core.prefill(sequence, to, mask, likeliest, onCompile));
    const compileMs = core.compileMs - compiledBefore;
    state.compileMs += compileMs;
    onPrefill({ from, to, ms: clock() - began - compileMs });
    // A pending token that was just chosen is no part of the prompt.
    if (token === undefined) return requests.attempt(state, () => tellPrefill(state));
    const { stored } = sequence;
    const last = { kind: "prefill", done: stored, total: stored } as const;
    requests.attempt(state, () => state.onEvent({ ...last, cached: state.cached ?? 0 }));
    if (state.done) return;
    state.decoding = true;
    state.prefilled ??= clock();
    pages.share(sequence);
    const logprobs = token.logprobs && [token.logprobs];
    requests.take(state, { ids: [token.id], accepted: 0, drafts: [], tier: undefined, logprobs });
  }

  function* catchUp(states: readonly RequestState[]): Walk<number> {
    // Without features there is nothing to catch up from; the lag costs acceptance only.
    if (core.draft !== "catches up" || elastic?.away) return 0;
    const behind = states.map(({ sequence }) => sequence)
      .filter(({ draftStored, stored }) => draftStored < stored);
    if (behind.length === 0) return 0;
    const began = clock();
    yield* settled(core.catchUp(behind));
    syncInterval.pause();
    const ms = clock() - began;
    catchUps++;
    catchUpMs += ms;
    return ms;
  }

  return {
    get catchUps() {
      return catchUps;
    },
    get catchUpMs() {
      return catchUpMs;
    },
    step,
    catchUp,
  };
}
