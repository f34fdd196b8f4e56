import type { Operand } from "../../../src/gpu/kernel.ts";
import type { Gating } from "../../lib/gate.ts";
import type { HeadsGate, OutputGates } from "../../lib/heads.ts";
import { foldCounts } from "../../lib/workgroup.ts";
import type { ExpertSums, RowScales } from "../../norm/rms_norm.ts";

/** How x is brought into workgroup memory, and the parameters of matmul_resident.wgsl for it. */
export type PrologueParameters =
  | {
    /** x is copied as it is. */
    readonly prologue: "rows";
    /** Vec8s of x that an invocation loads. */
    readonly LOADS: number;
  }
  | NormedParameters
  | {
    /** x is attention's output, whose splits are added up. */
    readonly prologue: "combined";
    /** Most splits that a row sees. */
    readonly SPLITS: number;
    /** Half of them: so many are loaded however many splits there are, the others only if there are more. */
    readonly HALF: number;
    /** Fours of numbers of a head. */
    readonly HEAD: number;
    /** Whether a logit without a value joins the softmax of each head. */
    readonly SINKS: boolean;
    /** The function of the output's gates. */
    readonly gating: Gating | "none";
    /** Vec8s that an invocation makes. */
    readonly LOADS: number;
    /** Whether it makes half a vec8 at a time, and how many halves. */
    readonly HALVES: boolean;
    readonly HALF_LOADS: number;
  }
  | {
    /** The heads of x are normed and gated. */
    readonly prologue: "gated";
    /** Vec8s of a head. */
    readonly HEAD_VEC8S: number;
    /** Vec8s of x that an invocation loads. */
    readonly LOADS: number;
  }
  | HandoffParameters & {
    /** Other workgroups of the dispatch make x. */
    readonly prologue: "handoff";
  };

/** Parameters of lib/handoff.wgsl and handoff_statements.wgsl. */
interface HandoffParameters {
  /** Words of a range, which are waited for together. */
  readonly RANGE: number;
  /** Words of a range that each invocation polls. */
  readonly WORDS: number;
}

/** x is normed, after something may have been added to it: lib/prologue_statements_normed.wgsl. */
export interface NormedParameters extends HandoffParameters {
  readonly prologue: "normed";
  /** Lanes that sum squares. */
  readonly NORM_LANES: number;
  /** Vec8s of a row that a lane has, at most. */
  readonly NORM_EACH: number;
  /** Lanes whose work an invocation does, one after the other. */
  readonly NORM_TURNS: number;
  /** Stages that each fold eight lanes' sums into one, and the sums that are left after them: `foldCounts`. */
  readonly STAGES: number;
  readonly REST: number;
  /** Whether sums of a split-K matmul are added, and how many besides the first. */
  readonly ADDED: boolean;
  readonly MORE_ADDENDS: number;
  /** Whether the sums are normed before they are added, and whether the result is multiplied by a number. */
  readonly BRANCH: boolean;
  readonly SCALED: boolean;
  /** Whether those sums are read from a buffer, or made by other workgroups of the dispatch. */
  readonly STORED: boolean;
  readonly HANDOFF: boolean;
  /** Whether outputs of experts are added, and how many a row has. */
  readonly WEIGHED: boolean;
  readonly EXPERTS: number;
  /** Whether x with what was added is stored, and whether it is stored a second time for a draft. */
  readonly STREAMED: boolean;
  readonly KEPT: boolean;
}

/** How a matmul that keeps x in workgroup memory brings it there, and what it binds for that. */
export interface Prologue {
  /** Part of the kernel's name; empty for rows as they are. */
  readonly name: string;
  /** How many times as many groups of lanes workgroups have; default 1. */
  readonly widen?: number | undefined;
  /** Bound after the epilogue's, in this order. */
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** On matrix units: the scales that the first workgroup resets to the largest. */
  readonly resets?: RowScales | undefined;
  /** Parameters of the kernel's WGSL. */
  parameters(of: Workgroup): PrologueParameters;
}

/** A workgroup that keeps x in its memory. */
interface Workgroup {
  /** Its invocations. */
  readonly threads: number;
  /** Of all rows of x that it keeps. */
  readonly vec8s: number;
  /** Whether x is multiplied as floats. */
  readonly floats: boolean;
}

/** Vec8s that an invocation brings. */
function loadsOf({ vec8s, threads }: Workgroup): number {
  return Math.ceil(vec8s / threads);
}

/** x is copied as it is. */
export const PLAIN_ROWS: Prologue = {
  name: "",
  buffers: {},
  constants: {},
  parameters: (of) => ({ prologue: "rows", LOADS: loadsOf(of) }),
};

