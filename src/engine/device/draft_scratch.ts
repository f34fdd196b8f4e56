/** What choosing draft tokens writes. */
import { slicePartialWords } from "../../../kernels/sample/slice_partials.ts";
import { canStorePartials, matmulPartialWords } from "../../../kernels/matmul/matmul_partials.ts";
import { partialTopWords } from "../../../kernels/tree/top.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Tuning } from "../../gpu/matrix.ts";
import type { AnyDraftConfig } from "../../model/config/types.ts";
import type { Draft, DraftWeights, TreeScratch } from "../../model/plan/draft_types.ts";
import { ROW_WORDS } from "../../model/plan/device_layout.ts";
import { poolSize } from "../../speculate/trees.ts";
import { type EngineSizes, storageBuffer, treeWidth, whole } from "./buffers.ts";

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
    logits: words("logits", whole(rows) * head.rows),
    partials: words("partials", rows * partialTopWords(config.draftVocabSize, width)),
    first: words("first", 2 * rows),
    top: words("top", 2 * rows * width),
    pool: words("pool", 2 * batch * Math.max(...treeShapes.map(poolSize))),
    frontier: words("frontier", rows * Math.max(...treeShapes.map(({ depth }) => depth))),
    rows: words("rows", rows * ROW_WORDS),
    index: words("index", rows),
    hidden: words("hidden", whole(rows) * config.layer.hiddenSize),
  };
}

/**
 * What a draft token is chosen from: partial argmaxes, or softmaxes where it tells its confidence, that the head
 * stores; else logits and theirs.
 */
export function choiceScratch(
  floats: (label: string, count: number) => Operand,
  { config: { draftVocabSize: vocab }, weights: { head }, tuning }: LoadedDraft & {
    readonly tuning: Tuning;
  },
  { rows, confident }: { readonly rows: number; readonly confident: boolean },
): Pick<Draft, "logits" | "partials" | "choice"> {
  const choice = confident ? "softmax" : "argmax";
  if (canStorePartials(head, tuning)) {
    const words = matmulPartialWords(head, choice, { rows, tuning });
    return { logits: undefined, partials: floats("partials", words), choice };
  }
  return {
    logits: floats("logits", rows * head.rows),
    partials: floats("partials", rows * slicePartialWords(vocab, choice)),
    choice,
  };
}
