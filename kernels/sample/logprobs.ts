import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";
import { lanesOf } from "./choose.ts";

/** Words that a token's log-probability takes, with the `most` largest of its row. */
export function logprobWords(most: number): number {
  return 1 + 2 * most;
}

/** Which rows the tokens of a sequence were chosen from. */
export type KeptRows =
  /** The first ones of the sequence's `rows` rows. */
  | { readonly kind: "chain"; readonly rows: number }
  /** The rows that `acceptTree` wrote into `last` from word `kept` on. */
  | { readonly kind: "tree"; readonly last: Operand; readonly kept: number };

interface LogprobsParameters extends FoldParameters {
  /** Whether the rows are those of a tree that were kept. */
  readonly TREE: boolean;
}

function logprobsKernel(kind: KeptRows["kind"], lanes: number): Kernel {
  const name = `logprobs_${kind}_${lanes}`;
  const parameters = { TREE: kind === "tree", ...foldCounts(lanes) };
  return kernelOf<LogprobsParameters>("sample/logprobs")(parameters, { name });
}

/** Records the log-probabilities of what a round or a prefill emitted. */
export function logprobs(
  buffers: {
    /** f32 [rows, stride] */
    readonly logits: Operand;
    /** u32 [batch, resultWords] */
    readonly results: Operand;
    /** u32 [batch, tokens, logprobWords(most)], see sample/logprobs.wgsl. */
    readonly logprobs: Operand;
  },
  { batch, tokens, resultWords, most, vocab, stride, kept, ...shape }: {
    readonly batch: number;
    /** Most that a sequence may emit. */
    readonly tokens: number;
    readonly resultWords: number;
    /** Tokens of each row that are reported in addition to its own. */
    readonly most: number;
    readonly vocab: number;
    /** Row stride of logits. */
    readonly stride: number;
    readonly kept: KeptRows;
    /** A power of two. */
    readonly lanes: number;
  },
): Dispatch {
  const lanes = lanesOf(vocab, shape.lanes);
  return dispatch(logprobsKernel(kept.kind, lanes), {
    buffers: { ...buffers, ...kept.kind === "tree" ? { last: kept.last } : {} },
    constants: {
      VOCAB: vocab,
      STRIDE: stride,
      LANES: lanes,
      TOKENS: tokens,
      RESULT: resultWords,
      MAX: most,
      ...kept.kind === "tree" ? { KEPT: kept.kept } : { ROWS: kept.rows },
    },
    workgroups: [tokens, batch],
  });
}
