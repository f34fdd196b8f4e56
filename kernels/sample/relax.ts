import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";
import { lanesOf } from "./choose.ts";
import { samplingCounts, type SamplingParameters } from "../lib/sampling.ts";
import { slicePartialCount } from "./slice_partials.ts";

/** Words that relax.wgsl's `kept` has of each row. */
export const KEPT_MASS_WORDS = 3;

/** Lower bound that is applied to `thresholds.acc`, the same as in SGLang. */
const MIN_ACC = 1e-9;

function keptMassKernel(lanes: number): Kernel {
  const name = `kept_mass_${lanes}`;
  return kernelOf<SamplingParameters>("sample/kept_mass")(samplingCounts(lanes), {
    name,
    bindings: ["logits", "partials", "rows", "slots", "kept"],
    constants: ["VOCAB", "STRIDE", "PARTIALS", "LANES"],
  });
}

interface RelaxParameters extends SamplingParameters {
  /** Whether rows are those of a tree, and not of a chain. */
  readonly TREE: boolean;
}

function relaxKernel(kind: "chain" | "tree", lanes: number): Kernel {
  const name = `relax_${kind}_${lanes}`;
  return kernelOf<RelaxParameters>("sample/relax")({
    TREE: kind === "tree",
    ...samplingCounts(lanes),
  }, {
    name,
    bindings: ["logits", "kept", "rows", "slots", "drafts", "chosen"],
    constants: ["VOCAB", "STRIDE", "LANES", "ROWS", "DEPTH", "MAX_ROWS", "SINGLE", "ACC"],
  });
}

/**
 * Records relaxed acceptance: what `choose` left is overwritten, so that acceptance keeps the drafts
 * that the thresholds let pass. Not lossless where one of them is below 1.
 */
export function relax(
  { partials, kept, drafts, chosen, ...buffers }: {
    /** What `choose` chose from, [batch * rows, stride]. */
    readonly logits: Operand;
    /** What `choose` left there. */
    readonly partials: Operand;
    readonly rows: Operand;
    readonly slots: Operand;
    readonly drafts: Operand;
    readonly chosen: Operand;
    /** Scratch, [batch * rows, KEPT_MASS_WORDS] u32. */
    readonly kept: Operand;
  },
  { batch, rows, depth, maxRows, kind, thresholds, vocab, stride, ...shape }: {
    readonly batch: number;
    /** Verify rows a sequence. */
    readonly rows: number;
    /** Most drafts that may be accepted. */
    readonly depth: number;
    /** Rows that a slot may have in any round. */
    readonly maxRows: number;
    /** Chains have no parents in `drafts`. */
    readonly kind: "chain" | "tree";
    readonly thresholds: { readonly single: number; readonly acc: number };
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    /** A power of two. */
    readonly lanes: number;
  },
): Dispatch[] {
  const lanes = lanesOf(vocab, shape.lanes);
  const of = { VOCAB: vocab, STRIDE: stride, LANES: lanes };
  const { single, acc } = thresholds;
  return [
    dispatch(keptMassKernel(lanes), {
      buffers: { ...buffers, partials, kept },
      constants: { ...of, PARTIALS: slicePartialCount(vocab) },
      workgroups: [batch * rows],
      label: "choose.kept_mass",
    }),
    dispatch(relaxKernel(kind, lanes), {
      buffers: { ...buffers, kept, drafts, chosen },
      constants: {
        ...of,
        ROWS: rows,
        DEPTH: depth,
        MAX_ROWS: maxRows,
        SINGLE: single,
        ACC: Math.max(acc, MIN_ACC),
      },
      workgroups: [batch],
      label: "choose.relax",
    }),
  ];
}
