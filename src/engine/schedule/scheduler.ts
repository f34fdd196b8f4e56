import type { HostDrafter } from "../../draft/host_drafter.ts";
import type { Grammars } from "../../grammar/grammars.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import type { DraftShape } from "../../speculate/round_shape.ts";
import type { Runner, SubmittedRounds } from "../device/runner.ts";
import { receiveMessages } from "../device/event_loop.ts";
import { type Coroutine, runAsync, runSync, settled } from "./coroutine.ts";
import { observer } from "./observer.ts";
import { checkRequest } from "./admission.ts";
import { elasticDraft, type ElasticReport } from "./elastic_draft.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { openItlLimit } from "./itl_limit.ts";
import type { OutputConfig } from "./output.ts";
import { openRunQueue, promptBudget } from "./run_queue.ts";
import { openPrefill, type PrefillSample } from "./prefill.ts";
import type { PrefixCache } from "./prefix_cache.ts";
import { maxLogprobs } from "../device/choice/logprobs.ts";
import type { RequestState } from "./request_state.ts";
import { openRequests } from "./requests.ts";
import type { ResidencyOptions } from "./residency.ts";
import { openGroupPicker, type PickedGroup } from "./rounds/group_picker.ts";
import { takeGroup } from "./rounds/group_results.ts";
import { openProposalGain } from "./rounds/proposal_gain.ts";
import type { RoundSample } from "./rounds/round_sample.ts";
import { kvAllocator, type PagesRunner, sequencePages } from "./sequence_pages.ts";
import type { Speculation } from "./speculation.ts";
import { openSyncInterval, type RoundsPerSync } from "./sync_interval.ts";

/** A request on its way through the scheduler. */
export interface Job {
  /** Ends the request with reason "interrupt" before the next round. */
  cancel(): void;
}

/** What happened since the scheduler was made. */
export interface SchedulerCounts {
  /** Running requests that were preempted because pages were short, and resumed later. */
  readonly preemptions: number;
  /** Steps at which a request waited although a slot was free: pages were short. */
  readonly waits: number;
  /** Draft prefills after rounds without the draft, and the time they took. */
  readonly catchUps: number;
  readonly catchUpMs: number;
  /** Rounds that ran after all their requests had ended, because their group had been submitted at once. */
  wasted: number;
  /** Where the draft may leave the GPU. */
  elastic?: ElasticReport;
}

/** A group on the device. */
interface BegunGroup {
  readonly group: PickedGroup;
  /** When its rounds began, by the scheduler's clock: after the draft's catch-up, which took `catchUpMs`. */
  readonly began: number;
  readonly catchUpMs: number;
  readonly rounds: SubmittedRounds;
}

/** What the scheduler needs of a runner. */
export type SchedulerRunner =
  & PagesRunner
  & Pick<
    Runner,
    | "draft"
    | "ranks"
    | "overlaps"
    | "elastic"
    | "setSampling"
    | "prefill"
    | "compileMs"
    | "catchUp"
    | "begin"
  >;

/**
 * Runs many requests at once: continuous batching over paged keys and values. It is driven by one
 * caller, see loop.ts: a step must end before the next begins.
 */
export interface Scheduler {
  readonly counts: Readonly<SchedulerCounts>;
  /**
   * Takes a request. Its events come during `step`; the last one is "finish" or "error".
   *
   * @throws UsageError for an empty prompt or one that the context or the KV pages cannot hold.
   */
  submit(request: GenerateRequest, onEvent: (event: EngineEvent) => void): Job;
  /**
   * Admits requests, runs one forward of prompts and one group of rounds of all decoding requests. Returns false when
   * there was nothing to do.
   */
  step(): Promise<boolean>;
  /** Like `step`, for a runner that returns its results at once. @throws Error if a result has to be awaited. */
  stepSync(): boolean;
  /** Ends every request with this error. */
  fail(error: Error): void;
}

