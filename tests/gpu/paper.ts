import type { Gpu } from "../../src/gpu/device.ts";
import { PAPER_ADAPTER, paperGpu as allocatingGpu } from "../../src/gpu/paper.ts";

/** What every adapter has: plans must not depend on the machine that the test runs on. */
const LIMITS = {
  ...PAPER_ADAPTER.limits,
  maxStorageBufferBindingSize: 2 ** 30,
  maxComputeWorkgroupStorageSize: 32768,
};

/** A GPU on paper: buffers have labels and sizes and hold nothing, commands do nothing. */
export function paperGpu(
  { software, storageBuffers = LIMITS.maxStorageBuffersPerShaderStage }: {
    readonly software: boolean;
    /** That a kernel may bind. */
    readonly storageBuffers?: number;
  },
): Gpu {
  const nothing = () => {};
  const pass = {
    setPipeline: nothing,
    setBindGroup: nothing,
    dispatchWorkgroups: nothing,
    end: nothing,
  };
  const pipeline = { getBindGroupLayout: () => ({}) };
  const info = { ...PAPER_ADAPTER.info, software };
  const limits = { ...LIMITS, maxStorageBuffersPerShaderStage: storageBuffers };
  const gpu = allocatingGpu({ ...PAPER_ADAPTER, limits, info });
  const device = {
    ...gpu.device,
    createShaderModule: () => ({}),
    createComputePipeline: () => pipeline,
    createComputePipelineAsync: () => Promise.resolve(pipeline),
    createBindGroup: () => ({}),
    createCommandEncoder: () => ({ beginComputePass: () => pass, finish: () => ({}) }),
    queue: { ...gpu.device.queue, submit: nothing },
  };
  return { ...gpu, device: device as unknown as GPUDevice };
}
