/** How a branch of a layer is entered: normed in a dispatch of its own, or by the first matmul. */
import { matmul, type PlainEpilogue } from "../../../kernels/matmul/matmul.ts";
import { normsRows, type NormUse } from "../../../kernels/matmul/hold/norms_rows.ts";
import { normsOnUnits } from "../../../kernels/matmul/hold/norms_on_units.ts";
import { normedRows, type NormOfRows } from "../../../kernels/matmul/hold/hold.ts";
import { type NormInput, type NormKept, normLanes } from "../../../kernels/norm/rms_norm.ts";
import { takesPairs } from "../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Epilogue } from "../../../kernels/lib/epilogue.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import { type DecoderContext, norm, scalesOf } from "./decoder_context.ts";

/** Storage buffers of an epilogue that notes scales. */
const NOTED_BUFFERS = 1;

/** What the first matmul of a branch reads. */
export interface BranchInput {
  /** [rows, cols]; not normed yet where `norm` says how. */
  readonly x: Operand;
  readonly norm?: NormOfRows;
  /** Of x's rows, where scales are noted, as those of the layer's other inputs then are; not read where `norm` is. */
  readonly xScales?: Operand | undefined;
  /** Whether x is two f16 numbers in place of each, see `takesPairs`. */
  readonly paired?: boolean | undefined;
  /** The residual stream that the branch is added to, [rows, hidden]. */
  readonly stream: Operand;
}

/** The first matmul of a branch, where it is the only one that reads the input. */
export type FirstMatmul = Pick<NormUse, "bound"> & {
  readonly matrix: Matrix;
  /** Whether it comes before all those whose inputs' scales are lowered by who writes them. */
  readonly lowers: boolean;
};

/**
 * x + its sums, normed: where the first matmul does so itself, nothing is dispatched and the stream moves to
 * the other of its two buffers, because all workgroups of the matmul read it.
 */
export function enterBranch(
  context: DecoderContext,
  { from, weight, keep, first }: {
    readonly from: NormInput;
    readonly weight: Operand;
    readonly keep?: NormKept | undefined;
    readonly first: FirstMatmul | undefined;
  },
  rows: number,
  label: string,
): { readonly plan: Dispatch[]; readonly input: BranchInput } {
  const { tuning, scratch: { normed: out, scales: noted }, config } = context;
  const added = "sums" in from || "outputs" in from ? from : undefined;
  const x = streamOf(context, from);
  const kept = keep?.what === "input" ? keep : undefined;
  const alone = kept ? [normsRows] : keep ? [] : [normsRows, normsOnUnits];
  const itself = first && ("x" in from && !("index" in from) || "outputs" in from) &&
    alone.some((norms) =>
      norms(first.matrix, { rows, added, bound: first.bound + (kept ? 1 : 0), tuning })
    );
  if (!itself) {
    const bound = Math.max(first?.bound ?? 0, NOTED_BUFFERS);
    const paired = first && noted && takesPairs(first.matrix, { rows, bound, tuning });
    const put = paired ? "pair" : "store";
    const plan = norm(context, { from, weight, out, keep, noted, put }, rows, label);
    const xScales = scalesOf(context, "normed", rows);
    return { plan, input: { x: out, xScales, paired, stream: x } };
  }
  const stream = added ? otherStream(context, x) : x;
  const lanes = normLanes({ cols: config.hiddenSize, lanes: tuning.rowLanes });
  const lowers = first.lowers ? noted : undefined;
  const { outCols = config.hiddenSize, outFirst = 0 } = kept ?? {};
  const how = {
    weight,
    eps: config.rmsNormEps,
    lanes,
    lowers,
    kept: kept && { out: kept.out, outCols, outFirst },
  };
  return {
    plan: [],
    input: {
      x,
      stream,
      xScales: scalesOf(context, "normed", rows),
      norm: { ...how, added: added && { ...added, stream } },
    },
  };
}

/** Where the residual stream is, or will be when what is still to be added to it is. */
export function streamOf({ scratch }: DecoderContext, from: NormInput): Operand {
  if ("outputs" in from) return from.stream;
  return ("x" in from ? from.x : undefined) ?? scratch.x;
}

/** The other of the stream's two buffers, which holds few rows. */
export function otherStream({ scratch: { x, otherX } }: DecoderContext, stream: Operand): Operand {
  return stream === x ? otherX : x;
}

/** out = epilogue(input W^T), the input normed on the way where it is not yet. */
export function project(
  { tuning }: DecoderContext,
  { x, norm, xScales, paired }: Omit<BranchInput, "stream">,
  { matrix, out }: { readonly matrix: Matrix; readonly out: Operand },
  { rows, ...shape }: {
    readonly rows: number;
    readonly epilogue: PlainEpilogue | Epilogue;
    /** Equal ranges of k; default 1. */
    readonly splitK?: number;
    readonly label: string;
  },
): Dispatch[] {
  const hold = norm && { hold: normedRows(norm, { cols: matrix.cols, rows }) };
  return matmul({ matrix, x, xScales, paired, out }, { rows, tuning, ...shape, ...hold });
}