export interface SchedulerOptions {
  readonly runner: SchedulerRunner;
  readonly cache: PrefixCache;
  readonly outputs: OutputConfig;
  readonly speculation: Speculation;
  /** What the speculation chooses from: chains of these limit `GenerateRequest.numSteps`. Default: the runner's. */
  readonly tiers?: readonly DraftShape[] | undefined;
  /** Milliseconds, which never go back; default: performance.now(). */
  readonly clock?: () => number;
  /**
   * Whether all prompts that there is room for are stored before rounds continue; default: one forward between two
   * groups.
   */
  readonly promptsFirst?: boolean;
  /** Host drafter, asked before every group of rounds; a round with its drafts is a group by itself. */
  readonly drafter?: HostDrafter | undefined;
  /** Cost table of rounds on this device, if it is known by now; default: none. */
  readonly costs?: () => CostTable | undefined;
  /** Opens the grammars of requests that have one. */
  readonly grammars?: Grammars | undefined;
  readonly roundsPerSync?: RoundsPerSync;
  /** Rows of a forward of prompts; messages are received after each. Default: as many as a program takes. */
  readonly chunkRows?: number;
  /**
   * Rows of a forward of prompts, whether or not other requests decode; `sloItlMs` may lower the number. Default: see
   * `promptBudget`. At most `prefillRows`.
   */
  readonly maxBatchedRows?: number | undefined;
  /**
   * Limit of the inter-token latency, in milliseconds: the longest that a decoding request should wait between two
   * tokens. Forwards of prompts get fewer rows to meet it, if `costs` says how long they take. Default: see
   * `openItlLimit`.
   */
  readonly sloItlMs?: number | undefined;
  readonly onRound?: (sample: RoundSample) => void;
  /** Called for every forward of prompts. */
  readonly onPrefill?: (chunk: PrefillSample) => void;
  /** When the draft leaves the GPU, where it may. */
  readonly residency?: Partial<ResidencyOptions>;
  readonly onWarning?: (line: string) => void;
  /** See `receiveMessages`: new and cancelled requests are received before a round begins. */
  readonly messageWaits?: (() => boolean) | undefined;
}

