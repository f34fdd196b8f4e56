import { UsageError } from "../../errors.ts";
import type { Quantization } from "../../gpu/weight_format.ts";

/** How matrices are quantized at load. */
export interface QuantizeChoice {
  /** Quantization of the target's tensors of kind `matrix`, see `TensorKind`. Absent: they stay as they are. */
  readonly quantize?: Quantization | undefined;
  /** Whether the draft's matrices are quantized too. */
  readonly quantizeDraft?: boolean;
}

/** @throws UsageError if the draft is to be quantized and no quantization is chosen. */
export function checkQuantize({ quantize, quantizeDraft }: QuantizeChoice): void {
  if (quantize !== undefined || !quantizeDraft) return;
  throw new UsageError(`Cannot use --quantize-draft: --quantize does not say to what`);
}
