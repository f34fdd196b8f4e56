import { type Arrival, arrivalSeed, closedLoop, type Extent } from "../../arrivals/arrival.ts";
import { openLoop } from "../../arrivals/open_loop.ts";
import { constantRate, type RateSchedule } from "../../arrivals/schedule.ts";
import type { NamedPolicy } from "../../engine/schedule/speculation_choice.ts";
import { hash32 } from "../../speculate/noise.ts";
import type { LoadWork } from "./request.ts";

/** How requests arrive in one part of a run. */
export interface LoadCase {
  /** `4 req/s`, `8 in flight`. */
  readonly name: string;
  /** Requests a second as asked; null where none is or where it changes. */
  readonly requestRate: number | null;
  /** Null where gaps are not drawn. */
  readonly burstiness: number | null;
  /** Requests in flight of a closed loop; null: open. */
  readonly concurrency: number | null;
  /** The same list for every policy of a block. */
  arrivals(seed: number): Arrival[];
}

/** A policy under the name that its rows have. */
export interface LoadArm {
  readonly label: string;
  readonly policy: NamedPolicy;
  /** The first policy measured again: its difference from the first is noise. */
  readonly again: boolean;
}

/** In each case `blocks` times all arms, one after the other in an order that rotates. */
export interface LoadPlan {
  readonly cases: readonly LoadCase[];
  /** The first is what the others are compared with. */
  readonly arms: readonly LoadArm[];
  readonly work: LoadWork;
  readonly blocks: number;
  /** Requests of each measurement that are sent before the clock runs. */
  readonly warmup: number;
  readonly seed: number;
}

/** One measurement. */
export interface LoadCellSpec {
  readonly one: LoadCase;
  readonly arm: LoadArm;
  /** From 0; -1 is the warm-up alone. */
  readonly block: number;
  /** Of arrivals, prompts and policies: the same for all arms of a block. */
  readonly seed: number;
}

/** Gaps as vLLM draws them, at a rate that does not change. */
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
 * Times and lengths of a trace in every block, other prompts in each.
 *
 * @param lengthScale factor of its token counts, which stay 1 or more.
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

export function closedCase(concurrency: number, requests: number): LoadCase {
  return {
    name: `${concurrency} in flight`,
    requestRate: null,
    burstiness: null,
    concurrency,
    arrivals: (seed) => closedLoop({ seed, requests }),
  };
}

/** Arms of these policies, doubles once, and the first one again. */
export function loadArms(
  policies: readonly { readonly label: string; readonly policy: NamedPolicy }[],
): LoadArm[] {
  const arms = [...new Map(policies.map((each) => [each.label, each])).values()]
    .map((each) => ({ ...each, again: false }));
  return arms.flatMap((arm, i) =>
    i > 0 ? [arm] : [arm, { ...arm, label: `${arm.label} (A/A)`, again: true }]
  );
}

/** Each block begins with another arm, so that no place in the order is always the same arm's. */
export function armOrder(arms: readonly LoadArm[], block: number): LoadArm[] {
  const first = block % arms.length;
  return [...arms.slice(first), ...arms.slice(0, first)];
}

export function cellSeed(seed: number, block: number): number {
  return hash32(seed, block, 0);
}
