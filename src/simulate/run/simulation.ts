import { chunkTokens, openRunQueue } from "../../engine/schedule/run_queue.ts";
import { openSpeculation } from "../../engine/schedule/speculation.ts";
import {
  openSyncInterval,
  type RoundsPerSync,
  roundsToCome,
} from "../../engine/schedule/sync_interval.ts";
import type {
  Decision,
  Policy,
  RoundContext,
  RoundTimes,
  SequenceContext,
} from "../../speculate/policy.ts";
import { UsageError } from "../../errors.ts";
import { normalAt } from "../acceptance/chance.ts";
import type { AcceptanceModel, Progress } from "../acceptance/model.ts";
import { type Pricing, type RoundPrice, totalMs } from "../costs/pricing.ts";
import { countedPages } from "./pages.ts";
import { lengthOf, newRequest, type SimulatedRequest, textSoFar } from "./request.ts";
import { draftRound } from "./round.ts";
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
  /** Of the noise of times, u32. */
  readonly seed: number;
  readonly onRound?: (sample: SimulatedSample) => void;
}

/** A policy by its name. An oracle is told of the simulation what no policy can know. */
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
  readonly roundsPerSync: RoundsPerSync;
  /** Standard deviation of the logarithm of a round's time. */
  readonly noise: number;
  /** Noise of the draft's confidence (`confidenceAt`); undefined: the draft tells none. */
  readonly confidenceNoise: number | undefined;
}

/** Key of the noise of times. */
const NOISE = 31;

/**
 * Plays an engine's schedule through: requests come, wait for slots and pages, are prefilled chunk by
 * chunk between groups of rounds, decode, and leave, by the scheduler's own admission (run_queue.ts),
 * groups (sync_interval.ts) and policy wrapper (speculation.ts). Times are the pricing's.
 *
 * @throws UsageError for a request that the pages cannot hold, and for depths without a price.
 */
