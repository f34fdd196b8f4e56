import type { AttentionUnits, TensorMatrices } from "./matrices_on_units.ts";

/** Most ranges of k (splits) whose partial sums a split-K matmul stores. */
export const MAX_SPLIT_K = 4;

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
  /** Whether `dot4I8Packed` is an instruction of the adapter: integer weights are multiplied packed then, `Dots`. */
  readonly dot4I8: boolean;
  /** Most storage buffers of a kernel. */
  readonly storageBuffers: number;
  /** Most bytes of a buffer that a kernel binds; absent where it is not known. */
  readonly bindingBytes?: number | undefined;
  /** Most invocations of a row reduction (norm, choose), a power of two. */
  readonly rowLanes: number;
  /** Most bytes of workgroup memory. */
  readonly workgroupBytes: number;
  /** Most invocations of a workgroup. */
  readonly invocations: number;
  /** Invocations of every subgroup, where kernels without matrix units may use subgroups; see `DeviceInfo`. */
  readonly subgroup?: number | undefined;
  /** Whether workgroups may wait for other workgroups of the same dispatch: see kernels/matmul/handoff. */
  readonly handoffs: boolean;
  /**
   * Whether invocations may store different components of one vector of shared memory. WGSL lets such a store read the
   * vector, change it and write it back, so that one could undo another's; SPIR-V stores the component alone.
   */
  readonly componentStores: boolean;
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

const MIN: TuningLimits = {
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
  limits: TuningLimits = MIN,
  backend: string = "vulkan",
): Tuning {
  const { maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupStorageSize } = limits;
  const storageBuffers = limits.maxStorageBuffersPerShaderStage ?? 8;
  const shared = {
    software,
    storageBuffers,
    bindingBytes: limits.maxStorageBufferBindingSize,
    workgroupBytes: maxComputeWorkgroupStorageSize,
    invocations: maxComputeInvocationsPerWorkgroup,
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
      componentStores: false,
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
      componentStores: backend === "vulkan",
    };
}
