import type { Operand } from "./kernel.ts";
import type { Matrix, Shard } from "./matrix.ts";
import { attentionForwards, type MatrixUnit } from "./matrix_unit.ts";

/** How matrix units get each number of x: "f32" as the sum of two f16 numbers, "f16" rounded to one. */
export type Precision = "f32" | "f16";

/**
 * The precision on matrix units where the user asks for none. Its logits are nearer to float32's than those of bf16
 * inference, 60 times for Llama-3.1-8B's shape and 15 times for small checkpoints (lab/units/precision.py). A prompt of
 * 512 tokens of that shape takes 39 ms where f32 takes 61.
 */
export const DEFAULT_PRECISION: Precision = "f16";

/**
 * The matrices that matrix units multiply, at any number of rows: see kernels/matmul/tensor. Some of them only in
 * forwards of prompts, see `roundMatrices`.
 */
export interface TensorMatrices {
  readonly unit: MatrixUnit;
  readonly limits: TensorLimits;
  /** Default f32; with quantized weights it is f16. */
  readonly precision?: Precision | undefined;
  /** Shards of dense matrices; either all shards of a matrix are here, or none. */
  readonly shards: ReadonlyMap<Shard, TensorShard>;
  /** Shards of experts' matrices; either both matrices of a mixture are here, or none. */
  readonly experts: ReadonlyMap<Shard, TensorShard>;
  /** Scales of the rows of x, f32 [MAX_SCALED_ROWS]. All matmuls use this buffer, one after the other. */
  readonly xScales: Operand;
}

/** What matrix units need of a shard. */
export interface TensorShard {
  /** Scales of its rows, f32 [rows]. */
  readonly scales: Operand;
  readonly stored: StoredWeights;
  /** Whether only forwards of prompts multiply it there; default false. */
  readonly promptsOnly?: boolean;
}

/** Whether forwards of prompts multiply other matrices on units than rounds do. */
export function hasPromptKernels(tensor: TensorMatrices | undefined): boolean {
  const all = tensor ? [...tensor.shards.values(), ...tensor.experts.values()] : [];
  return all.some(({ promptsOnly = false }) => promptsOnly);
}

/** Those of the matrices that matrix units multiply in rounds too; undefined if there are none. */
export function roundMatrices(tensor: TensorMatrices | undefined): TensorMatrices | undefined {
  if (tensor === undefined) return undefined;
  const inRounds = (all: ReadonlyMap<Shard, TensorShard>) =>
    new Map([...all].filter(([, { promptsOnly = false }]) => !promptsOnly));
  const [shards, experts] = [inRounds(tensor.shards), inRounds(tensor.experts)];
  return shards.size + experts.size === 0 ? undefined : { ...tensor, shards, experts };
}

/**
 * How the weights of a shard are stored after the matrix units were prepared:
 *
 *     loaded     as `Matrix` says; every kernel may read them
 *     f16        bf16 was overwritten by f16, multiplied by the scales of the rows, in order of k (halve_weights.wgsl)
 *     f16_tiles  the same for experts, in the order of tile_weights.wgsl
 */
export type StoredWeights = "loaded" | "f16" | "f16_tiles";

/**
 * Checks that kernels without matrix units may read a matrix.
 *
 * @throws Error where its weights were stored as f16 for matrix units.
 */
export function requireLoaded(
  { shards }: Pick<Matrix, "shards">,
  tensor: TensorMatrices | undefined,
  label: string,
): void {
  for (const shard of shards) {
    const { stored = "loaded" } = tensor?.shards.get(shard) ?? tensor?.experts.get(shard) ?? {};
    if (stored === "loaded") continue;
    throw new Error(`Cannot plan "${label}": its weights are stored as ${stored} for matrix units`);
  }
}

/** The limits that matmuls on matrix units depend on. */
export type TensorLimits = Pick<
  GPUSupportedLimits,
  | "maxComputeInvocationsPerWorkgroup"
  | "maxComputeWorkgroupStorageSize"
  | "maxStorageBuffersPerShaderStage"
>;

/** Most rows of x: 32 experts of each of 8,192 rows, the most that --max-batched-rows allows. */
export const MAX_SCALED_ROWS: number = 32 * 8192;

/** Attention on matrix units, at any number of rows: see kernels/attention/units. */
export interface AttentionUnits {
  readonly unit: MatrixUnit;
  readonly limits: TensorLimits & Partial<Pick<GPUSupportedLimits, "maxStorageBufferBindingSize">>;
  /** Precision of queries, keys, weights and values; default f32. */
  readonly precision?: Precision | undefined;
  /** Cells of a split of keys; it changes bits. For benchmarks; default: the kernels' own. */
  readonly cells?: number | undefined;
}

/** Matrix units for attention, in rounds and in forwards of prompts; undefined where it does not use them. */
export interface AttentionByForward {
  readonly rounds: AttentionUnits | undefined;
  readonly prompts: AttentionUnits | undefined;
}

/** Matrix units for the attention of an engine, see `attentionForwards`. */
export function attentionUnitsOf(
  { matrixUnit: unit, limits }: {
    readonly matrixUnit?: MatrixUnit | undefined;
    readonly limits: TensorLimits;
  },
  engine: Parameters<typeof attentionForwards>[0],
  precision?: Precision,
): AttentionByForward {
  const forwards = attentionForwards(engine); // a wrong value of the variable is an error on every device
  const units = unit && { unit, limits, precision };
  return {
    rounds: forwards === "all" ? units : undefined,
    prompts: forwards === "none" ? undefined : units,
  };
}
