import { moveKept, type StateBuffers } from "../../../kernels/recurrent/move_kept.ts";
import { type CellBuffers, moveCells } from "../../../kernels/round/move_cells.ts";
import {
  accept,
  acceptSimulated,
  acceptTree,
  type GreedyChoice,
  verifyRows,
  verifyTree,
} from "../../../kernels/round/round.ts";
import { allocate } from "../../../kernels/round/allocate.ts";
import { verifyPacked } from "../../../kernels/round/verify_packed.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { KV_BYTES } from "../../gpu/kv.ts";
import {
  convWidth,
  headsOf,
  isRecurrent,
  type LayerConfig,
} from "../../model/config/layer_config.ts";
import { Graph, type LayerKv } from "../../model/graph/graph.ts";
import { type Target, targetHead, targetLayers, targetNorm } from "../../model/graph/target.ts";
import { lower } from "../../model/lower/lower.ts";
import { isChain, type RoundShape } from "../../speculate/round_shape.ts";
import { KEPT_ROWS_AT, type RoundBuffers } from "./buffers.ts";
import {
  afterAcceptance,
  chooseRows,
  type SamplingBuffers,
  type SamplingKind,
} from "./choice/choice.ts";
import { type Relaxed, relaxRows } from "./choice/relax.ts";
import type { DeviceDrafter, ForwardRows } from "./device_drafter.ts";

/** What all rounds of an engine share. */
export interface RoundParts {
  readonly target: Target;
  readonly drafter: DeviceDrafter | undefined;
  readonly buffers: RoundBuffers;
  /** Rows that a slot may have in any round. */
  readonly maxRows: number;
  /** See `firstRowsAt`. */
  readonly firstRows: number;
  /** Whether the results of chains that the device drafts include the draft's confidences; default false. */
  readonly withConfidences?: boolean | undefined;
  /** Absent: acceptance is lossless. */
  readonly relaxed?: Relaxed | undefined;
  /** Whether what the drafter needs is kept for all rows, not only for those that run without it. */
  readonly keepAll?: boolean;
  /** Draw the accepted counts with these probabilities, for timing. Chains only. */
  readonly acceptance?: readonly number[] | undefined;
}

/** Which round. Rounds with equal specs run equal programs. */
export interface RoundSpec extends RoundShape {
  /** Whether the host has drafted; default false: the device does. */
  readonly proposed?: boolean;
  /** How tokens are chosen. `canonical` fills in the greedy kind. */
  readonly choice?: SamplingKind;
  /**
   * Makes the round a packed one, whose forward has rows only for the drafts that are verified: the verify rows of all
   * sequences together, padding included. Chains only. Default: each sequence has `rows` verify rows.
   */
  readonly packed?: number | undefined;
  /** Whether the device chooses the drafts that are verified, by `RoundBuffers.budget`; default false. */
  readonly allocates?: boolean;
}

/** A round's plans, in the order they run. */
export interface RoundPlans {
  /** The device's draft levels. */
  readonly draft: Dispatch[];
  /** The device's choice of the drafts that are verified. */
  readonly allocate: Dispatch[];
  /** Verify rows, where the forward does not write them itself. */
  readonly rows: Dispatch[];
  /** The target's forward without the head. */
  readonly target: Dispatch[];
  /** The final norm if nothing else reads its rows, the head, the target's choice at each row. */
  readonly choose: Dispatch[];
  /** Acceptance; for trees also the moves of the accepted KV cells. */
  readonly accept: Dispatch[];
  /** Draft keys and values of what was accepted. */
  readonly extend: Dispatch[];
  /** The next round's first draft token. */
  readonly head: Dispatch[];
}

/** Rows of the verify forward. Packed rounds of several sequences have one forward for all shapes of as many rows. */
export function verifyRowsOf({ batch, rows, packed }: RoundSpec): ForwardRows {
  if (packed === undefined) return { count: batch * rows, perSlot: rows };
  return { count: packed, perSlot: batch === 1 ? packed : 1 };
}

/** Rows of the draft-extend: of a tree those of its longest path. */
function extendRowsOf(spec: RoundSpec): ForwardRows {
  const perSlot = spec.depth + 1;
  return spec.packed === undefined ? { count: spec.batch * perSlot, perSlot } : verifyRowsOf(spec);
}

/** Whether the results of such rounds include the draft's confidences. */
export function hasConfidences(
  { withConfidences = false }: Pick<RoundParts, "withConfidences">,
  { proposed = false, ...shape }: RoundSpec,
): boolean {
  return withConfidences && !proposed && shape.depth > 0 && isChain(shape);
}

