import { choose } from "../../../../kernels/sample/choose.ts";
import { gatherRows, scatterRows } from "../../../../kernels/round/move_rows.ts";
import { draftRows } from "../../../../kernels/round/round.ts";
import {
  putDrafts,
  standaloneLastRows,
  standaloneRows,
} from "../../../../kernels/round/standalone_rows.ts";
import { distributionsOf, reject, roundSlots } from "../../../../kernels/sample/reject.ts";
import { topTokens } from "../../../../kernels/tree/top.ts";
import type { Dispatch, Operand } from "../../../gpu/kernel.ts";
import type { TreeScratch } from "../../../model/graph/draft.ts";
import type { RowsOf } from "../../../model/graph/graph.ts";
import type { Target } from "../../../model/graph/target.ts";
import { bodyPlan, headPlan } from "../../../model/lower/target_plans.ts";
import type { RoundShape } from "../../../speculate/round_shape.ts";
import type { RoundBuffers } from "../buffers.ts";
import type { DeviceDrafter } from "../device_drafter.ts";
import { draftLevels } from "../draft_levels.ts";
import type { Rejection, StandaloneDraft } from "./model.ts";

/**
 * A causal model as a drafter. It stores every token at its own cell, the pending one too. Chains are
 * drafted as the target chooses, with the same noise: at any temperature a draft that agrees with the
 * target's distribution mostly agrees with its choice.
 */
export function standaloneDrafter(
  draft: StandaloneDraft,
  target: Target,
  buffers: RoundBuffers,
): DeviceDrafter {
  const { model, ends, endRows } = draft;
  const { batchSlots, slots, last, extendRows, rows } = buffers;
  const endsOf = (batch: number) =>
    standaloneLastRows({ rows: extendRows, slots, out: endRows, batchSlots, last }, batch);
  return {
    auxHidden: [],
    readsFinal: false,
    levels: (shape) =>
      draftLevels(draft, buffers, shape, {
        chain: (level) => chainLevel(draft, buffers, shape, level),
        tree: (tree, level) => treeLevel(draft, tree, buffers, { ...shape, level }),
      }),
    extend: (_, { count, perSlot }) =>
      ownBody(draft, buffers, { rows: extendRows, count, perSlot }),
    headAfterExtend: (batch) => [
      endsOf(batch),
      gatherRows({ x: model.final, index: last, out: ends }, {
        rows: batch,
        cols: model.config.hiddenSize,
        label: "draft.ends",
      }),
      ...firstDrafts(draft, buffers, { x: ends, rows: endRows, batch }),
    ],
    packs: false,
    // The target's rows of a prompt and of a lag are at their own cells.
    prompt: ({ count, perSlot }) => bodyPlan(model, { rows, count, perSlot }),
    head: (batch) => [
      endsOf(batch),
      ...bodyPlan(model, { rows: endRows, count: batch, perSlot: 1 }),
      ...firstDrafts(draft, buffers, { x: model.final, rows: endRows, batch }),
    ],
    reject: draft.rejection && rejecting(draft, draft.rejection, target, buffers),
    catchUp: {
      keep: () => [],
      rows: (count) => bodyPlan(model, { rows, count, perSlot: 1 }),
    },
  };
}

/** A forward over rows that are one ahead of their cells. */
function ownBody(
  { model, rows: out }: StandaloneDraft,
  { slots }: RoundBuffers,
  { rows, ...of }: RowsOf,
): Dispatch[] {
  return [standaloneRows({ rows, slots, out }, of.count), ...bodyPlan(model, { rows: out, ...of })];
}

/** Hidden rows whose next token is wanted, and their `Row`s. */
interface Ends {
  readonly x: Operand;
  readonly rows: Operand;
  readonly batch: number;
}

/** Level `step` of a chain: draft token `step + 1` of each sequence. */
function chainLevel(
  draft: StandaloneDraft,
  buffers: RoundBuffers,
  { batch }: RoundShape,
  step: number,
): Dispatch[] {
  const { model: { final: x }, rows, maxRows } = draft;
  const { batchSlots, slots, drafts, draftRows: fed } = buffers;
  return [
    draftRows({ batchSlots, slots, drafts, rows: fed }, { batch, maxRows, step }),
    ...ownBody(draft, buffers, { rows: fed, count: batch, perSlot: 1 }),
    ...nextDrafts(draft, buffers, { x, rows, batch, step: step + 1 }),
  ];
}

