/**
 * Several matmuls of one row in one dispatch: the workgroups of each wait for the numbers that the matmul before makes.
 */
import type { Dispatch, Operand } from "../../../src/gpu/kernel.ts";
import type { Matrix } from "../../../src/gpu/matrix.ts";
import { MAX_SPLIT_K, type Tuning } from "../../../src/gpu/tuning.ts";
import { isQuantized } from "../../../src/gpu/weight_format.ts";
import type { Epilogue } from "../../lib/epilogue.ts";
import type { GateName } from "../../lib/gate.ts";
import { joined } from "../../joined.ts";
import { tensorShards } from "../tensor/common.ts";
import { normedRows, type NormOfRows, type Prologue } from "../prologue/prologue.ts";
import { lanesOf } from "../matmul_lanes.ts";
import { isSmall } from "../matmul_rows.ts";
import {
  columnWorkgroups,
  matmulShape,
  type ResidentShape,
  residentShape,
} from "../matmul_shape.ts";
import { matmul } from "../matmul.ts";

/**
 * How often a workgroup polls for words that are not there yet, about 0.7 us each time on an H200. That is long after
 * the first matmul is done on any adapter that runs workgroups in order.
 */
export const MAX_TURNS = 10_000;

/** The matrices [gate; up] and down of one row. */
interface HandoffUse {
  readonly gateUp: Matrix;
  readonly down: Matrix;
  /** See `splitKOf`, of down. */
  readonly splitK: number;
  readonly tuning: Tuning;
}

/**
 * u32 words of the buffer by which the first matmul hands its outputs to the second: all 0 at first and after each
 * dispatch.
 */
export function handoffWords(intermediate: number): number {
  return intermediate + MAX_SPLIT_K;
}

/**
 * Whether both matmuls can go as one dispatch where the adapter has room for both (`canBeJoined`): x of both is
 * resident, their workgroups have one size, and each range of k is made by workgroups of its own.
 */
export function handsOff({ gateUp, down, splitK, tuning }: HandoffUse): boolean {
  const { handoffs, tensor } = tuning;
  if (!handoffs) return false;
  if ([gateUp, down].some((of) => tensorShards(of, tensor) || of.shards.length > 1)) return false;
  const [first, second] = [shapeOf(gateUp, 1, tuning), shapeOf(down, splitK, tuning)];
  if (!first || !second || first.part) return false;
  const columns = first.groups * first.pairs;
  return first.groups === second.groups && lanesOf(gateUp, tuning) === lanesOf(down, tuning) &&
    down.cols / splitK % columns === 0;
}

/**
 * The resident shape of a matmul; undefined if x does not stay in workgroup memory by rule. x also stays there where a
 * range ends within a block, if all blocks are loaded ahead, but never for quantized matrices: matmul_resident.wgsl
 * relies on that.
 */
function shapeOf(matrix: Matrix, splitK: number, tuning: Tuning): ResidentShape | undefined {
  const use = { rows: 1, splitK, tuning: byRule(tuning) };
  const shape = residentShape(matrix, use);
  const whole = matmulShape(matrix, use).kind === "resident";
  const allAhead = shape.ahead * lanesOf(matrix, tuning) === shape.stage;
  const part = shape.part && !isQuantized(matrix.format) && allAhead && isSmall(matrix, use);
  return whole || part ? shape : undefined;
}

/**
 * The tuning without launches that were measured: those may stage x of a matmul that is faster so alone. Whether
 * matmuls are joined is measured by itself (src/engine/tune/joined.ts).
 */
function byRule(tuning: Tuning): Tuning {
  return { ...tuning, launches: undefined };
}

/** The epilogue of the first matmul. */
function gatedHandoff(gate: GateName): Epilogue {
  return {
    name: `${gate}_handoff`,
    parameters: { epilogue: "handoff_gated", gate },
    out: "handoff",
    buffers: {},
    constants: {},
    outShare: 0.5,
    moved: 0.5,
  };
}

/** The epilogue of a matmul whose outputs, as they are, other workgroups wait for. */
export const HANDOFF_STORE: Epilogue = {
  name: "handoff",
  parameters: { epilogue: "handoff" },
  out: "handoff",
  buffers: {},
  constants: {},
  outShare: 1,
  moved: 1,
};

/** The matmul before the MLP, whose sums are added to the residual stream. */
interface HandoffFirst {
  readonly matrix: Matrix;
  /** See `splitKOf`. */
  readonly splitK: number;
  /** How its x comes to workgroup memory. */
  readonly prologue: Prologue;
  /** f32 [matrix.cols] or more; neither read nor written. */
  readonly x: Operand;
  /** u32 [sumWords], zeros. */
  readonly words: Operand;
}

/** u32 words of the buffer for the sums of a matmul of `width` outputs: all 0 at first and after each dispatch. */
export function sumWords(width: number): number {
  return MAX_SPLIT_K * width + 1;
}

