/** A GPU on paper: it adds up what is allocated and holds nothing. */
import type { Gpu } from "./device.ts";

/** What sizes depend on of a device. */
export type Adapter = Pick<Gpu, "limits" | "info"> & Partial<Pick<Gpu, "matrixUnit">>;

/** What was allocated under a label. */
export interface PaperBuffer {
  readonly label: string;
  readonly bytes: number;
}

/** What most hardware has: for sizes where no adapter is asked. */
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

/** A GPU like `adapter` whose buffers have labels and sizes alone; what is written to them is dropped. */
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
