/** A target's forward and its head as separate plans. */
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { RowsOf } from "../graph/graph.ts";
import {
  type AuxHidden,
  type Target,
  targetHead,
  targetLayers,
  targetNorm,
} from "../graph/target.ts";
import { planOf } from "./lower.ts";

/** Rows in, `final` out: embedding, layers, final norm. */
export function bodyPlan(
  target: Target,
  of: RowsOf,
  auxHidden: readonly AuxHidden[] = [],
): Dispatch[] {
  return planOf(target, (graph) => {
    const x = targetLayers(graph, target, of, auxHidden);
    targetNorm(graph, target, x, target.final);
  });
}

/** Logits of the first `count` rows of `final`, or of others. */
export function headPlan(
  target: Target,
  count: number,
  from: Operand = target.final,
): Dispatch[] {
  return planOf(target, (graph) => {
    const x = graph.input("final", count, target.config.hiddenSize, from);
    targetHead(graph, target, x, target.logits);
  });
}
