import { acceptPrompt } from "../../../kernels/round/round.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { targetHead } from "../../model/graph/target.ts";
import { planOf } from "../../model/lower/lower.ts";
import { bodyPlan } from "../../model/lower/target_plans.ts";
import { chain } from "../../speculate/round_shape.ts";
import { afterAcceptance, chooseRows, type SamplingBuffers } from "./choice/choice.ts";
import type { ForwardRows } from "./device_drafter.ts";
import type { RoundParts } from "./round_plans.ts";

/** The target's forward of prompts' rows, without the head. */
export function promptBody(
  { target, drafter, buffers: { rows }, keepAll }: RoundParts,
  forward: ForwardRows,
): Dispatch[] {
  return [
    ...bodyPlan(target, { rows, ...forward }, drafter?.auxHidden),
    ...keepAll ? drafter?.catchUp?.keep(forward.count) ?? [] : [],
  ];
}

/**
 * The first tokens of prompts that end in a forward.
 *
 * @param heads how many, padding included.
 * @param choice as of `roundPlans`.
 */
export function promptHead(
  { target, buffers }: RoundParts,
  heads: number,
  choice?: SamplingBuffers,
): Dispatch[] {
  const { batchSlots, slots, draftRows: rows, extendRows: extend, chosen, last, results } = buffers;
  return [
    ...planOf(target, (graph) => {
      const all = graph.input("final", heads, target.config.hiddenSize, target.final);
      targetHead(graph, target, graph.gather(all, last, heads, "head.row"), target.logits);
    }),
    // The rows to choose for are in draftRows, see `writePrompts`.
    ...chooseRows(target, { slots, rows, chosen }, { count: heads, perSlot: 1, choice }),
    acceptPrompt({ batchSlots, last, chosen, slots, extend, results }, heads),
    ...afterAcceptance(buffers, target, { shape: { ...chain(0), batch: heads }, choice }),
  ];
}

/** The draft's keys and values of prompts' rows. */
export function promptDraft({ drafter }: RoundParts, forward: ForwardRows): Dispatch[] {
  return drafter?.prompt(forward) ?? [];
}
