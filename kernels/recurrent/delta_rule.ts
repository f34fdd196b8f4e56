import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { kernelOf } from "../shader.ts";
import { type ConvForm, keepsAtOnce, type ShortConvBuffers } from "./short_conv.ts";

interface DeltaParameters {
  /** Rows and columns of a head's state. */
  readonly KEYS: number;
  readonly VALUES: number;
  /** KEYS / 4 */
  readonly QUADS: number;
  /** Columns of a workgroup, and invocations that share one. */
  readonly COLS: number;
  readonly LANES: number;
  /** LANES - 1 */
  readonly OTHERS: number;
  /** QUADS / LANES */
  readonly OWN: number;
  /** Rows that are loaded into workgroup memory together. */
  readonly BLOCK: number;
  /** Invocations that load one of those rows, and quads of its key that each of them loads. */
  readonly ROW_THREADS: number;
  readonly EACH: number;
  /** BLOCK / LANES: rows of which an invocation loads a value. */
  readonly VALUE_ROWS: number;
  /** Whether the state after the last whole page is stored too. */
  readonly CHECKPOINT: boolean;
  /** Whether rows are nodes of trees. */
  readonly TREE: boolean;
  /** Whether q, k and v are to be convolved. */
  readonly CONV: boolean;
}

/** Rows of a block: keys and queries of more would take more workgroup memory than WebGPU guarantees. */
const BLOCK = 8;

/** Words of the header of a workgroup's state. */
const HEADER = 4;

/** Heads of a Gated DeltaNet. */
export interface DeltaHeads {
  readonly keyHeads: number;
  /** A multiple of `keyHeads`. */
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
}

/** Columns of values of all heads beyond which workgroups are large. */
const MANY_COLS = 4096;

/**
 * Columns of a workgroup, a part of a head's, and invocations of each column, for a key size that is a multiple of 8.
 * Models with few columns have small workgroups, in which an invocation has less to do: a round of Qwen3.6-35B-A3B, 32
 * heads of 128, takes 2.49 ms instead of 2.60 on an H200. With 48 heads, small workgroups do not all seem to run at
 * once there: one, four and eight rows take 7.1, 11.0 and 15.7 us in large ones instead of 9.9, 16.1 and 22.7.
 */
function partsOf(
  { valueHeads, keyDim, valueDim }: DeltaHeads,
): { readonly cols: number; readonly lanes: number } {
  const many = valueHeads * valueDim > MANY_COLS;
  const cols = (many ? [32, 16] : [16]).find((each) => valueDim % each === 0) ?? 8;
  const lanes = (many ? [4] : [8, 4]).find((each) => keyDim % (4 * each) === 0) ?? 2;
  return { cols, lanes };
}

function deltaKernel(
  heads: DeltaHeads,
  { CHECKPOINT, TREE, CONV }: Pick<DeltaParameters, "CHECKPOINT" | "TREE" | "CONV">,
) {
  const { keyDim: KEYS, valueDim: VALUES } = heads;
  const { cols: COLS, lanes: LANES } = partsOf(heads);
  const QUADS = KEYS / 4;
  const ROW_THREADS = LANES * COLS / BLOCK;
  const parameters = {
    KEYS,
    VALUES,
    QUADS,
    COLS,
    LANES,
    BLOCK,
    ROW_THREADS,
    CHECKPOINT,
    TREE,
    CONV,
    OTHERS: LANES - 1,
    OWN: QUADS / LANES,
    EACH: Math.ceil(QUADS / ROW_THREADS),
    VALUE_ROWS: BLOCK / LANES,
  };
  const flags = `${CHECKPOINT ? "_checkpoint" : ""}${TREE ? "_tree" : ""}${CONV ? "_conv" : ""}`;
  return kernelOf<DeltaParameters>("recurrent/delta_rule")(parameters, {
    name: `delta_rule_${KEYS}x${VALUES}_${COLS}x${LANES}${flags}`,
    bindings: [
      "rows",
      CONV ? "x" : "mixed",
      "rates",
      "decay_weights",
      "states",
      "steps",
      "out",
      ...CONV ? ["taps", "ring"] : [],
    ],
    constants: ["KEY_HEADS", "HEADS", "STEPS", ...CONV ? ["X_COLS", "RING"] : []],
  });
}