/** Draft token `step` of each sequence. */
function nextDrafts(
  draft: StandaloneDraft,
  buffers: RoundBuffers,
  { x, ...of }: Ends & { readonly step: number },
): Dispatch[] {
  return [...headPlan(draft.model, of.batch, x), ...chosenDrafts(draft, buffers, of)];
}

/** Dispatches that choose a draft from its logits as the target would choose. */
function chosenDrafts(
  { model, vocab, chosen, maxRows, rejection }: StandaloneDraft,
  { batchSlots, drafts, ...buffers }: RoundBuffers,
  { rows, batch, step }: Omit<Ends, "x"> & { readonly step: number },
): Dispatch[] {
  const slots = rejection?.roundSlots ?? buffers.slots;
  const { logits, partials, weights: { head }, tuning } = model;
  const shape = { count: batch, vocab, stride: head.rows, lanes: tuning.rowLanes };
  return [
    ...choose({ logits, partials, rows, slots, chosen }, shape),
    ...rejection
      ? [
        scatterRows({ x: logits, index: batchSlots, out: drawnAt(rejection, step) }, {
          rows: batch,
          cols: head.rows,
          label: `draft.drawn.${step}`,
        }),
        distributionsOf({ logits, partials, rows, slots, distributions: rejection.distributions }, {
          ...shape,
          first: rejection.drawn.first + step * rejection.drawn.slots,
          bySlot: true,
        }),
      ]
      : [],
    putDrafts({ batchSlots, chosen, drafts }, { batch, step, maxRows }),
  ];
}

function drawnAt({ drawn: { logits, step } }: Rejection, at: number): Operand {
  return { buffer: logits.buffer, offset: at * step * 4 };
}

/** Rejection sampling: the target's distributions, and what is accepted of the drafts. */
function rejecting(
  { maxRows }: StandaloneDraft,
  { rule, roundSlots, drawn, distributions }: Rejection,
  { config, weights, tuning, partials }: Target,
  { rows, drafts, chosen, ...buffers }: RoundBuffers,
): NonNullable<DeviceDrafter["reject"]> {
  const of = { vocab: config.vocabSize, stride: weights.head.rows, lanes: tuning.rowLanes };
  const slots = roundSlots ?? buffers.slots;
  return ({ batch, rows: perSlot }, logits) => [
    distributionsOf({ logits, partials, rows, slots, distributions }, {
      ...of,
      count: batch * perSlot,
      first: 0,
      bySlot: false,
    }),
    reject({ rows, slots, drafts, logits, drawn, distributions, chosen }, {
      ...of,
      rule,
      batch,
      rows: perSlot,
      maxRows,
    }),
  ];
}

/** Draft token 0 of each sequence; for trees also the top tokens that they begin with. */
function firstDrafts(draft: StandaloneDraft, buffers: RoundBuffers, ends: Ends): Dispatch[] {
  const { tree, model, maxRows, rejection } = draft;
  const { batchSlots, slots, drafts } = buffers;
  const bySlot = { batchSlots, drafts, maxRows };
  const shape = { rows: ends.batch, label: "draft_top.first" };
  return [
    ...headPlan(model, ends.batch, ends.x),
    ...tree
      ? tops(draft, tree, { logits: model.logits, out: tree.first, bySlot }, {
        ...shape,
        top: tree.width,
      })
      : [],
    ...rejection?.roundSlots
      ? [roundSlots({ rows: ends.rows, slots, roundSlots: rejection.roundSlots }, ends.batch)]
      : [],
    ...chosenDrafts(draft, buffers, { ...ends, step: 0 }),
  ];
}

/** The most probable tokens behind the nodes that a level of a tree continues from. */
function treeLevel(
  draft: StandaloneDraft,
  tree: TreeScratch,
  buffers: RoundBuffers,
  { batch, width, level }: RoundShape & { readonly level: number },
): Dispatch[] {
  const count = batch * width;
  const { logits, top: out } = tree;
  return [
    ...ownBody(draft, buffers, { rows: tree.rows, count, perSlot: width, paths: true }),
    ...headPlan({ ...draft.model, logits }, count),
    ...tops(draft, tree, { logits, out }, { rows: count, top: width, label: `draft_top.${level}` }),
  ];
}

function tops(
  { model: { weights: { head }, tuning }, vocab, offsets }: StandaloneDraft,
  { partials }: TreeScratch,
  to: Pick<Parameters<typeof topTokens>[0], "logits" | "out" | "bySlot">,
  shape: { readonly rows: number; readonly top: number; readonly label: string },
): Dispatch[] {
  const of = { ...shape, vocab, stride: head.rows, lanes: tuning.rowLanes };
  return topTokens({ partials, offsets, ...to }, of);
}