export function simulate(simulation: Simulation): SimulationResult {
  const { pricing, acceptance, source, machine, until, seed, onRound } = simulation;
  const inFlight = new Map<number, SimulatedRequest>();
  let now = 0;
  const tally = openTally();
  const policy = simulation.policy.open({
    get now() {
      return { ms: now, tokens: tally.tokens };
    },
    request: (id) => inFlight.get(id) as SimulatedRequest,
  });
  const speculation = openSpeculation(simulation.policy.name, policy);
  const ranks = machine.confidenceNoise !== undefined && policy.confident === true;
  const confidenceNoise = ranks ? machine.confidenceNoise : undefined;
  const pages = countedPages({
    batch: machine.maxBatch,
    shapes: policy.tiers,
    prefillRows: machine.chunkRows,
    contextLength: Infinity,
    pages: Math.floor(machine.kvTokens / 16),
  });
  const places = openRunQueue<SimulatedRequest>(pages);
  const { running, waiting } = places;
  const sync = openSyncInterval(machine.roundsPerSync);
  let together = 1;
  let submitted = 0;

  function leave(request: SimulatedRequest): void {
    request.done = true;
    inFlight.delete(request.id);
    if (places.remove(request)) pages.close(request);
  }

  function arrive(): void {
    for (let extra = source.surplus(now, inFlight.size); extra > 0; extra--) {
      const youngest = waiting.at(-1) ?? running.at(-1);
      if (youngest) leave(youngest);
    }
    for (const coming of source.due(now, inFlight.size)) {
      const request = newRequest(submitted++, coming, acceptance);
      if (!pages.fits(request)) throw tooLarge(request, machine);
      inFlight.set(request.id, request);
      places.enqueue(request);
    }
  }

  function admit(): void {
    for (let request = places.admit(); request; request = places.admit()) {
      if (!source.stored) return;
      request.stored = request.draftStored = lengthOf(request);
      begin(request);
    }
  }

  /** Its prompt is stored, and the target chose the next token. */
  function begin(request: SimulatedRequest): void {
    request.decoding = true;
    request.firstMs ??= now;
    tally.first();
    take(request, 1);
  }

  /** @returns tokens that it still wanted of these. */
  function take(request: SimulatedRequest, tokens: number): number {
    const taken = Math.min(tokens, request.outputTokens - request.tokens);
    request.tokens += taken;
    if (request.tokens < request.outputTokens) return taken;
    tally.finish(request, now);
    leave(request);
    return taken;
  }

  function prefill(): void {
    const request = running.find(({ decoding }) => !decoding);
    if (!request) return;
    catchUp([request]);
    sync.pause();
    const tokens = chunkTokens(machine.chunkRows, running);
    const to = Math.min(lengthOf(request), request.stored + tokens);
    now += pricing.prefill(request.stored, to);
    if (request.draftStored === request.stored) request.draftStored = to;
    request.stored = to;
    if (to === lengthOf(request)) begin(request);
  }

  /** Milliseconds that it took. */
  function catchUp(requests: readonly SimulatedRequest[]): number {
    let lag = 0;
    for (const request of requests) {
      lag += request.stored - request.draftStored;
      request.draftStored = request.stored;
    }
    if (lag === 0) return 0;
    const ms = pricing.catchUp(lag);
    now += ms;
    sync.pause();
    tally.caughtUp(ms);
    return ms;
  }

  function contextOf(requests: readonly SimulatedRequest[]): RoundContext {
    let sequences: readonly SequenceContext[] | undefined;
    return {
      batchSize: requests.length,
      asked: requests.map(() => undefined),
      get sequences() {
        return sequences ??= requests.map(sequenceContext);
      },
      waiting: waiting.length,
      freePages: finite(pages.available),
      totalPages: finite(pages.total),
      roundsPerSync: together,
      costs: pricing.table,
      ranks,
    };
  }

  /** A group of rounds at one choice; none where nothing decodes. */
  function rounds(): void {
    const requests = places.grow();
    if (requests.length === 0) return;
    const context = contextOf(requests);
    const choice = speculation.pick(context);
    const { tier } = choice;
    const texts = requests.map(textSoFar);
    const wanted = sync.pick(requests.length, tier, { toCome: roundsToCome(texts, tier.depth) });
    const most = Math.min(wanted, speculation.holds(context));
    const ahead = { most, numSteps: tier.depth, left: texts.map(({ left }) => left) };
    together = places.reserveAhead(requests, ahead);
    let catchUpMs = tier.depth > 0 ? catchUp(requests) : 0;
    for (let count = 0; count < together; count++) {
      round(requests, choice, catchUpMs);
      catchUpMs = 0;
    }
    sync.learn(requests.length, tier, { count: together, ended: now });
  }

  function round(
    requests: readonly SimulatedRequest[],
    choice: Decision,
    catchUpMs: number,
  ): void {
    const taking = requests.filter(({ done }) => !done);
    const drafted = draftRound(taking, {
      choice,
      confidenceNoise,
      now: { ms: now, tokens: tally.tokens },
    });
    const { tier: { depth: steps } } = choice;
    const shorter = choice.depths !== undefined || choice.verify !== undefined;
    const noise = machine.noise === 0
      ? 1
      : Math.exp(machine.noise * (normalAt(seed, tally.rounds, NOISE) - machine.noise / 2));
    const price = pricing.round({
      batch: requests.length,
      steps,
      roundsPerSync: together,
      drafts: shorter ? drafted.drafts : undefined,
      cells: requests.reduce((sum, { stored }) => sum + stored, 0),
    });
    const ms = totalMs(price) * noise;
    now += ms;
    if (taking.length === 0) return tally.wasted();
    let tokens = 0;
    for (const [i, { accepted }] of drafted.sequences.entries()) {
      const request = taking[i] as SimulatedRequest;
      const caughtUp = request.draftStored === request.stored && steps > 0;
      request.stored += accepted + 1;
      if (caughtUp) request.draftStored = request.stored;
      tokens += take(request, accepted + 1);
    }
    const [batch, { sequences }] = [taking.length, drafted];
    const outcome = { tier: choice.tier, batchSize: requests.length, waiting: waiting.length };
    speculation.learn({ ...outcome, sequences, ms: timesOf(price, { noise, ms, catchUpMs }) });
    const accepted = sequences.map((each) => each.accepted);
    const sample = { tMs: now, batch, numSteps: steps, drafts: drafted.drafts, accepted };
    tally.round({ ...sample, tokens, ms, waiting: waiting.length });
    onRound?.({ ...sample, tokens, ms, waiting: waiting.length });
  }

  const { ms = Infinity, rounds: mostRounds = Infinity, tokens = Infinity } = until;
  while (now < ms && tally.rounds < mostRounds && tally.tokens < tokens) {
    arrive();
    admit();
    if (running.length === 0) {
      const next = source.next(now);
      if (next === undefined) break;
      now = Math.max(now, next);
      continue;
    }
    prefill();
    rounds();
  }
  const { preemptions, waits } = places;
  return tally.result({ policy: simulation.policy.name, ms: now, preemptions, waits });
}

function sequenceContext(request: SimulatedRequest): SequenceContext {
  const { id, stored, draftStored, depth, accepted, confidences } = request;
  const lag = stored - draftStored;
  return { id, position: stored, depth, accepted: [...accepted], confidences, lag };
}

function timesOf(
  { draft, verify, extend, host }: RoundPrice,
  { noise, ms, catchUpMs }: {
    readonly noise: number;
    readonly ms: number;
    readonly catchUpMs: number;
  },
): RoundTimes {
  return {
    round: ms,
    draft: draft * noise,
    verify: verify * noise,
    extend: extend * noise,
    host: host * noise,
    catchUp: catchUpMs,
  };
}

/** As policies are told where memory is no limit. */
function finite(pages: number): number {
  return Math.min(pages, 2 ** 31 - 1);
}

function tooLarge({ promptTokens, outputTokens }: SimulatedRequest, { kvTokens }: Machine) {
  return new UsageError(
    `Cannot simulate a request of ${promptTokens} and ${outputTokens} tokens: ` +
      `--max-kv-tokens is ${kvTokens}`,
  );
}