/**
 * The plans of one round. At depth 0 it is one step of plain decoding; if the device's drafter may be needed later,
 * what it needs of the rows is kept for it.
 *
 * @param choice buffers of the spec's choice; absent: it takes the logits alone.
 */
export function roundPlans(
  parts: RoundParts,
  spec: RoundSpec,
  choice?: SamplingBuffers,
): RoundPlans {
  const { target, drafter, buffers, maxRows, keepAll } = parts;
  const { batch, depth, packed, proposed = false, allocates = false } = spec;
  const paths = !isChain(spec);
  const { count, perSlot } = verifyRowsOf(spec);
  const keep = depth === 0 || keepAll ? drafter?.catchUp?.keep : undefined;
  const auxHidden = drafter && (depth > 0 || keep) ? drafter.auxHidden : [];
  const { batchSlots, slots, drafts, rows } = buffers;
  const verifies = packed === undefined && !paths;
  const graph = new Graph("rows");
  if (verifies) graph.verifyRows({ batchSlots, slots, drafts, rows, batch, perSlot, maxRows });
  else graph.dispatches(verification(parts, spec));
  graph.begin("target");
  const x = targetLayers(graph, target, { rows, count, perSlot, paths }, auxHidden);
  const normedEarly = packed !== undefined || drafter?.readsFinal === true;
  const greedy = choosesItself(parts, spec, choice);
  const early = normedEarly ? targetNorm(graph, target, x, target.final) : undefined;
  graph.dispatches(...keep ? keep(count) : []);
  graph.begin("choose");
  const final = early ?? targetNorm(graph, target, x);
  const logits = targetHead(graph, target, final, target.logits);
  const partials = greedy
    ? graph.partials(logits, {
      choice: "argmax",
      vocab: target.config.vocabSize,
      most: MAX_PARTIALS,
    }, "choose")
    : undefined;
  if (partials) {
    graph.begin("accept");
    graph.call({
      reads: [partials],
      writes: [],
      record: (at, { partialsOf }) =>
        acceptance(parts, spec, {
          partials: at(partials),
          count: partialsOf(partials),
          lanes: target.tuning.rowLanes,
        }),
    });
  }
  const plans = lower(graph, target);
  const extended = depth > 0 ? drafter : undefined;
  return {
    draft: drafter && !proposed ? drafter.levels(spec) : [],
    allocate: allocates ? [allocation(parts, spec)] : [],
    rows: plans.part("rows"),
    target: plans.part("target"),
    choose: greedy ? plans.part("choose") : [
      ...plans.part("choose"),
      ...chooseRows(target, buffers, { count, perSlot, choice }),
      ...byRule(parts, spec, choice),
      ...relaxRows(target, buffers, { shape: spec, maxRows, choice, relaxed: parts.relaxed }),
    ],
    accept: greedy ? plans.part("accept") : [
      ...acceptance(parts, spec),
      ...afterAcceptance(buffers, target, {
        shape: spec,
        choice,
        withConfidences: hasConfidences(parts, spec),
      }),
    ],
    extend: extended?.extend(spec, extendRowsOf(spec)) ?? [],
    head: extended?.headAfterExtend(batch) ?? [],
  };
}

/**
 * Most partial results of all rows. One workgroup looks through those of a sequence, and rows share what a head
 * gains that stores no logits: on an H200 8 rows of Qwen3-0.6B's take 134 us with it and the choice, 130 without.
 */
const MAX_PARTIALS = 40_000;

/**
 * Most verify rows of a sequence for which acceptance makes the target's choices: one workgroup handles all of them.
 */
const MAX_OWN_ROWS = 8;

/** Whether acceptance makes the target's choices itself: only if nothing else reads logits or choices. */
function choosesItself(
  { relaxed, drafter }: RoundParts,
  spec: RoundSpec,
  buffers: SamplingBuffers | undefined,
): boolean {
  const { choice, depth, rows, packed } = spec;
  const read = buffers?.adjusted !== undefined || buffers?.logprobs !== undefined;
  const ruled = relaxed !== undefined || drafter?.reject !== undefined;
  return choice?.greedy === true && packed === undefined && !read && !(ruled && depth > 0) &&
    isChain(spec) && rows <= MAX_OWN_ROWS;
}

/** The device's choice of the drafts that are verified: after the draft levels, before the verify rows. */
function allocation(
  { buffers: { batchSlots, slots, budget, drafts }, maxRows }: RoundParts,
  { batch, rows }: RoundSpec,
): Dispatch {
  return allocate({ batchSlots, slots, budget, drafts }, { batch, rows, maxRows });
}

