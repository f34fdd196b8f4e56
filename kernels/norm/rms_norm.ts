import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Table } from "../../src/gpu/matrix.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

/**
 * What is normed, one of: rows of x; the rows of x that `index` names; rows of x plus the sums of a split-K matmul
 * (stored in x); those sums alone; rows of x plus those sums after a norm of their own, times `scalar` (stored in x);
 * rows plus the weighted outputs of their experts (stored in the stream); the rows' token embeddings times `scale`
 * (default 1).
 */
export type NormInput =
  | { readonly x: Operand; readonly index?: Operand }
  | {
    readonly x?: Operand;
    /** [splitK, rows, cols] */
    readonly sums: Operand;
    readonly splitK: number;
  }
  | {
    readonly x: Operand;
    readonly branch: NormedBranch;
    /** [1] */
    readonly scalar?: Operand | undefined;
  }
  | ExpertSums
  | {
    readonly matrix: Table;
    /** `Row`s, [rows]. */
    readonly rows: Operand;
    readonly scale?: number;
    /** If the rows are not written yet: what this norm makes and writes them from, see `verifiesRows`. */
    readonly verified?: VerifiedRows | undefined;
  };

/** Sums of a split-K matmul that are normed before they are added. */
export interface NormedBranch {
  /** [splitK, rows, cols] */
  readonly sums: Operand;
  readonly splitK: number;
  /** Weight of their norm, [cols], and its eps. */
  readonly weight: Operand;
  readonly eps: number;
  /**
   * The row's experts, if their normed outputs are added to the sums, which are first normed with `sumsWeight`, [cols]:
   * see `normSum`.
   */
  readonly experts?: NormedExperts & { readonly sumsWeight: Operand } | undefined;
}

/** Outputs of a row's experts that are weighted, added up and normed. */
export interface NormedExperts {
  /** [rows, count, cols] */
  readonly outputs: Operand;
  /** The share of each output, [rows, count]. */
  readonly shares: Operand;
  /** Experts of a row. */
  readonly count: number;
  /** Weight of the norm, [cols]. */
  readonly weight: Operand;
}

/** Storage buffers of a norm that norms and adds a branch first, and keeps nothing. */
export function branchBuffers(
  { scaled, storesScales, experts = false }: {
    readonly scaled: boolean;
    readonly storesScales: boolean;
    /** Whether the branch has experts, see `NormedBranch`. */
    readonly experts?: boolean;
  },
): number {
  return 5 + (experts ? 4 : 0) + Number(scaled) + (storesScales ? 2 : 0);
}

/** What the rows of a verify forward of chains are made of; see lib/verify_row.wgsl. */
interface VerifiedRows {
  /** Slot of each sequence of the batch, u32 [batch]. */
  readonly batchSlots: Operand;
  readonly slots: Operand;
  readonly drafts: Operand;
  /** Rows of a sequence. */
  readonly perSlot: number;
  /** Rows that a slot may have in any round. */
  readonly maxRows: number;
}

/** Whether the norm of an embedding may write the rows itself: one dispatch sees them all. */
export function verifiesRows({ shards }: Table): boolean {
  return shards.length === 1;
}

/** The residual stream, and the outputs of each row's experts, still to be added to it. */
export interface ExpertSums {
  /** [rows, cols] */
  readonly stream: Operand;
  /** [rows, experts, cols] */
  readonly outputs: Operand;
  /** The share of each output, [rows, experts]. */
  readonly shares: Operand;
  /** Experts of a row. */
  readonly experts: number;
  /** Biases that are added to the experts' outputs: `values` [experts, cols], of the experts u32 [rows, experts]. */
  readonly bias?: { readonly values: Operand; readonly experts: Operand } | undefined;
}

/**
 * A second output: the input or the normed rows again, in a window of `out`, or the input at the
 * rows of `out` that `slot` names.
 */
export type NormKept =
  | {
    readonly what: "input" | "output";
    readonly out: Operand;
    /** Row stride of out; default cols. */
    readonly outCols?: number | undefined;
    readonly outFirst?: number | undefined;
  }
  | { readonly what: "slot"; readonly out: Operand; readonly slot: Operand };

/** Scales of the rows of the inputs of a layer's matmuls, f32: see kernels/lib/scale_of.wgsl. */
export interface RowScales {
  /** Scales of what norms write, [rows]. */
  readonly normed: Operand;
  /** Scales of attention's output, [stride], and of the gated activations, [rows, jobs]; other kernels reduce them. */
  readonly reduced: Operand;
  readonly stride: number;
  /** Most jobs of a row in any layer: 1 if no layer is a mixture of experts. */
  readonly jobs: number;
}

/** What a dispatch that stores scales binds besides, by the names of lib/store_scales.wgsl. */
export function scaleBuffers(scales: RowScales | undefined): Readonly<Record<string, Operand>> {
  return scales ? { scales: scales.normed, reduced: scales.reduced } : {};
}

