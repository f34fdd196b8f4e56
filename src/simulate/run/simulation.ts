import { type EngineSizes, reservedCells } from "../../engine/device/buffers.ts";
import type { EngineEvent } from "../../engine/schedule/events.ts";
import type { OutputConfig } from "../../engine/schedule/output.ts";
import type { RoundSample } from "../../engine/schedule/rounds/round_sample.ts";
import { type Job, openScheduler } from "../../engine/schedule/scheduler.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";
import { openSpeculation } from "../../engine/schedule/speculation.ts";
import type { RoundsPerSync } from "../../engine/schedule/sync_interval.ts";
import { UsageError } from "../../errors.ts";
import type { Policy } from "../../speculate/policy.ts";
import { chain } from "../../speculate/round_shape.ts";
import { GREEDY } from "../../speculate/sampling.ts";
import type { AcceptanceModel, Progress } from "../acceptance/model.ts";
import type { Pricing } from "../costs/pricing.ts";
import { simulatedMemory } from "./memory.ts";
import { idOf, newRequest, promptIdsOf, type SimulatedRequest } from "./request.ts";
import { simulatedRunner } from "./simulated_runner.ts";
import type { Source } from "./source.ts";
import { openTally, type SimulatedSample, type SimulationResult } from "./tally.ts";

/** What is to be simulated. */
export interface Simulation {
  readonly pricing: Pricing;
  readonly acceptance: AcceptanceModel;
  readonly source: Source;
  readonly policy: SimulatedPolicy;
  readonly machine: Machine;
  /** Where it ends, besides at the end of the last request. */
  readonly until: { readonly ms?: number; readonly rounds?: number; readonly tokens?: number };
  /** Seed of the noise of times, u32. */
  readonly seed: number;
  readonly onRound?: (sample: SimulatedSample) => void;
}

/** A policy by its name. An oracle gets data of the simulation that no policy can know. */
export interface SimulatedPolicy {
  readonly name: string;
  open(view: SimulationView): Policy;
}

/** What only a simulation can know. */
export interface SimulationView {
  readonly now: Progress;
  /** One in flight. */
  request(id: number): SimulatedRequest;
}

/** The simulated engine; names as in `eyrie serve` and `bench`. */
export interface Machine {
  /** Requests that run at once. */
  readonly maxBatch: number;
  /** Tokens of keys and values; Infinity: no limit. */
  readonly kvTokens: number;
  /** Tokens of a prompt between two rounds. */
  readonly chunkRows: number;
  /** As of the scheduler. */
  readonly maxBatchedRows?: number | undefined;
  readonly sloItlMs?: number | undefined;
  readonly roundsPerSync: RoundsPerSync;
  /** Standard deviation of the logarithm of a round's time. */
  readonly noise: number;
  /** Noise of the draft's confidence (`confidenceAt`); undefined: the draft does not report it. */
  readonly confidenceNoise: number | undefined;
}

/** A request that was submitted. */
interface InFlight {
  readonly request: SimulatedRequest;
  readonly job: Job;
}

/** Tokens are only counted: none has text, and none ends an output. */
const OUTPUTS: OutputConfig = {
  tokenizer: {
    vocabSize: 2 ** 32,
    bosToken: undefined,
    eosToken: undefined,
    encode: () => [],
    decode: () => "",
    idOf: () => undefined,
    isSkipped: () => true,
  },
  name: "simulated",
  vocabSize: 2 ** 32,
  eosTokenIds: [],
  algorithm: "EAGLE3",
  contextLength: Infinity,
  tier: chain(0),
};

/**
 * The engine's scheduler in simulated time: requests come, wait for slots and pages, are prefilled chunk by
 * chunk between groups of rounds, decode, and leave. Times are the pricing's.
 *
 * @throws UsageError for a request that the pages cannot hold, and for depths without a price.
 */
