import type { DecoderContext } from "../graph/context.ts";
import type { LoweredOp } from "./ops.ts";

/** Other operations that compute the same. */
export interface Rewrite {
  /** What EYRIE_WITHOUT calls it. */
  readonly name: string;
  /** Whether sums are in another order with it, for every number of rows; default: the bits are the same. */
  readonly changesBits?: boolean;
  /** Another rewrite by name that does for more rows what this does for few, with the same bits: off where it is off. */
  readonly within?: string;
  /** The list with whatever it matches rewritten. */
  apply(ops: readonly LoweredOp[], context: DecoderContext): LoweredOp[];
  /** What must be done where it is turned off, because no plain kernel does it. */
  required?(ops: readonly LoweredOp[], context: DecoderContext): LoweredOp[];
}
