import type { Dispatch, Kernel } from "./kernel.ts";
import { type UniformModule, withUniforms } from "./wgsl.ts";

/**
 * Stores constants of kernels in uniform buffers on software adapters, so that dispatches with different constants
 * share a pipeline: compiling CPU code takes 0.25 to 0.5 s for each. A GPU's compiler is fast, and constants that are
 * known when it compiles make its code faster.
 */
export interface UniformConstants {
  /** The kernel's text with its constants in @group(1) @binding(0). */
  codeOf(kernel: Kernel): string;
  /** The constants that the pipeline is still made with, because sizes depend on them. */
  overridesOf(launch: Dispatch): Readonly<Record<string, number>>;
  /** Returns the bind group with a dispatch's constants; undefined where its kernel has none in a buffer. */
  groupOf(launch: Dispatch, pipeline: GPUComputePipeline): GPUBindGroup | undefined;
}

/** Each module, buffer and bind group is made once. A buffer has a few words and lives as long as the device. */
export function uniformConstants(device: GPUDevice): UniformConstants {
  const modules = new Map<string, UniformModule>();
  const buffers = new Map<string, GPUBuffer>();
  const groups = new Map<GPUComputePipeline, Map<string, GPUBindGroup>>();

  function moduleOf({ name, code }: Kernel): UniformModule {
    return modules.getOrInsertComputed(name, () => withUniforms(code));
  }

  function wordsOf({ kernel, constants }: Dispatch): DataView<ArrayBuffer> {
    const moved = moduleOf(kernel).constants;
    const words = new DataView(new ArrayBuffer(4 * moved.length));
    for (const [i, { name, type }] of moved.entries()) {
      const value = constants[name] as number;
      if (type === "f32") words.setFloat32(4 * i, value, true);
      else words.setInt32(4 * i, value, true);
    }
    return words;
  }

  function bufferOf(key: string, words: DataView<ArrayBuffer>): GPUBuffer {
    return buffers.getOrInsertComputed(key, () => {
      const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
      const size = Math.ceil(words.byteLength / 16) * 16;
      const buffer = device.createBuffer({ label: "constants", size, usage });
      device.queue.writeBuffer(buffer, 0, words.buffer);
      return buffer;
    });
  }

  return {
    codeOf: (kernel) => moduleOf(kernel).code,

    overridesOf({ kernel, constants }) {
      const moved = new Set(moduleOf(kernel).constants.map(({ name }) => name));
      return Object.fromEntries(Object.entries(constants).filter(([name]) => !moved.has(name)));
    },

    groupOf(launch, pipeline) {
      const words = wordsOf(launch);
      if (words.byteLength === 0) return undefined;
      const key = new Uint8Array(words.buffer).toHex();
      const ofPipeline = groups.getOrInsertComputed(pipeline, () => new Map());
      return ofPipeline.getOrInsertComputed(key, () =>
        device.createBindGroup({
          label: "constants",
          layout: pipeline.getBindGroupLayout(1),
          entries: [{ binding: 0, resource: { buffer: bufferOf(key, words) } }],
        }));
    },
  };
}
