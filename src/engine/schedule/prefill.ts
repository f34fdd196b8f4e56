import { PREFILL_ROWS } from "../../model/device_layout.ts";
import { promptsMs } from "../../speculate/costs/lookup.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import type { CompileProgress } from "../device/first_runs.ts";
import { stateSpacing } from "../device/kept_states.ts";
import { promptRows, promptRun } from "../device/prompt_rows.ts";
import { type Sequence, storesAnswer } from "../device/sequence.ts";
import type { FirstToken, PromptChunk, Runner } from "../device/runner.ts";
import type { ElasticDraft } from "./elastic_draft.ts";
import type { ItlLimit } from "./itl_limit.ts";
import {
  type PromptBudget,
  promptChunks,
  rowsWithin,
  type StoringPrompt,
} from "./prompt_chunks.ts";
import { type RequestState, tellPrefill, waitsForGrammar } from "./request_state.ts";
import type { Requests } from "./requests.ts";
import type { SequencePages } from "./sequence_pages.ts";
import type { SyncInterval } from "./sync_interval.ts";
import { type Coroutine, settled } from "./coroutine.ts";

/** A forward that stored chunks of prompts, tokens `from` to `to` of each, in `ms` of wall time. */
export interface PrefillSample {
  readonly chunks: readonly { readonly from: number; readonly to: number }[];
  /** Rows of the forward, padding included. */
  readonly rows: number;
  readonly ms: number;
  /** Whether the kernels of rounds stored answers again that had lost their pages; default false. */
  readonly answers?: boolean;
}

/** Stores prompts for the target, and lets the draft catch up on tokens that it has missed. */
export interface Prefill {
  /** Draft prefills after rounds without the draft, and the time they took. */
  readonly catchUps: number;
  readonly catchUpMs: number;
  /** Rows of a forward of prompts, at most. */
  readonly budget: number;
  /**
   * Stores the next chunks of the prompts that run, oldest first, in one forward; a prompt's last chunk returns a
   * token.
   *
   * @param beginGroup called once the forward is submitted, if the runner overlaps it with rounds: may begin a group of
   * rounds of all requests that decode then, also of those whose prompts end in the forward; returns whether it did. It
   * receives the milliseconds for which others are expected to wait for the forward.
   * @returns when the forward ended; undefined if there was none.
   */
  step(beginGroup?: (expectedMs: number) => Promise<boolean>): Coroutine<number | undefined>;
  /** Lets the draft catch up on what it has missed of these requests; returns the milliseconds that it took. */
  catchUp(states: readonly RequestState[]): Coroutine<number>;
}

interface Parts {
  readonly runner: Pick<
    Runner,
    "capacity" | "draft" | "prefill" | "catchUp" | "compileMs" | "states"
  >;
  readonly pages: Pick<SequencePages, "share">;
  readonly requests: Pick<Requests, "running" | "take" | "attempt">;
  readonly syncInterval: SyncInterval;
  readonly elastic: Pick<ElasticDraft, "away"> | undefined;
  /** Rows of a forward of prompts, at most. */
  readonly budget: () => number;
  /** What such a forward costs, as far as it is known. */
  readonly costs: () => CostTable | undefined;
  readonly itlLimit: Pick<ItlLimit, "promptMs" | "stored">;
  readonly onPrefill: (chunk: PrefillSample) => void;
  readonly clock: () => number;
}

/** A chunk of a request's prompt. */
interface Chunk extends PromptChunk {
  readonly state: RequestState;
}

