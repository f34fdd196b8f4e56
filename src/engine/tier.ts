import { choose } from "../../shaders/choose.ts";
import { accept, acceptPrompt, draftRows, verifyRows } from "../../shaders/round.ts";
import type { Dispatch } from "../gpu/kernel.ts";
import { draftBody, draftHead } from "../model/eagle.ts";
import { type Tap, targetBody, targetHead, targetHeadAt } from "../model/llama.ts";
import type { RoundBuffers } from "./buffers.ts";
import type { Models } from "./models.ts";

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

/**
 * One round of `batch` lanes at `numSteps`: draft levels, verify, accept, draft-extend.
 *
 * The first draft token is there already (the last draft-extend made it), so `numSteps` tokens
 * take `numSteps - 1` draft forwards. At 0 it is one step of plain decoding.
 */
export function roundPlan(
  models: Models,
  buffers: RoundBuffers,
  { batch, numSteps }: { readonly batch: number; readonly numSteps: number },
): Dispatch[] {
  const { target, draft } = models;
  const { lanes, slots, drafts, rows, extendRows, chosen, last, results } = buffers;
  const count = batch * (numSteps + 1);
  const levels = draft
    ? Array.from({ length: Math.max(0, numSteps - 1) }, (_, step) => [
      draftRows({ lanes, slots, drafts, rows: buffers.draftRows }, { batch, step }),
      ...draftBody(draft, { rows: buffers.draftRows, count: batch }, { lanes }),
      ...draftHead(draft, { lanes }, { batch, step: step + 1, carry: step + 2 < numSteps }),
    ])
    : [];
  const extend = draft && numSteps > 0
    ? [
      ...draftBody(draft, { rows: extendRows, count }, { features: draft.features }),
      ...draftHead(draft, { lanes }, { batch, step: 0, last, carry: true }),
    ]
    : [];
  return [
    ...levels.flat(),
    verifyRows({ lanes, slots, drafts, rows }, { batch, numSteps }),
    ...targetBody(target, { rows, count }, numSteps > 0 ? featureTaps(models) : []),
    ...targetHead(target, count),
    chooseRows(models, buffers, count),
    accept({ lanes, rows, chosen, drafts, slots, extend: extendRows, last, results }, {
      batch,
      numSteps,
    }),
    ...extend,
  ];
}

/** The parts of a prefill chunk of `count` rows; the head runs after the last chunk only. */
export interface PromptPlans {
  readonly body: Dispatch[];
  /** The first token. */
  readonly head: Dispatch[];
  /** Draft keys and values of the chunk. */
  readonly draft: Dispatch[];
  /** The first draft token. */
  readonly draftHead: Dispatch[];
}

export function promptPlans(models: Models, buffers: RoundBuffers, count: number): PromptPlans {
  const { target, draft } = models;
  const { lanes, slots, rows, extendRows, chosen, last, results } = buffers;
  const extend = { rows: extendRows, count };
  return {
    body: targetBody(target, { rows, count }, featureTaps(models)),
    head: [
      ...targetHeadAt(target, last),
      chooseRows(models, { ...buffers, rows: buffers.draftRows }, 1),
      acceptPrompt({ lanes, last, chosen, slots, extend: extendRows, results }),
    ],
    draft: draft ? draftBody(draft, extend, { features: draft.features }) : [],
    draftHead: draft ? draftHead(draft, { lanes }, { batch: 1, step: 0, last, carry: true }) : [],
  };
}

function chooseRows({ target }: Models, buffers: RoundBuffers, count: number): Dispatch {
  const { rows, slots, chosen } = buffers;
  const { config, weights, tuning, logits } = target;
  return choose({ logits, rows, slots, chosen }, {
    count,
    vocab: config.vocabSize,
    stride: weights.head.rows,
    lanes: tuning.rowLanes,
  });
}
