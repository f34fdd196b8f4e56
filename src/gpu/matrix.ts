import type { Operand } from "./kernel.ts";
import { attentionForwards, type MatrixUnit } from "./matrix_unit.ts";

/** Formats that checkpoints come in. */
export type FloatFormat = "bf16" | "f16" | "f32";

/** Integers of 8 or 4 bits in groups of GROUP along k, each group with an f16 scale. */
export type Quantization = "q8" | "q4";

/**
 * What quantized checkpoints hold: 4-bit integers with a zero point, 8-bit integers, FP8 (e4m3), or FP4 (e2m1).
 * Each GROUP along k has a 32-bit word with its scale, and with its zero point in u4. In mxfp4 a group has one byte
 * instead, the exponent of its scale (e8m0); in nvfp4 the word is two f16 scales.
 */
export type Prequantized = "u4" | "i8" | "f8" | "mxfp4" | "nvfp4";

/** How a matrix is stored in GPU memory; each has its file in kernels/lib, `weights_FORMAT.wgsl`. */
export type WeightFormat = FloatFormat | Quantization | Prequantized;

/** Bytes of one element, without scales. */
export const WEIGHT_BYTES: Readonly<Record<WeightFormat, number>> = {
  bf16: 2,
  f16: 2,
  f32: 4,
  q8: 1,
  q4: 0.5,
  u4: 0.5,
  i8: 1,
  f8: 1,
  mxfp4: 0.5,
  nvfp4: 0.5,
};

/** Vec8s (8 weights each) in one packed block of a format. A lane reads a block with one load, in f32 with two. */
export const BLOCK_VEC8S: Readonly<Record<WeightFormat, number>> = {
  bf16: 1,
  f16: 1,
  f32: 1,
  q8: 2,
  q4: 4,
  u4: 4,
  i8: 2,
  f8: 2,
  mxfp4: 4,
  nvfp4: 4,
};

/** Consecutive weights along k that share a scale. */
export const GROUP = 32;

/** Whether weights share scales. */
export function isQuantized(format: WeightFormat): format is Quantization | Prequantized {
  return isInteger(format) || isPrequantized(format);
}

/** Whether weights are signed integers times a scale. */
export function isInteger(format: WeightFormat): format is Quantization {
  return format === "q8" || format === "q4";
}

export function isPrequantized(format: WeightFormat): format is Prequantized {
  return isFp4(format) || format === "u4" || format === "i8" || format === "f8";
}

/** Whether weights are 4-bit floats (e2m1). */
export function isFp4(format: WeightFormat): format is "mxfp4" | "nvfp4" {
  return format === "mxfp4" || format === "nvfp4";
}

/** Whether rows of `cols` can be quantized: their scales fill whole 32-bit words. */
export function isQuantizable(cols: number): boolean {
  return cols % (2 * GROUP) === 0;
}

/** Bytes of the scales of a row; 0 where there are none. */
export function scaleBytes(format: WeightFormat, cols: number): number {
  if (format === "mxfp4") return cols / GROUP;
  if (isPrequantized(format)) return 4 * cols / GROUP;
  return isQuantized(format) ? 2 * cols / GROUP : 0;
}

/**
 * Returns how many lanes share one output of a matrix [rows, cols]. A quantized matrix is packed in lane
 * order, so its number of blocks along k must be a multiple of the lanes.
 *
 * @param most the adapter's limit, a power of two.
 */
export function lanesFor(format: WeightFormat, cols: number, most: number): number {
  if (!isQuantized(format)) return most;
  const blocks = cols / 8 / BLOCK_VEC8S[format];
  let lanes = most;
  while (blocks % lanes !== 0) lanes /= 2;
  return lanes;
}

/**
 * The order in which the rows of the checkpoint's tensors are stored in a shard. The loader stores them so
 * (src/model/weights/shards.ts); the reader of a matrix's outputs names the order that it expects (`requireRowOrder`).
 *
 *     stacked      the tensors' rows, one tensor after the other
 *     gate_up      [gate; up]: the gate row and the up row of one output are half a shard apart
 *     rope_halves  the first halves of all heads of q, k and v, then their second halves, both in the order of heads:
 *                  the two rows of a rope pair are half a shard apart
 */
export type RowOrder = "stacked" | "gate_up" | "rope_halves";