/** What is added to rows of x: the sums of a split-K matmul, or the weighted outputs of experts. */
type NormAddends =
  | {
    /** [splitK, rows, cols] */
    readonly sums: Operand;
    readonly splitK: number;
    /** Present if the sums are normed before they are added. */
    readonly branch?: BranchNorm | undefined;
    /** Present if other workgroups of the dispatch make the sums, of one row: `sums` is then u32 [sumWords]. */
    readonly handoff?: Handoff | undefined;
  }
  | Pick<ExpertSums, "outputs" | "shares" | "experts">;

/** The norm of a branch. */
export interface BranchNorm {
  /** [cols] */
  readonly weight: Operand;
  readonly eps: number;
  /** f32 [1], by which the row is multiplied once the branch is added; absent: 1. */
  readonly scalar: Operand | undefined;
}

/** Words that workgroups of a dispatch wait for: see lib/handoff.wgsl. */
interface Handoff {
  /** Workgroups that make the words of a range. */
  readonly makers: number;
  /** How often a workgroup polls for missing words before it makes them itself. */
  readonly turns: number;
}

/** How many rows are added to each of x's. */
export type AddendCount =
  | { readonly splitK: number; readonly branch?: BranchNorm | undefined }
  | { readonly experts: number };

/** Rows that are read besides one row of x: what is added to it, and the weights of a branch's norm. */
export function addendsOf(added: AddendCount | undefined): number {
  if (!added) return 0;
  return "splitK" in added ? added.splitK + Number(added.branch !== undefined) : added.experts;
}

/** Storage buffers that are bound for the addends. */
export function addendBuffers(added: AddendCount | undefined): number {
  if (!added) return 0;
  if (!("splitK" in added)) return 3;
  const { branch } = added;
  return 2 + (branch ? 1 : 0) + (branch?.scalar ? 1 : 0);
}

/** A norm of rows of x, to which something may be added first. */
export interface NormOfRows {
  /** [cols] */
  readonly weight: Operand;
  readonly eps: number;
  /** Lanes of `rmsNorm` for such rows, which give the order of the sum of squares. */
  readonly lanes: number;
  /** Not on matrix units. */
  readonly kept?: KeptInput | undefined;
  /** Scales of the layer's inputs, which on matrix units the norm resets to the largest. */
  readonly resets?: RowScales | undefined;
  readonly added?:
    | NormAddends & {
      /** Where x + what is added is stored, [rows, cols]: not the buffer of x. Absent: another matmul stores it. */
      readonly stream: Operand | undefined;
    }
    | undefined;
}

/** Where a second copy of the rows of a norm's input is stored. */
interface KeptInput {
  readonly out: Operand;
  /** Row stride of out. */
  readonly outCols: number;
  readonly outFirst: number;
}

/** Partial sums of attention, as its first dispatch leaves them. */
interface PartialHeads {
  /** [rows, heads, splits, headDim] */
  readonly sums: Operand;
  /** [rows, heads, splits, 2] */
  readonly stats: Operand;
  readonly rows: Operand;
  readonly heads: number;
  readonly headDim: number;
  /** Splits of a whole block table. */
  readonly splits: number;
  /** Cells that a row sees; absent = all. */
  readonly window?: number | undefined;
  /** A logit of each head that joins its softmax and has no value, f32 [heads]. */
  readonly sinks?: Operand | undefined;
  /** Gates of the output, as for `attention`. */
  readonly gate?: OutputGates | undefined;
}

/** Most splits that `combinedHeads` adds. */
export const MAX_SPLITS = 16;
const HALF = MAX_SPLITS / 2;

/**
 * The output of attention, [rows, heads headDim], of rows that see at most MAX_SPLITS splits.
 *
 * @param widen see `combinesHeads`.
 */
export function combinedHeads(
  { sums, stats, rows, heads, headDim, splits, window = 0xffffffff, sinks, gate }: PartialHeads,
  widen: number,
): Prologue {
  return {
    widen,
    name: `combined_${headDim}${sinks ? "_sinks" : ""}${gate ? `_${gate.gating}` : ""}`,
    buffers: {
      parts: sums,
      stats,
      row_list: rows,
      ...sinks && { sinks },
      ...gate && { gate: gate.values },
    },
    constants: {
      HEADS: heads,
      KV_SPLITS: splits,
      WINDOW: window,
      ...gate && { GATE_COLS: gate.cols, GATE_FIRST: gate.first, GATE_WIDTH: gate.width },
    },
    parameters: ({ threads, vec8s, floats }) => ({
      prologue: "combined",
      LOADS: Math.ceil(vec8s / threads),
      // If an invocation has more than half a vec8 of floats, whole vec8s are faster: with o of Qwen3-30B-A3B a layer
      // takes 53.0 us instead of 54.4 on an H200.
      HALVES: floats && 2 * vec8s <= threads,
      HALF_LOADS: Math.ceil(2 * vec8s / threads),
      SPLITS: MAX_SPLITS,
      HALF,
      HEAD: headDim / 4,
      SINKS: sinks !== undefined,
      gating: gate?.gating ?? "none",
    }),
  };
}

