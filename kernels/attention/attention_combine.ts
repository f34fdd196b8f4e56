/** attention_combine.wgsl and combine_rows.wgsl: the partial sums of attention's splits of keys are added. */
import {
  type Cost,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Gating } from "../lib/gate.ts";
import type { OutputGates } from "../lib/heads.ts";
import { kernelOf } from "../shader.ts";
import { COMBINE_LANES, SPLIT_CELLS } from "./splits.ts";

/** Most invocations of a workgroup of attention_combine.wgsl. */
const COMBINE_THREADS = 256;

/** Invocations of a workgroup of combine_rows.wgsl. */
const COMBINE_ROWS_THREADS = 256;
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
  /** Scales of the output's rows, from row `first` on, which are reduced to those of their largest numbers. */
  readonly reduces?: FirstScales | undefined;
  /** Scales that are stored, with the rows themselves stored as f16, as `halfRows` does. */
  readonly half?: FirstScales | undefined;
  readonly label: string;
  readonly work: Cost;
}

interface FirstScales {
  readonly scales: Operand;
  readonly first: number;
}

type Buffers = Readonly<Record<"sums" | "stats" | "rows" | "out", Operand>> & {
  /** A logit of each head that joins its softmax and has no value, f32 [heads]. */
  readonly sinks?: Operand | undefined;
  readonly gate?: OutputGates | undefined;
};

/**
 * Records `out`, [rows, heads, headDim], from partial sums, [rows, heads, kept].
 *
 * @param shape.many Rows are so many that an invocation for each four numbers is enough: the same bits as long as a
 *   row has no more sums than there are lanes; sums of chains want it.
 */
export function combineSums(
  buffers: Buffers,
  { many, ...shape }: Combined & { readonly many: boolean },
): Dispatch[] {
  if (shape.half && !combinesRows({ many, ...shape })) {
    throw new Error(`${shape.label}: rows that are rounded take the sums of a few splits`);
  }
  if (!many) return [combined(buffers, shape, false)];
  if (shape.kept <= COMBINE_LANES) return [combined(buffers, shape, true)];
  return [
    { ...combined(buffers, shape, true), forCells: { from: 0, upTo: LANE_CELLS } },
    { ...combined(buffers, shape, false), forCells: { from: LANE_CELLS + 1, upTo: Infinity } },
  ];
}

/** Whether all rows are added by combine_rows.wgsl, which then may round them. */
export function combinesRows(
  { many, kept }: { readonly many: boolean; readonly kept: number },
): boolean {
  return many && kept <= COMBINE_LANES;
}

function combined(
  { sinks, gate, ...buffers }: Buffers,
  { heads, headDim, count, kept, firstRow, window, reduces, half, label, work }: Combined,
  inRows: boolean,
): Dispatch {
  const scaled = half ?? reduces;
  const flags = {
    REDUCES_SCALE: scaled !== undefined,
    SINKS: sinks !== undefined,
    gating: gate?.gating ?? "none" as const,
  };
  const vec8s = half ? Math.ceil(heads * headDim / 8 / COMBINE_ROWS_THREADS) : 0;
  const kernel = inRows ? combineRowsKernel(headDim, flags, vec8s) : combineKernel(headDim, flags);
  return dispatch(kernel, {
    label,
    work,
    buffers: {
      ...buffers,
      ...scaled && { scales: scaled.scales },
      ...sinks && { sinks },
      ...gate && { gate: gate.values },
    },
    constants: {
      HEADS: heads,
      KV_SPLITS: kept,
      FIRST_ROW: firstRow,
      WINDOW: window,
      ...scaled && { FIRST_SCALE: scaled.first },
      ...gate && { GATE_COLS: gate.cols, GATE_FIRST: gate.first, GATE_WIDTH: gate.width },
    },
    workgroups: inRows
      ? [half ? 1 : Math.ceil(heads * headDim / 4 / COMBINE_ROWS_THREADS), count]
      : [heads, count, combineTiles(headDim)],
  });
}

/** Workgroups that share a head where the splits of a row are added. */
function combineTiles(headDim: number): number {
  return headDim / 4 / combineQuads(headDim);
}

/** Fours of a head in a workgroup: the most that leave room for COMBINE_LANES lanes. */
function combineQuads(headDim: number): number {
  const most = COMBINE_THREADS / COMBINE_LANES;
  const quads = headDim / 4;
  return Math.max(...Array.from({ length: most }, (_, i) => i + 1).filter((n) => quads % n === 0));
}

interface CombineFlags {
  /** Whether the scales of the output's rows are reduced, or stored if the rows are stored as f16. */
  readonly REDUCES_SCALE: boolean;
  /** Whether a logit without a value joins the softmax of each head. */
  readonly SINKS: boolean;
  /** The function of the output's gates. */
  readonly gating: Gating | "none";
}

/** What combine_rows.wgsl takes. */
interface CombineRowsParameters extends CombineFlags {
  /** Fours of a head. */
  readonly HEAD: number;
  /** Splits that are loaded at once. */
  readonly PREFETCH: number;
  /** Vec8s of an invocation where rows are rounded to f16; 0: they are not. */
  readonly VEC8S: number;
}

/** What attention_combine.wgsl takes. */
interface CombineParameters extends Omit<CombineRowsParameters, "VEC8S"> {
  /** Fours of a head of a workgroup, and lanes that share the splits. */
  readonly QUADS: number;
  readonly LANES: number;
}

function suffix({ REDUCES_SCALE, SINKS, gating }: CombineFlags): string {
  const gated = gating === "none" ? "" : `_${gating}`;
  return `${REDUCES_SCALE ? "_scale" : ""}${SINKS ? "_sinks" : ""}${gated}`;
}

/** Adds the splits of a row. */
function combineKernel(headDim: number, flags: CombineFlags): Kernel {
  const parameters = {
    ...flags,
    HEAD: headDim / 4,
    QUADS: combineQuads(headDim),
    LANES: COMBINE_LANES,
    PREFETCH: 8,
  };
  const name = `attention_combine_${headDim}${suffix(flags)}`;
  return kernelOf<CombineParameters>("attention/attention_combine")(parameters, { name });
}

/** Adds the splits of many rows. */
function combineRowsKernel(headDim: number, flags: CombineFlags, vec8s: number): Kernel {
  const rounded = vec8s > 0 ? `_half${vec8s}` : "";
  const name = `attention_combine_rows_${headDim}${suffix(flags)}${rounded}`;
  const parameters = { ...flags, HEAD: headDim / 4, PREFETCH: 4, VEC8S: vec8s };
  return kernelOf<CombineRowsParameters>("attention/combine_rows")(parameters, { name });
}
