import type { Gpu } from "../../gpu/device.ts";
import type { Quantization } from "../../gpu/weight_format.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { keptMatrices, methodOf, parameterCount } from "../../model/report/parameters.ts";
import { openQuantizer, type Quantizer } from "../../model/weights/quantizer.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import { draftTensors, targetTensors, type TensorSpec } from "../../model/weights/tensors.ts";
import type { OpenedModels } from "./opened_models.ts";

export type Part = "target" | "draft";

/** One line for each model whose matrices cannot all be quantized. */
export function quantizeWarnings(
  { target, draft }: OpenedModels,
  { quantize, quantizeDraft }: QuantizeChoice,
): string[] {
  if (quantize === undefined) return [];
  const lines = (checkpoint: Checkpoint, specs: readonly TensorSpec[]) => {
    const kept = keptMatrices(checkpoint, specs);
    const line = ([first, ...others]: readonly TensorSpec[], why: string) =>
      first === undefined ? [] : [
        `${checkpoint.name}: ${1 + others.length} of its matrices stay as they are, not ` +
        `${quantize}: "${first.name}" is ${why}`,
      ];
    return [
      ...line(kept.narrow, `${kept.narrow[0]?.shape[1]} wide, no multiple of 64`),
      ...line(kept.quantized, `${methodOf(checkpoint)} already`),
    ];
  };
  return [
    ...lines(target.checkpoint, targetTensors(target.config)),
    ...draft && quantizeDraft ? lines(draft.checkpoint, draftTensors(draft.config)) : [],
  ];
}

/** What the GPU holds of both models. */
export interface WeightReport {
  readonly quantize: Quantization | undefined;
  readonly quantizeDraft: Quantization | undefined;
  readonly bytes: number;
  /** Size of the target alone. */
  readonly target: { readonly bytes: number; readonly parameters: number };
}

/**
 * Sums up the loaded weights.
 *
 * @param bytes of the tensors of each model, see `MeasuredWeights`.
 */
export function weightReport(
  { target, draft }: Pick<OpenedModels, "target" | "draft">,
  { quantize, quantizeDraft }: QuantizeChoice,
  bytes: Readonly<Record<Part, number>>,
): WeightReport {
  const parameters = parameterCount(targetTensors(target.config));
  return {
    quantize,
    quantizeDraft: quantizeDraft && draft ? quantize : undefined,
    bytes: bytes.target + bytes.draft,
    target: { bytes: bytes.target, parameters },
  };
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
