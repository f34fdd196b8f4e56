import type { Dispatch, Kernel } from "./kernel.ts";
import { type UniformModule, withUniforms } from "./wgsl.ts";

/**
 * Constants of kernels in uniform buffers, for software adapters: a compiler of CPU code takes 0.25 to 0.5 s for each
 * pipeline, so dispatches that differ in constants share one. A GPU's compiler is fast, and the constants that it knows
 * make its code faster.
 */
export interface UniformConstants {
  /** The kernel's text with its constants in @group(1) @binding(0). */
  codeOf(kernel: Kernel): string;
  /** The constants that its pipeline still is made with: those that sizes depend on. */
  overridesOf(launch: Dispatch): Readonly<Record<string, number>>;
  /** Binds the values of a dispatch; undefined where its kernel has no such constants. */
  groupOf(launch: Dispatch, pipeline: GPUComputePipeline): GPUBindGroup | undefined;
}

/** Modules, buffers and bind groups are made once each; a buffer is a few words, and goes with the device. */
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
