import { acceptPrompt } from "../../../kernels/round/round.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { targetHead } from "../../model/graph/target.ts";
import { planOf } from "../../model/lower/lower.ts";
import { bodyPlan } from "../../model/lower/target_plans.ts";
import { chain } from "../../speculate/round_shape.ts";
import { afterAcceptance, chooseRows, type SamplingBuffers } from "./choice/choice.ts";
import type { ForwardRows } from "./device_drafter.ts";
import type { RoundParts } from "./round_plans.ts";

/** The parts of a forward of prompts; `head` runs where a prompt ends in it. */
export interface PromptPlans {
  readonly body: Dispatch[];
  /** The first tokens. */
  readonly head: Dispatch[];
  /** Draft keys and values of the rows. */
  readonly draft: Dispatch[];
}

/**
 * @param forward the rows of the forward.
 * @param ends.heads prompts that end in it, padding included; default 1.
 * @param ends.choice as of `roundPlans`.
 */
export function promptPlans(
  { target, drafter, buffers, keepAll }: RoundParts,
  forward: ForwardRows,
  { heads = 1, choice }: {
    readonly heads?: number;
    readonly choice?: SamplingBuffers;
  } = {},
): PromptPlans {
  const { count } = forward;
  const { batchSlots, slots, rows, extendRows, chosen, last, results } = buffers;
  return {
    body: [
      ...bodyPlan(target, { rows, ...forward }, drafter?.auxHidden),
      ...keepAll ? drafter?.catchUp?.keep(count) ?? [] : [],
    ],
    head: [
      ...planOf(target, (graph) => {
        const all = graph.input("final", count, target.config.hiddenSize, target.final);
        targetHead(graph, target, graph.gather(all, last, heads, "head.row"), target.logits);
      }),
      // The rows to choose for are in draftRows, see `writePrompts`.
      ...chooseRows(target, { ...buffers, rows: buffers.draftRows }, {
        count: heads,
        perSlot: 1,
        choice,
      }),
      acceptPrompt({ batchSlots, last, chosen, slots, extend: extendRows, results }, heads),
      ...afterAcceptance(buffers, target, { shape: { ...chain(0), batch: heads }, choice }),
    ],
    draft: drafter?.prompt(forward) ?? [],
  };
}
