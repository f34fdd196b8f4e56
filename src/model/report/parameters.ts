/** Counts the parameters of a model, and finds the matrices that are already quantized. */
import { isQuantizable } from "../../gpu/weight_format.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { findTensor, isGrouped, type TensorSpec } from "../weights/tensors.ts";

/** Number of a model's parameters: matrices and vectors, not token ids. */
export function parameterCount(specs: readonly TensorSpec[]): number {
  return sum(specs.filter(({ kind }) => kind !== "ids").map(elements));
}

/** Number of active parameters per token: only the chosen experts count. */
export function activeParameterCount(specs: readonly TensorSpec[]): number {
  const read = specs.filter(({ kind }) => kind !== "ids");
  return Math.round(sum(read.map((spec) => elements(spec) * (spec.share ?? 1))));
}

/** Matrices that `quantize` leaves as they are. */
export interface KeptMatrices {
  /** Matrices whose width does not allow quantization. */
  readonly narrow: readonly TensorSpec[];
  /** Matrices that the checkpoint has quantized. */
  readonly quantized: readonly TensorSpec[];
}

export function keptMatrices(
  checkpoint: Pick<Checkpoint, "tensors">,
  specs: readonly TensorSpec[],
): KeptMatrices {
  const grouped = (spec: TensorSpec) => isGrouped(findTensor(checkpoint, spec)?.dtype ?? "");
  const matrices = specs.filter(({ kind }) => kind === "matrix");
  return {
    narrow: matrices.filter((spec) => !grouped(spec) && !isQuantizable(spec.shape[1] ?? 0)),
    quantized: matrices.filter(grouped),
  };
}

/** How a checkpoint's matrices are quantized, as a text; undefined if none is. */
export function methodOf({ tensors }: Pick<Checkpoint, "tensors">): string | undefined {
  return tensors.values().find(({ dtype }) => isGrouped(dtype))?.dtypeName;
}

function elements(spec: TensorSpec): number {
  return spec.shape.reduce((product, size) => product * size, 1);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