function verification({ buffers, maxRows, firstRows }: RoundParts, spec: RoundSpec): Dispatch {
  const { batchSlots, slots, drafts, rows, extendRows: extend, last } = buffers;
  const { packed: count } = spec;
  if (count !== undefined) {
    const shape = { batch: spec.batch, rows: spec.rows, count, firstRows, maxRows };
    return verifyPacked({ batchSlots, slots, drafts, rows, extend, last }, shape);
  }
  const record = isChain(spec) ? verifyRows : verifyTree;
  return record({ batchSlots, slots, drafts, rows }, { ...spec, maxRows });
}

/** The drafter's own rule for a chain that it drafted. */
function byRule(
  { target, drafter, acceptance }: RoundParts,
  { proposed = false, ...shape }: RoundSpec,
  choice: SamplingBuffers | undefined,
): Dispatch[] {
  if (proposed || acceptance || shape.depth === 0 || !isChain(shape)) return [];
  return drafter?.reject?.(shape, choice?.adjusted ?? target.logits) ?? [];
}

/**
 * Acceptance; for trees also the moves of the accepted cells, which are not adjacent.
 *
 * @param greedy partial results from which acceptance itself makes the target's choices; chains only.
 */
function acceptance(parts: RoundParts, spec: RoundSpec, greedy?: GreedyChoice): Dispatch[] {
  const { target, buffers, maxRows, firstRows, acceptance } = parts;
  const { batchSlots, slots, drafts, rows, extendRows: extend, chosen, last, results, pages } =
    buffers;
  const { batch, depth, rows: perSlot, packed } = spec;
  const accepted = { batchSlots, rows, chosen, drafts, slots, extend, last, results };
  const of = {
    batch,
    depth,
    rows: perSlot,
    maxRows,
    confidences: hasConfidences(parts, spec),
    greedy,
    firstRows: packed === undefined ? undefined : firstRows,
  };
  if (isChain(spec)) {
    return [acceptance ? acceptSimulated(accepted, { ...of, acceptance }) : accept(accepted, of)];
  }
  const { tablePages } = target;
  const moved = { batch, depth, rows: perSlot, kept: KEPT_ROWS_AT };
  return [
    acceptTree(accepted, { ...of, kept: moved.kept }),
    ...cellBuffers(target).flatMap((cells) =>
      moveCells({ extend, last, pages: cells.pages ?? pages }, cells, { ...moved, tablePages })
    ),
    ...stateBuffers(target).flatMap((states) => moveKept({ extend, last }, states, moved)),
  ];
}

interface CellsOfPages extends CellBuffers, Pick<LayerKv, "pages"> {}

/** What the target's recurrent layers keep of the last rows of each slot, by its layout in memory. */
function stateBuffers({ config: { layers }, kv }: Target): StateBuffers[] {
  const groups = new Map<string, StateBuffers & { readonly buffers: Operand[] }>();
  const add = (buffer: Operand, layout: Omit<StateBuffers, "buffers">) =>
    groups.getOrInsertComputed(JSON.stringify(layout), () => ({ ...layout, buffers: [] }))
      .buffers.push(buffer);
  for (const [i, { state }] of kv.entries()) {
    const { attention } = layers[i] as LayerConfig;
    if (!state || !isRecurrent(attention)) continue;
    add(state.ring, { places: state.ringRows, words: convWidth(attention) });
    if (!state.delta || attention.kind !== "delta") continue;
    add(state.delta.steps, { places: state.delta.stepRows, heads: attention });
  }
  return [...groups.values()];
}

/** What the target keeps of every cell, by its layout in memory. */
function cellBuffers({ config: { layers }, kv, ...layout }: Target): CellsOfPages[] {
  const groups = new Map<string, CellsOfPages & { readonly buffers: Operand[] }>();
  for (const [i, { keys, values, pages }] of kv.entries()) {
    const { attention } = layers[i] as LayerConfig;
    if (isRecurrent(attention)) continue;
    if (attention.kind === "heads" && attention.sharedKv !== undefined) continue;
    const { kvHeads: heads, headDim, kvDtype } = headsOf(attention, layout);
    const words = headDim * KV_BYTES[kvDtype] / 4;
    // Each window has a block table of its own.
    const window = pages && attention.window;
    const group = groups.getOrInsertComputed(`${heads} ${words} ${window}`, () => (
      { buffers: [], heads, words, pages }
    ));
    group.buffers.push(...attention.kind === "latent" ? [keys] : [keys, values]);
  }
  return [...groups.values()];
}
