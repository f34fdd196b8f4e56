import type { DecoderContext } from "../graph/context.ts";
import type { Edits } from "./edits.ts";

/** Replaces operations by others that compute the same. */
export interface Rewrite {
  /** Its name in EYRIE_WITHOUT. */
  readonly name: string;
  /** Whether it changes the order of sums, which it must then do for every number of rows; default: no bit changes. */
  readonly changesBits?: boolean;
  /**
   * The name of a rewrite that does for many rows what this one does for few, with the same bits. If that one is turned
   * off, so is this one.
   */
  readonly within?: string;
  /** Finds the operations that it matches and replaces them. */
  apply(edits: Edits, context: DecoderContext): void;
  /** The part that applies even if the rewrite is turned off: it is for operations that no plain kernel supports. */
  required?(edits: Edits, context: DecoderContext): void;
}
