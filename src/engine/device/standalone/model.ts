/** A standalone draft on the device. */
import type { Gpu } from "../../../gpu/device.ts";
import type { Operand } from "../../../gpu/kernel.ts";
import type { StandaloneConfig } from "../../../model/config/types.ts";
import type { LayerKv } from "../../../model/plan/decoder_context.ts";
import type { TreeScratch } from "../../../model/plan/draft_types.ts";
import { ROW_WORDS } from "../../../model/plan/rows_layout.ts";
import type { StandaloneWeights } from "../../../model/plan/standalone.ts";
import type { Target } from "../../../model/plan/target.ts";
import { type Capacity, maxRows, mostRows, storageBuffer, whole } from "../buffers.ts";
import { causalModel, type SharedBuffers } from "../decoder_buffers.ts";
import { treeScratch } from "../draft_scratch.ts";

/** A causal draft and what its plans write to. */
export interface StandaloneDraft {
  /** Its plans are those of a target. */
  readonly model: Target;
  /** Tokens that it may draft, from 0 on. */
  readonly vocab: number;
  /** See StandaloneWeights. */
  readonly offsets: Operand;
  /** `Row`s of its forward at their own cells, [rows]. */
  readonly rows: Operand;
  /** Those of them whose next token is drafted: `Row`s and hidden rows of each sequence, [batch]. */
  readonly endRows: Operand;
  readonly ends: Operand;
  /** u32 [batch] */
  readonly chosen: Operand;
  /** Rows that a slot may have in any round. */
  readonly mostRows: number;
  /** Where the engine drafts trees. */
  readonly tree: TreeScratch | undefined;
}

/** Gives a standalone draft its scratch; `shared.kv` are the pages of its own layers. */
export function prepareStandalone(
  gpu: Gpu,
  { config, weights: { model, offsets } }: {
    readonly config: StandaloneConfig;
    readonly weights: StandaloneWeights;
  },
  capacity: Capacity,
  { kv, ...shared }: SharedBuffers & { readonly kv: readonly LayerKv[] },
): StandaloneDraft {
  const { layer, draftVocabSize: vocab } = config;
  const batch = whole(capacity.batch);
  const words = (label: string, count: number) => storageBuffer(gpu, `draft.${label}`, count);
  const own = { config: layer, weights: model, kv, logitRows: batch };
  return {
    model: causalModel(gpu, "draft", own, capacity, shared),
    ...{ vocab, offsets },
    rows: words("rows", maxRows(capacity) * ROW_WORDS),
    endRows: words("endRows", batch * ROW_WORDS),
    ends: words("ends", batch * layer.hiddenSize),
    chosen: words("chosen", batch),
    mostRows: mostRows(capacity),
    tree: treeScratch(gpu, { config, weights: model }, capacity),
  };
}
