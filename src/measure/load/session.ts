import { createHash } from "node:crypto";
import { defined } from "../../defined.ts";
import type { LocalEngine } from "../../engine/open.ts";
import type { EngineHooks, EngineOptions, LimitOptions } from "../../engine/options.ts";
import type { EngineLoop } from "../../engine/schedule/loop.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";
import type { PrefillSample } from "../../engine/schedule/prefill.ts";
import { namedPlan } from "../../engine/schedule/speculation_choice.ts";
import type { RoundsPerSync } from "../../engine/schedule/sync_interval.ts";
import { UsageError } from "../../errors.ts";
import type { Acceptance } from "../../remote/acceptance.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import { chain, distinctTiers, type DraftShape } from "../../speculate/round_shape.ts";
import { GREEDY } from "../../speculate/sampling.ts";
import type { Subject } from "../runner.ts";
import { idsOf, openMeasured, subjectOf } from "../bench_engine.ts";
import { openCellScheduler, type ScheduledEngine } from "../cell_scheduler.ts";
import { driveCell, type DrivenCell, type LoadCell } from "./drive_cell.ts";
import type { LoadArm, LoadCellSpec, LoadPlan } from "./plan.ts";
import type { Answer, LoadRequest, RequestSender } from "./request.ts";

/** A round within the measured time. */
export interface LoadRound {
  /** When the round began, in milliseconds from the start. */
  readonly beganMs: number;
  readonly ms: number;
  /** The chosen number of draft steps; 0 is plain decoding. */
  readonly numSteps: number;
  /** Rounds that were submitted together, with this one. */
  readonly together: number;
  /** The number of sequences in the round. */
  readonly batch: number;
  /** The request of each sequence, numbered in the order of the arrivals. */
  readonly requests: readonly number[];
  /** Drafts verified for each sequence; `accepted` is the number of these that were accepted. */
  readonly drafts: readonly number[];
  readonly accepted: readonly number[];
}

/** The parameters of the measured engine that `eyrie simulate` needs. */
export interface LoadMachine {
  readonly maxBatch: number;
  /** Capacity of the KV cache in tokens. */
  readonly kvTokens: number;
  /** Prompt tokens that are prefilled between two rounds. */
  readonly prefillRows: number;
  /** `--max-batched-rows` and `--slo-itl-ms`, where they are given. */
  readonly maxBatchedRows?: number | undefined;
  readonly sloItlMs?: number | undefined;
  readonly roundsPerSync: RoundsPerSync;
  /** The cost table at the end of the measurement; null if there is none. */
  readonly costs: CostTable | null;
}

/** The result of one measurement. */
export interface LoadCellResult extends DrivenCell {
  /** The rounds in their order; empty for a server, whose rounds are not known. */
  readonly rounds: readonly LoadRound[];
  /** Changes of the tier. */
  readonly switches: number;
  readonly preemptions: number;
  /** Forwards of prompts within the measured time; absent for a server. */
  readonly prefills?: readonly PrefillSample[];
  /** Absent for a server. */
  readonly machine?: LoadMachine;
  /** The acceptance that a server reports, null if it reports none; absent for the engine of this process. */
  readonly acceptance?: Acceptance | null;
}

/** What a measured server has in place of the policies of the plan. */
export interface MeasuredServer {
  /** The arm of the rows, whose label says how the server speculates. */
  readonly arm: LoadArm;
  /** The kind of the server: `vllm`. */
  readonly backend: string;
  /** The most requests that the server runs at a time; null if it does not say. */
  readonly maxBatch: number | null;
}

/** An engine or a server, opened for a whole run. */
export interface LoadSession extends Disposable {
  readonly subject: Subject;
  /** Present if a server is measured. */
  readonly served?: MeasuredServer;
  /** @throws UsageError if one of the requests cannot be answered. */
  check(requests: readonly LoadRequest[]): void;
  /** Runs one measurement; undefined if the signal aborted before its end. */
  runCell(
    spec: LoadCellSpec,
    options: { readonly signal: AbortSignal; readonly onEnded: (ended: number) => void },
  ): Promise<LoadCellResult | undefined>;
}

/** What a load session is opened with. */
export interface OpenLoadRequest extends EngineOptions {
  readonly plan: LoadPlan;
  /** `maxBatch` is the most requests that run at a time; the others wait. */
  readonly limits: LimitOptions & { readonly maxBatch: number };
}

/** What every measurement of a session is run with. */
interface LoadSettings extends Pick<LimitOptions, "roundsPerSync">, Pick<EngineHooks, "onWarning"> {
  readonly plan: LoadPlan;
  readonly maxBatch: number;
}

/** Opens a load session. */
export type OpenLoad = (request: OpenLoadRequest) => Promise<LoadSession>;

/** Opens model and device, with the tiers of all policies compiled at every batch size. */
export async function openLoad(request: OpenLoadRequest): Promise<LoadSession> {
  const { plan, limits: { maxBatch, roundsPerSync } } = request;
  const plans = plan.arms.map(({ policy }) => namedPlan(policy, { maxBatch, onWarning: () => {} }));
  const tiers = distinctTiers([chain(0), ...plans.flatMap(({ tiers }) => tiers)]);
  const sizeFlags = {
    maxBatch: "--max-batch",
    contextLength: "--context-length",
    maxKvTokens: "--max-kv-tokens",
  };
  const engine = await openMeasured(request, {
    tiers: byDepth(tiers),
    plans,
    limits: { sizeFlags },
    profile: true,
  });
  const { onWarning } = request.hooks ?? {};
  const session = loadSession(engine, { plan, maxBatch, ...defined({ roundsPerSync, onWarning }) });
  return {
    ...session,
    subject: subjectOf(engine, request),
    [Symbol.dispose]: () => engine[Symbol.dispose](),
  };
}

