import { acceptSimulated } from "../../../kernels/round/accept_simulated.ts";
import { type CellBuffers, moveCells } from "../../../kernels/round/move_cells.ts";
import {
  accept,
  acceptPrompt,
  acceptTree,
  type GreedyChoice,
  verifyRows,
  verifyTree,
} from "../../../kernels/round/round.ts";
import type { NormInput } from "../../../kernels/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { KV_BYTES } from "../../gpu/kv.ts";
import { headsOf, type LayerSpec } from "../../model/config/layer_spec.ts";
import { greedyHead } from "../../model/plan/greedy_head.ts";
import {
  bodyVerifies,
  type Target,
  targetBody,
  targetHead,
  targetHeadAt,
  targetLayers,
  targetNorm,
} from "../../model/plan/target.ts";
import { chain, isChain, type RoundShape } from "../../speculate/round_shape.ts";
import { KEPT_ROWS_AT, type RoundBuffers } from "./buffers.ts";
import { afterAcceptance, type ChoiceBuffers, chooseRows } from "./choice/choice.ts";
import { type Relaxed, relaxRows } from "./choice/relax.ts";
import type { DeviceDrafter } from "./device_drafter.ts";

/** Who takes part in rounds, and what they share. */
export interface RoundParts {
  readonly target: Target;
  readonly drafter: DeviceDrafter | undefined;
  readonly buffers: RoundBuffers;
  /** Rows that a slot may have in any round. */
  readonly mostRows: number;
  /** See `firstRowsAt`. */
  readonly firstRows: number;
  /** Whether chains that the device drafts tell its confidences; default false. */
  readonly told?: boolean | undefined;
  /** Absent: acceptance is lossless. */
  readonly relaxed?: Relaxed | undefined;
  /** What the drafter needs is kept of all rows, not only of those that go without it. */
  readonly keepAll?: boolean;
}

/** A round's plans, in the order they run. */
export interface RoundPlans {
  /** The device's draft levels. */
  readonly draft: Dispatch[];
  /** The target's forward, the head apart. */
  readonly target: Dispatch[];
  /** The target's final norm where nobody else reads its rows, its head, choice, acceptance. */
  readonly accept: Dispatch[];
  /** Draft keys and values of what was accepted, and the next round's first draft token. */
  readonly extend: Dispatch[];
}

/** What a round does. */
export interface RoundKind {
  readonly shape: RoundShape;
  /** Whether the host has drafted. */
  readonly proposed: boolean;
  /** Draw the accepted counts with these probabilities, for timing. Chains only. */
  readonly acceptance?: readonly number[] | undefined;
  /** What the choice takes; absent: the logits alone. */
  readonly choice?: ChoiceBuffers | undefined;
  /** Whether all sequences choose the largest logit of those alone; default false. */
  readonly greedy?: boolean;
}

/** Whether the results of such rounds tell the draft's confidences. */
export function tells(
  { told = false }: Pick<RoundParts, "told">,
  { shape, proposed }: Pick<RoundKind, "shape" | "proposed">,
): boolean {
  return told && !proposed && shape.depth > 0 && isChain(shape);
}

/**
 * One round. At depth 0 it is one step of plain decoding; where the device's drafter will be wanted
 * again, what it needs of the rows is kept for it.
 */
export function roundPlans(parts: RoundParts, kind: RoundKind): RoundPlans {
  const { target, drafter, buffers, mostRows, keepAll } = parts;
  const { shape, proposed } = kind;
  const { batch, depth, rows: perSlot } = shape;
  const count = batch * perSlot;
  const keep = depth === 0 || keepAll ? drafter?.catchUp?.keep : undefined;
  const auxHidden = drafter && (depth > 0 || keep) ? drafter.auxHidden : [];
  const { batchSlots, slots, drafts } = buffers;
  const verified = isChain(shape) && bodyVerifies(target)
    ? { batchSlots, slots, drafts, mostRows }
    : undefined;
  const of = { rows: buffers.rows, count, perSlot, paths: !isChain(shape), verified };
  const { plan, stream } = targetLayers(target, of, auxHidden);
  const normed = drafter?.readsFinal === true;
  return {
    draft: drafter && !proposed ? drafter.levels(shape) : [],
    target: [
      ...verified ? [] : [verification(parts, shape)],
      ...plan,
      ...normed ? targetNorm(target, stream, count) : [],
      ...keep ? keep(count) : [],
    ],
    accept: accepting(parts, kind, normed ? undefined : stream),
    extend: drafter && depth > 0 ? drafter.extend(shape) : [],
  };
}

/** Most verify rows of a sequence that acceptance chooses for: one workgroup does for all of them. */
const MOST_OWN_ROWS = 8;

/** Whether acceptance finds the target's choices, and nothing else reads logits or choices. */
function choosesItself({ relaxed, drafter }: RoundParts, kind: RoundKind): boolean {
  const { shape, greedy = false, choice } = kind;
  const told = choice?.adjusted !== undefined || choice?.logprobs !== undefined;
  const ruled = relaxed !== undefined || drafter?.reject !== undefined;
  return greedy && !told && !(ruled && shape.depth > 0) && isChain(shape) &&
    shape.rows <= MOST_OWN_ROWS;
}

