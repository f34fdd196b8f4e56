import { acceptSimulated } from "../../../shaders/round/accept_simulated.ts";
import { choose } from "../../../shaders/choose/choose.ts";
import { accept, acceptPrompt, draftRows, verifyRows } from "../../../shaders/round/round.ts";
import { loadFeatures, storeFeatures } from "../../../shaders/round/features.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { draftBody, draftHead } from "../../model/plan/eagle.ts";
import { type Tap, targetBody, targetHead, targetHeadAt } from "../../model/plan/target.ts";
import type { RoundBuffers } from "./buffers.ts";
import type { Models, SpeculativeDraft } from "./models.ts";

/** Copies of the target's residual stream that EAGLE-3 reads, side by side. */
function featureTaps({ draft, target }: Models): Tap[] {
  if (draft?.draft.algorithm !== "EAGLE3") return [];
  const { hiddenSize } = target.config;
  const { auxLayers } = draft.draft;
  return auxLayers.map((layer, i) => ({
    layer,
    out: draft.features,
    outCols: auxLayers.length * hiddenSize,
    outFirst: i * hiddenSize,
  }));
}

/** A round's plans, in the order they run. */
export interface RoundPlans {
  /** num_steps - 1 draft levels; the first token came from the last draft-extend. */
  readonly draft: Dispatch[];
  /** Target forward, choice, acceptance. */
  readonly verify: Dispatch[];
  /** Draft keys and values of what was accepted, and the next round's first draft token. */
  readonly extend: Dispatch[];
}

/**
 * One round of `batch` lanes at `numSteps`. At 0 it is one step of plain decoding; where the draft
 * will be wanted again, the features of the rows are kept for it.
 */
export function roundPlans(
  models: Models,
  buffers: RoundBuffers,
  { batch, numSteps, acceptance }: {
    readonly batch: number;
    readonly numSteps: number;
    /** Draw the accepted counts with these probabilities, for timing. */
    readonly acceptance?: readonly number[] | undefined;
  },
): RoundPlans {
  const { target, draft } = models;
  const { lanes, slots, drafts, rows, extendRows, chosen, last, results } = buffers;
  const perSlot = numSteps + 1;
  const count = batch * perSlot;
  const levels = draft
    ? Array.from({ length: Math.max(0, numSteps - 1) }, (_, level) => {
      const carry = level + 2 < numSteps;
      const next = carry ? { slots, rows: buffers.draftRows } : undefined;
      return [
        ...level === 0
          ? [draftRows({ lanes, slots, drafts, rows: buffers.draftRows }, { batch, step: 0 })]
          : [],
        ...draftBody(draft, { rows: buffers.draftRows, count: batch, perSlot: 1 }, { lanes }),
        ...draftHead(draft, { lanes }, { batch, step: level + 1, carry, next }),
      ];
    })
    : [];
  const accepted = { lanes, rows, chosen, drafts, slots, extend: extendRows, last, results };
  const keeps = draft?.store !== undefined && numSteps === 0;
  return {
    draft: levels.flat(),
    verify: [
      verifyRows({ lanes, slots, drafts, rows }, { batch, numSteps }),
      ...targetBody(
        target,
        { rows, count, perSlot },
        numSteps > 0 || keeps ? featureTaps(models) : [],
      ),
      ...keeps ? [keepFeatures(draft, buffers, count)] : [],
      ...targetHead(target, count),
      ...chooseRows(models, buffers, count),
      acceptance
        ? acceptSimulated(accepted, { batch, numSteps, acceptance })
        : accept(accepted, { batch, numSteps }),
    ],
    extend: draft && numSteps > 0
      ? [
        ...draftBody(draft, { rows: extendRows, count, perSlot }, { features: draft.features }),
        ...draftHead(draft, { lanes }, { batch, step: 0, last, carry: true }),
      ]
      : [],
  };
}

function keepFeatures(draft: SpeculativeDraft, { rows }: RoundBuffers, count: number): Dispatch {
  const { features, featureCols: cols, pages, tablePages, store } = draft;
  return storeFeatures({ features, rows, pages, store: store as Operand }, {
    count,
    cols,
    tablePages,
  });
}

/** The draft's keys and values of `count` extend rows whose features were kept. */
export function catchUpPlan(
  draft: SpeculativeDraft,
  { extendRows: rows }: RoundBuffers,
  count: number,
): Dispatch[] {
  const { features, featureCols: cols, pages, tablePages, store } = draft;
  return [
    loadFeatures({ features, rows, pages, store: store as Operand }, { count, cols, tablePages }),
    ...draftBody(draft, { rows, count, perSlot: 1 }, { features }),
  ];
}

/** The first draft token of `batch` lanes from row `last` of each. */
export function draftHeadPlan(
  draft: SpeculativeDraft,
  { lanes, last }: RoundBuffers,
  batch: number,
): Dispatch[] {
  return draftHead(draft, { lanes }, { batch, step: 0, last, carry: true });
}

/** The parts of a prefill chunk of `count` rows; `head` runs after the last chunk only. */
export interface PromptPlans {
  readonly body: Dispatch[];
  /** The first token. */
  readonly head: Dispatch[];
  /** Draft keys and values of the chunk. */
  readonly draft: Dispatch[];
}

export function promptPlans(models: Models, buffers: RoundBuffers, count: number): PromptPlans {
  const { target, draft } = models;
  const { lanes, slots, rows, extendRows, chosen, last, results } = buffers;
  const extend = { rows: extendRows, count, perSlot: count };
  return {
    body: targetBody(target, { rows, count, perSlot: count }, featureTaps(models)),
    head: [
      ...targetHeadAt(target, last),
      // The one row to choose for lies in draftRows, see `writePrompt`.
      ...chooseRows(models, { ...buffers, rows: buffers.draftRows }, 1),
      acceptPrompt({ lanes, last, chosen, slots, extend: extendRows, results }),
    ],
    draft: draft ? draftBody(draft, extend, { features: draft.features }) : [],
  };
}

function chooseRows({ target }: Models, buffers: RoundBuffers, count: number): Dispatch[] {
  const { rows, slots, chosen } = buffers;
  const { config, weights, tuning, logits, partials } = target;
  return choose({ logits, partials, rows, slots, chosen }, {
    count,
    vocab: config.vocabSize,
    stride: weights.head.rows,
    lanes: tuning.rowLanes,
  });
}
