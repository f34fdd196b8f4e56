import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { SLICE, slicePartialCount } from "./slice_partials.ts";
import { kernelOf } from "../shader.ts";
import { samplingCounts, type SamplingParameters } from "../lib/sampling.ts";

/** Most tokens that are kept of a slice. */
export const GATHERED = 128;

/** Fewest slices of a row for which gathering pays: with fewer, one workgroup looks through the row quickly. */
const MIN_SLICES = 48;
/** Invocations: a slice is eight columns of each, and each looks at a slice's largest logit. */
const LANES = SLICE / 8;

/** u32 words that a row takes; 0 where nothing is gathered: few tokens, or an adapter of few lanes. */
export function gatheredWords(vocab: number, lanes: number): number {
  const slices = slicePartialCount(vocab);
  const gathers = lanes >= LANES && slices >= MIN_SLICES && slices <= LANES;
  return gathers ? 2 * (2 + GATHERED) * slices : 0;
}

interface GatherParameters extends SamplingParameters {
  /** Most tokens that are stored of a slice. */
  readonly GATHERED: number;
}

const GATHER = kernelOf<GatherParameters>("sample/gather")({ ...samplingCounts(LANES), GATHERED }, {
  name: "choose_gather",
  bindings: ["logits", "partials", "rows", "slots", "gathered"],
  constants: ["VOCAB", "STRIDE", "SLICE", "PARTIALS", "LANES"],
});

/** Records what is gathered of rows that sample, after their `slicePartials`. */
export function gather(
  { logits, partials, rows, slots, gathered }: {
    /** [count, stride] */
    readonly logits: Operand;
    readonly partials: Operand;
    readonly rows: Operand;
    readonly slots: Operand;
    /** u32 [count, gatheredWords(vocab, lanes)] */
    readonly gathered: Operand;
  },
  { count, vocab, stride }: {
    readonly count: number;
    readonly vocab: number;
    readonly stride: number;
  },
): Dispatch {
  const slices = slicePartialCount(vocab);
  return dispatch(GATHER, {
    buffers: { logits, partials, rows, slots, gathered },
    constants: { VOCAB: vocab, STRIDE: stride, SLICE, PARTIALS: slices, LANES },
    workgroups: [slices, count],
    label: "choose.gather",
  });
}
