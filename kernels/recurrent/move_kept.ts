/** Moves what recurrent layers keep of accepted tree rows to the places of their positions. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { KeptRows } from "../round/move_cells.ts";
import { kernelOf } from "../shader.ts";
import { type DeltaHeads, headersOf } from "./delta_rule.ts";

/** Buffers of a dispatch: with the two others no more than every adapter binds. */
const MAX_BUFFERS = 5;

interface MoveKeptParameters {
  /** Buffers whose rows are moved, at most MAX_BUFFERS. */
  readonly BUFFERS: number;
  /** Whether they have steps. */
  readonly STEPS: boolean;
}

function moveKernel(parameters: MoveKeptParameters): Kernel {
  return kernelOf<MoveKeptParameters>("recurrent/move_kept")(parameters, {
    name: `move_${parameters.STEPS ? "steps" : "ring"}_${parameters.BUFFERS}`,
  });
}

/** Buffers that keep rows in the same way. */
export interface StateBuffers {
  readonly buffers: readonly Operand[];
  /** Rows of a slot's ring, or steps of each of its heads. */
  readonly places: number;
  /** Words of a row of a ring; absent where `heads` have steps. */
  readonly words?: number | undefined;
  readonly heads?: DeltaHeads | undefined;
}

/** Records moving what was kept of accepted rows to the places of their positions. */
export function moveKept(
  { extend, last }: Pick<KeptRows, "extend" | "last">,
  { buffers, places, heads, words = 0 }: StateBuffers,
  shape: {
    readonly batch: number;
    /** Verify rows a sequence. */
    readonly rows: number;
    readonly depth: number;
    /** As of `acceptTree`. */
    readonly kept: number;
  },
): Dispatch[] {
  const of = heads
    ? { WORDS: heads.keyDim + heads.valueDim + 4, HEADS: heads.valueHeads, PARTS: headersOf(heads) }
    : { WORDS: words };
  const width = of.WORDS * (heads?.valueHeads ?? 1);
  return Array.from({ length: Math.ceil(buffers.length / MAX_BUFFERS) }, (_, i) => {
    const some = buffers.slice(i * MAX_BUFFERS, (i + 1) * MAX_BUFFERS);
    return dispatch(moveKernel({ BUFFERS: some.length, STEPS: heads !== undefined }), {
      buffers: {
        extend,
        last,
        ...Object.fromEntries(some.map((buffer, n) => [`kept${n}`, buffer])),
      },
      constants: {
        ROWS: shape.rows,
        KEPT_ROWS: shape.depth + 1,
        KEPT: shape.kept,
        PLACES: places,
        ...of,
      },
      workgroups: [Math.ceil(width / 64), shape.batch],
      label: `move_kept.${i}`,
      work: { bytes: 2 * 4 * some.length * width * shape.batch * shape.depth, flops: 0 },
    });
  });
}
