/** A standalone draft on the device. */
import { DISTRIBUTION_WORDS, type DraftDistributions } from "../../../../kernels/sample/reject.ts";
import { UsageError } from "../../../errors.ts";
import { ALIGNMENT } from "../../../gpu/arena.ts";
import { type Gpu, largestBinding } from "../../../gpu/device.ts";
import type { Operand } from "../../../gpu/kernel.ts";
import type { Matrix } from "../../../gpu/matrix.ts";
import type { StandaloneConfig } from "../../../model/config/types.ts";
import type { TreeScratch } from "../../../model/graph/draft.ts";
import type { LayerKv } from "../../../model/graph/graph.ts";
import type { Target } from "../../../model/graph/target.ts";
import type { StandaloneWeights } from "../../../model/weights/draft_weights.ts";
import { ROW_WORDS, SLOT_WORDS } from "../../../model/device_layout.ts";
import {
  type EngineSizes,
  maxDepth,
  maxForwardRows,
  maxRows,
  storageBuffer,
  verifyRowCount,
  wholeTiles,
} from "../buffers.ts";
import type { RejectionRule } from "../../../speculate/rejection_rule.ts";
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
  /** Rows whose next token is drafted: `Row`s and hidden rows of each sequence, [batch]. */
  readonly endRows: Operand;
  readonly ends: Operand;
  /** u32 [batch] */
  readonly chosen: Operand;
  /** Rows that a slot may have in any round. */
  readonly maxRows: number;
  /** Where the engine drafts trees. */
  readonly tree: TreeScratch | undefined;
  /** Where chains are verified by rejection sampling. */
  readonly rejection: Rejection | undefined;
}

/** The distributions that drafts were drawn from, kept until the drafts are verified. */
export interface Rejection {
  readonly rule: RejectionRule;
  /** Where each round has seeds of its own: block verification. `Slot`s, [slots] */
  readonly roundSlots: Operand | undefined;
  readonly drawn: DraftDistributions;
  /** Distributions of the verify rows, then those of `drawn`, f32 [.., DISTRIBUTION_WORDS]. */
  readonly distributions: Operand;
}

/** Gives a standalone draft its scratch; `shared.kv` are the pages of its own layers. */
export function prepareStandalone(
  gpu: Gpu,
  { config, weights: { model, offsets } }: {
    readonly config: StandaloneConfig;
    readonly weights: StandaloneWeights;
  },
  capacity: EngineSizes,
  { kv, ...shared }: SharedBuffers & { readonly kv: readonly LayerKv[] },
): StandaloneDraft {
  const { layer, draftVocabSize: vocab } = config;
  const batch = wholeTiles(capacity.batch);
  const words = (label: string, count: number) => storageBuffer(gpu, `draft.${label}`, count);
  const own = { config: layer, weights: model, kv, logitRows: batch };
  return {
    model: causalModel(gpu, "draft", own, capacity, shared),
    vocab,
    offsets,
    rows: words("rows", maxForwardRows(capacity) * ROW_WORDS),
    endRows: words("endRows", batch * ROW_WORDS),
    ends: words("ends", batch * layer.hiddenSize),
    chosen: words("chosen", batch),
    maxRows: maxRows(capacity),
    tree: treeScratch(gpu, { config, weights: model }, capacity),
    rejection: capacity.rejection
      ? rejection(gpu, { vocab, head: model.head, rule: capacity.rejection }, capacity)
      : undefined,
  };
}

/** @throws UsageError where the drafts' logits are more than a binding takes. */
function rejection(
  gpu: Gpu,
  { vocab, head, rule }: {
    readonly vocab: number;
    readonly head: Matrix;
    readonly rule: RejectionRule;
  },
  capacity: EngineSizes,
): Rejection {
  const { batch: slots } = capacity;
  const steps = stepsOf(capacity);
  const bytes = draftLogitBytes(head.rows, capacity);
  const limit = largestBinding(gpu.limits);
  if (bytes > limit) {
    throw new UsageError(
      `Cannot use --acceptance ${rule}: the logits of ${slots} x ${steps} drafts take ${bytes} ` +
        `bytes, the adapter binds ${limit}; use a smaller --max-batch or fewer steps`,
    );
  }
  const first = verifyRowCount(capacity);
  const words = (label: string, count: number) => storageBuffer(gpu, `draft.${label}`, count);
  const logits = words("drawnLogits", bytes / 4);
  return {
    rule,
    roundSlots: rule === "block" ? words("roundSlots", slots * SLOT_WORDS) : undefined,
    drawn: { logits, vocab, stride: head.rows, step: bytes / 4 / steps, slots, first },
    distributions: words("distributions", (first + steps * slots) * DISTRIBUTION_WORDS),
  };
}

/** Bytes of the logits that drafts are drawn from; those of each step begin where they can be bound. */
function draftLogitBytes(
  vocab: number,
  capacity: Pick<EngineSizes, "shapes" | "batch">,
): number {
  return stepsOf(capacity) * Math.ceil(capacity.batch * vocab * 4 / ALIGNMENT) * ALIGNMENT;
}

/** Token 0 is drafted at depth 0 too. */
function stepsOf(capacity: Pick<EngineSizes, "shapes">): number {
  return Math.max(1, maxDepth(capacity));
}
