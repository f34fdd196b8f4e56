import type { DecoderContext } from "../graph/context.ts";
import type { Edits } from "./edits.ts";

/** Other operations that compute the same. */
export interface Rewrite {
  /** What EYRIE_WITHOUT calls it. */
  readonly name: string;
  /** Whether sums are in another order with it, for every number of rows; default: the bits are the same. */
  readonly changesBits?: boolean;
  /**
   * Another rewrite by name that does for more rows what this does for few, with the same bits: off where it is off.
   */
  readonly within?: string;
  /** Finds the operations that it matches and replaces them. */
  apply(edits: Edits, context: DecoderContext): void;
  /** What must be done where it is turned off, because no plain kernel does it. */
  required?(edits: Edits, context: DecoderContext): void;
}
