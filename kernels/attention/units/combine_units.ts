/** combine_units.wgsl: partial sums of attention on matrix units are merged. */
import { type Dispatch, dispatch, type Kernel } from "../../../src/gpu/kernel.ts";
import { type AttentionBuffers, windowOf } from "../attention.ts";
import { kernelOf } from "../../shader.ts";
import { type Block, SEGMENT_CELLS } from "./units_kernels.ts";

/** Most segments that are merged at a time, and partial sums that are loaded at once. */
const COMBINE_LANES = 16;
const COMBINE_PREFETCH = 16;

/** Records the merging of partial sums of `cells` cells each, of which a query has `kept`. */
export function combined(
  { rows, out, partial: { sums, stats }, scales, sinks }: AttentionBuffers,
  shape: Block,
  { cells, kept }: { readonly cells: number; readonly kept: number },
): Dispatch {
  const { heads, headDim, count, firstRow, window } = shape;
  const flags = { reduces: scales !== undefined, sinks: sinks !== undefined };
  return dispatch(combineUnitsKernel({ headDim, cells, kept, ...flags }), {
    buffers: { sums, stats, rows, out, ...scales && { scales }, ...sinks && { sinks } },
    constants: {
      HEADS: heads,
      KEPT: kept,
      FIRST_ROW: firstRow,
      WINDOW: windowOf({ window }),
      ...scales && { FIRST_SCALE: shape.firstScale },
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

/** What combine_units.wgsl merges. */
interface Combined {
  readonly headDim: number;
  /** Of a partial sum. */
  readonly cells: number;
  /** Partial sums of a query. */
  readonly kept: number;
  /** Whether the scales of the output's rows are reduced. */
  readonly reduces: boolean;
  /** Whether a logit without a value joins the softmax of each head. */
  readonly sinks: boolean;
}

/** Segments at a time: as many as a query may have, rounded up to a power of two. No bit depends on it. */
function combineLanes({ kept, cells }: Combined): number {
  const segments = Math.ceil(kept * cells / SEGMENT_CELLS);
  return Math.min(COMBINE_LANES, 2 ** Math.ceil(Math.log2(segments)));
}

interface CombineUnitsParameters {
  /** Whether the scales of the output's rows are reduced. */
  readonly REDUCES_SCALE: boolean;
  /** Whether a logit without a value joins the softmax of each head. */
  readonly SINKS: boolean;
  /** Cells of a partial sum, and partial sums of a segment. */
  readonly EACH_CELLS: number;
  readonly SEGMENT: number;
  /** Partial sums that are loaded at once. */
  readonly PREFETCH: number;
  /** Fours of a head, and segments at a time. */
  readonly HEAD: number;
  readonly LANES: number;
}

/** Merges partial sums. */
function combineUnitsKernel(of: Combined): Kernel {
  const { headDim, cells, reduces, sinks } = of;
  const lanes = combineLanes(of);
  const suffix = `${reduces ? "_scale" : ""}${sinks ? "_sinks" : ""}`;
  const name = `combine_units_${headDim}_${cells}_${lanes}${suffix}`;
  const SEGMENT = SEGMENT_CELLS / cells;
  const parameters = {
    REDUCES_SCALE: reduces,
    SINKS: sinks,
    EACH_CELLS: cells,
    SEGMENT,
    PREFETCH: Math.min(SEGMENT, COMBINE_PREFETCH),
    HEAD: headDim / 4,
    LANES: lanes,
  };
  return kernelOf<CombineUnitsParameters>("attention/units/combine_units")(parameters, { name });
}