export function openScheduler(
  { runner, cache, outputs, speculation, drafter, grammars, ...options }: SchedulerOptions,
): Scheduler {
  const { clock = () => performance.now(), promptsFirst = false } = options;
  const { chunkRows = runner.capacity.prefillRows, roundsPerSync = "auto" } = options;
  const { onPrefill = () => {}, costs = () => undefined, onWarning = () => {} } = options;
  const onRound = observer("onRound", options.onRound ?? (() => {}), onWarning);
  const { capacity } = runner;
  const pages = sequencePages(runner, cache);
  const runQueue = openRunQueue<RequestState>(kvAllocator(pages, capacity));
  const { waiting, running } = runQueue;
  const elastic = runner.elastic && elasticDraft({
    runner,
    memory: runner.elastic,
    cache,
    onWarning,
    running: () => running.map(({ sequence }) => sequence),
  }, options.residency);
  const itlLimit = openItlLimit(options.sloItlMs);
  const syncInterval = openSyncInterval(roundsPerSync);
  const proposalGain = openProposalGain();
  const requests = openRequests({ runner, pages, runQueue, outputs, drafter, grammars, clock });
  const prefill = openPrefill({
    runner,
    pages,
    requests,
    syncInterval,
    elastic,
    budget: () => options.maxBatchedRows ?? promptBudget(chunkRows, running),
    costs,
    itlLimit,
    onPrefill,
    clock,
  });
  const groups = openGroupPicker({
    runner,
    runQueue,
    requests,
    outputs,
    speculation,
    drafter,
    costs,
    syncInterval,
    itlLimit,
    proposalGain,
    elastic,
  });
  const counts: SchedulerCounts = {
    get preemptions() {
      return runQueue.preemptions;
    },
    get waits() {
      return runQueue.waits;
    },
    get catchUps() {
      return prefill.catchUps;
    },
    get catchUpMs() {
      return prefill.catchUpMs;
    },
    wasted: 0,
  };
  if (elastic) counts.elastic = elastic.report;

  /**
   * The group that the device works on, or will after a forward of prompts; its results are read before anything else
   * runs.
   */
  let begun: BegunGroup | undefined;

  function* begin(group: PickedGroup | undefined): Coroutine<BegunGroup | undefined> {
    if (group === undefined) return undefined;
    const { states, round } = group;
    const began = clock();
    const catchUpMs = round.shape.depth > 0 ? yield* prefill.catchUp(states) : 0;
    const sequences = states.map(({ sequence }) => sequence);
    const asked = { ...round, logprobs: maxLogprobs(states.map(({ request }) => request)) };
    const rounds = yield* settled(runner.begin(sequences, asked));
    itlLimit.began();
    return { group, began: began + catchUpMs, catchUpMs, rounds };
  }

  /**
   * Runs one group of rounds of all decoding requests. If the next group is already clear, it is submitted before the
   * tokens of this one are handled, so that the device stays busy.
   */
  function* runGroup(): Coroutine<void> {
    const ran = begun ?? (yield* begin(groups.pick()));
    begun = undefined;
    if (ran === undefined) return yield* requests.awaitGrammars();
    const { group, began, catchUpMs } = ran;
    // The device runs the next group while the host reads and handles the results of this one.
    const ahead = runner.overlaps && !options.messageWaits?.()
      ? yield* begin(groups.ahead(group))
      : undefined;
    const { states, round: { shape, count }, chosen } = group;
    const rounds = yield* settled(ran.rounds.results());
    const ended = clock();
    itlLimit.ran(catchUpMs + ended - began);
    if (chosen) syncInterval.learn(states.length, shape, { count, ended });
    else syncInterval.pause();
    if (ahead) begun = { ...ahead, began: ended };
    else if (!options.messageWaits?.()) begun = yield* begin(groups.next(group, rounds));
    const taken = { ...group, rounds, began, ended, catchUpMs };
    counts.wasted += takeGroup({ requests, speculation, proposalGain, onRound }, taken);
  }

  /** Begins the next group behind a forward of prompts that is not read yet, where that is possible. */
  function* beginBehind(expectedMs: number): Coroutine<boolean> {
    itlLimit.stored(expectedMs);
    begun = yield* begin(groups.behindPrompts());
    if (begun === undefined) itlLimit.stored(-expectedMs);
    return begun !== undefined;
  }

  /**
   * Admits requests and runs one forward of prompts, or with `promptsFirst` stores all prompts that there is room for.
   * Returns false if no request runs.
   */
  function* storePrompts(): Coroutine<boolean> {
    while (true) {
      const { length } = waiting;
      // The next request may continue from the state that is being saved of the last one.
      if (length > 0 && runner.states?.saving) yield runner.states.saving;
      if (!(yield* requests.admit(prefill.budget))) return false;
      const behind = promptsFirst
        ? undefined
        : (expectedMs: number) => runAsync(beginBehind(expectedMs));
      const ended = yield* prefill.step(behind);
      if (begun && ended !== undefined) begun = { ...begun, began: ended };
      const more = waiting.length < length || running.some(({ decoding }) => !decoding);
      // Without a forward, prompts wait for their grammars.
      if (!promptsFirst || !more || ended === undefined) return true;
    }
  }

  function* step(): Coroutine<boolean> {
    if (options.messageWaits?.()) yield receiveMessages(options.messageWaits);
    requests.endCancelled();
    if (begun === undefined && !(yield* storePrompts())) return false;
    yield* runGroup();
    if (elastic) {
      yield elastic.step(groups.chosenSteps(), waiting.length);
      counts.elastic = elastic.report;
    }
    return true;
  }

  return {
    counts,
    submit(request, onEvent) {
      const predicts = Boolean(drafter?.predicts);
      checkRequest(capacity, outputs, request, { predicts, tiers: options.tiers });
      const state = requests.enqueue(request, onEvent);
      return { cancel: () => requests.cancel(state) };
    },
    step: () => runAsync(step()),
    stepSync: () => runSync(step()),
    fail: requests.fail,
  };
}
