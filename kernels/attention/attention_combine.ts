/** The sums of attention's splits of keys, added. */
import { type Cost, type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import {
  COMBINE_LANES,
  COMBINE_ROWS_THREADS,
  combineKernel,
  combineRowsKernel,
  combineTiles,
  SPLIT_CELLS,
} from "./attention_kernels.ts";

/** Cells up to which a row has no more partial sums than attention_combine.wgsl has lanes. */
const LANE_CELLS = COMBINE_LANES * SPLIT_CELLS;

interface Combined {
  readonly heads: number;
  readonly headDim: number;
  readonly count: number;
  readonly kept: number;
  /** In `rows`. */
  readonly firstRow: number;
  /** Cells. */
  readonly window: number;
  /** Where the scales of the rows are noted, from row `first` on. */
  readonly noted?: { readonly scales: Operand; readonly first: number } | undefined;
  readonly label: string;
  readonly work: Cost;
}

type Buffers = Readonly<Record<"sums" | "stats" | "rows" | "out", Operand>>;

/**
 * Records out [rows, heads, headDim] of partial sums, [rows, heads, kept].
 *
 * @param shape.many Rows are so many that an invocation for each four numbers is enough: the same bits as long as a
 *   row has no more sums than there are lanes; sums of chains want it.
 */
export function combineSums(
  buffers: Buffers,
  { many, ...shape }: Combined & { readonly many: boolean },
): Dispatch[] {
  if (!many) return [combined(buffers, shape, false)];
  if (shape.kept <= COMBINE_LANES) return [combined(buffers, shape, true)];
  return [
    { ...combined(buffers, shape, true), forCells: { from: 0, upTo: LANE_CELLS } },
    { ...combined(buffers, shape, false), forCells: { from: LANE_CELLS + 1, upTo: Infinity } },
  ];
}

function combined(
  buffers: Buffers,
  { heads, headDim, count, kept, firstRow, window, noted, label, work }: Combined,
  inRows: boolean,
): Dispatch {
  return dispatch((inRows ? combineRowsKernel : combineKernel)(headDim, noted !== undefined), {
    label,
    work,
    buffers: { ...buffers, ...noted ? { scales: noted.scales } : {} },
    constants: {
      HEADS: heads,
      KV_SPLITS: kept,
      FIRST_ROW: firstRow,
      WINDOW: window,
      ...noted ? { NOTED_FIRST: noted.first } : {},
    },
    workgroups: inRows
      ? [Math.ceil(heads * headDim / 4 / COMBINE_ROWS_THREADS), count]
      : [heads, count, combineTiles(headDim)],
  });
}
