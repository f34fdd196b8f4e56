import { type Routing, slotIndex } from "../../src/speculate/batch_bracket.ts";

/**
 * The buckets at which a tier can ever run, so that no other needs its programs (SGLang's
 * `cuda_graph_bs_for_step`); undefined without buckets.
 */
export function bucketsForStep(routing: Routing, steps: number): readonly number[] | undefined {
  return routing.buckets?.filter((bucket) =>
    routing.slots[slotIndex(routing, bucket)]?.candidateSteps.includes(steps)
  );
}
