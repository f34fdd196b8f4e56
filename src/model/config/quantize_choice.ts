import { UsageError } from "../../errors.ts";
import type { Quantization } from "../../gpu/matrix.ts";

/** What matrices are turned into at load. */
export interface QuantizeChoice {
  /** Quantization of the target's tensors of kind `matrix`, see `TensorKind`. Absent: they stay as they are. */
  readonly quantize?: Quantization | undefined;
  /** The draft's too. */
  readonly quantizeDraft?: boolean;
}

/** @throws UsageError where the draft is to be quantized and nothing says to what. */
export function checkQuantize({ quantize, quantizeDraft }: QuantizeChoice): void {
  if (quantize !== undefined || !quantizeDraft) return;
  throw new UsageError(`Cannot use --quantize-draft: --quantize does not say to what`);
}
