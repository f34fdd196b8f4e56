import type { LoadPlan } from "./plan.ts";
import { type LoadRequest, requestsOf } from "./request.ts";

/** The seed of the warm-up requests; no request of a block has it. */
const WARM = 0x3a7;

/** The requests that are sent, all at once, before the measured time begins. */
export function warmupRequests(
  { work, warmup }: Pick<LoadPlan, "work" | "warmup">,
  seed: number,
): LoadRequest[] {
  const early = Array.from({ length: warmup }, (_, n) => ({ atMs: 0, seed: n }));
  return requestsOf(early, work, (seed ^ WARM) >>> 0);
}