/** The constants of a dispatch that resets these scales. */
export function scaleConstants(scales: RowScales | undefined): Readonly<Record<string, number>> {
  return scales ? { REDUCED_ROWS: scales.stride, ROW_JOBS: scales.jobs } : {};
}

export interface NormShape {
  readonly rows: number;
  /** Width of a row, a multiple of 8. */
  readonly cols: number;
  readonly eps: number;
  /** Most invocations a row should take, a power of two. */
  readonly lanes: number;
  /** Row stride of out, a multiple of 4; default cols. */
  readonly outCols?: number | undefined;
  readonly outFirst?: number | undefined;
  /**
   * What happens to the result: "store", the default, is `out = y`, "add" is `out += y`. "pair" and "half", with
   * `scales`, store each number as two f16 numbers or as one, in rows of cols, as matmuls on matrix units read f16
   * x.
   */
  readonly put?: "store" | "add" | "pair" | "half";
  readonly label: string;
}

/** Parameters of rms_norm.wgsl for its input: see `NormInput`. */
type SourceParameters =
  | {
    /** Rows of x, those that an index names, or sums. */
    readonly from: "rows" | "index" | "sums";
    /** Whether sums are added to rows of x, which are stored. */
    readonly RESIDUAL: boolean;
  }
  | {
    /** Sums that are normed before they are added to rows of x. */
    readonly from: "normed";
    readonly RESIDUAL: true;
    /** Outputs of a row's experts that are normed too, and added to those; 0: none. */
    readonly EXPERTS: number;
    /** Whether the rows are then multiplied by a scalar, and that scalar's binding number. */
    readonly SCALED: boolean;
    readonly SCALAR: number;
  }
  | {
    readonly from: "experts";
    /** Outputs of a row. */
    readonly EXPERTS: number;
    /** Whether biases are added to them. */
    readonly BIASED: boolean;
  }
  | {
    readonly from: "tokens";
    /** Format of the embedding. */
    readonly weights: FloatFormat;
    /** Whether the rows are made on the way. */
    readonly VERIFIED: boolean;
  };

interface NormParameters extends FoldParameters {
  /** What happens to the result: see `NormShape`. */
  readonly put: "store" | "add" | "pair" | "half";
  /** Whether the result is stored as f16. */
  readonly F16: boolean;
  /** The second output, see `NormKept`. */
  readonly keep: "nothing" | NormKept["what"];
  /** Numbers of the bindings of what is kept, and of the slots of its rows. */
  readonly KEPT: number;
  readonly SLOT: number;
  /** Whether the scales of the rows are stored. */
  readonly STORES_SCALES: boolean;
  /** Vec8s of a row that a lane has. */
  readonly EACH: number;
  /** Whether the workgroup reduces two sums of squares at once: those of two branches. */
  readonly TWO_SUMS: boolean;
}

/** What differs between the kinds of input, for one dispatch. */
interface Source {
  readonly name: string;
  readonly parameters: SourceParameters;
  /** Bindings 0 and, where it needs others, 3 and on. */
  readonly buffers: readonly [name: string, operand: Operand][];
  readonly constants: Readonly<Record<string, number>>;
}

/**
 * Records `out[r, outFirst..] = v / rms(v) * weight` for the row v of `from` that belongs to r: one
 * dispatch, or one a shard of an embedding. No buffer may be read and written at once.
 */
export function rmsNorm(
  { from, weight, out, keep, scales }: {
    readonly from: NormInput;
    /** [cols] */
    readonly weight: Operand;
    readonly out: Operand;
    readonly keep?: NormKept | undefined;
    /** Receives the scales of the rows of out; the scales of the other inputs are reset to the largest. */
    readonly scales?: RowScales | undefined;
  },
  shape: NormShape,
): Dispatch[] {
  const { rows, cols, eps, outCols = cols, outFirst = 0, put = "store", label } = shape;
  const lanes = normLanes(shape);
  const kind = { put, keep: keep?.what ?? "nothing", storesScales: scales !== undefined } as const;
  return sources(from, rows * cols).map((source) =>
    dispatch(normKernel(source, { ...kind, cols, lanes }), {
      buffers: {
        ...Object.fromEntries(source.buffers),
        norm_weight: weight,
        out,
        ...keep ? { kept: keep.out } : {},
        ...keep?.what === "slot" ? { slot: keep.slot } : {},
        ...scaleBuffers(scales),
      },
      constants: {
        COLS: cols,
        EPS: eps,
        OUT_COLS: outCols,
        OUT_FIRST: outFirst,
        LANES: lanes,
        ...source.constants,
        ...keep && keep.what !== "slot"
          ? { KEPT_COLS: keep.outCols ?? cols, KEPT_FIRST: keep.outFirst ?? 0 }
          : {},
        ...scaleConstants(scales),
      },
      workgroups: [rows],
      label,
      work: {
        bytes: 4 * ((keep || put === "add" ? 3 : 2) * rows + 1) * cols,
        flops: 4 * rows * cols,
      },
    })
  );
}

