/** Partial sums of splits of keys on matrix units, and their combination. */
import { type Dispatch, dispatch } from "../../../src/gpu/kernel.ts";
import { type AttentionBuffers, type AttentionShape, windowOf } from "../attention.ts";
import { combineUnitsKernel } from "./units_kernels.ts";

/** Cells from a row's `base` on to its own, at most: of rows.wgsl. */
const PATH_CELLS = 16;

/** Of the rows that are recorded together. */
export interface Block extends AttentionShape {
  /** In `rows`. */
  readonly firstRow: number;
  /** In `scales`. */
  readonly notedFirst: number;
}

/** Partial sums of so many cells each are merged. */
export function combined(
  { rows, out, partial: { sums, stats }, scales }: AttentionBuffers,
  shape: Block,
  { cells, kept }: { readonly cells: number; readonly kept: number },
): Dispatch {
  const { heads, headDim, count, firstRow, window } = shape;
  const noted = scales !== undefined;
  return dispatch(combineUnitsKernel({ headDim, cells, kept, noted }), {
    buffers: { sums, stats, rows, out, ...scales && { scales } },
    constants: {
      HEADS: heads,
      KEPT: kept,
      FIRST_ROW: firstRow,
      WINDOW: windowOf({ window }),
      ...scales && { NOTED_FIRST: shape.notedFirst },
    },
    workgroups: [heads, count],
    label: `${shape.label}.combine`,
    work: {
      bytes: 4 * count * heads * headDim,
      flops: 0,
      context: {
        bytesPerCell: 4 * shape.perSlot * heads * (headDim + 2) / cells,
        flopsPerCell: 2 * count * heads * headDim / cells,
        window,
      },
    },
  });
}

/** Workgroups along z: all, or those that the windows of a tile's rows touch. */
export function launched(
  all: number,
  { window, paths }: AttentionShape,
  { rows, cells }: { readonly rows: number; readonly cells: number },
): number {
  if (window === undefined) return all;
  const touched = window + Math.max(rows - 1, paths ? PATH_CELLS : 0);
  return Math.min(all, 1 + Math.ceil((touched - 1) / cells));
}
