import { loadFeatures, storeFeatures } from "../../../kernels/round/features.ts";
import { gatherRows } from "../../../kernels/round/move_rows.ts";
import { draftRows } from "../../../kernels/round/round.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { treeLevel, treeSelect } from "../../../kernels/tree/tree.ts";
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
import { poolSize } from "../../speculate/trees.ts";
import { keptRows, type RoundBuffers } from "./buffers.ts";
import type { CatchUp, DeviceDrafter } from "./device_drafter.ts";
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
      draft.tree && !isChain(shape)
        ? treeOf(draft, draft.tree, buffers, shape)
        : levels(draft, buffers, shape),
    extend(shape, { count, perSlot }) {
      const features = isChain(shape) ? draft.features : draft.keptFeatures;
      return [
        ...features === draft.features ? [] : [gatherKept(draft, buffers, count)],
        ...body(count, perSlot, features),
      ];
    },
    headAfterExtend: head,
    packs: true,
    prompt: (count) => body(count, count),
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

function levels(
  draft: SpeculativeDraft,
  { batchSlots, slots, drafts, draftRows: rows }: RoundBuffers,
  { batch, depth }: RoundShape,
): Dispatch[] {
  const { mostRows } = draft;
  return Array.from({ length: Math.max(0, depth - 1) }, (_, level) => {
    const keepHidden = level + 2 < depth;
    const fed = { rows, count: batch, perSlot: 1 };
    return [
      ...level === 0
        ? [draftRows({ batchSlots, slots, drafts, rows }, { batch, mostRows, step: 0 })]
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
  }).flat();
}

function treeOf(
  draft: SpeculativeDraft,
  tree: TreeScratch,
  buffers: RoundBuffers,
  shape: RoundShape,
): Dispatch[] {
  const { batch, depth, width } = shape;
  const { rows, index } = tree;
  const count = batch * width;
  const { mostRows } = draft;
  return treeLevels({ tree, mostRows }, buffers, shape, (level) =>
    planOf(draft, (graph) => {
      const x = draftLevel(graph, draft, { rows, count, perSlot: width, paths: true }, {
        hidden: level === 0 ? draft.hidden : tree.hidden,
        index,
      });
      const keepHidden = level + 2 < depth;
      levelTokens(graph, draft, tree, { x, width, level, keepHidden });
    }));
}

/**
 * Trees of what a draft finds most probable.
 *
 * @param forward over the nodes that a level continues from, `tree.rows`: leaves `tree.top`.
 */
export function treeLevels(
  { tree, mostRows }: { readonly tree: TreeScratch; readonly mostRows: number },
  { batchSlots, slots, drafts }: RoundBuffers,
  round: RoundShape,
  forward: (level: number) => Dispatch[],
): Dispatch[] {
  const shape = { ...round, pool: poolSize(round) };
  const { rows, index } = tree;
  const add = (level: number, top: Operand) =>
    treeLevel({ batchSlots, slots, top, tree, rows, hidden: index }, {
      ...shape,
      level,
      kept: tree.width,
    });
  const further = Array.from(
    { length: shape.depth - 1 },
    (_, level) => [...forward(level), add(level + 1, tree.top)],
  );
  return [
    add(0, tree.first),
    ...further.flat(),
    treeSelect({ batchSlots, tree, drafts }, { ...shape, mostRows }),
  ];
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
