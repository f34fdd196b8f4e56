import { UsageError } from "../errors.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Quantization } from "../gpu/matrix.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { unquantizable } from "../model/memory.ts";
import { openQuantizer, type Quantizer } from "../model/quantizer.ts";
import { draftTensors, targetTensors, type TensorSpec } from "../model/tensors.ts";
import type { OpenedModels } from "./load.ts";

/** What matrices are turned into at load. */
export interface QuantizeChoice {
  /** Of the target: all matrices but the embedding. Absent: they stay as they are. */
  readonly quantize?: Quantization;
  /** The draft's too. */
  readonly quantizeDraft?: boolean;
}

export type Part = "target" | "draft";

/** @throws UsageError where the draft is to be quantized and nothing says to what. */
export function checkQuantize({ quantize, quantizeDraft }: QuantizeChoice): void {
  if (quantize !== undefined || !quantizeDraft) return;
  throw new UsageError(`Cannot use --quantize-draft: --quantize does not say to what`);
}

/** One line a model whose matrices cannot all be quantized. */
export function quantizeWarnings(
  { target, draft }: OpenedModels,
  { quantize, quantizeDraft }: QuantizeChoice,
): string[] {
  if (quantize === undefined) return [];
  const line = ({ name }: Checkpoint, specs: readonly TensorSpec[]) => {
    const kept = unquantizable(specs);
    const [first] = kept;
    return first === undefined ? [] : [
      `${name}: ${kept.length} of its matrices stay as they are, not ${quantize}: ` +
      `"${first.name}" is ${first.shape[1]} wide, no multiple of 64`,
    ];
  };
  return [
    ...line(target.checkpoint, targetTensors(target.config)),
    ...draft && quantizeDraft ? line(draft.checkpoint, draftTensors(draft.config)) : [],
  ];
}

/** What each model's loader quantizes with. */
export interface Quantizers extends Disposable {
  /** Options of a loader; empty where nothing of the part is quantized. */
  of(
    part: Part,
  ): { readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer } };
}

/** Opens one quantizer for both models, or none; it is needed until the last weight is made. */
export function openQuantizers(gpu: Gpu, choice: QuantizeChoice): Quantizers {
  const { quantize: to, quantizeDraft } = choice;
  if (to === undefined) return { of: () => ({}), [Symbol.dispose]: () => {} };
  const quantizer = openQuantizer(gpu);
  return {
    of: (part) => part === "target" || quantizeDraft ? { quantize: { to, quantizer } } : {},
    [Symbol.dispose]: () => quantizer[Symbol.dispose](),
  };
}