/**
 * Most bytes of words that all workgroups which norm them read together. On an H200 a layer of the embedded model,
 * which reads 88 KiB, takes 0.9 us less; one of Qwen3-0.6B, which reads 6 MiB, takes 35.3 us instead of 24.6.
 */
const MAX_LOOKED_AT = 2 ** 20;

/** Whether a matmul is faster in one dispatch with the MLP that follows, which norms the sums itself. */
export function handsOffFirst(
  { matrix, splitK, prologue }: Pick<HandoffFirst, "matrix" | "splitK" | "prologue">,
  { gateUp, tuning }: Pick<HandoffUse, "gateUp" | "tuning">,
): boolean {
  if (matrix.shards.length > 1 || (prologue.widen ?? 1) > 1) return false;
  const shape = residentShape(gateUp, { rows: 1, splitK: 1, tuning });
  return columnWorkgroups(gateUp, shape) * 4 * splitK * matrix.rows <= MAX_LOOKED_AT &&
    lanesOf(matrix, tuning) === lanesOf(gateUp, tuning) &&
    residentShape(matrix, { rows: 1, splitK, tuning }).groups === shape.groups;
}

/** The prologue of the second matmul: it waits for its x. */
function handoffPrologue(
  handoff: Operand,
  { makers, turns, floats, ranges }: {
    readonly makers: number;
    readonly turns: number;
    /** Numbers in a range of k. */
    readonly floats: number;
    readonly ranges: number;
  },
): Prologue {
  return {
    name: `handoff_${floats}`,
    buffers: { handoff },
    constants: { TURNS: turns, MAKERS: makers, RANGES: ranges },
    parameters: ({ threads }) => ({
      prologue: "handoff",
      WORDS: Math.ceil(floats / threads),
      RANGE: floats,
    }),
  };
}

/**
 * Records out = the sums of down(gate(gateUp x)) over equal ranges of k, [splitK, down.rows], one row; see `handsOff`.
 *
 * @param of.first the matmul that makes the sums that are added to x; see `handsOffFirst`.
 * @param of.turns how often a workgroup polls for missing words before it makes them itself.
 */
export function matmulsWithHandoff(
  { x, handoff, act, out }: {
    readonly x: Operand;
    /** u32 [handoffWords], zeros. */
    readonly handoff: Operand;
    /** f32 [down.cols] or more; neither read nor written, its size is the row's. */
    readonly act: Operand;
    readonly out: Operand;
  },
  of: HandoffUse & {
    readonly gate: GateName;
    /** How x comes to gateUp's workgroup memory; default as it is. */
    readonly norm?: NormOfRows | undefined;
    readonly first?: HandoffFirst | undefined;
    readonly turns?: number;
    readonly label: string;
  },
): Dispatch {
  const { gateUp, down, splitK, gate, first, turns = MAX_TURNS, label } = of;
  const tuning = byRule(of.tuning);
  const [making, reading] = [shapeOf(gateUp, 1, tuning), shapeOf(down, splitK, tuning)];
  if (!making || !reading) throw new Error(`${label}: cannot hand off`);
  const floats = down.cols / splitK;
  const read = handoffPrologue(handoff, {
    makers: floats / (making.groups * making.pairs),
    turns,
    floats,
    ranges: splitK,
  });
  const launch = { rows: 1, tuning, label };
  const before = first ? recordFirst(first, launch) : [];
  const norm = before[0] && of.norm ? awaited(of.norm, { first, made: before[0], turns }) : of.norm;
  const made = matmul({ matrix: gateUp, x, out: handoff }, {
    ...launch,
    epilogue: gatedHandoff(gate),
    ...norm && { prologue: normedRows(norm, { cols: gateUp.cols, rows: 1 }) },
  });
  const used = matmul({ matrix: down, x: act, out }, {
    ...launch,
    epilogue: "store",
    splitK,
    prologue: read,
  });
  return joined([...before, ...made, ...used], label);
}

function recordFirst(
  { matrix, splitK, prologue, x, words }: HandoffFirst,
  launch: { readonly rows: number; readonly tuning: Tuning; readonly label: string },
): Dispatch[] {
  return matmul({ matrix, x, out: words }, {
    ...launch,
    epilogue: HANDOFF_STORE,
    splitK,
    prologue,
  });
}

/** The norm of x to which sums are added that other workgroups of the dispatch make. */
function awaited(
  norm: NormOfRows,
  { first, made: { workgroups: [, y, z] }, turns }: {
    readonly first: HandoffFirst | undefined;
    readonly made: Dispatch;
    readonly turns: number;
  },
): NormOfRows {
  const { added } = norm;
  if (!first || !added || "outputs" in added) return norm;
  return { ...norm, added: { ...added, sums: first.words, handoff: { makers: y * z, turns } } };
}
