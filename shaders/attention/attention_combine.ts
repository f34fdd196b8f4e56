/** The sums of attention's splits of keys, added. */
import { type Dispatch, dispatch, type Operand, type Work } from "../../src/gpu/kernel.ts";
import {
  COMBINE_LANES,
  COMBINE_ROWS_THREADS,
  combineKernel,
  combineRowsKernel,
  combineTiles,
} from "./attention_kernels.ts";

/** Records out [rows, heads, headDim] of partial sums, [rows, heads, kept]. */
export function combineSums(
  buffers: Readonly<Record<"sums" | "stats" | "rows" | "out", Operand>>,
  { heads, headDim, count, kept, many, firstRow, window, label, work }: {
    readonly heads: number;
    readonly headDim: number;
    readonly count: number;
    readonly kept: number;
    /** Rows are so many that an invocation each is enough: the same bits; sums of chains want it. */
    readonly many: boolean;
    /** In `rows`. */
    readonly firstRow: number;
    /** Cells. */
    readonly window: number;
    readonly label: string;
    readonly work: Work;
  },
): Dispatch {
  const constants = { HEADS: heads, KV_SPLITS: kept, FIRST_ROW: firstRow, WINDOW: window };
  if (many && kept <= COMBINE_LANES) {
    return dispatch(combineRowsKernel(headDim), {
      ...{ buffers, constants, label, work },
      workgroups: [Math.ceil(heads * headDim / 4 / COMBINE_ROWS_THREADS), count],
    });
  }
  return dispatch(combineKernel(headDim), {
    ...{ buffers, constants, label, work },
    workgroups: [heads, count, combineTiles(headDim)],
  });
}
