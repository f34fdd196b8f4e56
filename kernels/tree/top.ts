import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";

/** Columns that one workgroup ranks. */
const SLICE = 256;

/** u32 words that the partial results of a row take: of each slice its softmax and `top` columns. */
export function partialTopWords(vocab: number, top: number): number {
  return 2 * slicesOf(vocab) * (1 + top);
}

function slicesOf(vocab: number): number {
  return Math.ceil(vocab / SLICE);
}

interface PartialTopParameters extends FoldParameters {
  /** Columns that a workgroup ranks. */
  readonly SLICE: number;
}

interface TopTokensParameters extends FoldParameters {
  /** Whether rows belong to slots; the first token is then stored as the slot's draft too. */
  readonly SLOTS: boolean;
  /** Whether the draft's confidence in that token is stored. */
  readonly CONFIDENCES: boolean;
}

function partialTopKernel(lanes: number) {
  return kernelOf<PartialTopParameters>("tree/partial_top")({ SLICE, ...foldCounts(lanes) }, {
    name: `partial_top_${lanes}`,
    bindings: ["logits", "partials"],
    constants: ["VOCAB", "STRIDE", "TOP", "LANES"],
  });
}

function topTokensKernel(lanes: number, bySlot: BySlot | undefined): Kernel {
  const perSlot = bySlot !== undefined;
  const of = bySlot?.confident ? "slot_confident" : perSlot ? "slot" : "row";
  const name = `top_tokens_${of}_${lanes}`;
  const parameters = { SLOTS: perSlot, CONFIDENCES: bySlot?.confident ?? false };
  return kernelOf<TopTokensParameters>("tree/top_tokens")({ ...parameters, ...foldCounts(lanes) }, {
    name,
  });
}

interface TopShape {
  readonly rows: number;
  readonly vocab: number;
  /** Tokens wanted of each row, at most `vocab`. */
  readonly top: number;
  /** Most invocations of a workgroup, a power of two. */
  readonly lanes: number;
  readonly label: string;
}

/** Where the tokens of sequences' rows go, by slots. */
interface BySlot {
  /** Slot of each row, u32 [rows]. */
  readonly batchSlots: Operand;
  /** What is drafted for each slot, [slots, draftWords(maxRows)]: its first token is stored too. */
  readonly drafts: Operand;
  readonly maxRows: number;
  /** Whether its probability is stored too; default false. */
  readonly confident?: boolean | undefined;
}

/**
 * Records the most probable tokens of each row, in falling order: (token, bits of its f32
 * probability), u32 [rows or slots, top, 2].
 */
export function topTokens(
  { logits, partials, offsets, out, bySlot }: {
    /** [rows, stride] */
    readonly logits: Operand;
    /** [rows, partialTopWords(vocab, top)] u32 */
    readonly partials: Operand;
    /** Target id minus draft id, i32 [vocab]. */
    readonly offsets: Operand;
    readonly out: Operand;
    readonly bySlot?: BySlot | undefined;
  },
  shape: TopShape & {
    /** Row stride of logits. */
    readonly stride: number;
  },
): Dispatch[] {
  const { rows, vocab, top, stride, label } = shape;
  const lanes = Math.min(shape.lanes, SLICE);
  const slices = slicesOf(vocab);
  const { maxRows, batchSlots, drafts } = bySlot ?? {};
  return [
    dispatch(partialTopKernel(lanes), {
      buffers: { logits, partials },
      constants: { VOCAB: vocab, STRIDE: stride, TOP: top, LANES: lanes },
      workgroups: [slices, rows],
      label: `${label}.partial`,
      work: { bytes: 4 * rows * vocab, flops: rows * vocab },
    }),
    dispatch(topTokensKernel(lanes, bySlot), {
      buffers: {
        partials,
        offsets,
        out,
        ...batchSlots && drafts ? { batch_slots: batchSlots, drafts } : {},
      },
      constants: {
        SLICES: slices,
        TOP: top,
        LANES: lanes,
        ...maxRows === undefined ? {} : { MAX_ROWS: maxRows },
      },
      workgroups: [rows],
      label,
    }),
  ];
}
