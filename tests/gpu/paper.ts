import type { Gpu } from "../../src/gpu/device.ts";

/** What every adapter has: plans must not depend on the machine that the test runs on. */
const LIMITS = {
  maxBufferSize: 2 ** 31,
  maxStorageBufferBindingSize: 2 ** 30,
  maxStorageBuffersPerShaderStage: 10,
  maxComputeWorkgroupStorageSize: 32768,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupSizeX: 1024,
  maxComputeWorkgroupSizeY: 1024,
  maxComputeWorkgroupSizeZ: 64,
  maxComputeWorkgroupsPerDimension: 65535,
};

/** A GPU on paper: buffers have labels and sizes and hold nothing, commands do nothing. */
export function paperGpu({ software }: { readonly software: boolean }): Gpu {
  const nothing = () => {};
  const pass = {
    setPipeline: nothing,
    setBindGroup: nothing,
    dispatchWorkgroups: nothing,
    end: nothing,
  };
  const pipeline = { getBindGroupLayout: () => ({}) };
  const device = {
    createBuffer: (buffer: GPUBufferDescriptor) => ({ ...buffer, destroy: nothing }),
    createShaderModule: () => ({}),
    createComputePipeline: () => pipeline,
    createComputePipelineAsync: () => Promise.resolve(pipeline),
    createBindGroup: () => ({}),
    createCommandEncoder: () => ({ beginComputePass: () => pass, finish: () => ({}) }),
    queue: { writeBuffer: nothing, submit: nothing },
  };
  return {
    device: device as unknown as GPUDevice,
    limits: LIMITS as unknown as GPUSupportedLimits,
    info: {
      webgpu: "builtin",
      adapter: "paper",
      hardware: "paper",
      backend: "vulkan",
      software,
      features: ["subgroups", "shader-f16"],
    },
    matrixUnit: undefined,
    check: nothing,
    settled: (promise) => promise,
    mapped: () => Promise.reject(new Error("paper")),
    drain: nothing,
    [Symbol.dispose]: nothing,
  };
}