/** @param stream the rows before the final norm, where that is still to be done. */
function accepting(parts: RoundParts, kind: RoundKind, stream: NormInput | undefined): Dispatch[] {
  const { target } = parts;
  const { batch, rows } = kind.shape;
  const count = batch * rows;
  if (choosesItself(parts, kind)) {
    const { plan, choice } = greedyHead(target, { count, stream });
    return [...plan, ...acceptance(parts, kind, choice)];
  }
  return [
    ...stream ? targetNorm(target, stream, count) : [],
    ...targetHead(target, count),
    ...chosenAcceptance(parts, kind, count),
  ];
}

/** The choices of `count` rows that have logits, and their acceptance. */
function chosenAcceptance(parts: RoundParts, kind: RoundKind, count: number): Dispatch[] {
  const { target, buffers, mostRows, relaxed } = parts;
  const { shape, choice } = kind;
  return [
    ...chooseRows(target, buffers, { count, perSlot: shape.rows, choice }),
    ...byRule(parts, kind),
    ...relaxRows(target, buffers, { shape, mostRows, choice, relaxed }),
    ...acceptance(parts, kind),
    ...afterAcceptance(buffers, target, { shape, choice, told: tells(parts, kind) }),
  ];
}

function verification({ buffers, mostRows }: RoundParts, shape: RoundShape): Dispatch {
  const { batchSlots, slots, drafts, rows } = buffers;
  const record = isChain(shape) ? verifyRows : verifyTree;
  return record({ batchSlots, slots, drafts, rows }, { ...shape, mostRows });
}

/** The drafter's own rule for a chain that it drafted. */
function byRule(
  { target, drafter }: RoundParts,
  { shape, proposed, choice, acceptance }: RoundKind,
): Dispatch[] {
  if (proposed || acceptance || shape.depth === 0 || !isChain(shape)) return [];
  return drafter?.reject?.(shape, choice?.adjusted ?? target.logits) ?? [];
}

/**
 * Acceptance; of trees also the moves of what was kept, whose cells are not neighbours.
 *
 * @param greedy what it chooses from itself, of chains alone.
 */
function acceptance(parts: RoundParts, kind: RoundKind, greedy?: GreedyChoice): Dispatch[] {
  const { target, buffers, mostRows } = parts;
  const { shape, acceptance } = kind;
  const { batchSlots, slots, drafts, rows, extendRows: extend, chosen, last, results, pages } =
    buffers;
  const accepted = { batchSlots, rows, chosen, drafts, slots, extend, last, results };
  const of = { ...shape, mostRows, told: tells(parts, kind), greedy };
  if (isChain(shape)) {
    return [acceptance ? acceptSimulated(accepted, { ...of, acceptance }) : accept(accepted, of)];
  }
  const { tablePages } = target;
  const kept = KEPT_ROWS_AT;
  return [
    acceptTree(accepted, { ...of, kept }),
    ...cellBuffers(target).flatMap((cells) =>
      moveCells({ extend, last, pages }, cells, { ...shape, kept, tablePages })
    ),
  ];
}

/** What the target keeps of every cell, by its layout in memory. */
function cellBuffers({ config: { layers }, kv, ...layout }: Target): CellBuffers[] {
  const groups = new Map<string, CellBuffers & { readonly buffers: Operand[] }>();
  for (const [i, { keys, values }] of kv.entries()) {
    const { attention } = layers[i] as LayerSpec;
    const { kvHeads: heads, headDim, kvDtype } = headsOf(attention, layout);
    const words = headDim * KV_BYTES[kvDtype] / 4;
    const group = groups.getOrInsertComputed(`${heads} ${words}`, () => (
      { buffers: [], heads, words }
    ));
    group.buffers.push(...attention.kind === "latent" ? [keys] : [keys, values]);
  }
  return [...groups.values()];
}

/** The parts of a prefill chunk of `count` rows; `head` runs after the last chunk only. */
export interface PromptPlans {
  readonly body: Dispatch[];
  /** The first token. */
  readonly head: Dispatch[];
  /** Draft keys and values of the chunk. */
  readonly draft: Dispatch[];
}

/** @param choice see RoundKind. */
export function promptPlans(
  { target, drafter, buffers, keepAll }: RoundParts,
  count: number,
  choice?: ChoiceBuffers,
): PromptPlans {
  const { batchSlots, slots, rows, extendRows, chosen, last, results } = buffers;
  return {
    body: [
      ...targetBody(target, { rows, count, perSlot: count }, drafter?.auxHidden ?? []),
      ...keepAll ? drafter?.catchUp?.keep(count) ?? [] : [],
    ],
    head: [
      ...targetHeadAt(target, last),
      // The one row to choose for is in draftRows, see `writePrompt`.
      ...chooseRows(target, { ...buffers, rows: buffers.draftRows }, {
        count: 1,
        perSlot: 1,
        choice,
      }),
      acceptPrompt({ batchSlots, last, chosen, slots, extend: extendRows, results }),
      ...afterAcceptance(buffers, target, { shape: { ...chain(0), batch: 1 }, choice }),
    ],
    draft: drafter?.prompt(count) ?? [],
  };
}
