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
  { heads, headDim, count, kept, many, firstRow, window, noted, label, work }: {
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
    /** Where the scales of the rows are noted, from row `first` on. */
    readonly noted?: { readonly scales: Operand; readonly first: number } | undefined;
    readonly label: string;
    readonly work: Work;
  },
): Dispatch {
  const inRows = many && kept <= COMBINE_LANES;
  return dispatch((inRows ? combineRowsKernel : combineKernel)(headDim, noted !== undefined), {
    ...{ label, work },
    buffers: { ...buffers, ...noted ? { scales: noted.scales } : {} },
    constants: {
      ...{ HEADS: heads, KV_SPLITS: kept, FIRST_ROW: firstRow, WINDOW: window },
      ...noted ? { NOTED_FIRST: noted.first } : {},
    },
    workgroups: inRows
      ? [Math.ceil(heads * headDim / 4 / COMBINE_ROWS_THREADS), count]
      : [heads, count, combineTiles(headDim)],
  });
}