export function openPrefill(
  { runner, pages, requests, syncInterval, elastic, budget, costs, itlLimit, onPrefill, clock }:
    Parts,
): Prefill {
  let [catchUps, catchUpMs] = [0, 0];
  /** Milliseconds of a row of the last forward, by which the next one's time is expected without a cost table. */
  let rowMs = 0;

  /** The next chunk of a request's prompt; undefined where its grammar throws, which ends the request. */
  function chunkOf(state: RequestState, tokens: number): Chunk | undefined {
    const { sequence, request: { logprobs } } = state;
    const to = sequence.stored + tokens;
    let mask: Uint32Array | undefined;
    // No token is chosen before the prompt ends, and all requests wait while a mask is made.
    if (to === sequence.ids.length) {
      requests.attempt(state, () => void (mask = state.constraint?.mask));
    }
    if (state.done) return undefined;
    return { state, sequence, to, mask, logprobs };
  }

  /** The budget of a forward of these prompts while decoding requests wait for it: as many rows as the time allows. */
  function limited(
    prompts: readonly StoringPrompt[],
    budget: PromptBudget,
    table: CostTable | undefined,
  ): PromptBudget {
    const { promptMs } = itlLimit;
    if (table === undefined || promptMs === Infinity) return budget;
    return { ...budget, rows: rowsWithin(promptMs, prompts, { budget, costs: table }) };
  }

  /**
   * Where the sequence's next chunk ends at most: at its branch, where other kernels go on, or where the next state is
   * kept, so that this does not depend on what else is in the forward.
   */
  function chunkEnd({ ids, stored, branch = 0, promptTokens = Infinity }: Sequence): number {
    const spacing = stateSpacing(ids.length);
    const kept = runner.states?.spaced ? (Math.floor(stored / spacing) + 1) * spacing : Infinity;
    return Math.min(ids.length, ...[branch, promptTokens, kept].filter((end) => stored < end));
  }

  function* step(
    beginGroup?: (expectedMs: number) => Promise<boolean>,
  ): Coroutine<number | undefined> {
    const all = requests.running.filter((state) => !state.decoding && !waitsForGrammar(state));
    const [oldest] = all;
    if (oldest === undefined) return undefined;
    const answers = storesAnswer(oldest.sequence);
    const storing = all.filter(({ sequence }) => storesAnswer(sequence) === answers);
    const prompts = storing.map(({ sequence }) => ({
      stored: sequence.stored,
      left: chunkEnd(sequence) - sequence.stored,
    }));
    const since = clock();
    const isAwaited = requests.running.some(({ decoding }) => decoding);
    // The kernels of rounds take several times as long for as many rows, and the cost table has no times for them.
    const maxRows = answers ? Math.min(budget(), PREFILL_ROWS) : budget();
    const most = { rows: maxRows, run: promptRun(runner.capacity) };
    const table = answers ? undefined : costs();
    const allowed = isAwaited ? limited(prompts, most, table) : most;
    const tokens = promptChunks(prompts.map(({ left }) => left), allowed);
    yield* catchUp(storing.slice(0, tokens.length));
    syncInterval.pause();
    const chunks = tokens.flatMap((count, i) => chunkOf(storing[i] as RequestState, count) ?? []);
    if (chunks.length === 0) return undefined;
    const stored = chunks.map(({ sequence, to }) => ({ from: sequence.stored, to }));
    const began = clock();
    const compiledBefore = runner.compileMs;
    const onCompile = (progress: CompileProgress) => {
      for (const { state } of chunks) {
        try {
          tellPrefill(state, progress);
        } catch (thrown) {
          // The device still writes the request's pages: the request ends when the next step begins.
          state.failure ??= { thrown };
        }
      }
    };
    const { count: rows } = promptRows(stored.map(({ from, to }) => to - from), most.run);
    const ending = chunks.filter(({ sequence, to }) => to === sequence.ids.length);
    const expectedMs = (table && promptsMs(table, stored, rows)) || rows * rowMs;
    let hasGroup = false;
    const whileRunning = beginGroup && (async () => {
      for (const { state } of ending) state.decoding = true;
      hasGroup = await beginGroup(isAwaited ? expectedMs : 0);
    });
    const tokensChosen = yield* settled(runner.prefill(chunks, onCompile, whileRunning));
    const compileMs = runner.compileMs - compiledBefore;
    const ended = clock();
    const ms = ended - began - compileMs;
    if (!answers) rowMs = ms / rows;
    onPrefill({ chunks: stored, rows, ms, ...answers && { answers } });
    if (isAwaited && !hasGroup) itlLimit.stored(ended - since);
    for (const [i, { state }] of chunks.entries()) {
      state.compileMs += compileMs;
      take(state, tokensChosen[i]);
    }
    return ended;
  }

  /** Handles the result of a forward that stored a chunk of the request's prompt. */
  function take(state: RequestState, token: FirstToken | undefined): void {
    const { sequence } = state;
    // Requests that wait for this prefix find it cached.
    if (!state.done) pages.share(sequence, token !== undefined);
    // A pending token that was just chosen is no part of the prompt.
    if (token === undefined) return requests.attempt(state, () => tellPrefill(state));
    const { stored } = sequence;
    const last = { kind: "prefill", done: stored, total: stored } as const;
    requests.attempt(state, () => state.onEvent({ ...last, cached: state.cached ?? 0 }));
    if (state.done) return;
    state.decoding = true;
    state.prefilled ??= clock();
    const logprobs = token.logprobs && [token.logprobs];
    requests.take(state, { ids: [token.id], accepted: 0, drafts: [], tier: undefined, logprobs });
  }

  function* catchUp(states: readonly RequestState[]): Coroutine<number> {
    // Without features there is nothing to catch up from; the lag costs acceptance only.
    if (runner.draft !== "catches up" || elastic?.away) return 0;
    const behind = states.map(({ sequence }) => sequence)
      .filter(({ draftStored, stored }) => draftStored < stored);
    if (behind.length === 0) return 0;
    const began = clock();
    yield* settled(runner.catchUp(behind));
    syncInterval.pause();
    const ms = clock() - began;
    catchUps++;
    catchUpMs += ms;
    return ms;
  }

  return {
    get budget() {
      return budget();
    },
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
