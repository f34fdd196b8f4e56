import { type Gpu, type GpuChoice, openGpu as open } from "../../src/gpu/device.ts";

// A software adapter uses its matrix units only where it is asked to.
if (!Deno.env.get("EYRIE_MATRIX_UNITS")) Deno.env.set("EYRIE_MATRIX_UNITS", "on");

let software: Promise<Gpu> | undefined;

/**
 * As the product's `openGpu`. A software adapter has one device for all engines of a test file, which
 * keeps what it compiled: a kernel takes it some 15 ms, and most engines have the same ones.
 */
export async function openGpu(choice?: GpuChoice): Promise<Gpu> {
  if (software) return await software;
  const gpu = await open(choice);
  if (!gpu.info.software) return gpu;
  software ??= Promise.resolve(keeping(gpu));
  return await software;
}

/** The device makes a module or a pipeline once. */
function keeping(gpu: Gpu): Gpu {
  const { device } = gpu;
  const createModule = device.createShaderModule.bind(device);
  const modules = new Map<string, GPUShaderModule>();
  device.createShaderModule = (descriptor) => {
    const key = JSON.stringify([descriptor.label, descriptor.code]);
    return modules.getOrInsertComputed(key, () => createModule(descriptor));
  };
  device.createComputePipeline = once(device.createComputePipeline.bind(device));
  device.createComputePipelineAsync = once(device.createComputePipelineAsync.bind(device));
  return gpu;
}

function once<Made>(
  create: (descriptor: GPUComputePipelineDescriptor) => Made,
): (descriptor: GPUComputePipelineDescriptor) => Made {
  const pipelines = new WeakMap<GPUShaderModule, Map<string, Made>>();
  return (descriptor) => {
    const { label, layout, compute: { module, entryPoint, constants } } = descriptor;
    if (layout !== "auto") return create(descriptor);
    const made = pipelines.getOrInsertComputed(module, () => new Map());
    const key = JSON.stringify([label, entryPoint, constants]);
    return made.getOrInsertComputed(key, () => create(descriptor));
  };
}
