/** A GPU on paper: it records the buffers that are made and stores no data. */
import type { Gpu } from "./device.ts";

/** The properties of a device that buffer sizes depend on. */
export type Adapter = Pick<Gpu, "limits" | "info"> & Partial<Pick<Gpu, "matrixUnit">>;

/** A buffer that was made. */
export interface PaperBuffer {
  readonly label: string;
  readonly bytes: number;
}

/** Properties that most hardware has, for computing sizes without an adapter. */
export const PAPER_ADAPTER: Adapter = {
  limits: {
    maxBufferSize: 2 ** 31,
    maxStorageBufferBindingSize: 2 ** 31,
    maxStorageBuffersPerShaderStage: 10,
    maxComputeWorkgroupStorageSize: 49152,
    maxComputeInvocationsPerWorkgroup: 1024,
    maxComputeWorkgroupSizeX: 1024,
    maxComputeWorkgroupSizeY: 1024,
    maxComputeWorkgroupSizeZ: 64,
    maxComputeWorkgroupsPerDimension: 65535,
  } as GPUSupportedLimits,
  info: {
    webgpu: "builtin",
    adapter: "paper",
    hardware: "paper",
    backend: "vulkan",
    software: false,
    features: ["subgroups", "shader-f16"],
  },
};

/** A GPU like `adapter` whose buffers have only labels and sizes; writes to them are dropped. */
export function paperGpu(
  { limits, info, matrixUnit }: Adapter,
): Gpu & { readonly buffers: readonly PaperBuffer[] } {
  const nothing = () => {};
  const buffers: PaperBuffer[] = [];
  const device = {
    createBuffer(descriptor: GPUBufferDescriptor) {
      buffers.push({ label: descriptor.label ?? "", bytes: descriptor.size });
      return { ...descriptor, destroy: nothing };
    },
    queue: { writeBuffer: nothing },
  };
  return {
    device: device as unknown as GPUDevice,
    limits,
    info,
    matrixUnit,
    buffers,
    check: nothing,
    settled: (promise) => promise,
    mapped: () => Promise.reject(new Error("a GPU on paper has nothing to read")),
    drain: nothing,
    [Symbol.dispose]: nothing,
  };
}
