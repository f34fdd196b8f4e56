/** The scratch memory of an engine's models. */
import {
  type Draft,
  draftBody,
  draftHead,
  draftLast,
  draftLevel,
} from "../../model/graph/draft.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Graph } from "../../model/graph/graph.ts";
import { type Target, targetHead, targetLayers, targetNorm } from "../../model/graph/target.ts";
import { layOut } from "../../model/lower/lower.ts";
import { type EngineSizes, maxRows, type RoundBuffers, treeWidth, whole } from "./buffers.ts";

/** Rows of forwards that are laid out besides the widest: few rows go by other kernels. */
const FEW_ROWS = [1, 2, 8, 16];

/** Lays out the widest forwards, and some of few rows, in the scratch memory of the models. */
export function layOutScratch(
  { target, draft, standalone }: {
    readonly target: Target;
    readonly draft: Draft & { readonly features: Operand } | undefined;
    /** Instead of `draft`. */
    readonly standalone: { readonly model: Target } | undefined;
  },
  { rows, last, batchSlots }: RoundBuffers,
  capacity: EngineSizes,
): void {
  const widest = maxRows(capacity);
  const counts = [widest, ...FEW_ROWS.filter((count) => count < widest)];
  for (const count of counts) {
    const of = { rows, count, perSlot: count };
    for (const model of [target, ...standalone ? [standalone.model] : []]) {
      layOut(model, (graph) => {
        const x = targetNorm(graph, model, targetLayers(graph, model, of, []));
        targetHead(graph, model, x, model.logits);
      });
    }
    if (draft) {
      const { features } = draft;
      layOut(draft, (graph) => draftBody(graph, draft, of, { features }));
    }
  }
  if (!draft) return;
  const { hidden } = draft;
  const level = (graph: Graph, count: number) => {
    const of = { rows, count, perSlot: 1 };
    return draftLevel(graph, draft, of, { hidden, index: batchSlots });
  };
  const step = { step: 0, keepHidden: true };
  for (const batch of new Set([1, whole(capacity.batch)])) {
    layOut(draft, (graph) => {
      const x = draftLast(graph, draft, { rows, last }, batch);
      draftHead(graph, draft, batchSlots, { x, ...step });
    });
    layOut(draft, (graph) => {
      draftHead(graph, draft, batchSlots, { x: level(graph, batch), ...step });
    });
  }
  const nodes = whole(capacity.batch * treeWidth(capacity));
  if (draft.tree) layOut(draft, (graph) => void level(graph, nodes));
}
