import { allocate } from "../../../../kernels/round/allocate.ts";
import { acceptSimulated } from "../../../../kernels/round/accept_simulated.ts";
import { verifyPacked } from "../../../../kernels/round/verify_packed.ts";
import { accept } from "../../../../kernels/round/round.ts";
import type { Dispatch } from "../../../gpu/kernel.ts";
import type { Program } from "../../../gpu/program.ts";
import { targetBody, targetHead } from "../../../model/plan/target.ts";
import type { RoundShape } from "../../../speculate/round_shape.ts";
import { chooseRows } from "../choice/choice.ts";
import type { RoundParts } from "../tier.ts";

/** A packed round: one whose verify forward has rows for the drafts alone that are verified. */
export interface PackedShape extends RoundShape {
  /** Verify rows of all sequences together, padding included. */
  readonly packed: number;
}

/** What packed rounds are made with, and what they share with others. */
export interface PackedMakers {
  readonly compile: (plan: Dispatch[]) => Promise<Program>;
  readonly levels: (shape: RoundShape) => Promise<Program>;
  /** Draft token 0 of a batch. */
  readonly head: (batch: number) => Promise<Program>;
  /** As in `RoundKind`. */
  readonly acceptance: readonly number[] | undefined;
}

/** The plans of a packed round after its draft levels, and before draft token 0 of the next one. */
export interface PackedPlans {
  readonly rows: Dispatch[];
  /** Target forward and choice: the same for all shapes of as many rows, one sequence alone apart. */
  readonly target: Dispatch[];
  readonly acceptance: Dispatch[];
  /** Draft-extend: the same where `target` is. */
  readonly extend: Dispatch[];
}

/** @param acceptance as in `RoundKind`. */
export function packedPlans(
  parts: RoundParts,
  shape: PackedShape,
  acceptance?: readonly number[],
): PackedPlans {
  const alone = shape.batch === 1;
  return {
    rows: [packedRowsOf(parts, shape)],
    target: targetRows(parts, shape.packed, alone),
    acceptance: [packedAcceptance(parts, shape, acceptance)],
    extend: parts.drafter?.extendPacked?.(shape.packed, alone) ?? [],
  };
}

/** Makes the programs of packed rounds. What depends on the rows alone is compiled once for all shapes. */
export function packedPrograms(
  parts: RoundParts,
  { compile, levels, head, acceptance }: PackedMakers,
): (shape: PackedShape) => Promise<Record<"draft" | "verify" | "extend", Program>> {
  const shared = new Map<string, Promise<Program[]>>();
  return async (shape) => {
    const plans = packedPlans(parts, shape, acceptance);
    const [target, extend] = await shared.getOrInsertComputed(
      `${shape.packed} ${shape.batch === 1}`,
      () => Promise.all([plans.target, plans.extend].map(compile)),
    ) as [Program, Program];
    const rows = await compile(plans.rows);
    return {
      draft: await levels(shape),
      verify: joined(rows, target, await compile(plans.acceptance)),
      extend: joined(extend, await head(shape.batch)),
    };
  };
}

/** The device's choice of the drafts that are verified: after the draft levels, before the verify rows. */
export function allocation(
  { buffers: { batchSlots, slots, budget, drafts }, mostRows }: RoundParts,
  { batch, rows }: RoundShape,
): Dispatch {
  return allocate({ batchSlots, slots, budget, drafts }, { batch, rows, mostRows });
}

/** Programs that run one after the other, as one. */
export function joined(...programs: readonly Program[]): Program {
  return { steps: programs.flatMap(({ steps }) => steps) };
}

/**
 * Target forward and choice of `count` rows. Those of several sequences go through attention as if each had a
 * slot of its own, with the same bits.
 */
function targetRows(
  { target, drafter, buffers, keepAll }: RoundParts,
  count: number,
  alone: boolean,
): Dispatch[] {
  const perSlot = alone ? count : 1;
  return [
    ...targetBody(target, { rows: buffers.rows, count, perSlot }, drafter?.auxHidden ?? []),
    ...keepAll ? drafter?.catchUp?.keep(count) ?? [] : [],
    ...targetHead(target, count),
    ...chooseRows(target, buffers, { count, perSlot, choice: undefined }),
  ];
}

function packedRowsOf(
  { buffers, mostRows, firstRows }: RoundParts,
  { batch, rows, packed: count }: PackedShape,
): Dispatch {
  const { batchSlots, slots, drafts, rows: verify, extendRows: extend, last } = buffers;
  return verifyPacked({ batchSlots, slots, drafts, rows: verify, extend, last }, {
    ...{ batch, count, rows, firstRows, mostRows },
  });
}

function packedAcceptance(
  { buffers, mostRows, firstRows, told }: RoundParts,
  { batch, rows, depth }: PackedShape,
  acceptance: readonly number[] | undefined,
): Dispatch {
  const { batchSlots, slots, drafts, chosen, last, results, extendRows: extend } = buffers;
  const accepted = { batchSlots, rows: buffers.rows, chosen, drafts, slots, extend, last, results };
  const of = { batch, rows, depth, mostRows, firstRows, told };
  return acceptance ? acceptSimulated(accepted, { ...of, acceptance }) : accept(accepted, of);
}
