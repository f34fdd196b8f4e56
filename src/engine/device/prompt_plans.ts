import { acceptPrompt } from "../../../kernels/round/round.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { targetHead } from "../../model/graph/target.ts";
import { planOf } from "../../model/lower/lower.ts";
import { bodyPlan } from "../../model/lower/target_plans.ts";
import { chain } from "../../speculate/round_shape.ts";
import { afterAcceptance, chooseRows, type SamplingBuffers } from "./choice/choice.ts";
import type { RoundParts } from "./round_plans.ts";

/** The parts of a prefill chunk of `count` rows; `head` runs after the last chunk only. */
export interface PromptPlans {
  readonly body: Dispatch[];
  /** The first token. */
  readonly head: Dispatch[];
  /** Draft keys and values of the chunk. */
  readonly draft: Dispatch[];
}

/** @param choice as of `roundPlans`. */
export function promptPlans(
  { target, drafter, buffers, keepAll }: RoundParts,
  count: number,
  choice?: SamplingBuffers,
): PromptPlans {
  const { batchSlots, slots, rows, extendRows, chosen, last, results } = buffers;
  return {
    body: [
      ...bodyPlan(target, { rows, count, perSlot: count }, drafter?.auxHidden),
      ...keepAll ? drafter?.catchUp?.keep(count) ?? [] : [],
    ],
    head: [
      ...planOf(target, (graph) => {
        const all = graph.input("final", count, target.config.hiddenSize, target.final);
        targetHead(graph, target, graph.gather(all, last, 1, "head.row"), target.logits);
      }),
      // The one row to choose for is in draftRows, see `writePrompt`.
      ...chooseRows(target, { ...buffers, rows: buffers.draftRows }, {
        count: 1,
        perSlot: 1,
        choice,
      }),
      acceptPrompt({ batchSlots, last, chosen, slots, extend: extendRows, results }),
      ...afterAcceptance(buffers, target, { shape: { ...chain(0), batch: 1 }, choice }),
    ],
    draft: drafter?.prompt(count) ?? [],
  };
}
