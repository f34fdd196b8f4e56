import { UsageError } from "../errors.ts";

/** From `fromMs` on, requests arrive at `perSecond`, until the next part of the schedule. */
export interface RatePart {
  readonly fromMs: number;
  /** 0 or more; Infinity: at once. */
  readonly perSecond: number;
}

/** A rate over time, constant within parts that rise by their start; the first begins at 0. */
export type RateSchedule = readonly RatePart[];

const PART = /^(\d+\.?\d*|\.\d+):(\d+\.?\d*|\.\d+)$/;
const ALLOWED =
  "allowed is SECONDS:RATE with commas between, from 0 seconds and rising, as in 0:2,60:20,120:2";

export function constantRate(perSecond: number): RateSchedule {
  return [{ fromMs: 0, perSecond }];
}

/** Reads `0:2,60:20,120:2`, seconds and requests a second. @throws UsageError */
export function parseSchedule(text: string): RateSchedule {
  const refuse = (why: string) => new UsageError(`Cannot use "--request-rate ${text}": ${why}`);
  const parts = text.split(",").map((part) => {
    const [, from, rate] = PART.exec(part.trim()) ?? [];
    if (from === undefined || rate === undefined) throw refuse(ALLOWED);
    return { fromMs: Number(from) * 1000, perSecond: Number(rate) };
  });
  if (parts[0]?.fromMs !== 0) throw refuse(ALLOWED);
  if (parts.some(({ fromMs }, i) => i > 0 && fromMs <= (parts[i - 1]?.fromMs ?? 0))) {
    throw refuse(ALLOWED);
  }
  if (parts.every(({ perSecond }) => perSecond === 0)) throw refuse("no request would ever arrive");
  return parts;
}

/**
 * Times at which the expected number of arrivals reaches each of `counts`, which rise: t with
 *
 *     count = integral from 0 to t of rate(s) ds
 *
 * The list ends early if the rate drops to 0 for good before the next count is reached.
 */
export function* whenReached(
  schedule: RateSchedule,
  counts: Iterable<number>,
): Generator<number> {
  let part = 0;
  let before = 0; // expected arrivals before the part
  for (const count of counts) {
    for (;;) {
      const { fromMs, perSecond } = schedule[part] as RatePart;
      const perMs = perSecond / 1000;
      const ms = perMs > 0 ? fromMs + (count - before) / perMs : Infinity;
      const end = endOf(schedule, part);
      if (ms < end) {
        yield ms;
        break;
      }
      if (end === Infinity) return;
      before += perMs * (end - fromMs);
      part++;
    }
  }
}

function endOf(schedule: RateSchedule, part: number): number {
  return schedule[part + 1]?.fromMs ?? Infinity;
}
