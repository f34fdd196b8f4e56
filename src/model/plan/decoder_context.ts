import type { PartialSums } from "../../../kernels/attention/partial_sums.ts";
import type { Hold } from "../../../kernels/matmul/hold/hold.ts";
import { matmul } from "../../../kernels/matmul/matmul.ts";
import { splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import {
  type NormInput,
  type NormKept,
  rmsNorm,
  type RowScales,
  type VerifiedRows,
} from "../../../kernels/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import type { Matrix, Tuning } from "../../gpu/matrix.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { ModelConfig } from "../config/types.ts";
import type { Loader } from "../weights/loader.ts";

/**
 * Keys and values of one layer, [pages, kvHeads, PAGE, headDim] of the context's `kvDtype` each; the
 * same buffer where the layer keeps latents.
 */
export interface LayerKv {
  readonly keys: Operand;
  readonly values: Operand;
}

/**
 * Scratch of one forward. A buffer holds the rows of the widest plan, but for `otherX`, which few rows
 * use, and `relay`, which one row does.
 */
export interface Scratch {
  /** Residual stream, [rows, hidden]. */
  readonly x: Operand;
  /** The stream again, of few rows: matmuls that norm x themselves move it from one to the other. */
  readonly otherX: Operand;
  /** Input of a branch, [rows, hidden]. */
  readonly normed: Operand;
  /** Where q and k are normed: before norms and rope, [rows, (heads + 2 kvHeads) headDim]. */
  readonly qkv: Operand;
  /** Rotated, [rows, heads headDim]. */
  readonly q: Operand;
  /** Of attention, shared by all layers. */
  readonly partial: PartialSums;
  /** Attention output, [rows, heads headDim]. */
  readonly attentionOutput: Operand;
  /** [rows, intermediate] */
  readonly act: Operand;
  /** Sums of a split-K matmul that are still to be added: to x, [splitK, rows, hidden], or to be q, k and v. */
  readonly sums: Operand;
  /** Of one row, where matmuls go together: absent, they go apart. */
  readonly relay?: RelayScratch | undefined;
  /** Where the device has matrix units: of the rows of `normed`, `attentionOutput` and `act`. */
  readonly scales?: RowScales | undefined;
  /** Where a layer is a mixture of experts. */
  readonly mixture?: MixtureScratch | undefined;
}

/** What workgroups of a dispatch wait for, of one row; see kernels/matmul/relay. */
export interface RelayScratch {
  /** u32 [relayWords(intermediate)], zeros before and after each dispatch. */
  readonly act: Operand;
  /** u32 [headWords(width of q, k and v)] and [sumWords(hidden)], likewise. */
  readonly heads: Operand;
  /** `sums` again: the one is read by the dispatch that writes the other. */
  readonly sums: Operand;
}

/** Inputs of matmuls for which the kernel that writes them also writes one scale for each row. */
export type ScaledInput = "normed" | "attentionOutput" | "act";

/** Most rows whose attention lowers scales where each of its invocations does. */
const MOST_LOWERED = 16;

/**
 * Scales of the rows of an input, f32 [rows], of `act` [jobs]; undefined where its writer stores none.
 *
 * @param most rows whose attention lowers them.
 */
export function scalesOf(
  { scratch: { scales } }: DecoderContext,
  input: ScaledInput,
  rows: number,
  most: number = MOST_LOWERED,
): Operand | undefined {
  if (input === "normed") return scales?.normed;
  if (!scales || input === "attentionOutput" && rows > most) return undefined;
  const { lowered: { buffer, offset = 0, size = buffer.size - offset }, stride } = scales;
  return input === "act"
    ? { buffer, offset: offset + 4 * stride, size: size - 4 * stride }
    : { buffer, offset, size: 4 * stride };
}

/** What mixtures of experts write beside `act`, which is [rows, topK, intermediate] for them. */
export interface MixtureScratch {
  /** Of the router, [rows, experts]. */
  readonly logits: Operand;
  /** Chosen ones, u32 [rows, topK]. */
  readonly experts: Operand;
  /** Of the chosen ones, [rows, topK]. */
  readonly weights: Operand;
  /** See job_lists.wgsl. */
  readonly tiles: Operand;
  /** What the chosen ones made, [rows, topK, hidden]. */
  readonly outputs: Operand;
}

/** What every layer of a model shares. */
export interface DecoderContext {
  readonly config: ModelConfig;
  readonly tuning: Tuning;
  readonly scratch: Scratch;
  /** Of each of the config's ropes: cos and sin, [positions, headDim / 2, 2]. */
  readonly ropes: readonly Operand[];
  /** Block table, [slots, tablePages]. */
  readonly pages: Operand;
  readonly tablePages: number;
  readonly kvDtype: KvDtype;
}

/** Rows of a forward: the buffer of `Row`s and how many of them. */
export interface RowsOf {
  readonly rows: Operand;
  readonly count: number;
  /** Rows of one slot that follow each other; divides `count`. */
  readonly perSlot: number;
  /** Whether rows may have paths, as nodes of trees; default false: paths are not looked at. */
  readonly paths?: boolean;
  /** What the rows are made of, where the forward's first dispatch is to do that; see `verifiesRows`. */
  readonly verified?: Omit<VerifiedRows, "perSlot"> | undefined;
}

/** Where the weights of one layer come from. */
export interface LayerSource {
  readonly load: Loader;
  /** `layers.3` */
  readonly label: string;
  /** The checkpoint's tensor of a role of the layer: `q`, `inputNorm`. */
  tensor(role: string): TensorInfo;
  /** Added to the weights of norms. */
  readonly normOffset: number;
}

/** Where a branch of a layer goes: to `sums`, for the next norm to add, or at once to x. */
export type End = "sums" | "x";

/** The plan of a branch, and the parts of its output in `sums`; 0 = x has it. */
export interface Branch {
  readonly plan: Dispatch[];
  readonly splitK: number;
  /** Where its parts are; default `sums`. */
  readonly sums?: Operand | undefined;
  /** Its last matmul, where what follows may do that in a dispatch with its own. */
  readonly last?: LastMatmul | undefined;
}

/** The matmul that a branch ends with, of slots with few cells. */
export interface LastMatmul {
  readonly matrix: Matrix;
  readonly x: Operand;
  readonly hold: Hold;
  readonly splitK: number;
  /** Cells of a slot, at most. */
  readonly cells: number;
  /** What it is in the plan. */
  readonly apart: readonly Dispatch[];
}

/** The last matmul of a branch: sums = a W^T in ranges of k, or x += a W^T. */
export function branchEnd(
  { tuning, scratch: { x, sums } }: DecoderContext,
  { matrix, x: a, xScales, hold }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** Of its rows, where they are noted. */
    readonly xScales?: Operand | undefined;
    readonly hold?: Hold;
  },
  { rows, end, label }: { readonly rows: number; readonly end: End; readonly label: string },
): Branch {
  const launch = { rows, tuning, label, ...hold && { hold } };
  if (end === "x") {
    return {
      plan: matmul({ matrix, x: a, xScales, out: x }, { ...launch, epilogue: "add" }),
      splitK: 0,
    };
  }
  const splitK = splitKOf(matrix, tuning);
  const plan = matmul({ matrix, x: a, xScales, out: sums }, {
    ...launch,
    epilogue: "store",
    splitK,
  });
  return { plan, splitK };
}

/** out = norm(x) of the residual stream, or of `from` where given. */
export function norm(
  { config, tuning, scratch }: DecoderContext,
  { from = { x: scratch.x }, weight, out, keep, noted, ...shape }: {
    readonly from?: NormInput;
    readonly weight: Operand;
    readonly out: Operand;
    /** For a matmul's input: `scratch.scales`. */
    readonly noted?: RowScales | undefined;
    readonly outCols?: number;
    readonly outFirst?: number;
    readonly keep?: NormKept | undefined;
    readonly put?: "store" | "add" | "pair";
  },
  rows: number,
  label: string,
): Dispatch[] {
  return rmsNorm({ from, weight, out, keep, noted }, {
    rows,
    cols: config.hiddenSize,
    eps: config.rmsNormEps,
    lanes: tuning.rowLanes,
    ...shape,
    label,
  });
}
