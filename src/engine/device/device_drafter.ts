import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { AuxHidden } from "../../model/graph/target.ts";
import type { RoundShape } from "../../speculate/round_shape.ts";

/** Rows of a forward, and which of them follow each other in one sequence. */
export interface ForwardRows {
  readonly count: number;
  /**
   * Adjacent rows of one sequence; 1 if rows of several sequences are packed: attention then reads rows one by one,
   * with bit-identical results.
   */
  readonly perSlot: number;
}

/** A drafter on the device: the dispatches that it adds to the plans of rounds and prompts. */
export interface DeviceDrafter {
  /** Hidden rows that a forward of the target copies for it. */
  readonly auxHidden: readonly AuxHidden[];
  /** Whether it reads the output of the target's final norm; otherwise the head may apply the norm itself. */
  readonly readsFinal: boolean;
  /**
   * Draft tokens 1 to depth - 1 of each sequence: level l makes token l + 1. `head` or `headAfterExtend` made token 0
   * before, so 3 draft steps are two levels.
   */
  levels(shape: RoundShape): Dispatch[];
  /** Stores the draft's keys and values of the rows that a round of this shape accepted. */
  extend(shape: RoundShape, rows: ForwardRows): Dispatch[];
  /** Draft token 0, like `head`, right after `extend`: a standalone draft reuses the hidden rows of `extend`. */
  headAfterExtend(batch: number): Dispatch[];
  /** Whether there are packed rounds of its chains. */
  readonly packs: boolean;
  /** Stores the draft's keys and values of the extend rows of prompts' chunks. */
  prompt(rows: ForwardRows): Dispatch[];
  /** Draft token 0 of `batch` sequences, from row `last` of each, after a prompt or `catchUp`. */
  head(batch: number): Dispatch[];
  /** Rejection rule for a chain of drafts. Default: exact match with the target's token. */
  readonly reject?: ((shape: RoundShape, logits: Operand) => Dispatch[]) | undefined;
  /** How it catches up after rounds that ran without it; undefined if there are no such rounds. */
  readonly catchUp: CatchUp | undefined;
}

/** Lets a drafter continue after rounds that ran without it. */
export interface CatchUp {
  /** Keeps what it needs of the `count` rows of a verify forward. */
  keep(count: number): Dispatch[];
  /** Stores the draft's keys and values of `count` extend rows that were kept. */
  rows(count: number): Dispatch[];
}
