import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

interface DeltaParameters {
  /** Rows and columns of a head's state. */
  readonly KEYS: number;
  readonly VALUES: number;
  /** KEYS / 4 */
  readonly QUADS: number;
  /** Whether the state after the last whole page is stored too. */
  readonly CHECKPOINT: boolean;
}

/** Heads of a Gated DeltaNet. */
export interface DeltaHeads {
  readonly keyHeads: number;
  /** A multiple of `keyHeads`. */
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
}

function deltaKernel({ keyDim, valueDim }: DeltaHeads, CHECKPOINT: boolean): Kernel {
  const parameters = { KEYS: keyDim, VALUES: valueDim, QUADS: keyDim / 4, CHECKPOINT };
  return kernelOf<DeltaParameters>("recurrent/delta_rule")(parameters, {
    name: `delta_rule_${keyDim}x${valueDim}${CHECKPOINT ? "_checkpoint" : ""}`,
    bindings: ["rows", "mixed", "projected", "rates", "weights", "states", "steps", "out"],
    constants: ["KEY_HEADS", "HEADS", "STEPS", "EPS"],
  });
}

/** What is stored of each slot, see kernels/recurrent/delta_rule.wgsl. */
export interface DeltaMemory {
  /** f32 [slots, valueHeads, keyDim, valueDim], with `checkpoints` twice: a second time for the state after the last whole page. */
  readonly states: Operand;
  /** Default false. */
  readonly checkpoints?: boolean;
  /** f32 [slots, stepWords] */
  readonly steps: Operand;
  /** Tokens that a state may be behind. */
  readonly stepRows: number;
}

/** f32 words of the steps of one slot. */
export function stepWords({ valueHeads, keyDim, valueDim }: DeltaHeads, stepRows: number): number {
  return valueHeads * (4 + stepRows * (keyDim + valueDim + 4));
}

/** Records the recurrence over `count` rows, of which runs begin at multiples of `perSlot`. */
export function deltaRule(
  { memory: { states, steps, stepRows, checkpoints = false }, mixed, ...buffers }: {
    readonly memory: DeltaMemory;
    readonly rows: Operand;
    /** q, k and v after the convolution, [count, 2 keyHeads keyDim + valueHeads valueDim]. */
    readonly mixed: Operand;
    /** The same before it, and z: [count, 2 keyHeads keyDim + 2 valueHeads valueDim]. */
    readonly projected: Operand;
    /** b and a, [count, 2 valueHeads]. */
    readonly rates: Operand;
    /** A_log, dt_bias and the weight of the norm, [2 valueHeads + valueDim]. */
    readonly weights: Operand;
    /** [count, valueHeads valueDim] */
    readonly out: Operand;
  },
  { heads, eps, count, perSlot, label }: {
    readonly heads: DeltaHeads;
    readonly eps: number;
    readonly count: number;
    readonly perSlot: number;
    readonly label: string;
  },
): Dispatch {
  const { keyHeads, valueHeads, keyDim, valueDim } = heads;
  const cols = 2 * keyHeads * keyDim + valueHeads * valueDim;
  const state = valueHeads * keyDim * valueDim;
  return dispatch(deltaKernel(heads, checkpoints), {
    // The kernel computes the number of rows from the size.
    buffers: { ...buffers, mixed: { ...mixed, size: 4 * count * cols }, states, steps },
    constants: { KEY_HEADS: keyHeads, HEADS: valueHeads, STEPS: stepRows, EPS: eps },
    workgroups: [valueHeads, count / perSlot, 1],
    label,
    work: { bytes: 8 * state * (count / perSlot) + 8 * count * cols, flops: 7 * count * state },
  });
}