/** What is stored of each slot, see kernels/recurrent/delta_rule.wgsl. */
export interface DeltaMemory {
  /**
   * f32 [slots, valueHeads, keyDim, valueDim], with `checkpoints` twice: a second time for the state after the last
   * whole page.
   */
  readonly states: Operand;
  /** Default false. */
  readonly checkpoints?: boolean;
  /** f32 [slots, stepWords] */
  readonly steps: Operand;
  /** Most tokens that a stored state may lag behind. */
  readonly stepRows: number;
}

/** Headers of each head of values. */
export function headersOf(heads: DeltaHeads): number {
  return heads.valueDim / partsOf(heads).cols;
}

/**
 * f32 words of the headers with which the steps of one slot begin. The first two words of a header say how many tokens
 * the state and the checkpoint cover.
 */
export function headerWords(heads: DeltaHeads): number {
  return HEADER * heads.valueHeads * headersOf(heads);
}

/** f32 words of the steps of one slot. */
export function stepWords(heads: DeltaHeads, stepRows: number): number {
  const { valueHeads, keyDim, valueDim } = heads;
  return headerWords(heads) + 2 * valueHeads * stepRows * (keyDim + valueDim + 4);
}

/** Storage buffers of the recurrence where it convolves q, k and v itself. */
const CONVOLVING_BUFFERS = 9;

/** A convolution of q, k and v, as `shortConv` does it for rows of the form silu. */
interface DeltaConv extends Pick<ShortConvBuffers, "weight" | "ring"> {
  /** Columns of the rows before the convolution, of which the first are q, k and v. */
  readonly xCols: number;
  readonly ringRows: number;
}

/**
 * Whether the recurrence can do the convolution before it and store its rows in the ring: for four taps and few rows.
 */
export function convolves(
  { form, taps, xCols, ringRows, count }: {
    readonly form: ConvForm;
    readonly taps: number;
    readonly xCols: number;
    readonly ringRows: number;
    readonly count: number;
  },
  { storageBuffers }: Pick<Tuning, "storageBuffers">,
): boolean {
  return form === "silu" && taps === 4 && xCols % 4 === 0 &&
    keepsAtOnce({ count, taps, ringRows }) &&
    storageBuffers >= CONVOLVING_BUFFERS;
}

/** Records the recurrence over `count` rows. A slot's run of rows begins at a multiple of `perSlot`. */
export function deltaRule(
  {
    memory: { states, steps, stepRows, checkpoints = false },
    mixed,
    conv,
    decayWeights,
    ...buffers
  }: {
    readonly memory: DeltaMemory;
    readonly rows: Operand;
    /** q, k and v after the convolution, [count, 2 keyHeads keyDim + valueHeads valueDim]; with `conv` before it. */
    readonly mixed: Operand;
    /** Present if the convolution is still to be done; see `convolves`. */
    readonly conv?: DeltaConv | undefined;
    /** b and a, [count, 2 valueHeads]. */
    readonly rates: Operand;
    /** A_log and dt_bias, [2 valueHeads]. */
    readonly decayWeights: Operand;
    /** [count, valueHeads valueDim] */
    readonly out: Operand;
  },
  { heads, count, perSlot, paths = false, label }: {
    readonly heads: DeltaHeads;
    readonly count: number;
    readonly perSlot: number;
    /** Whether rows are nodes of trees, at most `stepRows` of a slot; default false. */
    readonly paths?: boolean | undefined;
    readonly label: string;
  },
): Dispatch {
  const { keyHeads, valueHeads, keyDim, valueDim } = heads;
  const cols = 2 * keyHeads * keyDim + valueHeads * valueDim;
  const state = valueHeads * keyDim * valueDim;
  // The kernel computes the number of rows from the size.
  const x = { ...mixed, size: 4 * count * (conv?.xCols ?? cols) };
  const flags = { CHECKPOINT: checkpoints, TREE: paths, CONV: conv !== undefined };
  return dispatch(deltaKernel(heads, flags), {
    buffers: {
      ...buffers,
      ...conv ? { x, taps: conv.weight, ring: conv.ring } : { mixed: x },
      decay_weights: decayWeights,
      states,
      steps,
    },
    constants: {
      KEY_HEADS: keyHeads,
      HEADS: valueHeads,
      STEPS: stepRows,
      ...conv ? { X_COLS: conv.xCols, RING: conv.ringRows } : {},
    },
    workgroups: [valueHeads * headersOf(heads), count / perSlot, 1],
    label,
    work: {
      bytes: 8 * state * (count / perSlot) + 4 * count * (cols + valueHeads * valueDim),
      flops: 7 * count * state,
    },
  });
}
