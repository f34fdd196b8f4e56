import type { PrefillSample } from "../engine/schedule/prefill.ts";
import { sum } from "./statistics.ts";

/**
 * The prefill of a measurement: the prompt tokens that were computed, and the milliseconds in which the engine did so.
 */
export interface Prefills {
  /** Tokens that were found in the prefix cache are not counted. */
  readonly tokens: number;
  readonly ms: number;
}

/** The sum of these forwards. They follow one another: no two of them share a millisecond. */
export function prefillsOf(forwards: readonly PrefillSample[]): Prefills {
  return {
    tokens: sum(forwards.flatMap(({ chunks }) => chunks.map(({ from, to }) => to - from))),
    ms: sum(forwards.map(({ ms }) => ms)),
  };
}

/** Prompt tokens per second of prefill, which llama-batched-bench calls S_PP; 0 if nothing was computed. */
export function prefillRate({ tokens, ms }: Prefills): number {
  return ms > 0 ? tokens / ms * 1000 : 0;
}

/** The share of the wall time in which prompts were computed, 0 to 1. */
export function prefillShare({ ms }: Prefills, seconds: number): number {
  return seconds > 0 ? ms / 1000 / seconds : 0;
}
