import { type Arrival, arrivalSeed, closedLoop, type Extent } from "../../arrivals/arrival.ts";
import { openLoop } from "../../arrivals/open_loop.ts";
import { constantRate, type RateSchedule } from "../../arrivals/schedule.ts";
import type { NamedPolicy } from "../../engine/schedule/speculation_choice.ts";
import { hash32 } from "../../speculate/noise.ts";
import type { LoadWork } from "./request.ts";

/** How requests arrive in one case of a run. */
export interface LoadCase {
  /** The case in words: `4 req/s`, `8 in flight`. */
  readonly name: string;
  /** The requested rate per second; null if there is none or it changes. */
  readonly requestRate: number | null;
  /** Null if the gaps between arrivals are not drawn at random. */
  readonly burstiness: number | null;
  /** Requests in flight of a closed loop; null for an open loop. */
  readonly concurrency: number | null;
  /** The arrivals of a block, the same for every policy. */
  arrivals(seed: number): Arrival[];
}

/** A policy and the name that its rows have. */
export interface LoadArm {
  readonly label: string;
  readonly policy: NamedPolicy;
  /** The first policy measured again: its difference from the first is noise. */
  readonly again: boolean;
}

/** What a run measures: in each case all arms in a random order, `blocks` times. */
export interface LoadPlan {
  readonly cases: readonly LoadCase[];
  /** The arms; the others are compared with the first. */
  readonly arms: readonly LoadArm[];
  readonly work: LoadWork;
  readonly blocks: number;
  /** The number of requests that are sent before each measurement begins. */
  readonly warmup: number;
  readonly seed: number;
}

/** One measurement. */
export interface LoadCellSpec {
  readonly one: LoadCase;
  readonly arm: LoadArm;
  /** The number of the block from 0; -1 for the warm-up. */
  readonly block: number;
  /** The seed of arrivals, prompts and policies, the same for all arms of a block. */
  readonly seed: number;
}

/** Arrivals at a constant mean rate, with gaps drawn as vLLM draws them. */
export function rateCase(perSecond: number, burstiness: number, extent: Extent): LoadCase {
  return {
    name: `${perSecond} req/s`,
    requestRate: perSecond,
    burstiness,
    concurrency: null,
    arrivals: (seed) =>
      openLoop({ schedule: constantRate(perSecond), burstiness, seed, ...extent }),
  };
}

/** Arrivals at a rate that changes over time. */
export function scheduleCase(
  schedule: RateSchedule,
  { text, burstiness, extent }: { text: string; burstiness: number; extent: Extent },
): LoadCase {
  return {
    name: `rates ${text}`,
    requestRate: null,
    burstiness,
    concurrency: null,
    arrivals: (seed) => openLoop({ schedule, burstiness, seed, ...extent }),
  };
}

/**
 * Arrivals with the times and lengths of a trace, the same in every block; the prompts differ between blocks.
 *
 * @param lengthScale factor for its token counts, which are at least 1.
 */
export function traceCase(
  arrivals: readonly Arrival[],
  { name, lengthScale }: { name: string; lengthScale: number },
): LoadCase {
  const scaled = (tokens = 1) => Math.max(1, Math.round(tokens * lengthScale));
  return {
    name,
    requestRate: null,
    burstiness: null,
    concurrency: null,
    arrivals: (seed) =>
      arrivals.map(({ atMs, promptTokens, outputTokens }, n) => ({
        atMs,
        seed: arrivalSeed(seed, n),
        promptTokens: scaled(promptTokens),
        outputTokens: scaled(outputTokens),
      })),
  };
}

/** A closed loop with this number of requests in flight. */
export function closedCase(concurrency: number, requests: number): LoadCase {
  return {
    name: `${concurrency} in flight`,
    requestRate: null,
    burstiness: null,
    concurrency,
    arrivals: (seed) => closedLoop({ seed, requests }),
  };
}

/** The arms of these policies without repetitions, and the first one again. */
export function loadArms(
  policies: readonly { readonly label: string; readonly policy: NamedPolicy }[],
): LoadArm[] {
  const arms = [...new Map(policies.map((each) => [each.label, each])).values()]
    .map((each) => ({ ...each, again: false }));
  return arms.flatMap((arm, i) =>
    i > 0 ? [arm] : [arm, { ...arm, label: `${arm.label} (A/A)`, again: true }]
  );
}

/** The seed of a block. */
export function cellSeed(seed: number, block: number): number {
  return hash32(seed, block, 0);
}