export function simulate(simulation: Simulation): SimulationResult {
  const { pricing, acceptance, source, machine, until, seed, onRound } = simulation;
  const { kvTokens, chunkRows, maxBatchedRows, sloItlMs, roundsPerSync, noise } = machine;
  /** In the order they were submitted. */
  const inFlight = new Map<number, InFlight>();
  const request = (id: number) => (inFlight.get(id) as InFlight).request;
  const policy = simulation.policy.open({
    get now() {
      return runner.now;
    },
    request,
  });
  const { pool, cache } = simulatedMemory(kvTokens, (ids) => request(idOf(ids)).cachedTokens);
  const capacity: EngineSizes = {
    batch: machine.maxBatch,
    shapes: policy.tiers,
    prefillRows: chunkRows,
    contextLength: Infinity,
    pages: pool.total,
  };
  const runner = simulatedRunner({
    capacity,
    pool,
    pricing,
    freePrompts: source.stored,
    noise,
    seed,
    confidenceNoise: policy.confident === true ? machine.confidenceNoise : undefined,
    request,
  });
  const tally = openTally();
  const scheduler = openScheduler({
    runner,
    cache,
    outputs: OUTPUTS,
    speculation: openSpeculation(simulation.policy.name, policy),
    costs: () => pricing.table,
    roundsPerSync,
    chunkRows,
    maxBatchedRows,
    sloItlMs,
    clock: () => runner.now.ms,
    promptsFirst: source.stored,
    messageWaits: () => source.pending(runner.now.ms, inFlight.size),
    onRound: takeRound,
  });
  let submitted = 0;
  let failure: Error | undefined;

  /** Gives requests their tokens of a round, without tokens beyond a request's end. */
  function takeRound(
    { at: tMs, batch, numSteps, drafts: verified, accepted, requests, ms }: RoundSample,
  ): void {
    const drafts = verified.reduce((sum, each) => sum + each, 0);
    let tokens = 0;
    for (const [i, id] of requests.entries()) {
      const taking = request(id);
      const taken = Math.min((accepted[i] ?? 0) + 1, taking.outputTokens - taking.tokens);
      taking.tokens += taken;
      tokens += taken;
    }
    const sample = { tMs, batch, numSteps, drafts, accepted, tokens, ms };
    tally.round(sample);
    onRound?.(sample);
  }

  function onEvent(of: SimulatedRequest, event: EngineEvent): void {
    const { ms } = runner.now;
    if (event.kind === "error") failure ??= event.error;
    // The token that a prompt's prefill chooses is not a round.
    if (event.kind === "round" && event.tier === undefined) {
      of.firstMs ??= ms;
      of.tokens++;
      tally.first();
    }
    if (event.kind === "finish" && inFlight.delete(of.id)) tally.finish(of, ms);
  }

  function arrive(): void {
    const { ms } = runner.now;
    for (let extra = source.surplus(ms, inFlight.size); extra > 0; extra--) {
      const youngest = [...inFlight.values()].at(-1);
      if (youngest === undefined) break;
      youngest.job.cancel();
      inFlight.delete(youngest.request.id);
    }
    for (const coming of source.due(ms, inFlight.size)) {
      const made = newRequest(submitted++, coming, acceptance);
      if (!fits(made, capacity)) throw tooLarge(made, machine);
      const job = scheduler.submit({
        promptIds: promptIdsOf(made),
        maxTokens: made.outputTokens,
        sampling: GREEDY,
        stop: [],
        ignoreEos: false,
      }, (event) => onEvent(made, event));
      inFlight.set(made.id, { request: made, job });
    }
  }

  const { ms = Infinity, rounds = Infinity, tokens = Infinity } = until;
  while (runner.now.ms < ms && tally.rounds < rounds && tally.tokens < tokens) {
    arrive();
    const ran = scheduler.stepSync();
    if (failure) throw failure;
    if (ran) continue;
    const next = source.next(runner.now.ms);
    if (next === undefined) break;
    runner.waitUntil(next);
  }
  const { counts } = scheduler;
  return tally.result({ policy: simulation.policy.name, ms: runner.now.ms, ...counts });
}

/** Whether a request could run alone. */
function fits({ promptTokens, outputTokens }: SimulatedRequest, capacity: EngineSizes): boolean {
  const cells = reservedCells(capacity, promptTokens + outputTokens);
  return cells <= capacity.pages * CELLS_PER_PAGE;
}

function tooLarge({ promptTokens, outputTokens }: SimulatedRequest, { kvTokens }: Machine) {
  return new UsageError(
    `Cannot simulate a request of ${promptTokens} and ${outputTokens} tokens: ` +
      `--max-kv-tokens is ${kvTokens}`,
  );
}