/** One lane per vec8, at most `lanes`; but up to 256 lanes are used so that none has more than eight vec8s. */
export function normLanes({ cols, lanes }: Pick<NormShape, "cols" | "lanes">): number {
  const enough = (count: number) => 2 ** Math.ceil(Math.log2(count));
  return Math.max(Math.min(lanes, enough(cols / 8)), Math.min(256, enough(cols / 64)), 1);
}

function sources(from: NormInput, elements: number): Source[] {
  if ("branch" in from) return [branchSource(from, elements)];
  if ("sums" in from) {
    const { x, sums, splitK } = from;
    const exact = { ...sums, size: 4 * splitK * elements };
    const constants = { SPLIT_K: splitK };
    return [
      x
        ? source("sums", [["x", x], ["sums", exact]], constants)
        : source("branch", [["sums", exact]], constants),
    ];
  }
  if ("x" in from) {
    const { x, index } = from;
    return [index ? source("index", [["x", x], ["index", index]]) : source("rows", [["x", x]])];
  }
  if ("outputs" in from) return [expertSource(from)];
  const { matrix: { format, shards }, rows, scale = 1, verified } = from;
  const by = verified ? "verified" : "tokens";
  return shards.map((shard) => ({
    name: `${by}_${format}`,
    parameters: { from: "tokens", weights: format, VERIFIED: verified !== undefined },
    buffers: [["weights", shard.operand], ["rows", rows], ...verified ? madeOf(verified) : []],
    constants: {
      SHARD_FIRST: shard.first,
      SHARD_ROWS: shard.rows,
      SCALE: scale,
      ...verified ? { ROWS: verified.perSlot, MAX_ROWS: verified.maxRows } : {},
    },
  }));
}

function branchSource(
  { x, branch, scalar }: Extract<NormInput, { branch: NormedBranch }>,
  elements: number,
): Source {
  const { sums, splitK, weight, eps, experts } = branch;
  const buffers: Source["buffers"] = [
    ["x", x],
    ["sums", { ...sums, size: 4 * splitK * elements }],
    ["branch_weight", weight],
    ...experts ? expertBuffers(experts) : [],
  ];
  return {
    name: ["normed", ...experts ? [experts.count] : [], ...scalar ? ["scaled"] : []].join("_"),
    parameters: {
      from: "normed",
      RESIDUAL: true,
      EXPERTS: experts?.count ?? 0,
      SCALED: scalar !== undefined,
      SCALAR: buffers.length + 2, // behind the norm's weights and out
    },
    buffers: scalar ? [...buffers, ["scalar", scalar]] : buffers,
    constants: { SPLIT_K: splitK, BRANCH_EPS: eps },
  };
}

function expertBuffers(
  { sumsWeight, outputs, shares, weight }: NonNullable<NormedBranch["experts"]>,
): Source["buffers"] {
  return [
    ["sums_weight", sumsWeight],
    ["outputs", outputs],
    ["shares", shares],
    ["experts_weight", weight],
  ];
}

function madeOf({ batchSlots, slots, drafts }: VerifiedRows): Source["buffers"] {
  return [["batch_slots", batchSlots], ["slots", slots], ["drafts", drafts]];
}

function expertSource({ stream, outputs, shares, experts, bias }: ExpertSums): Source {
  return {
    name: `experts_${experts}${bias ? "_bias" : ""}`,
    parameters: { from: "experts", EXPERTS: experts, BIASED: bias !== undefined },
    buffers: [
      ["x", stream],
      ["outputs", outputs],
      ["shares", shares],
      ...biasBuffers(bias),
    ],
    constants: {},
  };
}

function biasBuffers(bias: ExpertSums["bias"]): Source["buffers"] {
  return bias ? [["bias", bias.values], ["experts", bias.experts]] : [];
}

function source(
  name: "rows" | "index" | "sums" | "branch",
  buffers: Source["buffers"],
  constants: Source["constants"] = {},
): Source {
  const from = name === "branch" ? "sums" : name;
  return { name, parameters: { from, RESIDUAL: name === "sums" }, buffers, constants };
}

function normKernel(
  source: Source,
  { put, keep, storesScales, cols, lanes }: {
    readonly put: "store" | "add" | "pair" | "half";
    readonly keep: NormParameters["keep"];
    readonly storesScales: boolean;
    readonly cols: number;
    readonly lanes: number;
  },
): Kernel {
  const each = Math.ceil(cols / 8 / lanes);
  const parts = [source.name, put, keep, ...storesScales ? ["scales"] : []];
  const name = `rms_norm_${parts.join("_")}_${lanes}x${each}`;
  const bound = source.buffers.length + 2; // and the norm's weights and out
  return kernelOf<NormParameters & SourceParameters>("norm/rms_norm")({
    ...source.parameters,
    put,
    F16: put === "pair" || put === "half",
    keep,
    STORES_SCALES: storesScales,
    KEPT: bound,
    SLOT: bound + 1,
    EACH: each,
    TWO_SUMS: source.parameters.from === "normed" && source.parameters.EXPERTS > 0,
    ...foldCounts(lanes),
  }, { name });
}
