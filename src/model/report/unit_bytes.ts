/** How much GPU memory matrix units take beside the weights. */
import { isQuantizable, MOST_DISPATCHED, type Quantization } from "../../gpu/matrix.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { findTensor, isGrouped, type TensorSpec } from "../weights/tensors.ts";

/** A model's files, what they hold, and what matrices become. */
export interface UnitModel {
  readonly checkpoint: Pick<Checkpoint, "tensors">;
  readonly specs: readonly TensorSpec[];
  /** Whether the embedding is the head. */
  readonly tied: boolean;
  readonly quantize: Quantization | undefined;
}

/**
 * Bytes of the scales that matrix units take: f32, of each row of a bf16 matrix, routers' and experts' too, and of each row
 * of x in flight; 0 where no matrix goes there.
 *
 * @param options.quantized whether those of quantized matrices go there too.
 * @param options.quantizedExperts the same of experts.
 */
export function unitScaleBytes(
  models: readonly UnitModel[],
  { quantized, quantizedExperts }: {
    readonly quantized: boolean;
    readonly quantizedExperts: boolean;
  },
): number {
  const rows = models.flatMap(({ checkpoint, specs, tied, quantize }) =>
    specs.filter((spec) => {
      const [, cols = 0] = spec.shape;
      const read = spec.kind === "matrix" || spec.role.endsWith(".router") ||
        (tied && spec.role === "embed");
      const dtype = findTensor(checkpoint, spec)?.dtype ?? "";
      const packs = quantize !== undefined && spec.kind === "matrix" && isQuantizable(cols);
      if (dtype !== "" && (packs || isGrouped(dtype))) {
        return read && (spec.share === undefined ? quantized : quantizedExperts);
      }
      return read && dtype === "BF16";
    }).map(({ shape: [rows = 0] }) => rows)
  ).reduce((sum, count) => sum + count, 0);
  return rows === 0 ? 0 : 4 * (rows + MOST_DISPATCHED);
}
