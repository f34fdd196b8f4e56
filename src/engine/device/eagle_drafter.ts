import { loadFeatures, storeFeatures } from "../../../kernels/round/features.ts";
import { gatherRows } from "../../../kernels/round/move_rows.ts";
import { draftRows } from "../../../kernels/round/round.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import {
  draftBody,
  draftHead,
  draftLast,
  draftLevel,
  firstTokens,
  levelTokens,
  type TreeScratch,
} from "../../model/graph/draft.ts";
import type { AuxHidden } from "../../model/graph/target.ts";
import { planOf } from "../../model/lower/lower.ts";
import { isChain, type RoundShape } from "../../speculate/round_shape.ts";
import { keptRows, type RoundBuffers } from "./buffers.ts";
import type { CatchUp, DeviceDrafter } from "./device_drafter.ts";
import { draftLevels } from "./draft_levels.ts";
import type { SpeculativeDraft } from "./models.ts";

/** An EAGLE head or a NextN layer as a drafter of chains, and of trees where it has room for them. */
export function eagleDrafter(draft: SpeculativeDraft, buffers: RoundBuffers): DeviceDrafter {
  const { batchSlots, last, extendRows } = buffers;
  const body = (count: number, perSlot: number, features = draft.features) =>
    planOf(
      draft,
      (graph) => draftBody(graph, draft, { rows: extendRows, count, perSlot }, { features }),
    );
  const head = (batch: number) =>
    planOf(draft, (graph) => {
      const x = draftLast(graph, draft, { rows: extendRows, last }, batch);
      if (draft.tree) firstTokens(graph, draft, draft.tree, batchSlots, x);
      else draftHead(graph, draft, batchSlots, { x, step: 0, keepHidden: true });
    });
  return {
    auxHidden: auxHiddenOf(draft),
    readsFinal: draft.draft.algorithm !== "EAGLE3",
    levels: (shape) =>
      draftLevels(draft, buffers, shape, {
        chain: (level) => chainLevel(draft, buffers, shape, level),
        tree: (tree, level) => treeLevel(draft, tree, shape, level),
      }),
    extend(shape, { count, perSlot }) {
      const features = isChain(shape) ? draft.features : draft.keptFeatures;
      return [
        ...features === draft.features ? [] : [gatherKept(draft, buffers, count)],
        ...body(count, perSlot, features),
      ];
    },
    headAfterExtend: head,
    packs: true,
    prompt: ({ count, perSlot }) => body(count, perSlot),
    head,
    catchUp: draft.store && catchUp(draft, { ...buffers, store: draft.store }),
  };
}

/** Copies of the target's residual stream that EAGLE-3 reads, side by side. */
function auxHiddenOf({ draft: { algorithm, auxLayers }, features, featureCols }: SpeculativeDraft) {
  if (algorithm !== "EAGLE3") return [];
  const hiddenSize = featureCols / auxLayers.length;
  return auxLayers.map((layer, i): AuxHidden => ({
    layer,
    out: features,
    outCols: featureCols,
    outFirst: i * hiddenSize,
  }));
}

/** Level `level` of a chain: draft token `level + 1` of each sequence. */
function chainLevel(
  draft: SpeculativeDraft,
  { batchSlots, slots, drafts, draftRows: rows }: RoundBuffers,
  { batch, depth }: RoundShape,
  level: number,
): Dispatch[] {
  const { maxRows } = draft;
  const keepHidden = level + 2 < depth;
  const fed = { rows, count: batch, perSlot: 1 };
  return [
    // Later levels need no such dispatch: the kernel that chooses a token writes the row of the next level.
    ...level === 0
      ? [draftRows({ batchSlots, slots, drafts, rows }, { batch, maxRows, step: 0 })]
      : [],
    ...planOf(draft, (graph) => {
      const x = draftLevel(graph, draft, fed, { hidden: draft.hidden, index: batchSlots });
      draftHead(graph, draft, batchSlots, {
        x,
        step: level + 1,
        keepHidden,
        next: keepHidden ? { slots, rows } : undefined,
      });
    }),
  ];
}

/** The most probable tokens behind the nodes that level `level` of a tree continues from. */
function treeLevel(
  draft: SpeculativeDraft,
  tree: TreeScratch,
  { batch, depth, width }: RoundShape,
  level: number,
): Dispatch[] {
  const { rows, index } = tree;
  const count = batch * width;
  return planOf(draft, (graph) => {
    const x = draftLevel(graph, draft, { rows, count, perSlot: width, paths: true }, {
      hidden: level === 0 ? draft.hidden : tree.hidden,
      index,
    });
    const keepHidden = level + 2 < depth;
    levelTokens(graph, draft, tree, { x, width, level, keepHidden });
  });
}

/** Features of the extend rows of trees, whose verify rows are not neighbours. */
function gatherKept(draft: SpeculativeDraft, buffers: RoundBuffers, rows: number): Dispatch {
  const { features: x, keptFeatures: out, featureCols: cols } = draft;
  const index = keptRows(buffers.last);
  return gatherRows({ x, index, out: out as Operand }, { rows, cols, label: "draft.kept" });
}

function catchUp(
  draft: SpeculativeDraft,
  { rows, extendRows, store }: RoundBuffers & { readonly store: Operand },
): CatchUp {
  const { features, featureCols: cols, pages, tablePages } = draft;
  return {
    keep: (count) => [storeFeatures({ features, rows, pages, store }, { count, cols, tablePages })],
    rows: (count) => [
      loadFeatures({ features, rows: extendRows, pages, store }, { count, cols, tablePages }),
      ...planOf(
        draft,
        (graph) => draftBody(graph, draft, { rows: extendRows, count, perSlot: 1 }, { features }),
      ),
    ],
  };
}
