/** What choosing draft tokens writes. */
import { partialTopWords } from "../../../kernels/tree/top.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { AnyDraftConfig } from "../../model/config/types.ts";
import type { TreeScratch } from "../../model/graph/draft.ts";
import type { DraftWeights } from "../../model/weights/draft_weights.ts";
import { ROW_WORDS } from "../../model/device_layout.ts";
import { poolSize } from "../../speculate/trees.ts";
import { type EngineSizes, storageBuffer, treeWidth, wholeTiles } from "./buffers.ts";

interface LoadedDraft {
  readonly config: Pick<AnyDraftConfig, "draftVocabSize" | "layer">;
  readonly weights: Pick<DraftWeights, "head">;
}

/** Where a tier drafts trees on the device. */
export function treeScratch(
  gpu: Gpu,
  { config, weights: { head } }: LoadedDraft,
  capacity: EngineSizes,
): TreeScratch | undefined {
  const { batch, treeShapes = [] } = capacity;
  const width = treeWidth(capacity);
  if (width === 0) return undefined;
  const rows = batch * width;
  const words = (label: string, count: number) => storageBuffer(gpu, `draft.tree.${label}`, count);
  return {
    width,
    logits: words("logits", wholeTiles(rows) * head.rows),
    partials: words("partials", rows * partialTopWords(config.draftVocabSize, width)),
    first: words("first", 2 * rows),
    top: words("top", 2 * rows * width),
    pool: words("pool", 2 * batch * Math.max(...treeShapes.map(poolSize))),
    frontier: words("frontier", rows * Math.max(...treeShapes.map(({ depth }) => depth))),
    rows: words("rows", rows * ROW_WORDS),
    index: words("index", rows),
    hidden: words("hidden", wholeTiles(rows) * config.layer.hiddenSize),
  };
}