/** What norms and gates the heads of x, see `gatedNorm`. */
interface HeadsGated {
  /** [headDim] */
  readonly weight: Operand;
  readonly headDim: number;
  readonly eps: number;
  readonly gate: HeadsGate;
}

/** Rows of heads, each normed and gated; see `gatesHeads`. */
export function gatedHeads({ weight, headDim, eps, gate }: HeadsGated): Prologue {
  return {
    name: `gated_${headDim}`,
    buffers: { norm_weight: weight, gate: gate.values },
    constants: { EPS: eps, GATE_COLS: gate.cols, GATE_FIRST: gate.first },
    parameters: (of) => ({ prologue: "gated", HEAD_VEC8S: headDim / 8, LOADS: loadsOf(of) }),
  };
}

/**
 * Rows of x, [rows, cols], normed.
 *
 * @param of.widen see `normsRows`; default 1.
 */
export function normedRows(
  { weight, eps, lanes, kept, resets, added }: NormOfRows,
  { cols, rows, widen }: {
    readonly cols: number;
    readonly rows: number;
    readonly widen?: number | undefined;
  },
): Prologue {
  const each = Math.ceil(cols / 8 / lanes);
  const splitK = added && "sums" in added ? added.splitK : 0;
  const experts = added && "outputs" in added ? added.experts : 0;
  const { handoff, branch } = added && "sums" in added ? added : {};
  const ofBranch = branch && `_branch${branch.scalar ? "_scaled" : ""}`;
  const kind = handoff ? "_handoff" : experts > 0 ? `_experts_${experts}` : ofBranch ?? "";
  const stream = added?.stream;
  const stored = `${kept ? "_kept" : ""}${added && !stream ? "_unstored" : ""}`;
  return {
    widen,
    name: `normed_${lanes}x${each}_${splitK}${kind}${stored}`,
    buffers: {
      norm_weight: weight,
      ...added ? addendOperands(added, 4 * rows * cols) : {},
      ...kept ? { kept: kept.out } : {},
    },
    constants: {
      EPS: eps,
      ...branch ? { BRANCH_EPS: branch.eps } : {},
      ...kept ? { KEPT_COLS: kept.outCols, KEPT_FIRST: kept.outFirst } : {},
      ...handoff ? { TURNS: handoff.turns, MAKERS: handoff.makers, RANGES: 1 } : {},
    },
    ...resets ? { resets } : {},
    parameters: ({ threads }) => ({
      prologue: "normed",
      HANDOFF: handoff !== undefined,
      NORM_LANES: lanes,
      NORM_EACH: each,
      NORM_TURNS: Math.ceil(lanes / threads),
      ADDED: splitK > 0,
      STORED: splitK > 0 && !handoff,
      KEPT: kept !== undefined,
      // Rows that are padded to one length have one kernel, whatever their width: only words depend on it.
      WORDS: handoff ? Math.ceil(splitK * cols / threads) : 0,
      RANGE: handoff ? splitK * cols : 0,
      MORE_ADDENDS: Math.max(0, splitK - 1),
      BRANCH: branch !== undefined,
      SCALED: branch?.scalar !== undefined,
      WEIGHED: experts > 0,
      EXPERTS: experts,
      STREAMED: stream !== undefined,
      ...foldCounts(lanes),
    }),
  };
}

/** @param size bytes of x's rows. */
function addendOperands(
  added: NonNullable<NormOfRows["added"]>,
  size: number,
): Record<string, Operand> {
  const stream = added.stream && { stream: added.stream };
  if ("handoff" in added && added.handoff) return { ...stream, handoff: added.sums };
  return "sums" in added
    ? {
      sums: { ...added.sums, size: added.splitK * size },
      ...added.branch && { branch_weight: added.branch.weight },
      ...added.branch?.scalar && { scalar: added.branch.scalar },
      ...stream,
    }
    : { outputs: added.outputs, ...stream, shares: added.shares };
}
