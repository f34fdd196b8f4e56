import type { EngineSizes } from "../../engine/device/buffers.ts";
import type { PagePool } from "../../engine/device/pages.ts";
import type { RoundResult, SequenceResult } from "../../engine/device/round_result.ts";
import type { FirstToken, RoundRequest, SubmittedRounds } from "../../engine/device/runner.ts";
import { type Sequence, slotOf } from "../../engine/device/sequence.ts";
import type { SchedulerRunner } from "../../engine/schedule/scheduler.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";
import { totalMs } from "../../speculate/costs/lookup.ts";
import { normalAt } from "../acceptance/chance.ts";
import { acceptedFrom, confidenceAt, type Progress } from "../acceptance/model.ts";
import type { Pricing } from "../costs/pricing.ts";
import { allocate } from "./allocation.ts";
import { idOf, type SimulatedRequest } from "./request.ts";

/** What the machine does, and how long it takes. */
export interface SimulatedRunnerOptions {
  readonly capacity: EngineSizes;
  readonly pool: PagePool;
  readonly pricing: Pricing;
  /** Prompts take no time. */
  readonly freePrompts: boolean;
  /** Standard deviation of the logarithm of a round's time, and the key of its noise, u32. */
  readonly noise: number;
  readonly seed: number;
  /** Noise of the draft's confidence (`confidenceAt`); undefined: the draft does not report it. */
  readonly confidenceNoise: number | undefined;
  /** One in flight. */
  readonly request: (id: number) => SimulatedRequest;
}

/** A runner in simulated time: its results are there at once, and its clock says when they would be. */
export interface SimulatedRunner extends SchedulerRunner {
  /** Simulated time, and tokens that requests wanted of those emitted. */
  readonly now: Progress;
  /** Nothing happens until then. */
  waitUntil(ms: number): void;
}

/** Key of the noise of times. */
const NOISE = 31;

const NOTHING: SequenceResult = { accepted: 0, ids: [], drafts: [] };

/**
 * Counts tokens instead of computing them: every token is 0, and the acceptance model says how many drafts
 * are right. As on a device, a sequence gets no more tokens once it has all of its request's.
 */
export function simulatedRunner(options: SimulatedRunnerOptions): SimulatedRunner {
  const { capacity, pool, pricing, freePrompts, noise, seed, confidenceNoise, request } = options;
  const slots = Array.from({ length: capacity.batch }, (_, slot) => slot);
  const zeros: (readonly number[])[] = [];
  let [ms, tokens, rounds] = [0, 0, 0];

  /** Whether a request still gets tokens. */
  function isShort(ids: readonly number[]): boolean {
    const { promptTokens, outputTokens } = request(idOf(ids));
    return ids.length < promptTokens + outputTokens;
  }

  const zerosOf = (length: number) => zeros[length] ??= Array<number>(length).fill(0);

  /** Adds tokens to a sequence and counts those that its request wants. */
  function emit(
    { ids }: Sequence,
    { promptTokens, outputTokens }: SimulatedRequest,
    count: number,
  ) {
    const left = promptTokens + outputTokens - ids.length;
    tokens += Math.max(0, Math.min(count, left));
    for (let i = 0; i < count; i++) ids.push(0);
  }

  function confidencesOf(
    sequence: Sequence,
    depth: number,
    now: Progress,
    sigma: number,
  ): number[] {
    const { seed, acceptance } = request(idOf(sequence.ids));
    return Array.from({ length: depth }, (_, step) => {
      const position = sequence.stored + 1 + step;
      const chance = acceptance.confidence?.(position, step, now) ??
        acceptance.chance(position, step, now);
      return confidenceAt({ seed, position, chance, sigma });
    });
  }

  function round(
    sequences: readonly Sequence[],
    { shape: { depth, rows }, count, depths: given, verify }: RoundRequest,
  ): RoundResult {
    const now = { ms, tokens };
    const active = ({ slot, stored, pages, ids }: Sequence) =>
      slot !== undefined && stored + rows <= pages.length * CELLS_PER_PAGE && isShort(ids);
    const confidences = confidenceNoise === undefined || depth === 0 ? undefined : sequences.map(
      (sequence) => active(sequence) ? confidencesOf(sequence, depth, now, confidenceNoise) : [],
    );
    const depths = given ?? (verify && confidences && allocate(confidences, verify));
    let [drafts, cells] = [0, 0];
    const results = sequences.map((sequence, i): SequenceResult => {
      cells += sequence.stored;
      if (!active(sequence)) return NOTHING;
      const drafted = depths?.[i] ?? depth;
      drafts += drafted;
      const of = request(idOf(sequence.ids));
      const { stored } = sequence;
      const accepted = acceptedFrom(stored + 1, drafted, {
        seed: of.seed,
        request: of.acceptance,
        now,
      });
      emit(sequence, of, accepted + 1);
      sequence.stored = stored + accepted + 1;
      if (depth > 0 && sequence.draftStored === stored) sequence.draftStored = sequence.stored;
      const ids = zerosOf(accepted + 1);
      const result = { accepted, ids, drafts: zerosOf(drafted) };
      return confidences ? { ...result, confidences: confidences[i] ?? [] } : result;
    });
    const price = pricing.round({
      batch: sequences.length,
      steps: depth,
      roundsPerSync: count,
      drafts: depths && drafts,
      cells,
    });
    const factor = noise === 0 ? 1 : Math.exp(noise * (normalAt(seed, rounds, NOISE) - noise / 2));
    rounds++;
    ms += totalMs(price) * factor;
    return {
      sequences: results,
      draftMs: price.draft * factor,
      verifyMs: price.verify * factor,
      extendMs: price.extend * factor,
    };
  }

  return {
    capacity,
    pool,
    draft: "catches up",
    ranks: confidenceNoise !== undefined,
    compileMs: 0,
    get now() {
      return { ms, tokens };
    },
    waitUntil: (until) => void (ms = Math.max(ms, until)),
    openSlot(sequence) {
      sequence.slot = slots.pop();
      return sequence.slot !== undefined;
    },
    closeSlot(sequence) {
      slots.push(slotOf(sequence));
      sequence.slot = undefined;
      pool.release(sequence.pages.splice(0));
      sequence.stored = sequence.draftStored = 0;
    },
    reserve({ pages }, cells) {
      const missing = Math.ceil(cells / CELLS_PER_PAGE) - pages.length;
      if (missing > pool.free) return false;
      for (let i = 0; i < missing; i++) pages.push(pool.take() as number);
      return true;
    },
    setPages: (sequence, pages) => void sequence.pages.splice(0, pages.length, ...pages),
    setSampling: () => {},
    prefill(chunks): (FirstToken | undefined)[] {
      if (!freePrompts) {
        ms += pricing.prefill(chunks.map(({ sequence, to }) => ({ from: sequence.stored, to })));
      }
      return chunks.map(({ sequence, to }) => {
        if (sequence.draftStored === sequence.stored) sequence.draftStored = to;
        sequence.stored = to;
        if (to < sequence.ids.length) return undefined;
        emit(sequence, request(idOf(sequence.ids)), 1);
        return { id: 0, logprobs: undefined };
      });
    },
    catchUp(sequences) {
      let lag = 0;
      for (const sequence of sequences) {
        lag += sequence.stored - sequence.draftStored;
        sequence.draftStored = sequence.stored;
      }
      ms += pricing.catchUp(lag);
    },
    begin: (sequences, asked): SubmittedRounds => ({
      results: () => Array.from({ length: asked.count }, () => round(sequences, asked)),
    }),
  };
}
