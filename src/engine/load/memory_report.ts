/**
 * The memory that `eyrie inspect` and `eyrie models` print: what an engine allocates on `PAPER_ADAPTER`, an adapter
 * with the limits that most hardware has.
 */
import type { KvDtype } from "../../gpu/kv.ts";
import { PAPER_ADAPTER } from "../../gpu/paper.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import { DEFAULT_CONTEXT } from "../../model/device_layout.ts";
import type { AllMemory, MemoryReport } from "../../model/report/report.ts";
import { DEFAULT_NUM_STEPS } from "../../speculate/fixed_shape.ts";
import { chain, chains, type DraftShape } from "../../speculate/round_shape.ts";
import type { EngineSizes } from "../device/buffers.ts";
import {
  kvBytes,
  kvBytesPerToken,
  type MemoryNeed,
  openPaper,
  type PaperEngine,
  type PaperModels,
  stateBytes,
} from "./paper.ts";
import { allLayers, capacityOf } from "./sizes.ts";

/** How weights, keys and values are kept. */
export interface MemoryChoice extends QuantizeChoice {
  /** Default f32. */
  readonly kvDtype?: KvDtype | undefined;
}

/** The default `--max-batch` of `eyrie serve`, for which the tiers are listed. */
const TIER_BATCH = 8;

const TIER_SETS = [[1], [1, 3], [1, 3, 7], [0, 1, 3, 7]];

/** Memory of an engine for one sequence. Its context is the model's, at most `DEFAULT_CONTEXT`. */
export function sequenceMemory(models: PaperModels, choice: MemoryChoice): MemoryNeed {
  return openPaper(models, choice, PAPER_ADAPTER).need(sequenceSizes(models, choice));
}

/** That memory, the shares of both models in it, and what sets of tiers add to it. */
export function allMemory(models: PaperModels, choice: MemoryChoice): AllMemory {
  const paper = openPaper(models, choice, PAPER_ADAPTER);
  const { target, draft } = models;
  const { kvDtype = "f32" } = choice;
  const sizes = sequenceSizes(models, choice);
  const { token, windows } = kvBytes(target.config, sizes);
  const weightBytes = paper.measured.tensorBytes;
  const parts = {
    target: { weightBytes: weightBytes.target, kvBytesPerToken: token },
    draft: draft
      ? {
        weightBytes: weightBytes.draft,
        kvBytesPerToken: kvBytesPerToken(draft.config.layer, kvDtype),
      }
      : null,
  };
  const { weights, kv, scratch, total } = paper.need(sizes);
  return {
    ...parts,
    all: {
      weightBytes: weights,
      kvDtype,
      kvBytesPerToken: parts.target.kvBytesPerToken + (parts.draft?.kvBytesPerToken ?? 0),
      windowBytes: windows,
      stateBytes: stateBytes(target.config, sizes.shapes),
      context: sizes.contextLength,
      kvBytes: kv,
      scratchBytes: scratch,
      scratchRows: sizes.prefillRows,
      totalBytes: total,
      tiers: draft ? tierReports(paper, models, choice) : [],
      tierBatch: TIER_BATCH,
    },
  };
}

function tierReports(
  paper: PaperEngine,
  models: PaperModels,
  choice: MemoryChoice,
): MemoryReport["tiers"] {
  const sizesOf = (tiers: readonly DraftShape[]) => sizesFor(models, choice, tiers, TIER_BATCH);
  const plain = paper.need(sizesOf([chain(0)])).scratch;
  return TIER_SETS.map((numSteps) => ({
    numSteps,
    bytes: paper.need(sizesOf(chains(numSteps))).scratch - plain,
  }));
}

/** One sequence, which a draft drafts for by as many steps as by default. */
function sequenceSizes(models: PaperModels, choice: MemoryChoice): EngineSizes {
  return sizesFor(models, choice, [chain(models.draft ? DEFAULT_NUM_STEPS : 0)], 1);
}

function sizesFor(
  models: PaperModels,
  { kvDtype, quantize }: MemoryChoice,
  tiers: readonly DraftShape[],
  maxBatch: number,
): EngineSizes {
  const contextLength = Math.min(models.target.config.maxPositions, DEFAULT_CONTEXT);
  const settings = { contextLength, tiers, maxBatch, kvDtype, quantize };
  return capacityOf(settings, PAPER_ADAPTER, allLayers(models));
}