/** Consecutive rows of a matrix in one binding. */
export interface Shard {
  readonly operand: Operand;
  /**
   * Scales of a quantized format, [rows, cols / GROUP] in the order of quantize.wgsl. They are f16, or
   * the words or bytes of a prequantized format.
   */
  readonly scales?: Operand;
  /** First output column this shard makes (first row of the matrix where rows are not paired). */
  readonly first: number;
  /** Rows of the shard, even. */
  readonly rows: number;
}

/**
 * A weight matrix [rows, cols], cut by rows into shards where a binding limit needs it. What its bytes mean:
 *
 *     rowOrder       which rows of the checkpoint's tensors a shard has
 *     format         the type of the weights. Rows of float formats are stored in order of k. Rows of quantized
 *                    formats are stored in lane order: the block that a lane loads is followed by those of the other
 *                    lanes, so that neighbouring lanes read neighbouring blocks (kernels/matmul/quantize.wgsl,
 *                    src/model/checkpoint/quantized)
 *     lanes          the number of lanes that lane order is made for
 *     Shard.scales   scales and zeros of a quantized format, by groups of GROUP numbers along k, in lane order too
 *
 * Matrix units take bf16 matrices as f16, see `TensorShard`.
 */
export interface Matrix {
  readonly format: WeightFormat;
  readonly rowOrder: RowOrder;
  readonly rows: number;
  readonly cols: number;
  /**
   * Lanes that share one output of a matmul. Quantized rows are packed for this many; more may then share an
   * output (`lanesOf`). It decides the order of the sum, so it is the same for every number of rows of x.
   */
  readonly lanes: number;
  readonly shards: readonly Shard[];
}

/**
 * Checks that the rows of a matrix are in the order that the reader of its outputs takes.
 *
 * @throws Error where they are in another one: the outputs would be paired wrongly.
 */
export function requireRowOrder(
  { rowOrder }: Pick<Matrix, "rowOrder">,
  wanted: RowOrder,
  label: string,
): void {
  if (rowOrder === wanted) return;
  throw new Error(`Cannot plan "${label}": its matrix has row order ${rowOrder}, not ${wanted}`);
}

/** A matrix that rows can be looked up in. */
export interface Table extends Matrix {
  readonly format: FloatFormat;
}

/** Most ranges of k (splits) whose partial sums a split-K matmul stores. */
export const MOST_SPLIT_K = 4;

/** How a matmul is launched on hardware. No field changes a bit of the result. */
export interface Launch {
  /** Vec8s of k in one stage, which is copied to workgroup memory; 0: x is read through the cache. */
  readonly stage: number;
  /** Groups of `Tuning.lanes` invocations in a workgroup. */
  readonly groups: number;
  /** Output pairs that a group computes of one row where x is staged; absent: the rule decides. */
  readonly pairs?: 1 | undefined;
  /** Whether the next stage of one row of packed integers is prefetched; default false. */
  readonly prefetch?: true | undefined;
}

/** Measured launches, keyed by the matrix's `shapeKey` and then by the rows of x. */
export type Launches = ReadonlyMap<string, ReadonlyMap<number, Launch>>;

/**
 * Prefix of a key of `Launches` that is not a matrix shape. The entry says whether two dispatches of one row of the MLP
 * whose shapes follow run as one (kernels/joined.ts), as measured: its stage is 0 where they do not.
 */
export const JOINED = "joined ";

/** Whether no measurement says that a model's dispatches should stay apart. */
export function mayJoin(launches: Launches = new Map()): boolean {
  return [...launches].every(([key, rows]) => !key.startsWith(JOINED) || rows.get(1)?.stage !== 0);
}

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
  /** Scales of the rows of x, f32 [MOST_DISPATCHED]. All matmuls use this buffer, one after the other. */
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

/** Workgroups that every adapter takes along one dimension. */
export const MOST_DISPATCHED = 65535;

