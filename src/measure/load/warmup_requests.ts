import type { LoadPlan } from "./plan.ts";
import { type LoadRequest, requestsOf } from "./request.ts";

/** Seed of what is sent before the clock runs: no request of a block has it. */
const WARM = 0x3a7;

/** What is sent, all at once, before the clock runs. */
export function earlyRequests(
  { work, warmup }: Pick<LoadPlan, "work" | "warmup">,
  seed: number,
): LoadRequest[] {
  const early = Array.from({ length: warmup }, (_, n) => ({ atMs: 0, seed: n }));
  return requestsOf(early, work, (seed ^ WARM) >>> 0);
}