/** The part of an engine that measurements use; tests have one without a device. */
type LoadEngine = ScheduledEngine & Pick<LocalEngine, "text">;

/** A session on an opened engine, whose tiers include those of the policies. */
export function loadSession(
  engine: LoadEngine,
  settings: LoadSettings,
): Pick<LoadSession, "check" | "runCell"> {
  return {
    check(requests) {
      for (const each of requests) promptIdsOf(engine, each);
    },
    runCell: (spec, options) => runCell(engine, { ...options, ...settings, spec }),
  };
}

/** The tiers with the deepest last, which is the engine's default. */
function byDepth(tiers: readonly DraftShape[]): DraftShape[] {
  return tiers.toSorted((a, b) => a.depth - b.depth);
}

type Cell = LoadCell & LoadSettings;

async function runCell(
  engine: LoadEngine,
  { maxBatch, roundsPerSync = "auto", onWarning = () => {}, ...cell }: Cell,
): Promise<LoadCellResult | undefined> {
  const { spec: { arm, seed }, plan: { warmup } } = cell;
  // A new plan for each measurement: a policy learns while it runs.
  const plan = namedPlan({ ...arm.policy, seed }, { maxBatch, onWarning });
  const { speculation } = plan;
  const rounds: LoadRound[] = [];
  const prefills: PrefillSample[] = [];
  let start = Infinity;
  using scheduler = openCellScheduler(engine, {
    speculation,
    roundsPerSync,
    onPrefill(forward) {
      if (start < Infinity) prefills.push(forward);
    },
    onRound: ({ at, ms, numSteps, together, batch, requests, drafts, accepted }) => {
      if (at < start) return;
      rounds.push({
        beganMs: at - ms - start,
        ms,
        numSteps,
        together,
        batch,
        drafts,
        accepted,
        requests: requests.map((request) => request - warmup),
      });
    },
  });
  const { loop } = scheduler;
  let before = { switches: 0, preemptions: 0 };
  const driven = await driveCell(cell, engineSender(engine, loop), () => {
    const { preemptions } = scheduler.counts;
    before = { switches: speculation.report.switch_count, preemptions };
    start = performance.now();
  });
  // Waits until the runner is free for the next measurement.
  await loop.idle();
  if (driven === undefined) return undefined;
  return {
    ...driven,
    rounds,
    prefills,
    switches: speculation.report.switch_count - before.switches,
    preemptions: scheduler.counts.preemptions - before.preemptions,
    machine: {
      maxBatch,
      roundsPerSync,
      prefillRows: engine.chunkRows,
      maxBatchedRows: engine.maxBatchedRows,
      sloItlMs: engine.sloItlMs,
      kvTokens: engine.runner.pool.total * CELLS_PER_PAGE,
      costs: engine.costs.table ?? null,
    },
  };
}

/** A sender of requests to the engine of this thread. */
function engineSender(
  engine: Pick<LocalEngine, "text" | "outputs">,
  loop: Pick<EngineLoop, "submit">,
): RequestSender {
  return {
    prepare(request) {
      const { maxTokens, ignoreEos, seed } = request;
      const promptIds = promptIdsOf(engine, request);
      return {
        send(heard, signal) {
          const { promise, resolve, reject } = Promise.withResolvers<Answer>();
          const sampling = { ...GREEDY, seed };
          let cachedTokens = 0;
          const asked = { promptIds, sampling, maxTokens, stop: [], ignoreEos, signal };
          loop.submit(asked).listen((event) => {
            if (event.kind === "error") return reject(event.error);
            if (event.kind === "prefill") {
              cachedTokens = event.cached;
              return heard(0);
            }
            if (event.kind === "round") return heard(event.ids.length);
            if (event.kind !== "finish") return;
            const { outputIds, finishReason } = event.result;
            resolve({
              promptTokens: promptIds.length,
              outputTokens: outputIds.length,
              cachedTokens,
              outputHash: createHash("sha256").update(outputIds.join()).digest("hex").slice(0, 16),
              complete: finishReason !== "interrupt",
            });
          });
          return promise;
        },
      };
    },
  };
}

/** @throws UsageError if prompt and an answer of fixed length do not fit the context. */
function promptIdsOf(
  engine: Pick<LocalEngine, "text" | "outputs">,
  { prompt, promptTokens, maxTokens, ignoreEos }: LoadRequest,
): readonly number[] {
  const { name, contextLength } = engine.outputs;
  const ids = idsOf(engine, prompt, promptTokens);
  if (ids.length + (ignoreEos ? maxTokens : 1) > contextLength) {
    throw new UsageError(
      `Cannot measure a request of ${ids.length} prompt and ${maxTokens} output tokens: ` +
        `the context of "${name}" holds ${contextLength}; --trace FILE:length=S shortens the requests of a trace`,
    );
  }
  return ids;
}
