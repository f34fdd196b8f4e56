import type { AcceptanceModel, Progress } from "./model.ts";
import { uniformAt } from "./chance.ts";

/** Keys the draws of a request's phases. */
const [FIRST, DWELL, NEXT] = [11, 12, 13];

/**
 * Chances that change as a Markov chain along each request's tokens. A state lasts `dwell` tokens on average,
 * geometrically distributed, and is followed by each other state with equal probability.
 */
export function phasesOfText(alphas: readonly number[], dwell: number): AcceptanceModel {
  return {
    name: `phases:${alphas.join("/")},dwell=${dwell}`,
    open(seed) {
      const state = walkOfStates(seed, alphas.length, dwell);
      return { chance: (position) => alphas[state(position)] ?? 0 };
    },
  };
}

/**
 * Chances that change for all requests at once: the alphas apply in turn, each for `everyMs`, as if the kind of
 * requests changed over the day.
 */
export function phasesOfTime(alphas: readonly number[], everyMs: number): AcceptanceModel {
  const chance = (_: number, __: number, { ms }: Progress) =>
    alphas[Math.floor(ms / everyMs) % alphas.length] ?? 0;
  return {
    name: `phases:${alphas.join("/")},every=${everyMs / 1000}`,
    cycleMs: alphas.length * everyMs,
    open: () => ({ chance }),
  };
}

/**
 * As `phasesOfTime`, each for `every` tokens of all requests together: a batch of texts that change
 * alike. A phase is then as much work for a fast policy as for a slow one.
 */
export function phasesOfWork(alphas: readonly number[], every: number): AcceptanceModel {
  const chance = (_: number, __: number, { tokens }: Progress) =>
    alphas[Math.floor(tokens / every) % alphas.length] ?? 0;
  return { name: `phases:${alphas.join("/")} each ${every} tokens`, open: () => ({ chance }) };
}

/** Returns the state at a position. Draws are kept, so positions may be asked for in any order. */
function walkOfStates(
  seed: number,
  count: number,
  dwell: number,
): (position: number) => number {
  /** Where each state of the walk ends, rising, and which it is. */
  const ends: number[] = [];
  const states: number[] = [];
  const extend = () => {
    const at = ends.length;
    const before = states.at(-1);
    states.push(
      before === undefined
        ? Math.floor(count * uniformAt(seed, 0, FIRST))
        : (before + 1 + Math.floor((count - 1) * uniformAt(seed, at, NEXT))) % count,
    );
    // Geometric with mean `dwell`, by inversion.
    const length = dwell <= 1
      ? 1
      : Math.ceil(Math.log(uniformAt(seed, at, DWELL)) / Math.log1p(-1 / dwell));
    ends.push((ends.at(-1) ?? 0) + Math.max(1, length));
  };
  let last = 0;
  return (position) => {
    while ((ends.at(-1) ?? 0) <= position) extend();
    if (position < (ends[last - 1] ?? 0)) last = 0;
    while ((ends[last] ?? Infinity) <= position) last++;
    return states[last] ?? 0;
  };
}