/** Attention on matrix units, at any number of rows: see kernels/attention/units. */
export interface AttentionUnits {
  readonly unit: MatrixUnit;
  readonly limits: TensorLimits & Partial<Pick<GPUSupportedLimits, "maxStorageBufferBindingSize">>;
  /** Precision of queries, keys, weights and values; default f32. */
  readonly precision?: Precision | undefined;
  /** Cells of a split of keys; it changes bits. For benchmarks; default: the kernels' own. */
  readonly cells?: number | undefined;
  /**
   * How many workgroups of 1,024 cells each keep the GPU busy; where there would be fewer, a workgroup has 64 cells.
   * Changes no bit.
   */
  readonly enough?: number | undefined;
  /**
   * How many workgroups of several splits each keep the GPU busy where rows are few; where there would be fewer, a
   * workgroup has one split. Changes no bit.
   */
  readonly enoughApart?: number | undefined;
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

/** Launch shapes of one adapter. */
export interface Tuning {
  /** Whether a CPU emulates the GPU: loads and barriers then cost more than arithmetic. */
  readonly software: boolean;
  /** Most invocations that share one output of a matmul; a power of two. */
  readonly lanes: number;
  /** Groups of `lanes` invocations in a matmul workgroup. */
  readonly groups: number;
  /** Output pairs that a group of lanes computes. */
  readonly pairs: number;
  /** Most rows of x in one tile of a matmul that prefetches x; workgroup memory limits them. */
  readonly stagedRows: number;
  /** Whether `dot4I8Packed` is an instruction of the adapter: integer weights are then multiplied packed, see `Dots`. */
  readonly dot4I8: boolean;
  /** Most storage buffers of a kernel. */
  readonly storageBuffers: number;
  /** Most bytes of a buffer that a kernel binds; absent where it is not known. */
  readonly bindingBytes?: number | undefined;
  /** Most invocations of a row reduction (norm, choose), a power of two. */
  readonly rowLanes: number;
  /** Most bytes of workgroup memory. */
  readonly workgroupBytes: number;
  /** Invocations of every subgroup, where kernels without matrix units may use subgroups; see `DeviceInfo`. */
  readonly subgroup?: number | undefined;
  /** Whether workgroups may wait for other workgroups of the same dispatch: see kernels/matmul/handoff. */
  readonly handoffs: boolean;
  /** Attention over many rows uses attention_tiled.wgsl: its 24 KiB leave room for several workgroups. */
  readonly tiles: boolean;
  /** Launches measured to be faster than those of the rules in kernels/matmul/matmul_shape.ts. */
  readonly launches?: Launches | undefined;
  /** Absent where the device has no matrix units. */
  readonly tensor?: TensorMatrices | undefined;
  /** Absent where attention does not run on matrix units. */
  readonly attentionUnits?: AttentionUnits | undefined;
}

/** The limits of an adapter that launches depend on. */
export type TuningLimits =
  & Pick<
    GPUSupportedLimits,
    "maxComputeInvocationsPerWorkgroup" | "maxComputeWorkgroupStorageSize"
  >
  & Partial<
    Pick<GPUSupportedLimits, "maxStorageBuffersPerShaderStage" | "maxStorageBufferBindingSize">
  >;

const LEAST: TuningLimits = {
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupStorageSize: 16384,
};

/**
 * Returns the launch shapes for an adapter. On a software adapter loads need not coalesce, and each costs
 * far more than arithmetic, so one invocation computes many outputs alone.
 *
 * @param limits the adapter's; the defaults are the minimum of every adapter.
 * @param backend the adapter's. Metal has no instruction for `dot4I8Packed`: naga emulates it there.
 */
export function tuning(
  software: boolean,
  limits: TuningLimits = LEAST,
  backend: string = "vulkan",
): Tuning {
  const { maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupStorageSize } = limits;
  const storageBuffers = limits.maxStorageBuffersPerShaderStage ?? 8;
  const shared = {
    software,
    storageBuffers,
    bindingBytes: limits.maxStorageBufferBindingSize,
    workgroupBytes: maxComputeWorkgroupStorageSize,
  };
  return software
    ? {
      ...shared,
      lanes: 1,
      groups: 8,
      pairs: 8,
      stagedRows: 0,
      dot4I8: false,
      rowLanes: 16,
      tiles: false,
      handoffs: false,
    }
    : {
      ...shared,
      lanes: 16,
      groups: 8,
      pairs: 2,
      dot4I8: backend !== "metal",
      stagedRows: maxComputeWorkgroupStorageSize < 32768 ? 8 : 12,
      rowLanes: maxComputeInvocationsPerWorkgroup < 512 ? 256 : 512,
      tiles: maxComputeWorkgroupStorageSize >= 49152,
      // Elsewhere resident workgroups need not all make progress: a wait would end only when the waiting workgroup
      // computes the words again itself.
      handoffs: backend === "vulkan",
    };
}
